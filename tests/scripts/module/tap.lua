-- module tap: checks that hold; those that do not print where they are

tap = require('tap')

t = tap.test('name')

t:plan(3)

t:ok(true, 'a'), t:skip('d'), t:is(1, 1, 'x'), t:is(nil, nil), t:isnt(1, 2)

t:is_deeply({1, {a = 2}}, {1, {a = 2}}, 'x'), t:is_deeply({}, {}), t:is_deeply(1, 1LL), t:like('abc', 'b'), t:unlike('abc', 'x')

t:isnil(nil), t:isstring('x'), t:isnumber(1), t:istable({}), t:isboolean(false), t:isfunction(print), t:iscdata(1LL, 'int64_t')

t:diag('text'), t:diag('%d', 5)

t:test('inner', function(inner) inner:plan(1) inner:ok(true) end)

t:check()

u = tap.test('other')

u:plan(1) return u:ok(true), u:check()
