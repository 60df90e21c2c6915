-- a yield inside a transaction of the memory engine: Tarantool without its transaction manager aborts it, here it goes on

fiber = require('fiber')

s = box.schema.space.create('t')

_ = s:create_index('primary')

box.begin()

s:insert{1}

fiber.yield()

box.is_in_txn()

s:get(1)

s:insert{2}

box.commit()

s:select()

s:truncate()

box.begin() s:insert{1} fiber.sleep(0) box.rollback()

s:select()

-- the same with a read before the yield; a transaction that has touched no space survives everywhere

box.begin() s:get(1) fiber.yield() box.commit()

box.begin() fiber.yield() s:insert{3} box.commit()

s:select()

box.atomic(function() s:insert{4} fiber.yield() end)

s:select()

box.rollback()

-- waking others does not yield

box.begin()

f = fiber.create(function() end)

box.commit()

box.begin()

_ = s:insert{5}

f = fiber.new(function() end)

box.commit()

s:get(5)

-- another fiber has its own transaction, or none

box.begin()

_ = s:insert{6}

f = fiber.new(function() inside = box.is_in_txn() end)

box.rollback()

f:set_joinable(true)

f:join()

inside

-- a transaction left open is rolled back at the end of its fiber

f = fiber.new(function() box.begin() s:insert{7} end)

f:set_joinable(true)

f:join()

s:get(7)
