-- Tells how a thread stands in the log, and where the news of its group are.
-- KEYS: 1 active, 2 counters, 3 lock
-- ARGV: 1 what the streams' names begin with
-- Returns {id of the latest news, id of the news of the thread's latest deletion or '', run, run id, last seq, 1 if it
--      has ended else 0}; run is '' if the log has none.
local first = began(KEYS[2], now())
local at = first .. '-' .. redis.call('HGET', KEYS[2], 'news')
local gone = redis.call('HGET', KEYS[3], 'gone') or ''
local run, id, last, ended = head(KEYS[1], ARGV[1])
if not run then
  return {at, gone, '', '', '0', 0}
end
return {at, gone, run, id, last, ended and 1 or 0}
