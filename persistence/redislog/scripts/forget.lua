-- Removes all of a thread's entries, and tells all nodes. The lease stays.
-- KEYS: 1 active, 2 counters, 3 news, 4 lock
-- ARGV: 1 thread, 2 what the streams' names begin with, 3 life of the note that says so, and of the record of a released
--       lease, in milliseconds, 4 token
-- Returns the id of the news, or 'lost': the token is not the thread's current one.
if standing(KEYS[4], KEYS[2], tonumber(ARGV[4]), ARGV[3]) == 'lost' then
  return 'lost'
end
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  redis.call('UNLINK', ARGV[2] .. string.match(member, '^(%d+):'))
end
redis.call('UNLINK', KEYS[1])
redis.call('HDEL', KEYS[4], 'at')
local id = tell(KEYS[2], KEYS[3], now(), 'gone', ARGV[1])
redis.call('HSET', KEYS[4], 'gone', id)
prolong(KEYS[4], ARGV[3])
return id
