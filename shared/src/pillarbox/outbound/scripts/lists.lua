-- Whose messages there ever were, and the newest number of a dead one: {bots, number}.
return { redis.call('SMEMBERS', Q .. ':bots'), tonumber(redis.call('HGET', Q .. ':numbers', 'dead') or '0') }
