-- A worker's name and heartbeat; and a look at the others: who does not pop what it is handed hears nothing, although
-- it still counts as alive. ARGV: verb, name, incarnation, its limits (packed; '' is those before),
-- and the bots that it has the tokens of
--   enter, beat -> 1, or 0 where another incarnation lives under the name
--   leave       -> 1: the heartbeat and the offer are removed, and the worker forgotten if it claims nothing
local verb, name, incarnation = ARGV[1], ARGV[2], ARGV[3]
local heartbeat = Q .. ':heartbeat:' .. name
local living = redis.call('GET', heartbeat)
if verb == 'leave' then
  if living == incarnation then redis.call('DEL', heartbeat) end
  forget_offer(incarnation)
  for i = 5, #ARGV do redis.call('SREM', Q .. ':idle:' .. ARGV[i], incarnation) end
  if redis.call('EXISTS', Q .. ':claims:' .. incarnation) == 0 then
    redis.call('HDEL', Q .. ':workers', incarnation)
  end
  return 1
end
if living and living ~= incarnation then return 0 end
redis.call('SET', heartbeat, incarnation, 'PX', BEAT)
redis.call('HSET', Q .. ':workers', incarnation, name)
if ARGV[4] ~= '' then redis.call('SET', Q .. ':limits', ARGV[4]) end
for i = 5, #ARGV do redis.call('SET', Q .. ':served:' .. ARGV[i], '1', 'PX', BEAT) end
for _, other in ipairs(redis.call('HKEYS', Q .. ':workers')) do
  if stale(other) then hand_back(other) end
end
return 1
