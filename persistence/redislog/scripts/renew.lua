-- Prolongs a lease, and the life of the run that it writes. A lease whose record was lost with all data is written again.
-- KEYS: 1 lock, 2 counters, 3 leases, 4 active
-- ARGV: 1 thread, 2 run id, 3 owner, 4 ttl in microseconds, 5 life of the record after the deadline in milliseconds,
--       6 token, 7 acquired, 8 life of a run in milliseconds, 9 what the streams' names begin with,
--       10 life of the record of a released lease in milliseconds
-- Returns {'held', token, run id, owner, acquired, deadline, stop}, stop nil if nobody wishes to stop
--      or {'lost'}.
local t = now()
local token = tonumber(ARGV[6])
local how = standing(KEYS[1], KEYS[2], token, ARGV[10])
if how == 'lost' then
  return {'lost'}
end
if how == 'unknown' then
  hold({lock = KEYS[1], counters = KEYS[2], leases = KEYS[3]}, ARGV[1], t, {
    token = token, run = ARGV[2], owner = ARGV[3], acquired = tonumber(ARGV[7]), ttl = tonumber(ARGV[4]),
    life = tonumber(ARGV[5]),
  })
else
  local deadline = t + tonumber(ARGV[4])
  redis.call('HSET', KEYS[1], 'deadline', text(deadline))
  redis.call('PEXPIRE', KEYS[1], text(math.max(tonumber(ARGV[4]), 0) / 1000 + tonumber(ARGV[5])))
  redis.call('ZADD', KEYS[3], text(deadline), ARGV[1])
  prolong(KEYS[3], math.max(tonumber(ARGV[4]), 0) / 1000 + tonumber(ARGV[5]))
  local run = redis.call('HMGET', KEYS[1], 'at', 'id')
  local at, id = run[1], run[2]
  if at then
    if redis.call('PEXPIRE', ARGV[9] .. at, ARGV[8]) == 1 and id then
      redis.call('ZADD', KEYS[4], at, at .. ':' .. id) -- should the index be lost
    end
    prolong(KEYS[4], ARGV[8])
  end
end
local l = lease(KEYS[1])
return {'held', l[1], l[2], l[3], l[4], l[5], l[6]}
