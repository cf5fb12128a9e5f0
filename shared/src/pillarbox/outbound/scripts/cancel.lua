-- A message that waits leaves the queue; its id stays filed. ARGV: bot, id, whose act, how many from the lane's end
-- on were looked at. Returns {word, 1 where an earlier send of it is in doubt, how many were looked at}:
--   cancelled; sending: its send is out; ended: it is sent or dead; unknown: no such id was filed; more: call again
local bot, id, by, skip = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local LOOKED_AT, STEP, BYTES = 400, 16, 524288
local where = redis.call('GET', id_key(bot, id))
if not where then return { 'unknown', 0, 0 } end

local function gone(lane, element, doubts)
  forget_files(element)
  audit('cancel', by, bot, id, { lane = lane })
  return { 'cancelled', doubts > 0 and 1 or 0, 0 }
end

local function lane_of(short)
  local letter, chat = string.match(short, '^([abp]):(.*)$')
  local class = ({ a = 'answer', b = 'bulk', p = 'paid' })[letter] or 'interactive'
  return bot .. ':' .. class .. ':' .. (chat or short)
end

local n, due, short = string.match(where, '^d(%d+) (%d+) (.*)$')
local lane = lane_of(short or where)
if n then
  local key, prefix = Q .. ':delayed:' .. bot, string.format('%016d', tonumber(n))
  local rank = place_of(key, due, prefix)
  local delayed = redis.call('ZRANGE', key, rank, rank)[1]
  if delayed and string.sub(delayed, 1, 16) == prefix then
    redis.call('ZREM', key, delayed)
    return gone(lane, string.match(delayed, '^[^\n]*\n[^\n]*\n(.*)$'), 0)
  end
end

local key = Q .. ':lane:' .. lane
local _, class, chat = parse(lane)

-- The head may be out: a lane that is not ready is claimed. The next one takes its place at once.
local function cancel_head(element)
  if not redis.call('ZSCORE', Q .. ':ready:' .. bot .. ':' .. class, chat) then return { 'sending', 0, 0 } end
  local h = head(lane)
  leave(lane)
  if redis.call('EXISTS', key) == 1 then
    ring(bot)
  else
    redis.call('ZREM', Q .. ':ready:' .. bot .. ':' .. class, chat)
  end
  return gone(lane, element, h.doubts)
end

local function cancel(message, index)
  local element = string.match(message, '^[^\n]*\n(.*)$')
  if index == 0 then return cancel_head(element) end
  redis.call('LREM', key, index * 2 < redis.call('LLEN', key) and 1 or -1, message)
  redis.call('HINCRBY', Q .. ':depth:' .. bot, class, -1)
  return gone(lane, element, 0)
end

local length, bytes = redis.call('LLEN', key), 0
local left = length - skip
local stop = math.max(left - LOOKED_AT, 0)
while left > stop and bytes < BYTES do
  local from = math.max(left - STEP, 0)
  local messages = redis.call('LRANGE', key, from, left - 1)
  for i = #messages, 1, -1 do
    bytes = bytes + #messages[i]
    if string.match(messages[i], '^%d+\t%d+\t%a+\t([^\n]*)\n') == id then
      return cancel(messages[i], from + i - 1)
    end
  end
  left = from
end
if left > 0 then return { 'more', 0, length - left } end
return { 'ended', 0, length }
