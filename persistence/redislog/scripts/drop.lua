-- Lets a run go, at once or later.
-- KEYS: 1 active, 2 stream, 3 lock
-- ARGV: 1 run, 2 in how many milliseconds, at once if not positive, 3 what the streams' names begin with
-- Returns 1 if the run was there, 0 if not.
if redis.call('HGET', KEYS[3], 'at') == ARGV[1] then
  redis.call('HDEL', KEYS[3], 'at') -- so that renewals do not keep it
end
local found
if tonumber(ARGV[2]) > 0 then
  found = redis.call('PEXPIRE', KEYS[2], ARGV[2])
else
  redis.call('ZREMRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[1])
  found = redis.call('UNLINK', KEYS[2])
end
-- The index lives as long as the longest of the runs, and those that have expired leave it.
local life = 1
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local left = redis.call('PTTL', ARGV[3] .. string.match(member, '^(%d+):'))
  if left == -2 then
    redis.call('ZREM', KEYS[1], member)
  end
  life = math.max(life, left)
end
redis.call('PEXPIRE', KEYS[1], text(life))
return found
