-- Adds entries of one run, whose seqs follow each other, all or none. The id of an entry is its cursor, <run>-<seq>; its
-- one field is named for its kind, and holds its data.
-- KEYS: 1 lock, 2 counters, 3 leases, 4 active, 5 stream, 6 news
-- ARGV: 1 thread, 2 run id of the lease, 3 owner, 4 ttl in microseconds should the lease have to be written again,
--       5 life of a run, and of the record after the deadline, in milliseconds, 6 token,
--       7 run, 8 run id of the entries, 9 seq of the first, 10 what the streams' names begin with,
--       11 life of the record of a released lease in milliseconds, 12... kind ('event' or 'end') and data of each entry
-- Returns {'ok', seq of the run's last entry}
--      or {'lost'}: the token is not the thread's current one
--      or {'id', run id}: the run is there with another id
--      or {'ended', seq}: entries would follow the run's end
--      or {'later', run}: a later run of the thread has begun
--      or {'gap', seq}: the first does not follow the run's last entry, which is seq, 0 for none.
local run, first = ARGV[7], tonumber(ARGV[9])
local last = first + (#ARGV - 11) / 2 - 1

-- add adds the entries from one on.
local function add(from)
  for i = from, last do
    local at = 12 + (i - first) * 2
    redis.call('XADD', KEYS[5], run .. '-' .. text(i), ARGV[at], ARGV[at + 1])
  end
end

-- live makes the run live long from now on, unless that was done a moment ago.
local function live(have)
  if have == 0 or math.floor(have / 256) ~= math.floor(last / 256) then
    redis.call('PEXPIRE', KEYS[5], ARGV[5])
    prolong(KEYS[4], ARGV[5])
  end
end

-- Mostly the entries follow those that the same lease has added: it knows which run, and how far it is. Should the
-- stream not be as the lease knows it, the first of them is not added.
local known = redis.call('HMGET', KEYS[1], 'token', 'held', 'at', 'id', 'last')
if known[1] == ARGV[6] and known[2] == '1' and known[3] == run and known[4] == ARGV[8] and
    tonumber(known[5] or '-1') + 1 == first then
  local added = redis.pcall('XADD', KEYS[5], 'NOMKSTREAM', run .. '-' .. ARGV[9], ARGV[12], ARGV[13])
  if type(added) == 'string' then
    add(first + 1)
    live(first - 1)
    if ARGV[#ARGV - 1] == 'end' then
      redis.call('HDEL', KEYS[1], 'last')
    else
      redis.call('HSET', KEYS[1], 'last', text(last), 'seen', text(now()))
    end
    return {'ok', text(last)}
  end
end

local token = tonumber(ARGV[6])
local how = standing(KEYS[1], KEYS[2], token, ARGV[11])
if how == 'lost' then
  return {'lost'}
end

local have, ended, listed = 0, false, false
local entry = redis.call('XREVRANGE', KEYS[5], '+', '-', 'COUNT', 1)[1]
if entry then
  have, ended = tonumber(string.match(entry[1], '-(%d+)$')), entry[2][1] == 'end'
  local member = redis.call('ZRANGEBYSCORE', KEYS[4], run, run)[1]
  if member and member ~= run .. ':' .. ARGV[8] then
    return {'id', string.match(member, '^%d+:(.*)$')}
  end
  listed = member ~= nil and member ~= false
end

local function write()
  if how == 'unknown' then
    hold({lock = KEYS[1], counters = KEYS[2], leases = KEYS[3]}, ARGV[1], now(), {
      token = token, run = ARGV[2], owner = ARGV[3], acquired = now(), ttl = tonumber(ARGV[4]), life = tonumber(ARGV[5]),
    })
  end
end

if have > 0 and not listed then
  redis.call('ZADD', KEYS[4], run, run .. ':' .. ARGV[8])
  prolong(KEYS[4], ARGV[5])
  tell(KEYS[2], KEYS[6], now(), 'begun', ARGV[1], 'run', run, 'id', ARGV[8])
  listed = true
end
if last <= have then
  write()
  return {'ok', text(have)}
end
if ended then
  return {'ended', text(have)}
end
local top = redis.call('ZREVRANGEBYSCORE', KEYS[4], '+inf', '(' .. run, 'LIMIT', 0, 1)[1] and head(KEYS[4], ARGV[10])
if top and tonumber(top) > tonumber(run) then
  return {'later', top}
end
if first > have + 1 then
  write()
  return {'gap', text(have)}
end
write()
add(have + 1)
if not listed then
  redis.call('ZREMRANGEBYSCORE', KEYS[4], run, run)
  redis.call('ZADD', KEYS[4], run, run .. ':' .. ARGV[8])
  tell(KEYS[2], KEYS[6], now(), 'begun', ARGV[1], 'run', run, 'id', ARGV[8])
end
live(have)
redis.call('HSET', KEYS[1], 'at', run, 'id', ARGV[8]) -- so that renewals keep it, too
if ARGV[#ARGV - 1] == 'end' then
  redis.call('HDEL', KEYS[1], 'last')
else
  redis.call('HSET', KEYS[1], 'last', text(last), 'seen', text(now()))
end
return {'ok', text(last)}
