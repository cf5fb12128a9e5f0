-- A worker's name and heartbeat. ARGV: verb, name, incarnation, and the bots that it has the tokens of
--   enter, beat -> 1, or 0 where another incarnation lives under the name
--   leave       -> 1: the heartbeat is removed, and the worker forgotten if it claims nothing
local verb, name, incarnation = ARGV[1], ARGV[2], ARGV[3]
local heartbeat = Q .. ':heartbeat:' .. name
local living = redis.call('GET', heartbeat)
if verb == 'leave' then
  if living == incarnation then redis.call('DEL', heartbeat) end
  if redis.call('EXISTS', Q .. ':claims:' .. incarnation) == 0 then
    redis.call('HDEL', Q .. ':workers', incarnation)
  end
  return 1
end
if living and living ~= incarnation then return 0 end
redis.call('SET', heartbeat, incarnation, 'PX', BEAT)
redis.call('HSET', Q .. ':workers', incarnation, name)
for i = 4, #ARGV do redis.call('SET', Q .. ':served:' .. ARGV[i], '1', 'PX', BEAT) end
return 1
