-- module merger: rows of several ordered sources as one

merger = require('merger')

key_def = require('key_def')

buffer = require('buffer')

msgpack = require('msgpack')

kd = key_def.new({{fieldno = 1, type = 'unsigned'}})

function t(...) local r = {} for i = 1, select('#', ...) do r[i] = {(select(i, ...)), 'v'} end return r end

function all(rows) local r = {} for _, row in ipairs(rows) do r[#r + 1] = row:totable() end return r end

function walk(source, ...) local r = {} for _, row in source:pairs() do r[#r + 1] = row:totable() end return r end

-- from tables

m = merger.new(kd, {merger.new_source_fromtable(t(1, 4, 7)), merger.new_source_fromtable(t(2, 3, 9)), merger.new_source_fromtable({})})

rows = m:select()

all(rows), box.tuple.is(rows[1])

m:select()

m = merger.new(kd, {merger.new_source_fromtable(t(1, 4, 7)), merger.new_source_fromtable(t(2, 3, 9))})

all(m:select({limit = 2})), all(m:select({limit = 3})), all(m:select({limit = 0})), all(m:select())

m = merger.new(kd, {merger.new_source_fromtable(t(7, 4, 1)), merger.new_source_fromtable(t(9, 3, 2))}, {reverse = true})

walk(m)

walk(m)

walk(merger.new(kd, {merger.new_source_fromtable(t(1, 4))}, {reverse = false}))

walk(merger.new(kd, {}))

-- equal keys: those of the first source first

a, b = merger.new_source_fromtable({{1, 'a'}, {1, 'b'}, {2, 'c'}}), merger.new_source_fromtable({{1, 'd'}, {2, 'e'}})

#walk(merger.new(kd, {a, b}))

-- a source alone, and a merger as a source

all(merger.new_source_fromtable(t(3, 1, 2)):select())

walk(merger.new_source_fromtable(t(3, 1, 2)))

inner = merger.new(kd, {merger.new_source_fromtable(t(1, 5)), merger.new_source_fromtable(t(3))})

walk(merger.new(kd, {inner, merger.new_source_fromtable(t(2, 4, 6))}))

-- from tuples

s = box.schema.space.create('m')

_ = s:create_index('pk')

for i = 1, 5 do s:insert({i * 2, 'space'}) end

walk(merger.new(kd, {merger.new_tuple_source(s:pairs()), merger.new_source_fromtable(t(1, 3, 5))}))

walk(merger.new_tuple_source(ipairs(t(1, 2))))

walk(merger.new_tuple_source(function(_, n) n = n or 0 if n < 3 then return n + 1, box.tuple.new({n + 1}) end end))

walk(merger.new_tuple_source(function() return 1, 5 end))

s:drop()

-- from tables that come one after the other

function chunks(_, n) n = (n or 0) + 1 if n <= 3 then return n, t(n * 10, n * 10 + 1) end end

walk(merger.new_table_source(chunks))

walk(merger.new(kd, {merger.new_table_source(chunks), merger.new_source_fromtable(t(15, 25, 99))}))

walk(merger.new_table_source(chunks, nil, 2))

walk(merger.new_table_source(function() return 1, 5 end))

walk(merger.new_table_source(function(_, n) if n == nil then return 1, {} end if n == 1 then return 2, t(8) end end))

-- from buffers

function packed(rows) local b = buffer.ibuf() msgpack.encode(rows, b) return b end

b1 = packed(t(1, 4, 7))

walk(merger.new(kd, {merger.new_source_frombuffer(b1), merger.new_source_frombuffer(packed(t(2)))}))

b1:size()

function buffers(_, n) n = (n or 0) + 1 if n <= 2 then return n, packed(t(n, n + 10)) end end

walk(merger.new_buffer_source(buffers))

walk(merger.new_source_frombuffer(packed({})))

walk(merger.new_source_frombuffer(packed({a = 1})))

walk(merger.new_source_frombuffer(packed(5)))

walk(merger.new_source_frombuffer(buffer.ibuf()))

walk(merger.new_buffer_source(function() return 1, 5 end))

-- into a buffer

out = buffer.ibuf()

m = merger.new(kd, {merger.new_source_fromtable(t(1, 4, 7)), merger.new_source_fromtable(t(2))})

m:select({buffer = out, limit = 3})

out:size(), (msgpack.decode(out.rpos, out:size()))

out:reset()

m:select({buffer = out})

out:size(), (msgpack.decode(out.rpos, out:size()))

out:reset()

m:select({buffer = out})

out:size(), (msgpack.decode(out.rpos, out:size()))

-- wrong

merger.new()

merger.new(kd)

merger.new({}, {})

merger.new(kd, {5})

merger.new(kd, 5)

merger.new(kd, {}, 5)

merger.new(kd, {}, {reverse = 5})

merger.new_source_fromtable()

merger.new_source_fromtable(5)

merger.new_source_frombuffer()

merger.new_source_frombuffer(5)

merger.new_table_source()

merger.new_tuple_source()

merger.new_tuple_source(5)

merger.new_buffer_source({})

m:select(5)

m:select({limit = 'x'})

m:select({buffer = 5})

m.select()

m.pairs()

walk(merger.new_source_fromtable({5}))

walk(merger.new_source_fromtable({{'x'}, {'y'}}))

walk(merger.new(kd, {merger.new_source_fromtable({{'x'}}), merger.new_source_fromtable({{1}})}))

walk(merger.new(kd, {merger.new_source_fromtable({{'x'}})}))

walk(merger.new(kd, {merger.new_source_fromtable({{}}), merger.new_source_fromtable({{1}})}))
