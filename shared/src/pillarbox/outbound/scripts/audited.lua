-- What people did with messages, the newest first. ARGV: most
return redis.call('LRANGE', Q .. ':audit', 0, tonumber(ARGV[1]) - 1)
