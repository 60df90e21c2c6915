-- module digest: murmur

murmur = require('digest').murmur

murmur(''), murmur('a'), murmur('ab'), murmur('abc'), murmur('abcd'), murmur('hello world'), murmur(('x'):rep(1000))

m = murmur.new({seed = 5})

m:update('ab')

m:update('cde')

m:result(), m:result()

c = m:copy()

c:update('f')

c:result(), m:result()

m:clear()

m:result()

m:update('abcde')

m:result()

murmur.new():result(), murmur.default_seed

murmur(5)

murmur()

murmur.new({seed = 'x'})

m:update(5)

m:update()

list = {} for i = 0, 255 do list[#list + 1] = murmur(string.char(i):rep(i % 9)) end

list
