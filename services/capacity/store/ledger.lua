-- The capacity ledger in one script, version 1: decides as `services.capacity.domain` does; one differential suite holds
-- the two together. KEYS[1] is the tagged prefix of all keys, so that a cluster keeps them in one slot; ARGV[1] and
-- the answer are MessagePack: whole numbers stay whole up to 2^53. Time is the server's, in microseconds.
--
-- Keys below the prefix:
--   boot                run id of the server that made this memory, and until when it only learns (hash)
--   catalog             revision in force (string)
--   levels              names of the levels ever declared, "kind:id" (set)
--   level:K:ID          gates, health, pace and the totals of the windows (hash)
--   live:K:ID           live leases by their end, member "lease epoch" (sorted set)
--   win:K:ID            leases of the last minute in the order of their times (list); the lease knows time and tokens
--   over:K:ID           over-use of the last minute by its time, member "lease tokens" (sorted set)
--   lease:ID            one lease (packed)
--   kinds               kinds of work ever seen: whose live sets hold every lease that was not released (set)
--   ended               ended leases by the time at which they may be forgotten (sorted set)
local P, call = KEYS[1], redis.call
local ask = cmsgpack.unpack(ARGV[1])
local stamp = redis.call('TIME')
local now = tonumber(stamp[1]) * 1000000 + tonumber(stamp[2])
local MINUTE, KEPT, FREEZE_MAX = 60000000, 120000000, 3600000000
local since = now - MINUTE
local run_id = string.match(call('INFO', 'server'), 'run_id:(%w+)')

local function text(number) return string.format('%.0f', number) end
local floor, max, min = math.floor, math.max, math.min

local LEASE = {'id', 'holder', 'kind', 'channel', 'supply', 'channel_epoch', 'supply_epoch', 'tokens', 'reserved',
  'expires', 'ended', 'used'}

local function lease_of(id)
  local packed = call('GET', P .. 'lease:' .. id)
  if not packed then return nil end
  local values, lease = cmsgpack.unpack(packed), {}
  for at, field in ipairs(LEASE) do lease[field] = values[at] end
  return lease
end

-- `ended` and `used` are false while there is none.
local function keep(lease)
  call('SET', P .. 'lease:' .. lease.id, cmsgpack.pack({lease.id, lease.holder, lease.kind, lease.channel, lease.supply,
    lease.channel_epoch, lease.supply_epoch, lease.tokens, lease.reserved, lease.expires, lease.ended, lease.used}))
end

local function id_of(member) return string.match(member, '^(.*) %d+$') end

local function is_live(lease) return not lease.ended and lease.expires > now end

local function uses(lease)
  return {{1, lease.kind, 0}, {2, lease.channel, lease.channel_epoch}, {3, lease.supply, lease.supply_epoch}}
end

-- Tokens that a lease weighs at the time of its reservation; what it used beyond them weighs as over-use.
local function weight(lease) return lease.used and min(lease.used, lease.tokens) or lease.tokens end

-- Levels that this run has looked at.
local levels = {}
local FIELDS = {'declared', 'channel', 'slots', 'rpm', 'tpm', 'epoch', 'rev', 'cap', 'pace', 'ceiling', 'cut', 'freeze',
  'requests', 'tokens'}

local function level_of(kind, id)
  local name = kind .. ':' .. id
  local level = levels[name]
  if level then return level end
  local values = call('HMGET', P .. 'level:' .. name, unpack(FIELDS))
  level = {kind = kind, id = id, name = name, channel = values[2] or '', live_key = P .. 'live:' .. name,
    win_key = P .. 'win:' .. name}
  for at, field in ipairs(FIELDS) do
    if at ~= 2 then level[field] = tonumber(values[at] or '') end
  end
  level.declared = level.declared == 1
  level.slots, level.rpm, level.tpm = level.slots or 0, level.rpm or 0, level.tpm or 0
  level.requests, level.tokens, level.ceiling = level.requests or 0, level.tokens or 0, level.ceiling or 0
  local win, over = level.win_key, P .. 'over:' .. name
  while true do
    local id = call('LINDEX', win, 0)
    local lease = id and lease_of(id)
    if not lease or lease.reserved > since then break end
    call('LPOP', win)
    level.requests, level.tokens, level.dirty = level.requests - 1, level.tokens - weight(lease), true
  end
  local late = call('ZRANGEBYSCORE', over, '-inf', since)
  if #late > 0 then
    for _, member in ipairs(late) do level.tokens = level.tokens - tonumber(string.match(member, ' (%d+)$')) end
    call('ZREMRANGEBYSCORE', over, '-inf', since)
    level.dirty = true
  end
  if kind == 1 then call('SADD', P .. 'kinds', id) end
  levels[name] = level
  return level
end

local function live(level)
  if not level.live then level.live = call('ZCOUNT', level.live_key, '(' .. text(now), '+inf') end
  return level.live
end

-- A lease takes its place on its three levels, or leaves it and is forgotten two minutes after its end.
local function place(lease)
  for _, use in ipairs(uses(lease)) do
    call('ZADD', level_of(use[1], use[2]).live_key, lease.expires, lease.id .. ' ' .. use[3])
  end
end

local function unplace(lease)
  for _, use in ipairs(uses(lease)) do
    call('ZREM', level_of(use[1], use[2]).live_key, lease.id .. ' ' .. use[3])
  end
  call('ZADD', P .. 'ended', lease.ended + KEPT, lease.id)
end

-- Live leases of the present health epoch: looked through one by one, and only where health limits.
local function present(level)
  local epoch = level.epoch or 0
  if level.present_epoch ~= epoch then
    local ending, count = ' ' .. text(epoch), 0
    for _, member in ipairs(call('ZRANGEBYSCORE', level.live_key, '(' .. text(now), '+inf')) do
      if string.sub(member, -#ending) == ending then count = count + 1 end
    end
    level.present, level.present_epoch = count, epoch
  end
  return level.present
end

local function save()
  for name, level in pairs(levels) do
    if level.dirty then
      local values = {}
      for _, field in ipairs({'epoch', 'rev', 'cap', 'pace', 'ceiling', 'cut', 'freeze', 'requests', 'tokens'}) do
        values[#values + 1] = field
        values[#values + 1] = level[field] and text(level[field]) or ''
      end
      call('HSET', P .. 'level:' .. name, unpack(values))
    end
  end
end

local function weigh(level, lease)
  call('RPUSH', level.win_key, lease.id)
  level.requests, level.tokens, level.dirty = level.requests + 1, level.tokens + lease.tokens, true
end

-- Refusals: one without a time binds before those with one, which bind by the latest.
local function refuse(found, level, gate, bound, used, at)
  if at then
    if not found.latest or at > found.latest then
      found.latest, found.timed = at, {level, gate, bound, used}
    end
  elseif not found.open then
    found.open = {level, gate, bound, used}
  end
end

local function request_hint(level)
  local id = call('LINDEX', level.win_key, level.requests - level.rpm)
  return id and lease_of(id).reserved + MINUTE or nil
end

local function token_hint(level, tokens)
  local left, from, over, next_over = level.tokens, 0, call('ZRANGE', P .. 'over:' .. level.name, 0, -1, 'WITHSCORES'), 1
  local function leave(tokens_left, at)
    left = left - tokens_left
    return left + tokens <= level.tpm and tonumber(at) + MINUTE or nil
  end
  local function over_leaves()
    next_over = next_over + 2
    return leave(tonumber(string.match(over[next_over - 2], ' (%d+)$')), over[next_over - 1])
  end
  while true do
    local page = call('LRANGE', level.win_key, from, from + 99)
    for _, id in ipairs(page) do
      local lease = lease_of(id)
      while over[next_over] and tonumber(over[next_over + 1]) < lease.reserved do
        local hint = over_leaves()
        if hint then return hint end
      end
      local hint = leave(weight(lease), lease.reserved)
      if hint then return hint end
    end
    if #page < 100 then break end
    from = from + 100
  end
  while over[next_over] do
    local hint = over_leaves()
    if hint then return hint end
  end
end

local function hear(level, epoch, rev, cap)
  if not level.rev or rev > level.rev then
    level.epoch, level.rev, level.cap, level.dirty = epoch, rev, cap, true
  end
end

-- `views` are epoch, revision and limit of the Channel, then of the Supply, as the asker knows them.
local function gates(found, level, views, tokens)
  if level.kind > 1 then
    local at = level.kind * 3 - 5
    hear(level, views[at], views[at + 1], views[at + 2])
    if views[at + 1] < level.rev then refuse(found, level, 'stale_health', level.rev, views[at + 1]) end
  end
  if level.cap and present(level) >= level.cap then refuse(found, level, 'health', level.cap, present(level)) end
  if level.slots > 0 and live(level) >= level.slots then
    refuse(found, level, 'concurrency', level.slots, live(level))
  end
  if level.pace and live(level) >= floor(level.pace / 1000) then
    refuse(found, level, 'adaptive', floor(level.pace / 1000), live(level))
  end
  if level.freeze and now < level.freeze then refuse(found, level, 'frozen', 0, 0, level.freeze) end
  if level.rpm > 0 and level.requests >= level.rpm then
    refuse(found, level, 'requests', level.rpm, level.requests, request_hint(level))
  end
  if level.tpm > 0 and level.tokens + tokens > level.tpm then
    refuse(found, level, 'tokens', level.tpm, level.tokens, token_hint(level, tokens))
  end
end

local function verdict(outcome, level, bound)
  local answer = {outcome = outcome}
  if level then answer.kind, answer.id = level.kind, level.id end
  answer.bound = bound
  return answer
end

local function reserve(wish, learning_until)
  if call('EXISTS', P .. 'lease:' .. wish.id) == 1 then return verdict('known') end
  local kind, channel, supply = level_of(1, wish.kind), level_of(2, wish.channel), level_of(3, wish.supply)
  if not channel.declared then return verdict('undeclared', channel) end
  if not supply.declared then return verdict('undeclared', supply) end
  if supply.channel ~= wish.channel then return verdict('misplaced') end
  local mine = kind.declared and {kind, channel, supply} or {channel, supply}
  for _, level in ipairs(mine) do
    if level.tpm > 0 and wish.tokens > level.tpm then return verdict('too_large', level, level.tpm) end
  end
  local v = wish.views
  local found = {}
  if learning_until > now then refuse(found, channel, 'learning', 0, 0, learning_until) end
  for _, level in ipairs(mine) do gates(found, level, v, wish.tokens) end
  local first = found.open or found.timed
  if first then
    local answer = verdict('refused', first[1], first[3])
    answer.gate, answer.used, answer.at = first[2], first[4], found.latest
    return answer
  end
  local lease = {id = wish.id, holder = wish.holder, kind = wish.kind, channel = wish.channel, supply = wish.supply,
    channel_epoch = v[1], supply_epoch = v[4], tokens = wish.tokens, reserved = now, expires = now + wish.ttl,
    ended = false, used = false}
  keep(lease)
  for number, level in ipairs({kind, channel, supply}) do
    call('ZADD', level.live_key, lease.expires, lease.id .. ' ' .. (number == 1 and 0 or v[number * 3 - 5]))
    weigh(level, lease)
    if level.live then level.live = level.live + 1 end
    local epoch = number == 1 and 0 or v[number * 3 - 5]
    if level.present_epoch == epoch then level.present = level.present + 1 end
  end
  return 1
end

local function learn_pace(level, lease, back)
  if back.outcome == 2 and back.retry > 0 then
    level.freeze, level.dirty = max(level.freeze or 0, now + min(back.retry, FREEZE_MAX)), true
  elseif back.outcome ~= 0 and (not level.cut or lease.reserved > level.cut) then
    if back.outcome == 2 then
      local base = live(level) * 1000
      if level.pace then base = min(base, level.pace) end
      if level.slots > 0 then base = min(base, level.slots * 1000) end
      level.pace, level.ceiling, level.cut = max(1000, floor(base * 7 / 10)), max(level.ceiling, live(level)), now
      level.dirty = true
    elseif level.pace and live(level) * 2000 >= level.pace then
      level.pace, level.dirty = level.pace + max(1, floor(1000000 / level.pace)), true
      if level.pace >= (level.slots > 0 and level.slots or level.ceiling) * 1000 then
        level.pace, level.ceiling = nil, 0
      end
    end
  end
end

local function settle(level, lease, used)
  if used < lease.tokens and lease.reserved > since then
    level.tokens, level.dirty = level.tokens - (lease.tokens - used), true
  elseif used > lease.tokens then
    call('ZADD', P .. 'over:' .. level.name, now, lease.id .. ' ' .. text(used - lease.tokens))
    level.tokens, level.dirty = level.tokens + (used - lease.tokens), true
  end
end

local function release(back)
  local lease = lease_of(back.id)
  if not lease or lease.holder ~= back.holder or not is_live(lease) then return 0 end
  local used = back.used
  local supply = level_of(3, lease.supply)
  if supply.declared then learn_pace(supply, lease, back) end
  lease.ended, lease.used = now, used or false
  for number, use in ipairs(uses(lease)) do
    local level = level_of(number, use[2])
    if used then settle(level, lease, used) end
    if level.live then level.live = level.live - 1 end
    if level.present_epoch == use[3] then level.present = level.present - 1 end
    call('ZREM', level.live_key, lease.id .. ' ' .. use[3])
  end
  call('ZADD', P .. 'ended', now + KEPT, lease.id)
  keep(lease)
  return back.full and lease or 1
end

-- What has no memory, or the memory of another server, learns: `learning_until` is told by the boot.
local boot = call('HMGET', P .. 'boot', 'run_id', 'learning_until')
if ask.op == 'boot' then
  if boot[1] ~= run_id then
    call('HSET', P .. 'boot', 'run_id', run_id, 'learning_until', text(now + ask.learn))
  end
elseif boot[1] ~= run_id then
  return cmsgpack.pack({boot = false})
end
local learning_until = tonumber(boot[2] or '0')

local ops = {}

function ops.boot() return {done = true} end

function ops.decide()
  local answers = {}
  for _, back in ipairs(ask.releases) do
    answers[#answers + 1] = release(back)
  end
  for _, wish in ipairs(ask.reserves) do
    answers[#answers + 1] = reserve(wish, learning_until)
  end
  save()
  return {answers = answers, now = now}
end

function ops.known()
  local lease = lease_of(ask.id)
  return {held = lease, now = now}
end

function ops.renew()
  local renewed = {}
  for _, id in ipairs(ask.ids) do
    local lease = lease_of(id)
    local taught = ask.leases[id]
    if not lease and taught and now < learning_until and taught.expires > now then
      lease = taught
      lease.ended, lease.used = false, false
      if lease.reserved > since then
        for _, use in ipairs(uses(lease)) do weigh(level_of(use[1], use[2]), lease) end
      end
    end
    if lease and lease.holder == ask.holder and is_live(lease) then
      lease.expires = now + ask.ttl
      keep(lease)
      place(lease)
      renewed[#renewed + 1] = id
    end
  end
  save()
  return {renewed = renewed, expires = now + ask.ttl}
end

function ops.apply()
  if ask.revision < tonumber(call('GET', P .. 'catalog') or '0') then return {done = true} end
  for _, name in ipairs(call('SMEMBERS', P .. 'levels')) do call('HSET', P .. 'level:' .. name, 'declared', 0) end
  for _, level in ipairs(ask.levels) do
    local name = level.kind .. ':' .. level.id
    call('SADD', P .. 'levels', name)
    call('HSET', P .. 'level:' .. name, 'declared', 1, 'channel', level.channel, 'slots', text(level.slots),
      'rpm', text(level.rpm), 'tpm', text(level.tpm))
    if level.view then
      hear(level_of(level.kind, level.id), level.view[1], level.view[2], level.view[3])
    end
  end
  call('SET', P .. 'catalog', text(ask.revision))
  save()
  return {done = true}
end

function ops.hear()
  for _, item in ipairs(ask.health) do
    local level = level_of(item.kind, item.id)
    if level.declared then hear(level, item.view[1], item.view[2], item.view[3]) end
  end
  save()
  return {done = true}
end

function ops.figures()
  local found = {}
  for _, name in ipairs(call('SMEMBERS', P .. 'levels')) do
    local kind, id = string.match(name, '^(%d):(.*)$')
    local level = level_of(tonumber(kind), id)
    if level.declared then
      local figure = {kind = level.kind, id = id, channel = level.channel, live = live(level),
        present = present(level)}
      local first = call('LINDEX', level.win_key, 0)
      if first then figure.oldest_request = lease_of(first).reserved end
      local over = call('ZRANGE', P .. 'over:' .. name, 0, 0, 'WITHSCORES')
      if over[2] then figure.oldest_overuse = tonumber(over[2]) end
      for _, field in ipairs(FIELDS) do
        if type(level[field]) == 'number' then figure[field] = level[field] end
      end
      found[#found + 1] = figure
    end
  end
  save()
  return {figures = found}
end

function ops.leases()
  local found = {}
  for _, kind in ipairs(call('SMEMBERS', P .. 'kinds')) do
    for _, member in ipairs(call('ZRANGEBYSCORE', P .. 'live:1:' .. kind, '(' .. text(now), '+inf')) do
      found[#found + 1] = lease_of(id_of(member))
    end
  end
  return {leases = found}
end

function ops.sweep()
  local freed = {}
  for _, kind in ipairs(call('SMEMBERS', P .. 'kinds')) do
    for _, member in ipairs(call('ZRANGEBYSCORE', P .. 'live:1:' .. kind, '-inf', now, 'LIMIT', 0, 1000)) do
      local lease = lease_of(id_of(member))
      lease.ended = lease.expires
      unplace(lease)
      keep(lease)
      for _, use in ipairs(uses(lease)) do freed[#freed + 1] = {use[1], use[2]} end
    end
  end
  for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'ended', '-inf', now, 'LIMIT', 0, 1000)) do
    local lease = lease_of(id)
    for _, use in ipairs(uses(lease)) do level_of(use[1], use[2]) end
    call('DEL', P .. 'lease:' .. id)
    call('ZREM', P .. 'ended', id)
  end
  save()
  return {freed = freed}
end

return cmsgpack.pack(ops[ask.op]())
