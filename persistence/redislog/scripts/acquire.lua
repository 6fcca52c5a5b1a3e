-- Takes a thread's lease.
-- KEYS: 1 lock, 2 counters, 3 leases, 4 news
-- ARGV: 1 thread, 2 run id, 3 owner, 4 ttl in microseconds, 5 life of the record after the deadline in milliseconds,
--       6 first of the counters as the node came to know it, 7 how long holders are given after data were lost, in
--       microseconds
-- Returns {'got', token, acquired, deadline}
--      or {'held', run id, owner, acquired}, by whom
--      or {'young'}: all data were lost a moment ago; those who held leases then are let have them first.
local t = now()
local first = began(KEYS[2], t)
if ARGV[6] ~= first and t - tonumber(first) < tonumber(ARGV[7]) then
  return {'young'}
end
local l = held(KEYS[1], t)
if l then
  return {'held', l[2], l[3], l[4]}
end
local old = redis.call('HMGET', KEYS[1], 'token', 'held')
if old[2] == '1' then
  tell(KEYS[2], KEYS[4], t, 'asked', ARGV[1])
end
-- A time, so that it is greater than all that were given in data that are lost; and greater than all known, should the
-- clock have been set back.
local token = math.max(t, tonumber(redis.call('HGET', KEYS[2], 'last')) + 1, tonumber(old[1] or '0') + 1)
local deadline = hold({lock = KEYS[1], counters = KEYS[2], leases = KEYS[3]}, ARGV[1], t, {
  token = token, run = ARGV[2], owner = ARGV[3], acquired = t, ttl = tonumber(ARGV[4]), life = tonumber(ARGV[5]),
})
return {'got', text(token), text(t), text(deadline)}
