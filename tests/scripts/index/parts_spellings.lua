-- the parts of an index may be spelled in many ways, and all print alike
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {
    {'id', 'unsigned'}, {'name', 'string'}, {'n', 'integer', is_nullable = true}, {'f', 'any'}, {'title', 'string', collation = 'unicode_ci'},
}})

s:create_index('primary').parts

s:create_index('a', {parts = {2, 'string'}}).parts

s:create_index('b', {parts = {{2, 'string'}}}).parts

s:create_index('c', {parts = {{field = 2, type = 'string'}}}).parts

s:create_index('d', {parts = {'name'}}).parts

s:create_index('e', {parts = {{'name'}}}).parts

s:create_index('f', {parts = {{field = 'name'}}}).parts

s:create_index('g', {parts = {'name', 'string'}}).parts

s:create_index('h', {parts = {'name', 'id'}}).parts

s:create_index('i', {parts = {2, 'string', 1, 'unsigned'}}).parts

s:create_index('j', {parts = {{2, 'string'}, {1, 'unsigned'}}}).parts

s:create_index('k', {parts = {2, 1}}).parts

s:create_index('l', {parts = {2}}).parts

s:create_index('m', {parts = {{'name', 'string'}, {field = 1}}}).parts

s:create_index('n', {parts = {{2, 'string', is_nullable = true}}}).parts

s:create_index('o', {parts = {{3, 'integer', is_nullable = true}}}).parts

s:create_index('p', {parts = {'n'}}).parts

s:create_index('q', {parts = {{2, 'string', collation = 'unicode'}}}).parts

s:create_index('r', {parts = {'title'}}).parts

s:create_index('s', {parts = {{field = 2, type = 'str'}}}).parts

s:create_index('t', {parts = {{field = 1, type = 'num'}}}).parts

s:create_index('u', {parts = {{field = 1, type = 'UNSIGNED'}}}).parts

s:create_index('v', {parts = {10, 'unsigned'}}).parts

s:create_index('w', {parts = 2}).parts

s:create_index('x', {parts = 'name'}).parts

s:create_index('y', {parts = {field = 2, type = 'string'}}).parts

s:create_index('z', {parts = {{'name', type = 'string'}}}).parts

-- what is refused

s:create_index('bad', {parts = {}})

s:create_index('bad', {parts = {0, 'unsigned'}})

s:create_index('bad', {parts = {-1, 'unsigned'}})

s:create_index('bad', {parts = {'none'}})

s:create_index('bad', {parts = {{'none', 'string'}}})

s:create_index('bad', {parts = {{}}})

s:create_index('bad', {parts = {{2, 'colour'}}})

s:create_index('bad', {parts = {{2, 5}}})

s:create_index('bad', {parts = {2, 'unsigned'}})

s:create_index('bad', {parts = {{2, 'string', colour = 'red'}}})

s:create_index('bad', {parts = {{1, 'unsigned', collation = 'unicode'}}})

s:create_index('bad', {parts = {{2, 'string', is_nullable = 'yes'}}})

s:create_index('bad', {parts = {{2, 'string'}, {2, 'string'}}})

s:create_index('bad', {parts = {{4, 'any'}}})

s:create_index('bad', {parts = {{6, 'array'}}})

s:create_index('bad', {parts = {{6, 'map'}}})

s:create_index('bad', {parts = {{type = 'string'}}})

s:create_index('bad', {parts = {true}})

s:create_index('bad', {parts = {{2, 'string', 'x'}}})

s:create_index('bad', {parts = {'string', 2}})

s:create_index('collation_none', {parts = {{2, 'string', collation = 'none'}}}).parts
