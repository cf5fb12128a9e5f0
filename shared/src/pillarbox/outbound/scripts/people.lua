-- What a person does with dead messages. ARGV: verb, bot, numbers
--   retry   -> {moved, unknown numbers}: each at its lane's end, as if it had just been filed
--   discard -> {moved, unknown numbers}
-- A message without a lane cannot be retried: it is named as unknown.
local verb, bot = ARGV[1], ARGV[2]
local dead, moved, unknown = Q .. ':dead:' .. bot, 0, {}
for i = 3, #ARGV do
  local body = redis.call('HGET', dead .. ':body', ARGV[i])
  local lane, message
  if body then
    local about
    about, message = string.match(body, '^([^\n]*)\n(.*)$')
    lane = cjson.decode(about).lane
  end
  if not body or (verb == 'retry' and lane == '') then
    unknown[#unknown + 1] = ARGV[i]
  else
    redis.call('ZREM', dead, ARGV[i])
    redis.call('HDEL', dead .. ':body', ARGV[i])
    if verb == 'retry' then enter(lane, message) end
    moved = moved + 1
  end
end
return { moved, unknown }
