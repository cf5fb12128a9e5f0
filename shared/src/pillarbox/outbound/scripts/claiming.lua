-- Put before the scripts that claim: what may go now, and the claim itself.

-- May the head of a lane go to its chat now? Every limit of a chat is asked here. Returns 0, or the time from which
-- it may. `blocked` and `pace` are what is kept of the chat.
local function may_go(bot, class, chat, blocked, pace)
  if blocked then
    if tonumber(blocked) > now then return tonumber(blocked) end
    redis.call('HDEL', Q .. ':blocked:' .. bot, chat)
  end
  if class == 'answer' or not string.find(chat, '^[-@%d]') then return 0 end
  local till, p = 0, pace_of(pace)
  if pace and limits.chat > 0 then till = p.tat - (limits.chat_burst - 1) * spacing(limits.chat, p.share) end
  if limits.group > 0 and is_group(chat) then
    local room, from = window_room(window_key(bot, chat), most_of(limits.group, p.share), limits.group_ms)
    if room == 0 then till = math.max(till, from) end
  end
  if till <= now then return 0 end
  local message = redis.call('LINDEX', Q .. ':lane:' .. bot .. ':' .. class .. ':' .. chat, 0)
  return message and is_seen(message) and math.ceil(till) or 0
end

-- How many messages of a bot may be claimed now, of `most`: none while it is paused, one on trial. Returns that
-- number, 1 on trial or 0, and of a pause its kind and ms.
local function room_of(bot, most)
  local key = Q .. ':pause:' .. bot
  local held = redis.call('HMGET', key, 'kind', 'until')
  if not held[1] then return most, 0 end
  local left = tonumber(held[2]) - now
  if left > 0 then return 0, 0, held[1], left end
  if held[1] == 'flood' then
    redis.call('DEL', key)
    return most, 0
  end
  if held[1] == 'trial' then return math.min(most, 1), 1 end
  return 0, 0, held[1], 0
end

-- Adds {lane, token, head, trial, message} to what is claimed.
local function claim(incarnation, bot, class, chat, trial, claimed, pace)
  local lane = bot .. ':' .. class .. ':' .. chat
  redis.call('ZREM', Q .. ':ready:' .. bot .. ':' .. class, chat)
  local message = redis.call('LINDEX', Q .. ':lane:' .. lane, 0)
  if not message then return end
  local token = token_of(chat, message)
  count(bot, class, chat, token, pace)
  redis.call('HSET', Q .. ':claims:' .. incarnation, lane, token)
  local state = redis.call('HGET', Q .. ':heads', lane) or '0 0 0'
  claimed[#claimed + 1] = { lane, token, state, trial, message }
  if trial == 1 then
    redis.call('HSET', Q .. ':pause:' .. bot, 'lane', lane, 'until', now + 60000)
  end
end

local function paces_of(bot, class, chats)
  if class == 'answer' or limits.chat == 0 then return {} end
  local keys = {}
  for i, chat in ipairs(chats) do keys[i] = pace_key(bot, chat) end
  return redis.call('MGET', unpack(keys))
end

-- Returns the time from which the next chat may be sent to, where one waits.
local function claim_class(incarnation, bot, class, room, trial, claimed)
  local key, asked, before = Q .. ':ready:' .. bot .. ':' .. class, 0, #claimed
  while #claimed - before < room and asked < 1000 do
    local wanted = room - (#claimed - before)
    local chats = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, wanted)
    if #chats == 0 then break end
    local blocked = redis.call('HMGET', Q .. ':blocked:' .. bot, unpack(chats))
    local paces = paces_of(bot, class, chats)
    for i, chat in ipairs(chats) do
      local till = may_go(bot, class, chat, blocked[i], paces[i])
      if till > 0 then
        redis.call('ZADD', key, till, chat)
      else
        claim(incarnation, bot, class, chat, trial, claimed, paces[i])
      end
    end
    asked = asked + #chats
  end
  return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end

-- What the rates of a bot leave to a class, of `room`, and the time from which there is more where that is nothing.
-- `paces` are by their keys, those of the rates.
local function room_in(bot, class, room, rates, paces, share)
  local till = 0
  local function within(most, from)
    if most == 0 then till = math.max(till, from) end
    room = math.min(room, most)
  end
  for _, rate in ipairs(rates) do
    paces[rate.key] = paces[rate.key] or pace_of(redis.call('GET', rate.key))
    within(allowance(rate, paces[rate.key]))
  end
  if class == 'bulk' and limits.bulk > 0 then
    within(window_room(window_key(bot, 'bulk'), most_of(limits.bulk, share), 1000))
  end
  return room, till
end

-- As `claim_class`, within the rates of the bot. Returns how many were claimed, too.
local function claim_within(incarnation, bot, class, room, trial, claimed, paces, share)
  local before, rates = #claimed, rates_of(bot, class, share)
  local allowed = room_in(bot, class, room, rates, paces, share)
  local next_at = claim_class(incarnation, bot, class, allowed, trial, claimed)
  local used = #claimed - before
  if used > 0 then
    for _, rate in ipairs(rates) do spend(rate, paces[rate.key], used) end
  end
  if next_at and used == allowed and allowed < room then
    local _, till = room_in(bot, class, 1, rates, paces, share)
    next_at = math.max(next_at, till)
  end
  return next_at, used
end

-- Claims what may go of a bot, `room` at most, answers first. Returns the time from which there is more: not known
-- of the classes that no room was left for.
local function claim_bot(incarnation, bot, room, trial, claimed)
  local soonest
  local key, paces, share = pace_key(bot), {}, 1
  if room > 0 and (limits.bot > 0 or limits.bulk > 0) then
    paces[key] = pace_of(redis.call('GET', key))
    share = paces[key].share
  end
  for _, class in ipairs(CLASSES) do
    if room > 0 and redis.call('EXISTS', Q .. ':ready:' .. bot .. ':' .. class) == 1 then
      local next_at, used = claim_within(incarnation, bot, class, room, trial, claimed, paces, share)
      if next_at and (not soonest or next_at < soonest) then soonest = next_at end
      room = room - used
    end
  end
  return soonest
end
