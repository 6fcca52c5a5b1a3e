-- Tells who holds a thread.
-- KEYS: 1 lock
-- ARGV: none
-- Returns {token, run id, owner, acquired, deadline, stop, age}, stop nil if nobody wishes to stop, age in microseconds that
--      of the last entry that its holder appended, '' if there is none; or {} if nobody holds it.
local t = now()
local l = held(KEYS[1], t)
if not l then
  return {}
end
local seen = redis.call('HGET', KEYS[1], 'seen')
l[7] = seen and text(math.max(t - tonumber(seen), 0)) or ''
return l
