-- Files messages into their lanes, once an id. With a source, they leave the list that they were read from, if the
-- door's lease is still held. What may go at once is claimed for workers that are idle and handed to them; for the
-- rest a bell is rung. Returns {1, filed, repeats, dead, kept, bells rung}, or {0} where the lease was lost.
-- ARGV: source, lease, token, most dead, a packed list of what is known of each element, and the elements:
--   {fate, bot, lane, id, due, on_doubt or reason, detail}
local source, lease, token, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if source ~= '' and redis.call('HGET', lease, 'token') ~= token then return { 0 } end

local filed, repeats, dead, kept = 0, 0, 0, 0
local given, opened, rings = cmsgpack.unpack(ARGV[5]), {}, {}

local function known(bot, id, where)
  if id == '' then return false end
  return not redis.call('SET', id_key(bot, id), where, 'NX', 'EX', REMEMBER)
end

local function file(bot, lane, id, due, on_doubt, element)
  if id ~= '' and known(bot, id, spot(lane)) then
    repeats = repeats + 1
    return
  end
  local n = number('message')
  local message = n .. '\t' .. now .. '\t' .. on_doubt .. '\t' .. id .. '\n' .. element
  redis.call('SADD', Q .. ':bots', bot)
  if due > now then
    redis.call('ZADD', Q .. ':delayed:' .. bot, due, string.format('%016d', n) .. lane .. '\n' .. message)
    if id ~= '' then redis.call('SET', id_key(bot, id), spot(lane, n, due), 'KEEPTTL') end
    rings[bot] = true
  elseif append(lane, message) then
    opened[bot] = opened[bot] or {}
    table.insert(opened[bot], lane)
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

-- Says whether all of the lanes are claimed. A trial is left to a turn: one that came back would hold the bot up.
local function hand_over(bot, lanes)
  local taken, incarnation, slots, serial = {}, idle(bot)
  while incarnation do
    local claimed, room, trial = {}, room_of(bot, slots)
    if trial == 0 then claim_bot(incarnation, bot, room, trial, claimed) end
    if #claimed > 0 then hand(incarnation, serial, claimed) end
    for _, one in ipairs(claimed) do taken[one[1]] = true end
    if #claimed < slots then break end
    incarnation, slots, serial = idle(bot)
  end
  for _, lane in ipairs(lanes) do
    if not taken[lane] then return false end
  end
  return true
end

-- A hand is filled before a bell is rung, for whoever listens to both.
for bot, lanes in pairs(opened) do
  if not hand_over(bot, lanes) then rings[bot] = true end
end
local rung = 0
for bot in pairs(rings) do
  ring(bot)
  rung = rung + 1
end
return { 1, filed, repeats, dead, kept, rung }
