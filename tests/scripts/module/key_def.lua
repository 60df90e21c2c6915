-- module key_def: the fields of a key outside of any index

key_def = require('key_def')

kd = key_def.new({{type = 'unsigned', fieldno = 1}, {type = 'string', fieldno = 2, collation = 'unicode_ci'}})

kd:totable()

type(kd), tostring(kd)

t = box.tuple.new({1, 'b', 3})

kd:extract_key(t)

kd:extract_key({1, 'b', 3})

box.tuple.is(kd:extract_key({1, 'b', 3}))

kd:compare(t, {1, 'B'}), kd:compare(t, {1, 'c'}), kd:compare({2, 'a'}, t)

kd:compare_with_key(t, {1}), kd:compare_with_key(t, {1, 'a'}), kd:compare_with_key(t, {0}), kd:compare_with_key(t, {2, 'x'})

kd:compare_with_key(t, 1), kd:compare_with_key(t, {}), kd:compare_with_key(t, box.tuple.new({1}))

-- wrong rows and keys

kd:extract_key()

kd:extract_key(5)

kd:extract_key('x')

kd:extract_key({})

kd:extract_key({'x', 'y'})

kd:extract_key({1})

kd.extract_key(5, t)

kd.extract_key()

kd:compare(t)

kd:compare(t, 5)

kd:compare(t, {5})

kd:compare({1, 2}, t)

kd:compare_with_key(t)

kd:compare_with_key(t, 'x')

kd:compare_with_key(t, {1, 'z', 3})

kd:compare_with_key(t, {'z'})

kd:compare_with_key({}, {1})

kd:compare_with_key(t, {1, 5})

-- merged

kd2 = key_def.new({{type = 'string', fieldno = 2}, {type = 'number', fieldno = 3, is_nullable = true}})

kd:merge(kd2):totable()

kd2:merge(kd):totable()

kd:merge(kd):totable()

kd:merge()

kd:merge(5)

kd:merge({})

kd.merge()

key_def.totable()

-- parts

key_def.new()

key_def.new({})

key_def.new('x')

key_def.new({a = 1})

key_def.new({1})

key_def.new({{}})

key_def.new({{type = 'x', fieldno = 1}})

key_def.new({{type = 5, fieldno = 1}})

key_def.new({{type = 'unsigned'}})

key_def.new({{type = 'unsigned', field = 1}}):totable()

key_def.new({{type = 'unsigned', field = 1, fieldno = 2}})

key_def.new({{fieldno = 1}})

key_def.new({{fieldno = 1, type = 'any'}})

key_def.new({{fieldno = 1, type = 'array'}})

key_def.new({{fieldno = 1, type = 'map'}})

key_def.new({{fieldno = 1, type = 'string', collation = 'nope'}})

key_def.new({{fieldno = 1, type = 'string', collation = 5}})

key_def.new({{fieldno = 1, type = 'string', collation_id = 2}}):totable()

key_def.new({{fieldno = 1, type = 'string', collation_id = 5000}})

key_def.new({{fieldno = 1, type = 'string', collation_id = 2, collation = 'unicode'}})

tostring(key_def.new({{fieldno = 1, type = 'unsigned', collation = 'unicode'}}))

key_def.new({{fieldno = 1, type = 'scalar', collation = 'unicode'}}):totable()

key_def.new({{fieldno = 1, type = 'string', is_nullable = 3}}):totable()

key_def.new({{fieldno = 1, type = 'num'}}):totable()

key_def.new({{fieldno = 1, type = 'STR'}}):totable()

key_def.new({{fieldno = 1, type = 'unsigned'}, 7})

key_def.new({{fieldno = 1, type = 'unsigned', other = 7}}):totable()

key_def.new({{fieldno = 2147483647, type = 'unsigned'}}):totable()

-- paths

key_def.new({{fieldno = 1, type = 'string', path = '[*]'}})

key_def.new({{fieldno = 1, type = 'string', path = 'a[*].b'}})

key_def.new({{fieldno = 1, type = 'string', path = 3}})

key_def.new({{fieldno = 1, type = 'string', path = '...'}})

key_def.new({{fieldno = 1, type = 'string', path = ''}}):totable()

kp = key_def.new({{fieldno = 2, type = 'string', path = 'a.b'}, {fieldno = 1, type = 'unsigned'}})

kp:totable()

kp:extract_key({1, {a = {b = 'x'}}})

kp:extract_key({1, {a = {b = 5}}})

kp:extract_key({1, {a = {}}})

kp:extract_key({1, {}})

kp:extract_key({1, 5})

kp:extract_key({1, {5}})

kp:compare({1, {a = {b = 'x'}}}, {1, {a = {b = 'y'}}}), kp:compare({1, {a = {b = 'x'}}}, {1, {a = {b = 'x'}}})

kp:compare_with_key({1, {a = {b = 'x'}}}, {'w'}), kp:compare_with_key({1, {a = {b = 'x'}}}, {'x', 1}), kp:compare_with_key({1, {a = {b = 'x'}}}, {'x', 2})

kd:merge(kp):totable()

kp:merge(kp):totable()

ki = key_def.new({{fieldno = 1, type = 'integer', path = '[2]'}})

ki:extract_key({{1, 2, 3}}), ki:compare({{1, 2}}, {{0, 3}})

kn = key_def.new({{fieldno = 2, type = 'string', path = 'a', is_nullable = true}, {fieldno = 1, type = 'unsigned', is_nullable = true}})

kn:extract_key({1}), kn:extract_key({1, {}}), kn:extract_key({}), kn:extract_key({box.NULL, {a = box.NULL}})

kn:compare({1}, {1, {a = 'x'}}), kn:compare({1}, {1, {}}), kn:compare({}, {1})

kn:compare_with_key({1}, {box.NULL}), kn:compare_with_key({1, {a = 'x'}}, {box.NULL}), kn:compare_with_key({}, {})

-- the parts of an index

s = box.schema.space.create('kd', {format = {{'id', 'unsigned'}, {'name', 'string'}, {'more', 'any'}}})

i = s:create_index('pk', {parts = {{'name', 'string', collation = 'unicode'}, {'id', 'unsigned'}}})

key_def.new(i.parts):totable()

s:insert({1, 'a', 0})

key_def.new(i.parts):extract_key(s:get({'a', 1}))

key_def.new(i.parts):compare(s:get({'a', 1}), {2, 'a'})

s:drop()

-- many kinds

k = key_def.new({{fieldno = 1, type = 'scalar'}, {fieldno = 2, type = 'number'}, {fieldno = 3, type = 'boolean'}})

k:compare({1, 1, true}, {'a', 1, true}), k:compare({true, 1, true}, {1, 1, true}), k:compare({1, 1.5, true}, {1, 1.5, false})

k:compare({1, 2, false}, {1, 1.5, false}), k:compare({1, 2ULL^63, false}, {1, 2^63, false})

k:compare({{}, 1, true}, {1, 1, true})

k:extract_key({1, require('decimal').new('1.5'), true})
