-- on_replace triggers see the old and the new row, and may refuse the change
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

log = {}

function trace(old, new, space, op) table.insert(log, {old == nil and 'nil' or old, new == nil and 'nil' or new, space, op}) end

s:on_replace(trace) == trace

s:insert{1, 'a'}

s:replace{1, 'b'}

s:update(1, {{'=', 2, 'c'}})

s:upsert({1, 'x'}, {{'=', 2, 'd'}})

s:upsert({2, 'y'}, {{'=', 2, 'd'}})

s:delete(1)

s:delete(99)

s:insert{2, 'again'}

log

log = {}

s:truncate()

log

#s:on_replace()

s:on_replace()[1] == trace

s:run_triggers(false)

s:insert{3}

log

s:run_triggers(true)

s:on_replace(nil, trace)

s:on_replace()

s:on_replace(nil, trace)

-- refusing

function refuse(old, new) if new ~= nil and new[2] == 'bad' then error('no bad rows') end end

_ = s:on_replace(refuse)

s:insert{4, 'bad'}

s:get(4)

s:insert{4, 'good'}

s:update(4, {{'=', 2, 'bad'}})

s:get(4)

s:on_replace(function() box.error(box.error.PROC_LUA, 'second') end, refuse) ~= nil

s:insert{5, 'good'}

_ = s:on_replace(nil, s:on_replace()[1])

-- the newest trigger runs first; the row cannot be replaced here

log = {}

_ = s:on_replace(function() table.insert(log, 'first') end)

_ = s:on_replace(function() table.insert(log, 'second') return box.tuple.new{0} end)

s:insert{6}

log

s:on_replace(5)

s:on_replace(nil)

s.on_replace()

-- a trigger may write elsewhere, in the same transaction

u = box.schema.space.create('log')

_ = u:create_index('primary', {sequence = true})

_ = s:on_replace(function(old, new) u:insert{nil, tostring(old), tostring(new)} end)

_ = s:insert{7}

u:select()

box.begin() s:insert{8} box.rollback()

#u:select()
