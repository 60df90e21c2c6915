-- box.tuple.new makes a tuple of a table, of values, of another tuple

box.tuple.new{1, 2, 3}

box.tuple.new(1, 2, 3)

box.tuple.new('one')

box.tuple.new{}

box.tuple.new()

box.tuple.new(nil)

box.tuple.new{nil, 2}

box.tuple.new{1, nil, 3}

box.tuple.new{1, box.NULL, {a = {1, 2}}}

box.tuple.new{{}}

box.tuple.new(box.tuple.new{1, 2})

box.tuple.new{box.tuple.new{1}, 2}

box.tuple.new{a = 1}

box.tuple.new{true, 1.5, -7, 18446744073709551615ULL, -9223372036854775808LL}

box.tuple.new{function() end}

box.tuple.new{1e308 * 10, -1e308 * 10}

box.tuple.is(box.tuple.new{1})

box.tuple.is{1}

box.tuple.is(nil)

box.tuple.is(5)

type(box.tuple.new{1})

tostring(box.tuple.new{1, 'a', {b = 1}, {2, 3}, box.NULL, true, 1.5})

tostring(box.tuple.new{'quote " and \\ and \n'})

tostring(box.tuple.new{})

t = box.tuple.new{1}

for i = 1, 8 do t = box.tuple.new{t} end

tostring(t)

recursive = {}

recursive[1] = recursive

box.tuple.new(recursive)
