-- Put before the scripts that claim or give back: how fast a bot may call, and what counts of its calls.
-- A limit of 0 is off. What the senders are set to is in Q:limits; before a sender was there, nothing is limited.
-- A call counts from its claim on until its end, and at its end as made then: it may take effect at any time between.
local LOWEST, RECOVERS, OUT = 0.1, 300000, 900000
local CLASSES = { 'answer', 'interactive', 'paid', 'bulk' }
local known_limits = redis.call('GET', Q .. ':limits')
local limits = known_limits and cmsgpack.unpack(known_limits) or {
  chat = 0, chat_burst = 1, group = 0, group_ms = 0, bulk = 0, paid = 0, bot = 0,
}

-- How a chat or a bot is paced: `tat`, the time at which nothing of its burst is used; `share` of its rate after a
-- 429, as it was `at` that time: it recovers evenly.
local function pace_of(value)
  local tat, share, at = string.match(value or '', '^([%d.]+) ?(%S*) ?(%d*)$')
  local p = { tat = tonumber(tat or '0'), share = 1 }
  if share and share ~= '' then
    p.share = math.min(1, tonumber(share) + math.max(now - tonumber(at), 0) / RECOVERS)
  end
  return p
end

local function pace_key(bot, chat)
  return Q .. ':pace:' .. bot .. (chat and ':' .. chat or '')
end

local function keep_pace(key, p)
  local left = math.ceil(math.max(p.tat - now, (1 - p.share) * RECOVERS))
  if left <= 0 then return redis.call('DEL', key) end
  local value = string.format('%.3f', p.tat)
  if p.share < 1 then value = string.format('%s %.3f %.0f', value, p.share, now) end
  redis.call('SET', key, value, 'PX', left)
end

-- A 429 halves the rate; several of one pause count once.
local function slow_down(key)
  local p = pace_of(redis.call('GET', key))
  p.share = math.max(LOWEST, p.share / 2)
  keep_pace(key, p)
end

local function spacing(rate, share)
  return 1000 / (rate * share)
end

-- A rate of calls: its burst, and the ms in which one call of that comes back. `even` of a window spreads its calls;
-- otherwise the burst is part of what a second may hold.
local function rate_of(key, rate, share, spare, even)
  local burst = math.max(1, math.floor(rate / 10))
  local refill = not even and rate > burst and rate - burst or rate
  return { key = key, burst = burst, step = spacing(refill, share), spare = math.floor(spare * burst) }
end

-- What a call of a class has to keep of its bot's rates: answers nothing; paid calls have one of their own; bulk never
-- takes the last part of the bot's, so that replies do not wait.
local function rates_of(bot, class, share)
  local rates = {}
  if class == 'answer' then return rates end
  if class == 'paid' then
    if limits.paid > 0 then rates[1] = rate_of(pace_key(bot, 'paid'), limits.paid, 1, 0) end
    return rates
  end
  if limits.bot > 0 then rates[1] = rate_of(pace_key(bot), limits.bot, share, class == 'bulk' and 1 / 3 or 0) end
  if class == 'bulk' and limits.bulk > 0 then
    rates[#rates + 1] = rate_of(pace_key(bot, 'bulk'), limits.bulk, share, 0, true)
  end
  return rates
end

-- How many calls a rate lets go now, and the time from which it lets go one.
local function allowance(rate, p)
  local free = rate.burst - rate.spare
  local used = math.max(p.tat - now, 0) / rate.step
  return math.max(math.floor(free - used + 1e-3), 0), math.ceil(p.tat - (free - 1) * rate.step)
end

local function spend(rate, p, calls)
  p.tat = math.max(p.tat, now) + calls * rate.step
  keep_pace(rate.key, p)
end

local function is_group(chat)
  return string.find(chat, '^[-@]') ~= nil
end

local function has_pace(chat)
  return limits.chat > 0 and string.find(chat, '^[-@%d]') ~= nil
end

local function window_key(bot, name)
  return Q .. ':window:' .. bot .. ':' .. name
end

-- How many calls more a window of `ms` takes, and the time from which it takes one.
local function window_room(key, most, ms)
  local held = redis.call('ZCARD', key)
  if held < most then return most - held, 0 end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - ms - 1)
  held = redis.call('ZCARD', key)
  if held < most then return most - held, 0 end
  local first = tonumber(redis.call('ZRANGE', key, held - most, held - most, 'WITHSCORES')[2])
  return 0, first > now and now + 200 or first + ms + 1
end

local function enter_window(key, token)
  redis.call('ZADD', key, now + OUT, token)
  redis.call('PEXPIRE', key, OUT)
end

local function most_of(limit, share)
  return math.max(1, math.floor(limit * share))
end

-- Telegram counts what people see: not what is deleted, nor that somebody types.
local FREE = { sendchataction = true, sendmessagedraft = true, sendrichmessagedraft = true, editchatinvitelink = true }
local function is_seen(message)
  local method = string.lower(string.match(message, '"method"%s*:%s*"(%a+)"') or 'send')
  if FREE[method] then return false end
  local verb = string.sub(method, 1, 4)
  return verb == 'send' or verb == 'edit' or verb == 'copy' or verb == 'forw'
end

-- The token of a claim that counts in its chat ends in `c`.
local function token_of(chat, message)
  local counts = (has_pace(chat) or (limits.group > 0 and is_group(chat))) and is_seen(message)
  return number('token') .. (counts and 'c' or '')
end

local function counts(token)
  return string.sub(token, -1) == 'c'
end

-- At the claim; `pace` is what is kept of the chat. The rates of a bot are spent for all claims of a turn together.
-- What is over within the clock's ms is not kept.
local function count(bot, class, chat, token, pace)
  if class == 'bulk' and limits.bulk > 0 then enter_window(window_key(bot, 'bulk'), token) end
  if not counts(token) then return end
  if has_pace(chat) then
    local p = pace_of(pace)
    p.tat = math.max(p.tat, now) + spacing(limits.chat, p.share)
    if p.tat - now > 1 then keep_pace(pace_key(bot, chat), p) end
  end
  if limits.group > 0 and is_group(chat) then enter_window(window_key(bot, chat), token) end
end

-- At the end of a call that may have had an effect.
local function settle(lane, token)
  local bot, class, chat = parse(lane)
  if class == 'bulk' and limits.bulk > 0 then
    redis.call('ZADD', window_key(bot, 'bulk'), 'XX', now, token)
  end
  if not counts(token) then return end
  if has_pace(chat) and spacing(limits.chat, LOWEST) > 1 then
    local key = pace_key(bot, chat)
    local p = pace_of(redis.call('GET', key))
    local tat = now + spacing(limits.chat, p.share)
    if tat > p.tat then
      p.tat = tat
      keep_pace(key, p)
    end
  end
  if limits.group > 0 and is_group(chat) then
    redis.call('ZADD', window_key(bot, chat), 'XX', now, token)
  end
end

local function give(key, step)
  local p = pace_of(redis.call('GET', key))
  if p.tat > now then
    p.tat = math.max(p.tat - step, 0)
    keep_pace(key, p)
  end
end

-- Nothing of a claim was sent: it counts nowhere.
local function uncount(lane, token)
  local bot, class, chat = parse(lane)
  if class == 'bulk' and limits.bulk > 0 then redis.call('ZREM', window_key(bot, 'bulk'), token) end
  for _, rate in ipairs(rates_of(bot, class, 1)) do give(rate.key, rate.step) end
  if not counts(token) then return end
  if has_pace(chat) then
    local key = pace_key(bot, chat)
    give(key, spacing(limits.chat, pace_of(redis.call('GET', key)).share))
  end
  if limits.group > 0 and is_group(chat) then redis.call('ZREM', window_key(bot, chat), token) end
end
