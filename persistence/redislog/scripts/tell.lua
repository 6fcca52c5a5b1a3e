-- Tells all nodes something about a thread.
-- KEYS: 1 counters, 2 news
-- ARGV: 1 what ('changed', 'discarded', 'listed' or 'missed'), 2 thread, 3... names and values of what there is to say
-- Returns the id of the news.
return tell(KEYS[1], KEYS[2], now(), unpack(ARGV))
