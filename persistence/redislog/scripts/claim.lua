-- Notes whose runs are under the prefix, unless it is noted already.
-- KEYS: 1 history
-- ARGV: 1 the name of a history
-- Returns {the name that is noted}.
local there = redis.call('GET', KEYS[1])
if not there then
  redis.call('SET', KEYS[1], ARGV[1])
  there = ARGV[1]
end
return {there}
