-- Elements that an earlier run set aside are looked at again: they join the worker's list.
-- ARGV: kept, list, lease, token. Returns how many.
local moved = 0
if redis.call('HGET', ARGV[3], 'token') ~= ARGV[4] then return 0 end
for _ = 1, redis.call('LLEN', ARGV[1]) do
  redis.call('LMOVE', ARGV[1], ARGV[2], 'LEFT', 'RIGHT')
  moved = moved + 1
end
return moved
