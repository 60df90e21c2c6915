-- a primary index with a sequence fills a first field that is nil
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary', {sequence = true})

s:insert{nil, 'a'}

s:insert{box.NULL, 'b'}

s:insert{10, 'c'}

s:insert{nil, 'd'}

s:insert{5, 'e'}

s:replace{nil, 'f'}

s:auto_increment{'g'}

s:insert{}

s:update(1, {{'=', 1, box.NULL}})

s.index.primary.sequence_id

s.index.primary.sequence_fieldno

box.sequence.t_seq.name

box.sequence.t_seq:next()

box.sequence.t_seq:drop()

s:drop()

box.sequence.t_seq

-- the sequence may be one that exists

_ = box.schema.sequence.create('ticket', {start = 100, step = 10})

s = box.schema.space.create('t')

_ = s:create_index('primary', {type = 'HASH', sequence = 'ticket'})

s:insert{nil, 1}

s:insert{nil, 2}

s:insert{55, 3}

s:insert{nil, 4}

box.sequence.ticket:drop()

box.sequence.ticket.step

s:select{100}

-- and must exist, and fit the field

box.schema.space.create('u'):create_index('primary', {sequence = 'none'})

box.space.u:create_index('primary', {sequence = true, parts = {1, 'string'}})

box.space.u:create_index('primary', {sequence = {id = 'ticket', field = 1}}).sequence_id ~= nil

box.space.u:insert{nil, 1}
