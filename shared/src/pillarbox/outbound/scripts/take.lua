-- Moves elements from a door until `most` are in the worker's list, and returns the list: what an answer that was
-- lost had moved is in it too. ARGV: door, list, lease, token, most, most bytes. Returns false where the lease was lost.
local door, list, lease, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local most, bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
if redis.call('HGET', lease, 'token') ~= token then return false end
local taken, size = redis.call('LLEN', list), 0
while taken < most and size < bytes do
  local element = redis.call('LMOVE', door, list, 'LEFT', 'RIGHT')
  if not element then break end
  taken, size = taken + 1, size + #element
end
return redis.call('LRANGE', list, 0, most - 1)
