-- begin, commit and rollback
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

box.is_in_txn()

box.begin()

box.is_in_txn()

s:insert{1}

s:insert{2}

s:get(1)

box.begin()

box.commit()

box.is_in_txn()

s:select()

box.begin()

s:insert{3}

s:delete(1)

s:update(2, {{'=', 2, 'changed'}})

s:replace{2, 'replaced'}

s:select()

box.rollback()

s:select()

box.commit()

box.rollback()

box.begin() box.commit()

box.begin() box.rollback()

-- an error of a statement undoes that statement only

box.begin()

s:insert{4}

s:insert{4}

s:insert{5}

box.commit()

s:select()

-- so does a Lua error, which leaves the transaction open

box.begin()

s:insert{6}

error('stop')

box.is_in_txn()

box.rollback()

s:get(6)

-- two spaces in one transaction

u = box.schema.space.create('u')

_ = u:create_index('primary')

box.begin() s:insert{7} u:insert{7} box.rollback()

s:get(7)

u:get(7)

box.begin() s:insert{7} u:insert{7} box.commit()

s:get(7)

u:get(7)

-- secondary indexes are undone as well

_ = u:create_index('name', {parts = {{2, 'string', is_nullable = true}}})

box.begin() u:replace{7, 'seven'} u:insert{8, 'eight'} u:delete(7) u:insert{9, 'seven'} box.rollback()

u.index.name:select()

u:insert{9, 'seven'}

-- the catalog changes in transactions

box.begin() box.schema.space.create('inside') box.commit()

box.space.inside ~= nil

box.begin() box.schema.space.create('undone') box.rollback()

box.space.undone

box.begin() box.space.inside:drop() box.rollback()

box.space.inside ~= nil

box.begin() u.index.name:drop() box.rollback()

u.index.name ~= nil
