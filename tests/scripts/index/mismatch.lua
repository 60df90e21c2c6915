-- An index part of another type than the format's or another index's: which of the two is named, and by number.
-- engines: memtx, vinyl
s = box.schema.space.create('s', {format = {{'a', 'unsigned'}, {'b', 'string'}}})

s:create_index('p', {parts = {{1, 'string'}}})

p = s:create_index('p')

s:create_index('q', {parts = {{1, 'string'}}})

s:create_index('q', {parts = {{2, 'unsigned'}}})

q = s:create_index('q', {parts = {{2, 'string'}}})

s:create_index('r', {parts = {{2, 'unsigned'}}})

s:create_index('r', {parts = {{1, 'string'}}})

q:alter{parts = {{1, 'string'}}}

q:alter{parts = {{2, 'unsigned'}}}

p:alter{parts = {{1, 'string'}}}

p:alter{parts = {{2, 'unsigned'}}}

s:format{{'a', 'string'}, {'b', 'string'}}

-- Options of indexes, one fault each and two.
s:create_index('x', {parts = {{1, 'unsigned', path = 1}}})

s:create_index('x', {parts = {{-1, 'unsigned'}}})

s:create_index('x', {parts = {{a = 1}}})

s:create_index('x', {distance = 'far'})

s:create_index('x', {unique = box.NULL})

s:create_index('x', {id = 5LL, parts = {{'zz'}}})
