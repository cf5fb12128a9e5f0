-- Dead messages by number, with what they say: as many as one call may carry. ARGV: bot, numbers
-- Returns {how many numbers were looked at, {number, about, line, element} of each that there is}.
local dead, found, bytes = Q .. ':dead:' .. ARGV[1], {}, 0
for i = 2, #ARGV do
  if bytes > 524288 then return { i - 2, found } end
  local about, message, text = dead_one(dead, ARGV[i])
  if about then
    local line, element = string.match(message, '^([^\n]*)\n(.*)$')
    found[#found + 1] = { ARGV[i], text, line, element }
    bytes = bytes + #message
  end
end
return { #ARGV - 1, found }
