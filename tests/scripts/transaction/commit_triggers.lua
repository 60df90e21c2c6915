-- on_commit and on_rollback run once at the end of a transaction and see its rows
-- engines: memtx, vinyl
-- wal_mode: write

s = box.schema.space.create('t')

_ = s:create_index('primary')

log = {}

function on_commit(rows) for _, old, new, space in rows() do table.insert(log, {'commit', old, new, space}) end end

function on_rollback(rows) for _, old, new, space in rows() do table.insert(log, {'rollback', old, new, space}) end end

box.begin() s:insert{1, 'a'} s:replace{1, 'b'} s:delete(1) box.on_commit(on_commit) box.on_rollback(on_rollback) box.commit()

log[1][3]

log[1][4] == s.id

#log

log[2]

log[3][2]

log = {}

box.begin() s:insert{2, 'a'} s:insert{3, 'b'} box.on_commit(on_commit) box.on_rollback(on_rollback) box.rollback()

#log

log[1][3]

log[2][3]

log = {}

box.begin() box.on_commit(function() table.insert(log, 1) end) box.on_commit(function() table.insert(log, 2) end) box.commit()

log

box.on_commit(function() end)

box.on_rollback(function() end)

box.on_commit()

box.begin()

box.on_commit(5)

box.on_commit()

f = function() table.insert(log, 'f') end

g = function() table.insert(log, 'g') end

box.on_commit(f) == f

box.on_commit(g, f) == g

box.on_commit(nil, g)

box.on_commit(nil, f)

box.commit()

log

s:select()
