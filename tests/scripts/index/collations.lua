-- collations: unicode_ci ignores case and accents, unicode orders by letters first, binary by bytes
-- engines: memtx, vinyl

function fill(collation)
    local s = box.schema.space.create('t_' .. tostring(collation))
    s:create_index('primary')
    s:create_index('name', {unique = false, parts = {{2, 'string', collation = collation}}})
    for i, v in ipairs{'b', 'A', 'a', 'B', 'ä', 'z', 'Ä', 'aa', 'Z', 'ё', 'е', 'ж', 'Ё', '1', '-', ''} do s:insert{i, v} end
    return s
end

function names(rows)
    local out = {}
    for _, t in ipairs(rows) do table.insert(out, t[2]) end
    return table.concat(out, ' ')
end

s = fill()

names(s.index.name:select())

s = fill('unicode')

names(s.index.name:select())

names(s.index.name:select('a'))

names(s.index.name:select('a', {iterator = 'GT', limit = 3}))

s = fill('unicode_ci')

names(s.index.name:select())

names(s.index.name:select('a'))

names(s.index.name:select('Ё'))

names(s.index.name:select('B', {iterator = 'LT'}))

s = fill('binary')

names(s.index.name:select())

s = fill('none')

names(s.index.name:select())

s = fill('unicode_de_s1')

names(s.index.name:select('a'))

s = fill('unicode_ru_s3')

names(s.index.name:select('a'))

-- a unique index with a collation

s = box.schema.space.create('u')

_ = s:create_index('primary', {parts = {{1, 'string', collation = 'unicode_ci'}}})

s.index.primary.parts

s:insert{'Name'}

s:insert{'NAME'}

s:insert{'náme'}

s:get('nAmE')

s:replace{'NAME', 1}

s:delete('name')

_ = s:insert{'straße'}

s:get('STRASSE')

s:get('strasse')

s = box.schema.space.create('h')

_ = s:create_index('primary', {type = 'HASH', parts = {{1, 'string', collation = 'unicode_ci'}}})

s:insert{'Name'}

s:get('NAME')

s:insert{'name'}

-- the collation of a format serves its indexes

s = box.schema.space.create('f', {format = {{'k', 'string', collation = 'unicode_ci'}}})

_ = s:create_index('primary', {parts = {'k'}})

s.index.primary.parts

s:insert{'Name'}

s:get('NAME')

-- own collations

box.internal.collation.create('mine', 'ICU', 'ru_RU', {strength = 'secondary'})

box.internal.collation.exists('mine')

box.internal.collation.create('mine', 'ICU', 'ru_RU')

box.internal.collation.create('bad', 'ICU', 'ru_RU', {strength = 'colour'})

box.internal.collation.drop('mine')

box.internal.collation.exists('mine')

#box.space._collation:select()

box.space._collation:select({}, {limit = 6})
