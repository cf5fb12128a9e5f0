-- Put before every script: the words they share. KEYS[1] is the queue's name; times are ms of Redis's clock.
local Q = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local BEAT, REMEMBER = 10000, 86400

local function number(name)
  return redis.call('HINCRBY', Q .. ':numbers', name, 1)
end

local function parse(lane)
  return string.match(lane, '^([^:]+):(%a+):(.*)$')
end

local function ring(bot)
  local bell = Q .. ':bell:' .. bot
  if redis.call('EXISTS', bell) == 0 then redis.call('LPUSH', bell, '1') end
end

local function ready(lane, at)
  local bot, class, chat = parse(lane)
  redis.call('ZADD', Q .. ':ready:' .. bot .. ':' .. class, at, chat)
end

-- A lane of one was empty, so it was neither ready nor claimed. Says whether it is ready by this.
local function append(lane, message)
  local bot, class = parse(lane)
  redis.call('HINCRBY', Q .. ':depth:' .. bot, class, 1)
  local first = redis.call('RPUSH', Q .. ':lane:' .. lane, message) == 1
  if first then ready(lane, now) end
  return first
end

local function enter(lane, message)
  if append(lane, message) then ring((parse(lane))) end
end

-- What counts of a head: `attempts unsent doubts`, and its first and last error where there was one.
local function head(lane)
  local state = redis.call('HGET', Q .. ':heads', lane) or '0 0 0'
  local attempts, unsent, doubts, first, last = string.match(state, '^(%d+) (%d+) (%d+) ?(%S*) ?(%S*)$')
  local h = { attempts = tonumber(attempts), unsent = tonumber(unsent), doubts = tonumber(doubts) }
  h.first, h.last = first, last
  return h
end

local function keep_head(lane, h)
  local counts = h.attempts .. ' ' .. h.unsent .. ' ' .. h.doubts
  redis.call('HSET', Q .. ':heads', lane, h.last == '' and counts or counts .. ' ' .. h.first .. ' ' .. h.last)
end

local function failed(h, why)
  if why ~= '' then h.first, h.last = h.first == '' and why or h.first, why end
end

-- Where a message with an id was put, as the value of its id: the chat, with the class before it where that is not
-- interactive; of one that is delayed its number and when it is due before that.
local function spot(lane, n, due)
  local _, class, chat = parse(lane)
  local short = class == 'interactive' and chat or string.sub(class, 1, 1) .. ':' .. chat
  return due and 'd' .. n .. ' ' .. due .. ' ' .. short or short
end

local function id_key(bot, id)
  return Q .. ':id:' .. bot .. ':' .. id
end

-- The head leaves its lane; the next one is ready at once.
local function leave(lane)
  local bot, class = parse(lane)
  local message = redis.call('LPOP', Q .. ':lane:' .. lane)
  redis.call('HDEL', Q .. ':heads', lane)
  redis.call('HINCRBY', Q .. ':depth:' .. bot, class, -1)
  if redis.call('EXISTS', Q .. ':lane:' .. lane) == 1 then ready(lane, now) end
  return message
end

-- Decoded where that is cheap; a long element is searched.
local function method_of(message)
  local element = string.match(message, '^[^\n]*\n(.*)$') or ''
  if #element <= 16384 then
    local read, found = pcall(cjson.decode, element)
    local method = read and type(found) == 'table' and found.method
    return type(method) == 'string' and string.match(method, '^%a+$') or ''
  end
  return string.match(element, '"method"%s*:%s*"(%a+)"') or ''
end

-- Dead, with the reason; the list keeps the newest, and what it forgets is counted. `h` is its head's.
local function bury(bot, lane, reason, detail, attempts, message, most, h)
  local dead, id = Q .. ':dead:' .. bot, string.format('%012d', number('dead'))
  local about = cjson.encode({
    lane = lane, reason = reason, detail = detail, attempts = attempts, at = now, method = method_of(message),
    first = h and h.first or '', last = h and h.last or '',
  })
  redis.call('ZADD', dead, now, id)
  redis.call('HSET', dead .. ':body', id, about .. '\n' .. message)
  redis.call('SADD', Q .. ':bots', bot)
  redis.call('HINCRBY', Q .. ':buried', reason, 1)
  local over = math.min(redis.call('ZCARD', dead) - most, 1000)
  if over > 0 then
    local oldest = redis.call('ZRANGE', dead, 0, over - 1)
    redis.call('ZREM', dead, unpack(oldest))
    redis.call('HDEL', dead .. ':body', unpack(oldest))
    redis.call('HINCRBY', Q .. ':numbers', 'trimmed', over)
  end
end

-- A claim whose send has an unknown end: one copy more, or dead. Says which.
local function doubt(lane, most)
  local message = redis.call('LINDEX', Q .. ':lane:' .. lane, 0)
  if not message then return 'gone' end
  local h = head(lane)
  h.doubts = h.doubts + 1
  failed(h, 'doubt:worker_died')
  if string.match(message, '^%d+\t%d+\t(%a+)') == 'resend' and h.doubts < 2 then
    keep_head(lane, h)
    ready(lane, now)
    ring((parse(lane)))
    return 'again'
  end
  local bot = parse(lane)
  bury(bot, lane, 'doubt', '', h.attempts + h.doubts, leave(lane), most, h)
  ring(bot)
  return 'dead'
end
