-- Put before the scripts that know of idle workers: the slots that one offers, and what was handed to it for them.
-- A worker pops its hand while it listens. What still lies there was never begun, so it goes back without a doubt.
local FRESH, LATEST = 100, 8000

local function offer(incarnation, name, serial, slots, bots)
  local key = Q .. ':offer:' .. incarnation
  redis.call('HSET', key, 'serial', serial, 'left', slots, 'name', name, 'at', now)
  for _, bot in ipairs(bots) do
    redis.call('SADD', Q .. ':idle:' .. bot, incarnation)
    redis.call('PEXPIRE', Q .. ':idle:' .. bot, 6 * BEAT)
  end
end

-- By the worker itself. Returns {serial, slots} of what it had offered, and what lay in its hand.
local function withdraw(incarnation)
  local key = Q .. ':offer:' .. incarnation
  local held = redis.call('HMGET', key, 'serial', 'left')
  redis.call('DEL', key)
  return held[1] and { held[1], tonumber(held[2]) } or {}, redis.call('LPOP', Q .. ':hand:' .. incarnation, 1000) or {}
end

-- Puts claims into a worker's hand: {lane, token, head, trial, message} of each.
local function hand(incarnation, serial, claimed)
  local handed = {}
  for i, one in ipairs(claimed) do
    local line = { incarnation, serial, now, one[1], one[2], one[3] }
    handed[i] = table.concat(line, '\t') .. '\n' .. one[5]
  end
  redis.call('RPUSH', Q .. ':hand:' .. incarnation, unpack(handed))
  redis.call('HINCRBY', Q .. ':offer:' .. incarnation, 'left', -#handed)
end

-- What lies in a worker's hand is claimed no more. Its offer, if it has one, is void, and says how much came back.
local function hand_back(incarnation)
  local list, key, back = Q .. ':hand:' .. incarnation, Q .. ':offer:' .. incarnation, 0
  for _, handed in ipairs(redis.call('LRANGE', list, 0, -1)) do
    local lane, token = string.match(handed, '^%x+\t%d+\t%d+\t([^\t]*)\t(%d+c?)\t')
    if redis.call('HGET', Q .. ':claims:' .. incarnation, lane) == token then
      uncount(lane, token)
      redis.call('HDEL', Q .. ':claims:' .. incarnation, lane)
      ready(lane, now)
      ring((parse(lane)))
    end
    back = back + 1
  end
  redis.call('DEL', list)
  if redis.call('EXISTS', key) == 1 then
    redis.call('HSET', key, 'at', 0)
    redis.call('HINCRBY', key, 'left', back)
  end
end

local function forget_offer(incarnation)
  hand_back(incarnation)
  redis.call('DEL', Q .. ':offer:' .. incarnation)
end

-- A worker that listens pops at once: one whose hand stays full hears nothing.
local function stale(incarnation)
  local handed = redis.call('LINDEX', Q .. ':hand:' .. incarnation, 0)
  return handed and now - tonumber(string.match(handed, '^%x+\t%d+\t(%d+)\t')) > FRESH
end

-- How many slots a worker offers that lives and listens, and the offer's serial.
local function offered_by(incarnation)
  local held = redis.call('HMGET', Q .. ':offer:' .. incarnation, 'serial', 'left', 'name', 'at')
  if not held[1] or tonumber(held[4]) < now - LATEST then return 0 end
  if redis.call('GET', Q .. ':heartbeat:' .. held[3]) ~= incarnation then return 0 end
  if stale(incarnation) then
    hand_back(incarnation)
    return 0
  end
  return tonumber(held[2]), held[1]
end

-- An idle worker of a bot: its incarnation, how many slots it offers, and the offer's serial.
local function idle(bot)
  local key = Q .. ':idle:' .. bot
  local incarnation = redis.call('SRANDMEMBER', key)
  while incarnation do
    local slots, serial = offered_by(incarnation)
    if slots > 0 then return incarnation, slots, serial end
    redis.call('SREM', key, incarnation)
    incarnation = redis.call('SRANDMEMBER', key)
  end
end
