-- Gives a lease up. Its record stays for a while, so that its token is known to be over.
-- KEYS: 1 lock, 2 leases
-- ARGV: 1 thread, 2 token, 3 life of the record in milliseconds
-- Returns 1 if the lease was held, 0 if not.
local l = redis.call('HMGET', KEYS[1], 'token', 'held')
if tonumber(l[1] or '0') ~= tonumber(ARGV[2]) or l[2] ~= '1' then
  return 0
end
redis.call('HDEL', KEYS[1], 'held', 'stop', 'at')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
