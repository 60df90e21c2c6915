-- before_replace runs before the checks of format and duplicates: a trigger may repair a row
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'name', 'string'}, {name = 'extra', type = 'unsigned', is_nullable = true}}})

_ = s:create_index('primary')

_ = s:create_index('name', {parts = {{2, 'string'}}})

_ = s:insert{1, 'one'}

_ = s:insert{2, 'two'}

log = {}

answer = nil

_ = s:before_replace(function(old, new, space, kind) table.insert(log, {old ~= nil and old[1] or 'none', new, kind}) if answer then return answer(old, new) end return new end)

take = function() local taken = log log = {} return taken end

-- a row that does not fit the format

s:insert{3, 3}

take()

answer = function(old, new) return box.tuple.new{3, 'three'} end

s:insert{3, 3}

s:replace{3}

s:replace{3, 'x', 'y'}

take()

-- a key that does not fit

answer = nil

s:insert{'x', 'y'}

s:insert{}

s:replace{nil, 'x'}

take()

-- a key that is there

answer = nil

s:insert{1, 'one'}

take()

answer = function(old, new) return box.tuple.new{5, 'five'} end

s:insert{1, 'one'}

take()

answer = function(old, new) return old end

s:insert{1, 'one'}

take()

answer = function(old, new) return new end

s:insert{1, 'one'}

take()

answer = function(old, new) return nil end

s:insert{2, 'again'}

take()

s:select()

-- a key of another index that is there

_ = s:run_triggers(false)

_ = s:replace{1, 'one'}

_ = s:replace{2, 'two'}

_ = s:run_triggers(true)

answer = nil

s:insert{7, 'one'}

take()

answer = function(old, new) return new:update{{'=', 2, 'seven'}} end

s:insert{7, 'one'}

s:replace{1, 'two'}

take()

-- updates

answer = nil

s:update(1, {{'=', 2, 5}})

s:update(1, {{'=', 1, 9}})

s:update(9, {{'=', 2, 'x'}})

s:update(1, {{'=', 9, 5}})

take()

answer = function(old, new) return box.tuple.new{1, 'updated'} end

s:update(1, {{'=', 2, 5}})

s:update(1, {{'=', 2, 'two'}})

s:update(1, {{'=', 1, 9}})

take()

-- upserts

answer = nil

s:upsert({1, 'x'}, {{'=', 2, 5}})

s:upsert({8, 5}, {{'=', 2, 5}})

s:upsert({8, 'two'}, {{'=', 2, 'x'}})

take()

answer = function(old, new) return box.tuple.new{old ~= nil and old[1] or 8, 'upserted' .. (old ~= nil and 'again' or '')} end

s:upsert({8, 'two'}, {{'=', 2, 'x'}})

take()

s:select()

-- deletes

answer = function(old, new) return box.tuple.new{2, 5} end

s:delete(2)

answer = nil

s:delete(2)

s:delete(77)

take()

s:select()
