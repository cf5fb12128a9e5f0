-- The Bot API answered a paused bot's getMe. ARGV: bot. After an outage one waiting call goes first.
local key = Q .. ':pause:' .. ARGV[1]
local kind = redis.call('HGET', key, 'kind')
if kind == 'token' then redis.call('DEL', key) end
if kind == 'outage' then redis.call('HSET', key, 'kind', 'trial', 'until', now, 'lane', '') end
ring(ARGV[1])
return 1
