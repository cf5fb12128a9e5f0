-- Dead messages of a bot that match, without what they say, from a place on; nothing is changed.
-- ARGV: bot, `down` or `up`, time and number of the place ('' for the first), most, a packed filter:
--   {since, till, reason, method, chat, id, newest}: each '' where it is not asked
-- Returns {more, time, number, {number, about, line, size} of each}: more is 1 where this call stopped before the
-- end, and time and number are the place to go on from.
local bot, up, at, name, most = ARGV[1], ARGV[2] == 'up', ARGV[3], ARGV[4], tonumber(ARGV[5])
local since, till, reason, method, chat, id, newest = unpack(cmsgpack.unpack(ARGV[6]))
local LOOKED_AT, BYTES = 150, 524288
local dead = Q .. ':dead:' .. bot

local first = since == '' and 0 or redis.call('ZCOUNT', dead, '-inf', '(' .. since)
local last = (till == '' and redis.call('ZCARD', dead) or redis.call('ZCOUNT', dead, '-inf', '(' .. till)) - 1
if at ~= '' then
  local place = place_of(dead, at, up and string.format('%012d', tonumber(name) + 1) or name)
  if up then first = math.max(first, place) else last = math.min(last, place - 1) end
end

local function like(about, line)
  if reason ~= '' and about.reason ~= reason then return false end
  if method ~= '' and string.lower(about.method or '') ~= method then return false end
  if chat ~= '' then
    local _, _, here = parse(about.lane)
    if here ~= chat then return false end
  end
  return id == '' or string.match(line, '^%d+\t%d+\t%a+\t(.*)$') == id
end

local found, looked, bytes, here = {}, 0, 0, nil
local stop = up and math.min(last, first + LOOKED_AT - 1) or math.max(first, last - LOOKED_AT + 1)
local from = up and first or last
local names = {}
if first <= last then
  names = redis.call('ZRANGE', dead, math.min(from, stop), math.max(from, stop), 'WITHSCORES')
end
local step, begin = up and 2 or -2, up and 1 or #names - 1
for i = begin, up and #names - 1 or 1, step do
  if #found >= most or (looked > 0 and bytes > BYTES) then break end
  here = { names[i + 1], names[i] }
  looked, bytes = looked + 1, bytes + redis.call('HSTRLEN', dead .. ':body', names[i])
  if newest == '' or names[i] <= newest then
    local about, message, text = dead_one(dead, names[i])
    local line = about and string.match(message, '^[^\n]*')
    if about and like(about, line) then
      found[#found + 1] = { names[i], text, line, #message - #line - 1 }
    end
  end
end
local more = looked < last - first + 1 and 1 or 0
return { more, here and here[1] or '', here and here[2] or '', found }
