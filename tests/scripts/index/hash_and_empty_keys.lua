-- a HASH index has no order to go by: only ALL and GT take an empty key; ALL counts all rows whatever the key

s = box.schema.space.create('t')

_ = s:create_index('primary', {type = 'hash'})

_ = s:insert{1}

s:select()

s:select({}, {iterator = 'EQ'})

s:select({}, {iterator = 'ALL'})

s:select({}, {iterator = 'GT'})

s:count({}, {iterator = 'EQ'})

s:count()

u = box.schema.space.create('u')

_ = u:create_index('primary')

_ = u:insert{1}, u:insert{2}, u:insert{3}

u:count(2, {iterator = 'ALL'})

u:count(2, {iterator = 'GE'})

u:count(9, {iterator = 'ALL'})

-- an update that would give a row the key of another one

u:update(1, {{'=', 1, 2}})

u:update(1, {{'=', 1, 9}})
