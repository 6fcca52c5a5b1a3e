-- Writes to the stream that one reader of one node reads besides all else: to see whether what is written comes back,
-- or to wake it.
-- KEYS: 1 probe, 2 counters
-- ARGV: 1 number of the probe, 0 to wake
-- Returns {first of the counters, number of the latest news}.
local first = began(KEYS[2], now())
redis.call('XADD', KEYS[1], 'MAXLEN', '~', '16', '*', 'probe', ARGV[1])
redis.call('PEXPIRE', KEYS[1], 60000)
return {first, redis.call('HGET', KEYS[2], 'news')}
