-- channels hold messages for other fibers

fiber = require('fiber')

c = fiber.channel(2)

c:size()

c:count()

c:is_empty()

c:is_full()

c:put('a')

c:put({1, 2})

c:count()

c:is_full()

c:put('no room', 0)

c:put('no room', 0.001)

c:get()

c:get()

c:get(0)

c:get(0.001)

c:put(nil)

c:get()

c:put(box.NULL)

c:get()

c:has_readers()

c:has_writers()

f = fiber.new(function() return c:get() end)

f:set_joinable(true)

fiber.yield()

c:has_readers()

c:put('to a waiting reader')

f:join()

-- without room, put waits for a reader

c = fiber.channel()

c:size()

c:put('x', 0)

f = fiber.new(function() return c:put('handed over') end)

f:set_joinable(true)

fiber.yield()

c:has_writers()

c:get()

f:join()

-- closing

f = fiber.new(function() return c:get() end)

f:set_joinable(true)

fiber.yield()

c:close()

f:join()

c:is_closed()

c:get()

c:put('x')

c:count()

c = fiber.channel(1)

c:put('left behind')

c:close()

c:get()

fiber.channel(-1)

fiber.channel('x')

c:put()

c:get('x')

tostring(fiber.channel(1)):match('^channel: ')

-- order of messages

c = fiber.channel(10)

for i = 1, 5 do c:put(i) end

out = {}

while not c:is_empty() do table.insert(out, c:get()) end

out
