-- Put before the scripts of what people do with messages.
local AUDITED = 20000

-- Which message, and whose act; the newest are kept. Without a word of what it says.
local function audit(action, by, bot, id, more)
  local row = { action = action, by = by, bot = bot, id = id, at = now }
  for name, value in pairs(more) do row[name] = value end
  redis.call('LPUSH', Q .. ':audit', cjson.encode(row))
  redis.call('LTRIM', Q .. ':audit', 0, AUDITED - 1)
  redis.call('HINCRBY', Q .. ':numbers', action, 1)
end

local function split(message)
  local filed, on_doubt, id, element = string.match(message, '^%d+\t(%d+)\t(%a+)\t([^\n]*)\n(.*)$')
  return { filed = filed, on_doubt = on_doubt, id = id, element = element }
end

-- Files that are for a message alone go with it. What is not decoded here is left to expire.
local function forget_files(element)
  if #element > 16384 or not string.find(element, '"once"', 1, true) then return end
  local read, found = pcall(cjson.decode, element)
  if not read or type(found) ~= 'table' or type(found.files) ~= 'table' then return end
  for _, file in pairs(found.files) do
    if type(file) == 'table' and file.once == true and type(file.id) == 'string' then
      redis.call('UNLINK', Q .. ':file:' .. file.id)
    end
  end
end

-- The first rank of [low, high) whose member is not less than this one; all have one score. `high` where none is.
local function rank_of(key, low, high, member)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if redis.call('ZRANGE', key, middle, middle)[1] < member then low = middle + 1 else high = middle end
  end
  return low
end

-- The rank that a member of this score has, or would have.
local function place_of(key, score, member)
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. score)
  return rank_of(key, low, low + redis.call('ZCOUNT', key, score, score), member)
end

-- A dead message: what is known of it, and the message. nil where there is none of this number.
local function dead_one(dead, name)
  local body = redis.call('HGET', dead .. ':body', name)
  if not body then return nil end
  local about, message = string.match(body, '^([^\n]*)\n(.*)$')
  return cjson.decode(about), message, about
end

local function dead_gone(dead, name)
  redis.call('ZREM', dead, name)
  redis.call('HDEL', dead .. ':body', name)
end
