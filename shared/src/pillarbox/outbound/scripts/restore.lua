-- After an answer that was lost: claims that this worker never heard of are given back; nothing of them was sent.
-- Its offer is void. ARGV: incarnation, then the tokens it knows. Returns how many were given back.
forget_offer(ARGV[1])
local claims, known, back = Q .. ':claims:' .. ARGV[1], {}, 0
for i = 2, #ARGV do known[ARGV[i]] = true end
local held = redis.call('HGETALL', claims)
for i = 1, #held, 2 do
  local token = string.gsub(held[i + 1], '^kept ', '')
  if not known[token] then
    redis.call('HDEL', claims, held[i])
    if token == held[i + 1] then uncount(held[i], token) end
    ready(held[i], now)
    ring((parse(held[i])))
    back = back + 1
  end
end
return back
