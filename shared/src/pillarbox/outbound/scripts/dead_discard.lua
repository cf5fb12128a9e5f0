-- Dead messages forgotten for good. ARGV: bot, whose act, numbers
-- Returns {how many numbers were looked at, moved, unknown numbers}.
local bot, by = ARGV[1], ARGV[2]
local dead, moved, unknown, bytes = Q .. ':dead:' .. bot, 0, {}, 0
for i = 3, #ARGV do
  if bytes > 262144 then return { i - 3, moved, unknown } end
  local about, message = dead_one(dead, ARGV[i])
  if not about then
    unknown[#unknown + 1] = ARGV[i]
  else
    local was = split(message)
    bytes = bytes + #message
    dead_gone(dead, ARGV[i])
    forget_files(was.element)
    audit('discard', by, bot, was.id, { number = ARGV[i], reason = about.reason, lane = about.lane })
    moved = moved + 1
  end
end
return { #ARGV - 2, moved, unknown }
