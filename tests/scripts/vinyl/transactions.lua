-- transactions that wait: what others commit meanwhile, conflicts, and who is told of them
-- engines: vinyl

fiber = require('fiber')

s = box.schema.space.create('t')

_ = s:create_index('primary')

_ = s:create_index('value', {unique = false, parts = {2, 'unsigned'}})

function elsewhere(work) local f = fiber.new(work) f:set_joinable(true) return select(2, f:join()) end

for i = 1, 5 do s:replace{i, i * 10} end

-- a yield does not abort it, nor do others see it

box.begin()

s:replace{1, 11}

fiber.yield()

s:get(1)

elsewhere(function() return s:get(1) end)

elsewhere(function() return s.index.value:select() end)

box.commit()

elsewhere(function() return s:get(1) end)

-- who has read what another one has changed since may not write

box.begin()

s:get(2)

elsewhere(function() s:replace{2, 22} end)

s:get(2)

s:replace{3, 33}

box.commit()

s:select()

-- who only reads may

box.begin()

s:get(2)

elsewhere(function() s:replace{2, 222} end)

s:get(2)

s:get(3)

box.commit()

-- blind writes of one row do not collide: the last commit wins

box.begin()

s:replace{4, 44}

elsewhere(function() s:replace{4, 444} end)

box.commit()

s:get(4)

b = box.schema.space.create('blind')

_ = b:create_index('primary')

b:replace{1, 1}

box.begin()

b:replace{1, 2}

elsewhere(function() b:replace{1, 3} end)

box.commit()

b:get(1)

-- ranges that were read count, rows that were not there too

box.begin()

s:select({4}, {iterator = 'GE'})

elsewhere(function() s:replace{6, 60} end)

s:replace{7, 70}

box.commit()

s:get(7)

box.begin()

s:get(8)

elsewhere(function() s:replace{8, 80} end)

s:replace{9, 90}

box.commit()

s:get(9)

box.begin()

s.index.value:select({20})

elsewhere(function() s:replace{10, 20} end)

s:replace{9, 90}

box.commit()

box.begin()

s:select({1})

elsewhere(function() s:replace{11, 110} end)

s:replace{12, 120}

box.commit()

s:get(12)

-- an insert of a row that another one has inserted since

box.begin()

s:insert{20, 200}

elsewhere(function() s:insert{20, 2000} end)

box.commit()

s:get(20)

-- rollback, savepoints, an error of one statement

box.begin()

s:replace{21, 1}

saved = box.savepoint()

s:replace{22, 1}

fiber.yield()

s:insert{21, 2}

box.rollback_to_savepoint(saved)

s:get(22)

s:get(21)

box.rollback()

s:get(21)

-- nothing in it sees itself twice

box.begin() for i = 1, 3 do s:replace{30, i} end s:delete(30) s:insert{30, 4} s:update(30, {{'+', 2, 1}}) s:upsert({30, 0}, {{'+', 2, 1}}) found = s:select(30) box.commit()

found

s.index.value:select(6)

-- a procedure

box.atomic(function() s:replace{40, 1} fiber.sleep(0) return s:get(40) end)

box.atomic(function() s:replace{40, 2} fiber.sleep(0) error('no') end)

s:get(40)
