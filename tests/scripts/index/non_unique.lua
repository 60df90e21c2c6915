-- a non-unique index orders equal keys by the primary key
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary', {parts = {1, 'string'}})

i = s:create_index('colour', {parts = {2, 'string'}, unique = false})

for n, c in ipairs{'red', 'blue', 'red', 'green', 'blue', 'red'} do s:insert{string.char(103 - n), c, n} end

i:select()

i:select('red')

i:select('red', {iterator = 'REQ'})

i:select('blue', {iterator = 'GT'})

i:select('red', {iterator = 'LT'})

i:count('blue')

i:get('red')

i:delete('red')

i:update('red', {{'=', 3, 0}})

i:select('red', {limit = 1, offset = 1})

i:select('red', {offset = 3})

i:min('red')

i:max('red')

s:replace{'f', 'blue', 1}

i:select('blue')

i:select('red')

i:pairs('red'):map(function(t) return t[1] end):totable()

i:upsert({'f'}, {})

i:insert{'z'}
