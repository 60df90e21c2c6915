-- Methods of a space that is gone: what is checked before that it is there.
-- engines: memtx, vinyl
s = box.schema.space.create('s')

p = s:create_index('primary')

s:drop()

s:insert{1}

s:get(1)

s:get(print)

s:select()

s:select({}, {iterator = 77})

s:select({}, {iterator = 'XX'})

p:get(1)

p:select(1, {iterator = 77})

p:select(1, {iterator = 'XX'})

p:select(1)

p:count(1, {iterator = -1})

p:count(1)

p:pairs(1, {iterator = -1})

p:min()

p:len()

p:update(1, {{'=', 2, 2}})

p:update(1, {a = 1})

p:update(print, {})

p:delete(print)

p:delete(1)

p:alter{}

p:alter{parts = {1, 'string'}}

p:rename('q')

s:len()

s:count()

s:bsize()

s:truncate()

s:format()

s:format{}

s:format{{'a', 'zz'}}

s:frommap{a = 1}

s:create_index({}, 5)

s:create_index('x')

s:rename('t')

s:run_triggers(true)

s:upsert({1}, {a = 1})

s:upsert({1}, {})

s:drop()
