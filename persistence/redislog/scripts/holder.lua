-- Tells who holds a thread.
-- KEYS: 1 lock
-- ARGV: none
-- Returns {token, run id, owner, acquired, deadline, stop}, stop nil if nobody wishes to stop; or {} if nobody holds it.
return held(KEYS[1], now()) or {}
