-- box.atomic runs a function in a transaction
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

box.atomic(function() s:insert{1} s:insert{2} end)

s:select()

box.atomic(function() s:insert{3} s:insert{1} end)

s:select()

box.atomic(function() s:insert{4} error('stop') end)

s:select()

box.atomic(function() s:insert{4} error({code = 5}) end)

box.atomic(function(a, b) return a + b, 'second' end, 1, 2)

box.atomic(function() return nil end)

box.atomic(function() end)

box.atomic(function() return box.is_in_txn() end)

box.atomic(function() return box.atomic(function() return 1 end) end)

box.is_in_txn()

box.atomic(5)

box.atomic()

pcall(box.atomic, function() s:insert{9} box.error{code = 7, reason = 'mine'} end)

s:get(9)

box.atomic(function() s:insert{10} box.rollback() end)

s:get(10)

box.atomic(function() s:insert{11} box.commit() end)

s:get(11)
