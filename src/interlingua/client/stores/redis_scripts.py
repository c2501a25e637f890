"""
The decisions of the Redis store, each one script, so that the server takes it as a whole.

They compute what `buckets.py` computes, in the same order. A bucket is two hashes: its slots and
sums, and its open reservations by id. Each has an end, so that nothing stays in the server.

`ARGV[1]` is the time in microseconds; empty: the time of the server. Per limit there are two keys
and the arguments that `redis.py` writes in `_arguments`.
"""

from interlingua.client.stores.buckets import LATEST, TOLERANCE
from interlingua.client.stores.contract import RETENTION, SLOTS

_COMMON = (
    f"local SLOTS, TOLERANCE, RETENTION = {SLOTS}, {TOLERANCE!r}, {int(RETENTION * 1e6)}\n"
    f"local INFINITE, LATEST = math.huge, {int(LATEST)}\n"
    """
-- Milliseconds that a key stays after its end. The clock of a test may stand still meanwhile.
local SPARE = ARGV[1] == '' and 1000 or 3600000

local function current()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function text(number) return string.format('%.17g', number) end

local function drop_leases(bucket, now)
  local entries = redis.call('HGETALL', bucket.open_key)
  bucket.held, bucket.first_end = 0, INFINITE
  for i = 1, #entries, 2 do
    local ends, amount = string.match(entries[i + 1], '^(.-) (.*)$')
    ends, amount = tonumber(ends), tonumber(amount)
    if ends <= now then
      redis.call('HDEL', bucket.open_key, entries[i])
    else
      bucket.held = bucket.held + amount
      bucket.first_end = math.min(bucket.first_end, ends)
    end
  end
end

-- The clock was set back: what was counted later than now counts as taken now.
local function bring_back(bucket, slot)
  local later, newest = 0, slot
  for other, amount in pairs(bucket.slots) do
    if other > slot then
      later, newest = later + amount, math.max(newest, other)
      bucket.slots[other] = nil
      redis.call('HDEL', bucket.key, text(other))
    end
  end
  if newest == slot then return end
  bucket.slots[slot] = (bucket.slots[slot] or 0) + later
  bucket.tat = math.max(0, bucket.tat - (newest - slot) * bucket.width)
  redis.call('HSET', bucket.key, text(slot), text(bucket.slots[slot]), 'tat', text(bucket.tat))
end

-- Reads a bucket and forgets what no longer counts.
local function load(key, open_key, width, now)
  local bucket = {key = key, open_key = open_key, width = width, slots = {},
                  held = 0, first_end = INFINITE, last_end = 0, tat = 0, expires = INFINITE}
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    local name, value = fields[i], tonumber(fields[i + 1])
    local slot = tonumber(name)
    if slot then bucket.slots[slot] = value else bucket[name] = value end
  end
  if bucket.first_end <= now then drop_leases(bucket, now) end
  if width > 0 then bring_back(bucket, math.floor(now / width)) end
  local oldest = width > 0 and math.floor(now / width) - SLOTS
  for slot, _ in pairs(bucket.slots) do
    if (oldest and slot < oldest) or (not oldest and bucket.expires <= now) then
      bucket.slots[slot] = nil
      redis.call('HDEL', key, text(slot))
    end
  end
  if bucket.expires <= now then bucket.expires = INFINITE end
  return bucket
end

local function save(bucket, now)
  local values = {}
  local function set(name, value, default)
    if value == default then
      redis.call('HDEL', bucket.key, name)
    else
      values[#values + 1] = name
      values[#values + 1] = text(value)
    end
  end
  local keep = math.max(bucket.last_end, bucket.tat) - now
  for slot, total in pairs(bucket.slots) do
    set(text(slot), total)
    if bucket.width > 0 then
      keep = math.max(keep, (slot + SLOTS + 1) * bucket.width - now)
    else
      keep = math.max(keep, bucket.expires - now)
    end
  end
  set('held', bucket.held, 0)
  set('first_end', bucket.first_end, INFINITE)
  set('last_end', bucket.last_end, 0)
  set('tat', bucket.tat, 0)
  set('expires', bucket.expires, INFINITE)
  if #values == 0 then return end
  redis.call('HSET', bucket.key, unpack(values))
  if keep == INFINITE then
    redis.call('PERSIST', bucket.key)
  else
    redis.call('PEXPIRE', bucket.key, text(math.max(0, math.ceil(keep / 1000)) + SPARE))
  end
  if bucket.last_end > now then
    redis.call('PEXPIRE', bucket.open_key, text(math.ceil((bucket.last_end - now) / 1000) + SPARE))
  end
end

local function used(bucket)
  local total = 0
  for _, amount in pairs(bucket.slots) do total = total + amount end
  return total + bucket.held
end

local function slot_of(bucket, time)
  return bucket.width > 0 and math.floor(time / bucket.width) or next(bucket.slots) or time
end

local function count(limit, bucket, now, amount)
  local slot = slot_of(bucket, now)
  bucket.slots[slot] = (bucket.slots[slot] or 0) + amount
  if limit.ttl > 0 and bucket.width == 0 then bucket.expires = now + limit.ttl end
end

-- The limits of a script, whose arguments begin at this place, with their buckets.
local function limits(place, now)
  local found = {}
  for i = 1, (#ARGV - place + 1) / 7 do
    local function argument(number) return ARGV[place + (i - 1) * 7 + number - 1] end
    found[i] = {
      amount = tonumber(argument(1)), maximum = tonumber(argument(2)), mode = argument(3),
      burst = tonumber(argument(5)), interval = tonumber(argument(6)), ttl = tonumber(argument(7)),
      bucket = load(KEYS[2 * i], KEYS[2 * i + 1], tonumber(argument(4)), now),
    }
  end
  return found
end
"""
)

RESERVE = (
    _COMMON
    + """
local function release(bucket, total, ceiling, now)
  local releases = {}
  for slot, amount in pairs(bucket.slots) do
    local leaves = bucket.width > 0 and (slot + SLOTS + 1) * bucket.width or bucket.expires
    if leaves < INFINITE then releases[#releases + 1] = {leaves, amount} end
  end
  local entries = redis.call('HVALS', bucket.open_key)
  for i = 1, #entries do
    local ends, amount = string.match(entries[i], '^(.-) (.*)$')
    releases[#releases + 1] = {tonumber(ends), tonumber(amount)}
  end
  table.sort(releases, function(a, b) return a[1] < b[1] end)
  for i = 1, #releases do
    total = total - releases[i][2]
    if total <= ceiling then return releases[i][1] - now end
  end
  return INFINITE
end

local function wait(limit, now)
  local bucket, ceiling, waiting = limit.bucket, limit.maximum * TOLERANCE, 0
  local total = used(bucket) + limit.amount
  if total > ceiling then
    waiting = limit.amount > ceiling and INFINITE or release(bucket, total, ceiling, now)
  end
  if limit.burst >= 0 then
    local allowed = math.max(0, limit.burst - limit.amount) * limit.interval
    waiting = math.max(waiting, math.ceil(bucket.tat - allowed - now))
  end
  return waiting
end

local now, id, lease = current(), ARGV[2], tonumber(ARGV[3])
local before = redis.call('GET', KEYS[1])
if before == '' then return {0, 1, '0', ''} end  -- it was given back: nobody waits for it
if before then  -- it is sent again because the reply was lost
  return {1, string.match(before, ' (.*)$')}
end
local wanted, refused, longest = limits(4, now), nil, 0
for i, limit in ipairs(wanted) do
  local waiting = wait(limit, now)
  if waiting > longest then refused, longest = i, waiting end
end
if refused then
  local waiting = longest == INFINITE and '' or text(longest)
  return {0, refused, text(used(wanted[refused].bucket)), waiting}
end
local ends = now + lease
for _, limit in ipairs(wanted) do
  local bucket = limit.bucket
  if limit.mode == 'spend' then
    count(limit, bucket, now, limit.amount)
  else
    redis.call('HSET', bucket.open_key, id, text(ends) .. ' ' .. text(limit.amount))
    bucket.held = bucket.held + limit.amount
    bucket.first_end = math.min(bucket.first_end, ends)
    bucket.last_end = math.max(bucket.last_end, ends)
  end
  if limit.burst >= 0 then
    bucket.tat = math.min(LATEST, math.max(bucket.tat, now) + limit.amount * limit.interval)
  end
  save(bucket, now)
end
redis.call('SET', KEYS[1], text(ends) .. ' ' .. text(now),
           'PX', text(math.ceil((lease + RETENTION) / 1000)))
return {1, text(now)}
"""
)

_FIND = """
local now, id, lease = current(), ARGV[2], redis.call('GET', KEYS[1])
"""
_SETTLE_FOUND = """
local ends, taken_at = string.match(lease, '^(.-) (.*)$')
if tonumber(ends) + RETENTION <= now then return 0 end
redis.call('DEL', KEYS[1])
for i, limit in ipairs(limits(3 + (#KEYS - 1) / 2, now)) do
  local bucket, real, is_counted = limit.bucket, tonumber(ARGV[2 + i]), false
  local more = real - limit.amount
  if limit.mode == 'spend' then
    local taken = tonumber(taken_at)
    local slot = slot_of(bucket, taken)
    is_counted = bucket.slots[slot] and (slot <= taken or bucket.expires == INFINITE)
    if is_counted then bucket.slots[slot] = math.max(0, bucket.slots[slot] + more) end
  else
    local entry = redis.call('HGET', bucket.open_key, id)
    if entry then
      is_counted = true
      redis.call('HDEL', bucket.open_key, id)
      bucket.held = bucket.held - tonumber(string.match(entry, ' (.*)$'))
      if redis.call('HLEN', bucket.open_key) == 0 then
        bucket.held, bucket.first_end, bucket.last_end = 0, INFINITE, 0
      end
    end
    if limit.mode == 'reserve' then count(limit, bucket, now, real) end
  end
  if limit.burst >= 0 and limit.mode ~= 'hold' and (is_counted or more < 0) then
    bucket.tat = math.max(0, math.min(LATEST, bucket.tat + more * limit.interval))
  end
  save(bucket, now)
end
return 1
"""
SETTLE = f"{_COMMON}{_FIND}if not lease then return 0 end{_SETTLE_FOUND}"

# On another connection the reservation may come later: its id is marked, so that it takes nothing.
_MARK = "if not lease then redis.call('SET', KEYS[1], '', 'PX', 60000) return 0 end"
GIVE_BACK = f"{_COMMON}{_FIND}{_MARK}{_SETTLE_FOUND}"

RENEW = (
    _COMMON
    + """
local now, id, lease = current(), ARGV[2], tonumber(ARGV[3])
local before = redis.call('GET', KEYS[1])
if not before then return 0 end
local ends, taken_at = string.match(before, '^(.-) (.*)$')
ends = tonumber(ends)
if ends <= now then return 0 end
ends = math.max(ends, now + lease)
redis.call('SET', KEYS[1], text(ends) .. ' ' .. taken_at,
           'PX', text(math.ceil((ends - now + RETENTION) / 1000)))
for _, limit in ipairs(limits(4, now)) do
  local bucket = limit.bucket
  if redis.call('HEXISTS', bucket.open_key, id) == 1 then
    redis.call('HSET', bucket.open_key, id, text(ends) .. ' ' .. text(limit.amount))
    bucket.last_end = math.max(bucket.last_end, ends)
    save(bucket, now)
  end
end
return 1
"""
)

USED = (
    _COMMON
    + """
return text(used(load(KEYS[1], KEYS[2], tonumber(ARGV[2]), current())))
"""
)

# Not INCRBYFLOAT: called from a script, it shrinks a buffer of Redis 6.2 whose size the server does
# not correct, and a later command with many arguments then ends the server.
ADD = """
local before = redis.call('GET', KEYS[1])
local ttl = before and redis.call('PTTL', KEYS[1]) or tonumber(ARGV[2] ~= '' and ARGV[2] or -1)
local total = string.format('%.17g', tonumber(before or 0) + tonumber(ARGV[1]))
redis.call('SET', KEYS[1], total)
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
return total
"""

APPEND = """
local length = redis.call('RPUSH', KEYS[1], ARGV[1])
if length == 1 and ARGV[2] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return length
"""
