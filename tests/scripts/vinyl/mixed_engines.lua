-- both engines in one transaction
-- engines: vinyl

fiber = require('fiber')

m = box.schema.space.create('m', {engine = 'memtx'})

_ = m:create_index('primary')

v = box.schema.space.create('v', {engine = 'vinyl'})

_ = v:create_index('primary')

m:replace{1, 10}

v:replace{1, 10}

box.begin()

m:update(1, {{'-', 2, 3}})

v:update(1, {{'+', 2, 3}})

box.commit()

m:get(1)

v:get(1)

box.begin()

v:replace{2, 2}

m:replace{2, 2}

box.rollback()

m:get(2)

v:get(2)

-- a read of the other engine is one too

box.begin()

v:get(1)

m:get(1)

box.commit()

-- a yield in between

box.begin()

v:replace{3, 3}

fiber.yield()

v:get(3)

box.commit()

v:get(3)

box.begin()

m:replace{3, 3}

fiber.yield()

box.commit()

m:get(3)

box.begin()

v:replace{4, 4}

m:replace{4, 4}

fiber.yield()

box.commit()

box.rollback()

v:get(4)

m:get(4)

-- a trigger that writes to the other one

f = v:on_replace(function(old, new) m:replace{100, new[1]} end)

v:replace{5, 5}

m:get(100)

v:get(5)

_ = v:on_replace(nil, f)

f = m:on_replace(function(old, new) v:replace{100, new[1]} end)

m:replace{6, 6}

v:get(100)

m:get(6)
