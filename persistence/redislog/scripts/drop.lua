-- Lets a run go, at once or later.
-- KEYS: 1 active, 2 stream, 3 lock
-- ARGV: 1 run, 2 in how many milliseconds, at once if not positive
-- Returns 1 if the run was there, 0 if not.
if redis.call('HGET', KEYS[3], 'at') == ARGV[1] then
  redis.call('HDEL', KEYS[3], 'at') -- so that renewals do not keep it
end
if tonumber(ARGV[2]) > 0 then
  prolong(KEYS[1], ARGV[2])
  return redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[1])
return redis.call('UNLINK', KEYS[2])
