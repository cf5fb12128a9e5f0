-- Files messages into their lanes, once an id. With a source, they leave the list that they were read from, if the
-- door's lease is still held. Returns {1, filed, repeats, dead, kept}, or {0} where the lease was lost.
-- ARGV: source, lease, token, most dead, then 8 an element: fate, bot, lane, id, due, on_doubt or reason, detail, element
local source, lease, token, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if source ~= '' and redis.call('HGET', lease, 'token') ~= token then return { 0 } end

local filed, repeats, dead, kept, elements = 0, 0, 0, 0, (#ARGV - 4) / 8

local function known(bot, id)
  if id == '' then return false end
  return not redis.call('SET', Q .. ':id:' .. bot .. ':' .. id, '1', 'NX', 'EX', REMEMBER)
end

local function file(bot, lane, id, due, on_doubt, element)
  if known(bot, id) then
    repeats = repeats + 1
    return
  end
  local n = number('message')
  local message = n .. '\t' .. now .. '\t' .. on_doubt .. '\t' .. id .. '\n' .. element
  redis.call('SADD', Q .. ':bots', bot)
  if due > now then
    redis.call('ZADD', Q .. ':delayed:' .. bot, due, string.format('%016d', n) .. lane .. '\n' .. message)
    ring(bot)
  else
    enter(lane, message)
  end
  filed = filed + 1
end

local function line(id)
  return '0\t' .. now .. '\thold\t' .. id .. '\n'
end

for i = 5, #ARGV, 8 do
  local fate, bot, lane, id, element = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 7]
  if fate == 'file' then
    file(bot, lane, id, tonumber(ARGV[i + 4]), ARGV[i + 5], element)
  elseif fate == 'kept' then
    redis.call('RPUSH', (source == '' and Q or string.gsub(lease, ':lease$', '')) .. ':kept', element)
    kept = kept + 1
  elseif known(bot, id) then
    repeats = repeats + 1
  else
    bury(bot, lane, ARGV[i + 5], ARGV[i + 6], 0, line(id) .. element, most)
    dead = dead + 1
  end
end
if source ~= '' then redis.call('LTRIM', source, elements, -1) end
return { 1, filed, repeats, dead, kept }
