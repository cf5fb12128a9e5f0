-- Takes over what workers without a heartbeat had claimed. ARGV: most dead. Returns {workers, again, dead}.
local most, workers, again, dead = tonumber(ARGV[1]), 0, 0, 0
local known = redis.call('HGETALL', Q .. ':workers')
for i = 1, #known, 2 do
  local incarnation, name = known[i], known[i + 1]
  if redis.call('GET', Q .. ':heartbeat:' .. name) ~= incarnation then
    forget_offer(incarnation)
    local claims = redis.call('HGETALL', Q .. ':claims:' .. incarnation)
    for j = 1, #claims, 2 do
      if string.sub(claims[j + 1], 1, 5) == 'kept ' then
        ready(claims[j], now)
        ring((parse(claims[j])))
      else
        settle(claims[j], claims[j + 1])
        local what = doubt(claims[j], most)
        if what == 'again' then again = again + 1 end
        if what == 'dead' then dead = dead + 1 end
      end
    end
    redis.call('DEL', Q .. ':claims:' .. incarnation)
    redis.call('HDEL', Q .. ':workers', incarnation)
    workers = workers + 1
  end
end
return { workers, again, dead }
