-- a path reaches into maps and arrays of a field
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'doc', 'map'}, {'list', 'array'}}})

_ = s:create_index('primary')

s:insert{1, {a = 1, b = {c = {10, 20, {d = 'x'}}}}, {1, {2, 3}, 'text'}}

s:update(1, {{'=', 'doc.a', 2}})

s:update(1, {{'+', 'doc.a', 5}})

s:update(1, {{'=', 'doc.b.c[1]', 'first'}})

s:update(1, {{'=', 'doc.b.c[3].d', 'deep'}})

s:update(1, {{'=', 'doc["a"]', 'quoted'}})

s:update(1, {{'=', 'doc.new', {1}}})

s:update(1, {{'!', 'doc.newer', 1}})

s:update(1, {{'!', 'doc.newer', 1}})

s:update(1, {{'#', 'doc.newer', 1}})

s:update(1, {{'#', 'doc.new', 2}})

s:update(1, {{'#', 'doc.none', 1}})

s:update(1, {{'=', 'doc.none.deeper', 1}})

s:update(1, {{'=', 'list[1]', 'one'}})

s:update(1, {{'=', 'list[2][1]', 'two'}})

s:update(1, {{'=', 'list[4]', 'four'}})

s:update(1, {{'=', 'list[9]', 'nine'}})

s:update(1, {{'!', 'list[1]', 'zero'}})

s:update(1, {{'#', 'list[1]', 2}})

s:update(1, {{'=', 'list[0]', 1}})

s:update(1, {{'=', 'list[-1]', 1}})

s:update(1, {{'=', 'list.a', 1}})

s:update(1, {{'=', 'doc[1]', 1}})

s:update(1, {{'=', 'doc.a.b', 1}})

s:update(1, {{':', 'doc.a', 1, 1, 'Q'}})

s:update(1, {{'=', '[2].a', 1}})

s:update(1, {{'=', '[3][1]', 1}})

s:update(1, {{'=', '["doc"].a', 3}})

s:update(1, {{'=', 'doc.a', 1}, {'=', 'doc.z', 2}})

s:update(1, {{'=', 'doc.a', 1}, {'+', 'doc.a', 2}})

s:update(1, {{'=', 'list[1]', 1}, {'=', 'list[2]', 2}, {'=', 'id', 1}})

s:update(1, {{'=', 'doc.', 1}})

s:update(1, {{'=', 'doc[', 1}})

s:update(1, {{'=', 'doc..a', 1}})

s:update(1, {{'=', 'none.a', 1}})

s:update(1, {{'=', 'doc', 5}})

s:update(1, {{'+', 'doc.x', 'text'}})

t = s:get(1)

t['doc.b.c[3].d']

t['doc.b.c[1]']

t['doc.b']

t['list[1]']

t['list[99]']

t['none.a']

t['[1]']

t['doc["b"].c[2]']

t['doc.b.c[*]']
