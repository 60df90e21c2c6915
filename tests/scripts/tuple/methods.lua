-- methods of a tuple

t = box.tuple.new{'a', 'b', 'c', 'b', 5, 'b'}

#t

t:find('b')

t:find(3, 'b')

t:find(2, 'b')

t:find('zzz')

t:find(5)

t:find(7, 'b')

t:find(0, 'b')

t:findall('b')

t:findall(3, 'b')

t:findall('zzz')

t:unpack()

t:unpack(2, 3)

t:unpack(5)

t:unpack(3, 2)

t:totable()

t:totable(2)

t:totable(2, 4)

t:slice(0)

t:slice(1, 3)

t:slice(-2)

t:slice(-3, -1)

t:slice(2, 100)

t:slice(100)

t:slice(3, 2)

t:slice()

t:transform(2, 1)

t:transform(2, 2, 'x', 'y', 'z')

t:transform(7, 0, 'end')

t:transform(1, 0, 'begin')

t:transform(-1, 1, 'last')

t:transform(99, 1)

t:transform(1, 99)

t:transform(1)

t:transform(1, -1)

t:bsize()

t:next()

t:next(1)

t:next(6)

t:next(7)

t:next('x')

t:update{{'=', 1, 'A'}}

t:update{{'+', 5, 1}, {'#', 6, 1}}

t:update{{'+', 1, 1}}

t:update()

t:upsert{{'=', 1, 'A'}}

t:upsert{{'+', 1, 1}}

t

t.totable(t)

t:tomap()

t:none()

t.none

t[1]

t[0]

t[7]

t[-1]

t[1.5]

t['1']

t[nil]

t[1] = 'x'

t.x = 1

#box.tuple.new{}

box.tuple.new{1, 2} .. ''
