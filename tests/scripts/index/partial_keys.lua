-- iterators by part of a key, both ways, on composite, nullable and non-unique indexes
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary', {parts = {1, 'unsigned', 2, 'string'}})

_ = s:create_index('mixed', {unique = false, parts = {{3, 'unsigned', is_nullable = true}, {4, 'string', is_nullable = true}}})

_ = s:create_index('loose', {unique = false, parts = {{2, 'string'}}})

_ = s:create_index('strict', {unique = true, parts = {{4, 'string', is_nullable = true}, {1, 'unsigned'}, {2, 'string'}}})

for i = 1, 3 do for _, letter in ipairs{'a', 'b', 'c'} do s:insert{i, letter, i % 2 == 0 and box.NULL or i, letter ~= 'c' and letter or box.NULL} end end

function keys(index, key, iterator, options) options = options or {} options.iterator = iterator local found = {} for _, row in ipairs(s.index[index]:select(key, options)) do table.insert(found, row[1] .. row[2]) end return table.concat(found, ' ') end

-- the first part alone

keys('primary', {2}, 'EQ')

keys('primary', {2}, 'REQ')

keys('primary', {2}, 'GE')

keys('primary', {2}, 'GT')

keys('primary', {2}, 'LE')

keys('primary', {2}, 'LT')

keys('primary', {0}, 'GE')

keys('primary', {4}, 'LE')

keys('primary', {4}, 'GE')

keys('primary', {0}, 'LT')

keys('primary', {4}, 'REQ')

-- no part at all

keys('primary', {}, 'EQ')

keys('primary', {}, 'REQ')

keys('primary', {}, 'GT')

keys('primary', {}, 'LT')

-- the whole key, there or not

keys('primary', {2, 'b'}, 'GE')

keys('primary', {2, 'b'}, 'GT')

keys('primary', {2, 'b'}, 'LE')

keys('primary', {2, 'b'}, 'LT')

keys('primary', {2, 'bb'}, 'GE')

keys('primary', {2, 'bb'}, 'LT')

keys('primary', {2, ''}, 'LE')

-- a part that is null

keys('mixed', {box.NULL}, 'EQ')

keys('mixed', {box.NULL}, 'REQ')

keys('mixed', {box.NULL}, 'GT')

keys('mixed', {box.NULL}, 'LT')

keys('mixed', {box.NULL}, 'LE')

keys('mixed', {1}, 'LT')

keys('mixed', {1, box.NULL}, 'EQ')

keys('mixed', {1, box.NULL}, 'GT')

keys('mixed', {3, 'a'}, 'LT')

keys('mixed', {3, 'a'}, 'LE')

keys('mixed', {3}, 'REQ')

keys('strict', {box.NULL}, 'EQ')

keys('strict', {box.NULL, 2}, 'GE')

keys('strict', {'a', 2}, 'LE')

keys('strict', {'b'}, 'REQ')

-- rows that are equal in the index come in the order of the primary key, both ways

keys('loose', {'b'}, 'EQ')

keys('loose', {'b'}, 'REQ')

keys('loose', {'b'}, 'GE')

keys('loose', {'b'}, 'LT')

keys('loose', {'c'}, 'LE', {offset = 1, limit = 4})

keys('loose', {'a'}, 'GT', {offset = 2, limit = 2})

-- the same after some have gone and come back

for i = 1, 3 do s:delete{i, 'b'} end

keys('loose', {'b'}, 'EQ')

keys('loose', {'b'}, 'GE')

keys('loose', {'b'}, 'LE')

keys('primary', {2}, 'REQ')

for i = 3, 1, -1 do s:replace{i, 'b', 7, 'a'} end

keys('loose', {'b'}, 'REQ')

keys('mixed', {7}, 'EQ')

keys('mixed', {7, 'a'}, 'REQ')

keys('strict', {'a'}, 'EQ')

keys('strict', {'b'}, 'EQ')

-- count and the ends by part of a key

s:count({2})

s:count({2}, {iterator = 'GT'})

s.index.mixed:count({box.NULL})

s.index.loose:count({'b'}, {iterator = 'LE'})

s.index.primary:min({2})

s.index.primary:max({2})

s.index.mixed:min()

s.index.mixed:max()

s.index.loose:max({'a'})

s.index.strict:min({'zz'})

-- errors of keys

s:select({1, 'a', 2})

s.index.loose:select({1})

s.index.mixed:select({'x'})

s:get({1})

s.index.loose:get({'a'})

s:delete({1})
