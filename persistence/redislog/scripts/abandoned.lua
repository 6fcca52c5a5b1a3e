-- Lists leases whose deadlines have passed, the earliest first.
-- KEYS: 1 leases
-- ARGV: 1 how many at most, 2 what the locks' names begin with
-- Returns a list of {thread, token, run id, owner, acquired, deadline, stop}; stop nil if nobody wishes to stop.
local found = {}
for _, thread in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now()), 'LIMIT', 0, ARGV[1])) do
  local lock = ARGV[2] .. thread
  if redis.call('HGET', lock, 'held') == '1' then
    local l = lease(lock)
    found[#found + 1] = {thread, l[1], l[2], l[3], l[4], l[5], l[6]}
  else
    redis.call('ZREM', KEYS[1], thread) -- its record is gone
  end
end
return found
