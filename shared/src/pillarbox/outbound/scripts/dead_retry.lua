-- Dead messages back to the ends of their lanes, as if each had just been filed: a person's act, which its own id does
-- not stop. ARGV: bot, whose act, action, a packed list of {number}; or, of one that is another message now, a list
-- of {number, lane, due, on_doubt, id, its files, seconds that they are kept}, its element, and the files' bytes.
-- Returns {how many numbers were looked at, moved, unknown numbers, refused numbers}: refused has no lane, or an
-- id that was filed since.
local bot, by, action = ARGV[1], ARGV[2], ARGV[3]
local dead, moved, unknown, refused, bytes = Q .. ':dead:' .. bot, 0, {}, {}, 0
local given = cmsgpack.unpack(ARGV[4])

local function revive(about, was, one)
  local lane, due, on_doubt = one[2] or about.lane, one[3] or 0, one[4] or was.on_doubt
  local id, element, owner = was.id, ARGV[5] or was.element, parse(one[2] or about.lane)
  if id == '' and (one[5] or '') ~= '' then
    id = one[5]
    if redis.call('EXISTS', id_key(owner, id)) == 1 then return false end
  end
  for i, file in ipairs(one[6] or {}) do redis.call('SET', Q .. ':file:' .. file, ARGV[5 + i], 'EX', one[7]) end
  local n = number('message')
  local message = n .. '\t' .. now .. '\t' .. on_doubt .. '\t' .. id .. '\n' .. element
  local delayed = due > now
  redis.call('SADD', Q .. ':bots', owner)
  if id ~= '' then
    redis.call('SET', id_key(owner, id), delayed and spot(lane, n, due) or spot(lane), 'EX', REMEMBER)
  end
  if delayed then
    redis.call('ZADD', Q .. ':delayed:' .. owner, due, string.format('%016d', n) .. lane .. '\n' .. message)
    ring(owner)
  else
    enter(lane, message)
  end
  return true
end

for i, one in ipairs(given) do
  if bytes > 262144 then return { i - 1, moved, unknown, refused } end
  local about, message = dead_one(dead, one[1])
  if not about then
    unknown[#unknown + 1] = one[1]
  else
    bytes = bytes + #message
    local was = split(message)
    if (about.lane == '' and not one[2]) or not revive(about, was, one) then
      refused[#refused + 1] = one[1]
    else
      dead_gone(dead, one[1])
      audit(action, by, bot, was.id, { number = one[1], reason = about.reason, lane = one[2] or about.lane })
      moved = moved + 1
    end
  end
end
return { #given, moved, unknown, refused }
