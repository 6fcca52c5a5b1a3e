-- What the other scripts share; it stands before each of them. It has no KEYS and no ARGV of its own.
--
-- Times are the server's, in microseconds since 1970. Lua's numbers hold them, and runs and seqs up to 2^53, exactly;
-- they are written as text with %.0f, since tostring would round them.
--
-- The counters of a group are a hash: first, when the data of this group began (another value means that all there was
-- before is lost); last, the latest token given; news, the number of the latest line of news.

local function now()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

local function text(n)
  return string.format('%.0f', n)
end

-- began returns the counters' first, as text, and makes the counters if they are not there.
local function began(counters, t)
  local first = redis.call('HGET', counters, 'first')
  if not first then
    first = text(t)
    redis.call('HSET', counters, 'first', first, 'last', first, 'news', '0')
  end
  return first
end

-- tell adds a line to the group's news, and returns its id: <first>-<number>, so that a reader sees what it missed.
local function tell(counters, news, t, ...)
  local id = began(counters, t) .. '-' .. text(redis.call('HINCRBY', counters, 'news', 1))
  local added = redis.pcall('XADD', news, 'MAXLEN', '~', '4096', id, ...)
  if type(added) == 'table' and added.err then
    redis.call('DEL', news) -- it is of other counters than these
    redis.call('XADD', news, id, ...)
  end
  redis.call('PEXPIRE', news, 86400000)
  return id
end

-- prolong makes a key live for at least life milliseconds from now.
local function prolong(key, life)
  if redis.call('PTTL', key) < tonumber(life) then
    redis.call('PEXPIRE', key, text(tonumber(life)))
  end
end

-- standing tells of the lease with a token: 'held'; 'lost', to another or because it was released; or 'unknown', if the
-- data in which it was given are gone, so that it may be written again. A token that was given in the data at hand and
-- has no record was released. One from before the data began is unknown for as long as a record outlives its release,
-- which is memory milliseconds: whoever took the thread over since then still has a record.
local function standing(lock, counters, token, memory)
  local l = redis.call('HMGET', lock, 'token', 'held')
  local known = tonumber(l[1] or '0')
  if known == token and l[2] == '1' then
    return 'held'
  end
  if known >= token or token < 1e15 then -- before 1e15, the year 2001, none was given
    return 'lost'
  end
  began(counters, now())
  local c = redis.call('HMGET', counters, 'first', 'last')
  local first, last = tonumber(c[1]), tonumber(c[2])
  if token > last then
    return 'unknown' -- what a primary gave that died before a replica heard of it
  end
  if token <= first and known == 0 and now() - first < tonumber(memory) * 1000 then
    return 'unknown'
  end
  return 'lost'
end

-- hold writes a lease: t is the time, l has token, run, owner, acquired, ttl and the life of an abandoned record.
local function hold(keys, thread, t, l)
  began(keys.counters, t)
  local last = tonumber(redis.call('HGET', keys.counters, 'last'))
  if l.token > last then
    redis.call('HSET', keys.counters, 'last', text(l.token))
  end
  local deadline = t + l.ttl
  redis.call('HDEL', keys.lock, 'stop', 'at', 'seen')
  redis.call('HSET', keys.lock, 'held', '1', 'token', text(l.token), 'run', l.run, 'owner', l.owner,
    'acquired', text(l.acquired), 'deadline', text(deadline))
  redis.call('PEXPIRE', keys.lock, text(math.max(l.ttl, 0) / 1000 + l.life))
  redis.call('ZADD', keys.leases, text(deadline), thread)
  prolong(keys.leases, math.max(l.ttl, 0) / 1000 + l.life)
  return deadline
end

-- lease returns what the record of a lease says: {token, run, owner, acquired, deadline, stop}; stop is false if nobody
-- wishes to stop.
local function lease(lock)
  return redis.call('HMGET', lock, 'token', 'run', 'owner', 'acquired', 'deadline', 'stop')
end

-- held returns the lease if it is held at the time t, else nil.
local function held(lock, t)
  if redis.call('HGET', lock, 'held') ~= '1' then
    return nil
  end
  local l = lease(lock)
  if t < tonumber(l[5]) then
    return l
  end
  return nil
end

-- head returns the number, the id, the last seq and whether it has ended, of the thread's latest run that is in the log,
-- or nil. Runs whose streams have expired leave the index.
local function head(active, streams)
  while true do
    local top = redis.call('ZREVRANGE', active, 0, 0)[1]
    if not top then
      return nil
    end
    local run, id = string.match(top, '^(%d+):(.*)$')
    local entry = redis.call('XREVRANGE', streams .. run, '+', '-', 'COUNT', 1)[1]
    if entry then
      return run, id, string.match(entry[1], '-(%d+)$'), entry[2][1] == 'end'
    end
    redis.call('ZREM', active, top)
  end
end
