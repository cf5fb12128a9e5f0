-- Files messages into their lanes, once an id. With a source, they leave the list that they were read from, if the
-- door's lease is still held. Returns {1, filed, repeats, dead, kept}, or {0} where the lease was lost.
-- ARGV: source, lease, token, most dead, a packed list of what is known of each element, and the elements:
--   {fate, bot, lane, id, due, on_doubt or reason, detail}
local source, lease, token, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if source ~= '' and redis.call('HGET', lease, 'token') ~= token then return { 0 } end

local filed, repeats, dead, kept = 0, 0, 0, 0
local given = cmsgpack.unpack(ARGV[5])

local function known(bot, id, where)
  if id == '' then return false end
  return not redis.call('SET', id_key(bot, id), where, 'NX', 'EX', REMEMBER)
end

local function file(bot, lane, id, due, on_doubt, element)
  if known(bot, id, spot(lane)) then
    repeats = repeats + 1
    return
  end
  local n = number('message')
  local message = n .. '\t' .. now .. '\t' .. on_doubt .. '\t' .. id .. '\n' .. element
  redis.call('SADD', Q .. ':bots', bot)
  if due > now then
    redis.call('ZADD', Q .. ':delayed:' .. bot, due, string.format('%016d', n) .. lane .. '\n' .. message)
    if id ~= '' then redis.call('SET', id_key(bot, id), spot(lane, n, due), 'KEEPTTL') end
    ring(bot)
  else
    enter(lane, message)
  end
  filed = filed + 1
end

local function line(id)
  return '0\t' .. now .. '\thold\t' .. id .. '\n'
end

for i = 1, #given do
  local element, fate, bot, lane, id, due, why, detail = ARGV[5 + i], unpack(given[i])
  if fate == 'file' then
    file(bot, lane, id, due, why, element)
  elseif fate == 'kept' then
    redis.call('RPUSH', (source == '' and Q or string.gsub(lease, ':lease$', '')) .. ':kept', element)
    kept = kept + 1
  elseif known(bot, id, 'dead') then
    repeats = repeats + 1
  else
    bury(bot, lane, why, detail, 0, line(id) .. element, most)
    dead = dead + 1
  end
end
if source ~= '' then redis.call('LTRIM', source, #given, -1) end
return { 1, filed, repeats, dead, kept }
