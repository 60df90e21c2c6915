-- the operation : cuts bytes out of a string and pastes others
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

s:insert{1, 'hello world', 5}

s:update(1, {{':', 2, 1, 5, 'goodbye'}})

s:update(1, {{':', 2, -5, 5, 'moon'}})

s:update(1, {{':', 2, 1, 0, '>> '}})

s:update(1, {{':', 2, 100, 0, ' <<'}})

s:update(1, {{':', 2, 4, -8, 'X'}})

s:update(1, {{':', 2, 4, 1000, ''}})

s:update(1, {{':', 2, -100, 1, 'Y'}})

s:update(1, {{':', 2, 0, 1, 'Z'}})

s:update(1, {{':', 3, 1, 1, 'x'}})

s:update(1, {{':', 2, 1, 1}})

s:update(1, {{':', 2, 'a', 1, 'x'}})

s:update(1, {{':', 2, 1, 'b', 'x'}})

s:update(1, {{':', 2, 1, 1, 5}})

s:update(1, {{':', 2, 1, 0, 'один '}})

s:update(1, {{':', 2, 1, 1, 'a'}, {':', 2, 1, 0, 'b'}})

s:update(1, {{':', 9, 1, 1, 'x'}})
