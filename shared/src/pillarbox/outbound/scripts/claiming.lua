-- Put before the scripts that claim: what may go now, and the claim itself.

-- May a message of this chat go now? Every limit is asked here. Returns 0, or the time from which it may.
local function may_go(bot, chat)
  local blocked = Q .. ':blocked:' .. bot
  local till = tonumber(redis.call('HGET', blocked, chat) or '0')
  if till > now then return till end
  if till > 0 then redis.call('HDEL', blocked, chat) end
  return 0
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
local function claim(incarnation, bot, class, chat, trial, claimed)
  local lane, token = bot .. ':' .. class .. ':' .. chat, tostring(number('token'))
  redis.call('ZREM', Q .. ':ready:' .. bot .. ':' .. class, chat)
  local message = redis.call('LINDEX', Q .. ':lane:' .. lane, 0)
  if not message then return end
  redis.call('HSET', Q .. ':claims:' .. incarnation, lane, token)
  local state = redis.call('HGET', Q .. ':heads', lane) or '0 0 0'
  claimed[#claimed + 1] = { lane, token, state, trial, message }
  if trial == 1 then
    redis.call('HSET', Q .. ':pause:' .. bot, 'lane', lane, 'until', now + 60000)
  end
end

-- Returns the time from which the next chat may be sent to, where one waits.
local function claim_class(incarnation, bot, class, room, trial, claimed)
  local key, asked, before = Q .. ':ready:' .. bot .. ':' .. class, 0, #claimed
  while #claimed - before < room and asked < 1000 do
    local wanted = room - (#claimed - before)
    local chats = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, wanted)
    if #chats == 0 then break end
    for _, chat in ipairs(chats) do
      local till = may_go(bot, chat)
      if till > 0 then
        redis.call('ZADD', key, till, chat)
      else
        claim(incarnation, bot, class, chat, trial, claimed)
      end
    end
    asked = asked + #chats
  end
  return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end

-- Claims what may go of a bot, `room` at most, answers first. Returns the time from which there is more: not known
-- of the classes that no room was left for.
local function claim_bot(incarnation, bot, room, trial, claimed)
  local soonest
  for _, class in ipairs({ 'answer', 'interactive', 'bulk' }) do
    if room > 0 then
      local before = #claimed
      local next_at = claim_class(incarnation, bot, class, room, trial, claimed)
      if next_at and (not soonest or next_at < soonest) then soonest = next_at end
      room = room - (#claimed - before)
    end
  end
  return soonest
end
