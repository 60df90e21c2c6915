-- rollback_to_savepoint undoes what came after the savepoint
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

box.savepoint()

box.begin()

_ = s:insert{1}

a = box.savepoint()

_ = s:insert{2}

b = box.savepoint()

_ = s:insert{3}

box.rollback_to_savepoint(b)

s:select()

box.rollback_to_savepoint(b)

_ = s:insert{4}

box.rollback_to_savepoint(a)

s:select()

box.rollback_to_savepoint(b)

_ = s:insert{5}

box.commit()

s:select()

box.rollback_to_savepoint(a)

box.rollback_to_savepoint()

box.rollback_to_savepoint(5)

type(a)

-- a savepoint before the first statement

s:truncate()

box.begin()

a = box.savepoint()

_ = s:insert{1}

box.rollback_to_savepoint(a)

s:select()

box.commit()

s:select()

-- a savepoint of another transaction

box.begin()

box.rollback_to_savepoint(a)

box.rollback()

box.begin() box.rollback_to_savepoint({}) box.rollback()

box.rollback()

-- triggers of the undone part do not run

log = {}

box.begin()

box.on_rollback(function() table.insert(log, 'rollback') end)

a = box.savepoint()

_ = s:insert{1}

box.on_commit(function() table.insert(log, 'commit after savepoint') end)

box.rollback_to_savepoint(a)

box.commit()

log
