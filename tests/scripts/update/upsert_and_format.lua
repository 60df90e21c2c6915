-- what the format forbids is not swallowed by an upsert

s = box.schema.space.create('u', {format = {{'id', 'unsigned'}, {'n', 'unsigned'}}})

_ = s:create_index('primary')

s:upsert({1, 'text'}, {{'+', 'n', 1}})

s:upsert({1, 1}, {{'+', 'n', 1}})

s:upsert({1, 1}, {{'=', 'n', 'text'}})

s:upsert({1, 1}, {{'-', 'n', 100}})

s:upsert({1}, {{'+', 'n', 1}})

s:get(1)
