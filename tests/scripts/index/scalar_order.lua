-- a scalar index orders booleans, numbers, strings and the rest; numbers of all kinds compare by value
-- engines: memtx, vinyl

uuid = require('uuid')

decimal = require('decimal')

s = box.schema.space.create('t')

_ = s:create_index('primary', {parts = {1, 'scalar'}})

for _, v in ipairs{'b', 2, true, 1.5, 'a', -1, false, '', 18446744073709551615ULL, -9223372036854775808LL, 1e30} do s:insert{v} end

_ = s:insert{decimal.new('1.75')}

s:select()

s:insert{2}

s:insert{2.0}

s:insert{decimal.new(2)}

s:get(1.5)

s:get(decimal.new('1.5'))

s:get(1.75)

s:select(2, {iterator = 'GE', limit = 2})

s:select('a', {iterator = 'LT', limit = 2})

s:insert{{1}}

s:insert{box.NULL}

-- number, integer, double and decimal indexes

s = box.schema.space.create('n')

_ = s:create_index('primary', {parts = {1, 'number'}})

for _, v in ipairs{3, 1.5, -2, 18446744073709551615ULL, 1.8446744073709552e19, 9007199254740993LL, 9007199254740992, -1/0, 1/0} do s:insert{v} end

s:select()

s:insert{1.5}

s:insert{decimal.new('1.5')}

s:insert{decimal.new('1.50001')}

s:get(3.0)

s:get(decimal.new(3))

s:insert{'3'}

s = box.schema.space.create('d')

_ = s:create_index('primary', {parts = {1, 'decimal'}})

for _, v in ipairs{'10', '9.99', '-1', '1e20'} do s:insert{decimal.new(v)} end

s:select()

s:get(decimal.new('10.00'))

s:get(10)

s:insert{1}

s = box.schema.space.create('b')

_ = s:create_index('primary', {parts = {1, 'boolean'}})

s:insert{true}

s:insert{false}

s:insert{1}

s:select()

s = box.schema.space.create('i')

_ = s:create_index('primary', {parts = {1, 'integer'}})

for _, v in ipairs{5, -5, 0, -9223372036854775808LL, 18446744073709551615ULL} do s:insert{v} end

s:select()

s:insert{0.5}

s:get(-5)

s = box.schema.space.create('u')

_ = s:create_index('primary', {parts = {1, 'uuid'}})

for _, v in ipairs{'ff', '00', '7f', '80'} do s:insert{uuid.fromstr(v .. '111111-2222-3333-4444-555555555555')} end

s:select()

s:get(uuid.fromstr('7f111111-2222-3333-4444-555555555555'))

s:get('7f111111-2222-3333-4444-555555555555')
