-- One turn of a worker: ends its sends and claims the next ones, in one call.
-- ARGV: name, incarnation, slots, most dead, a packed list of bots, one of ends, serial, most slots to offer; an end:
--   {incarnation of the claim, lane, token, verdict, delay or reason, what is counted or detail, health, error}
-- With a serial the worker's offer is withdrawn, its slots are used too, and what is left of all is offered anew.
-- Returns {alive, now, ms until there is more (-1: not known), bots to probe, tokens lost,
--   {lane, token, head, trial, message} of each claim, bots paused by this turn,
--   {serial, slots} withdrawn, what was handed and not popped, slots used, slots offered}.
local name, incarnation, slots, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local serial, most_offered = ARGV[7] or '', tonumber(ARGV[8] or '0')
local unsent = { expired = true, unreadable = true, file_gone = true }
local bots, probes, lost, claimed, paused, wait = cmsgpack.unpack(ARGV[5]), {}, {}, {}, {}, -1

local function sooner(ms)
  if wait < 0 or ms < wait then wait = math.max(ms, 0) end
end

local function pause(bot, kind, delay)
  local key = Q .. ':pause:' .. bot
  local held = redis.call('HMGET', key, 'kind', 'until')
  local till = now + delay
  if held[1] == 'token' and kind ~= 'token' then return end
  if held[1] == kind and tonumber(held[2]) >= till then return end
  if held[1] == 'outage' and kind == 'flood' then return end
  redis.call('DEL', key)
  redis.call('HSET', key, 'kind', kind, 'until', till, 'tries', 0)
  if kind == 'flood' and held[1] ~= 'flood' then slow_down(pace_key(bot)) end
  paused[#paused + 1] = bot .. ' ' .. kind
end

local function others_wait(bot)
  for _, class in ipairs(CLASSES) do
    if redis.call('EXISTS', Q .. ':ready:' .. bot .. ':' .. class) == 1 then return true end
  end
  return false
end

-- Sends that failed in a row, on different chats where more than one waits, are an outage: the bot pauses.
local function down(bot, chat, lane)
  local key, trial = Q .. ':pause:' .. bot, redis.call('HMGET', Q .. ':pause:' .. bot, 'kind', 'lane', 'tries')
  if trial[1] == 'trial' then
    if trial[2] == lane then
      redis.call('HSET', key, 'kind', 'outage', 'until', now + math.min(1000 * 2 ^ tonumber(trial[3]), 15000))
    end
    return
  end
  local failing = Q .. ':failing:' .. bot
  redis.call('HINCRBY', failing, chat, 1)
  local row = redis.call('HINCRBY', failing, 'row', 1)
  redis.call('PEXPIRE', failing, 600000)
  if redis.call('HLEN', failing) > 3 or (row >= 5 and not others_wait(bot)) then pause(bot, 'outage', 1000) end
end

local function up(bot)
  redis.call('DEL', Q .. ':failing:' .. bot)
  local kind = redis.call('HGET', Q .. ':pause:' .. bot, 'kind')
  if kind == 'trial' or kind == 'outage' then redis.call('DEL', Q .. ':pause:' .. bot) end
end

-- The longest wait that Telegram asked for counts, for every worker; after it the chat, or the bot, goes slower.
local function flood(bot, chat, delay)
  local blocked, till = Q .. ':blocked:' .. bot, now + delay
  if tonumber(redis.call('HGET', blocked, chat) or '0') < till then redis.call('HSET', blocked, chat, till) end
  local floods = Q .. ':floods:' .. bot
  redis.call('ZREMRANGEBYSCORE', floods, '-inf', now - 5000)
  redis.call('ZADD', floods, now, chat)
  redis.call('PEXPIRE', floods, 5000)
  if has_pace(chat) then slow_down(pace_key(bot, chat)) end
  local no_chat = not string.match(chat, '^[-@?%d]')
  if no_chat or redis.call('ZCARD', floods) >= 3 then pause(bot, 'flood', delay) end
end

local function never_sent(verdict, a, b)
  return (verdict == 'dead' and unsent[a]) or (verdict == 'again' and (b == '' or b == 'unsent'))
end

local function finish(lane, verdict, a, b, why)
  local bot, _, chat = parse(lane)
  if verdict == 'sent' then
    leave(lane)
  elseif verdict == 'dead' then
    local h = head(lane)
    failed(h, why)
    bury(bot, lane, a, b, h.attempts + h.doubts + (unsent[a] and 0 or 1), leave(lane), most, h)
  elseif verdict == 'again' then
    local h = head(lane)
    if h[b] then
      h[b] = h[b] + 1
      failed(h, why)
      keep_head(lane, h)
    end
    ready(lane, now + a)
  elseif verdict == 'flood' then
    flood(bot, chat, a)
    ready(lane, now + a)
  elseif verdict == 'token' then
    pause(bot, 'token', a)
    ready(lane, now)
  end
end

for _, given in ipairs(cmsgpack.unpack(ARGV[6])) do
  local owner, lane, token, verdict, a, b, health, why = unpack(given)
  local claims = Q .. ':claims:' .. owner
  local bot, _, chat = parse(lane)
  if redis.call('HGET', claims, lane) ~= token then
    lost[#lost + 1] = token
  elseif verdict == 'kept' then
    uncount(lane, token)
    redis.call('HSET', claims, lane, 'kept ' .. token)
  else
    redis.call('HDEL', claims, lane)
    if never_sent(verdict, a, b) then uncount(lane, token) else settle(lane, token) end
    if health == 'up' then up(bot) end
    finish(lane, verdict, a, b, why)
    if health == 'down' then down(bot, chat, lane) end
  end
end

local function due(bot)
  local key = Q .. ':delayed:' .. bot
  local found = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, 100)
  for _, delayed in ipairs(found) do
    local lane, message = string.match(delayed, '^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d([^\n]*)\n(.*)$')
    redis.call('ZREM', key, delayed)
    append(lane, message)
  end
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first[2] then sooner(tonumber(first[2]) - now) end
end

-- Only an answer to getMe ends this pause: this worker asks.
local function probe(bot, kind)
  local key = Q .. ':pause:' .. bot
  local tries = redis.call('HINCRBY', key, 'tries', 1)
  local again = kind == 'token' and 30000 or math.min(1000 * 2 ^ tries, 15000)
  redis.call('HSET', key, 'until', now + again)
  probes[#probes + 1] = bot
  sooner(again)
end

local function claim_due(bot)
  due(bot)
  local room, trial, paused, left = room_of(bot, slots - #claimed)
  if paused and left > 0 then sooner(left) end
  if paused and left == 0 then probe(bot, paused) end
  local next_at = claim_bot(incarnation, bot, room, trial, claimed)
  if next_at then sooner(next_at - now) end
end

local alive = 1
local heartbeat = Q .. ':heartbeat:' .. name
local living = redis.call('GET', heartbeat)
if living and living ~= incarnation then alive = 0 end
local takes, withdrawn, handed, offered = slots > 0 or most_offered > 0, {}, {}, 0
if serial ~= '' then withdrawn, handed = withdraw(incarnation) end
if takes then slots = slots + (withdrawn[2] or 0) end
if alive == 1 and takes then
  redis.call('SET', heartbeat, incarnation, 'PX', BEAT)
  redis.call('HSET', Q .. ':workers', incarnation, name)
  for _, bot in ipairs(bots) do claim_due(bot) end
  offered = math.min(most_offered, slots - #claimed)
  if offered > 0 then offer(incarnation, name, serial, offered, bots) end
end
if #claimed >= slots then
  for _, bot in ipairs(bots) do
    if others_wait(bot) then ring(bot) end
  end
end
return { alive, now, wait, probes, lost, claimed, paused, withdrawn, handed, slots, offered }
