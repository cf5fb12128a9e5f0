-- The lease of a door. ARGV: verb, lease, then
--   look     owner                    -> ms until another's lease may be free, 0 where it is free or one's own
--   take     owner, connection, name -> {token, the connection of the holder before} or {0, ms until it may be free}
--   renew    token                    -> 1 while it is held
--   release  token                    -> 1
--   empty    token, list, name        -> 1: a list that was filed to its end is forgotten
local verb, lease = ARGV[1], ARGV[2]
if verb == 'look' or verb == 'take' then
  local holder = redis.call('HMGET', lease, 'owner', 'until', 'connection')
  local left = tonumber(holder[2] or '0') - now
  local theirs = left > 0 and holder[1] ~= ARGV[3]
  if verb == 'look' then return theirs and left or 0 end
  if theirs then return { 0, left } end
  local token = number('token')
  redis.call('HSET', lease, 'token', token, 'owner', ARGV[3], 'until', now + BEAT, 'connection', ARGV[4])
  redis.call('SADD', string.gsub(lease, ':lease$', ':lists'), ARGV[5])
  return { token, holder[3] or '' }
end
if redis.call('HGET', lease, 'token') ~= ARGV[3] then return 0 end
if verb == 'renew' then redis.call('HSET', lease, 'until', now + BEAT) end
if verb == 'release' then redis.call('HSET', lease, 'until', 0) end
if verb == 'empty' and redis.call('EXISTS', ARGV[4]) == 0 then
  redis.call('SREM', string.gsub(lease, ':lease$', ':lists'), ARGV[5])
end
return 1
