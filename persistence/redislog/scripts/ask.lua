-- Notes the wish to stop a run, and tells its holder. Of several wishes the first stays.
-- KEYS: 1 lock, 2 counters, 3 news
-- ARGV: 1 thread, 2 run id, empty for any, 3 who asks
-- Returns {token, run id, owner, acquired, deadline, stop}; or {} if nobody holds the thread, or for another run.
local t = now()
local l = held(KEYS[1], t)
if not l or (ARGV[2] ~= '' and ARGV[2] ~= l[2]) then
  return {}
end
redis.call('HSETNX', KEYS[1], 'stop', ARGV[3])
tell(KEYS[2], KEYS[3], t, 'asked', ARGV[1])
return lease(KEYS[1])
