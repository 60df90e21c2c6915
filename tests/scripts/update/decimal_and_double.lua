-- arithmetic of updates over doubles and decimals widens to the larger kind
-- engines: memtx, vinyl

decimal = require('decimal')

s = box.schema.space.create('t')

_ = s:create_index('primary')

s:insert{1, 1.5, decimal.new('10.25'), 7}

s:update(1, {{'+', 2, decimal.new('0.5')}})

s:update(1, {{'+', 3, 1}})

s:update(1, {{'-', 3, 0.25}})

s:update(1, {{'+', 4, decimal.new('0.001')}})

s:update(1, {{'-', 4, decimal.new('7.001')}})

s:replace{2, 9007199254740993ULL, 0.1}

s:update(2, {{'+', 2, 0.5}})

s:update(2, {{'+', 3, 0.2}})

s:update(2, {{'-', 3, 0.3}})

s:update(2, {{'&', 3, 1}})

s:replace{3, decimal.new('99999999999999999999999999999999999999')}

s:update(3, {{'+', 2, 1}})

s:update(3, {{'-', 2, 1}})
