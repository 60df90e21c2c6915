-- a HASH index finds equal keys and has no order

s = box.schema.space.create('t')

_ = s:create_index('primary', {type = 'HASH', parts = {1, 'string'}})

_ = s:create_index('pair', {type = 'hash', parts = {2, 'unsigned', 3, 'unsigned'}})

for i = 1, 20 do s:insert{'k' .. i, i, i * i} end

s:get('k7')

s:get('none')

s:select('k7')

s.index.pair:get{4, 16}

s.index.pair:get{4}

s.index.pair:get{4, 17}

s.index.pair:select{4, 16}

s.index.pair:select{4}

s:len()

#s:select()

#s:select({}, {iterator = 'ALL', limit = 5})

s:count()

s:count('k1')

s:count({}, {iterator = 'ALL'})

s:select('k7', {iterator = 'GE'})

s:select('k7', {iterator = 'LT'})

s:select('k7', {iterator = 'REQ'})

#s:select({}, {iterator = 'GT'})

s:select('k7', {iterator = 'EQ'})

s:insert{'k1', 99, 99}

s:insert{'k99', 4, 16}

s:replace{'k4', 4, 16, 'new'}

s:update('k4', {{'=', 4, 'newer'}})

s.index.pair:update({4, 16}, {{'=', 4, 'newest'}})

s.index.pair:delete{4, 16}

s:get('k4')

s:upsert({'k5', 0, 0}, {{'+', 3, 1}})

s:get('k5')

s:upsert({'k50', 0, 0}, {{'+', 3, 1}})

s:get('k50')

s.index.primary:min()

s.index.primary:max()

s.index.primary:random(1) ~= nil

found = {}

for _, t in s:pairs() do found[t[1]] = t[2] end

found.k20

found.k4

s:truncate()

s.index.primary:random(1)

s:select()
