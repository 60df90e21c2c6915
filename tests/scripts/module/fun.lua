-- fun: generators, slices, maps, folds

fun = require('fun')

fun.range(5):totable()

fun.range(2, 8, 3):totable()

fun.range(5, 1, -2):totable()

fun.range(0):totable()

fun.iter{1, 2, 3}:totable()

fun.iter('abc'):totable()

fun.iter{a = 1}:totable()

fun.iter{a = 1}:tomap()

fun.iter{}:totable()

fun.map(function(x) return x * 2 end, {1, 2, 3}):totable()

fun.iter{1, 2, 3}:map(function(x) return x, x * 2 end):totable()

fun.filter(function(x) return x > 1 end, {1, 2, 3}):totable()

fun.iter{1, 2, 3}:reduce(function(a, x) return a + x end, 0)

fun.foldl(function(a, x) return a .. x end, '', {'a', 'b'})

fun.zip({1, 2, 3}, {'a', 'b'}):map(function(a, b) return a .. b end):totable()

fun.zip(fun.range(2), 'xyz', {true, false}):map(function(...) return {...} end):totable()

fun.take(2, {1, 2, 3}):totable()

fun.take_n(2, fun.range(10)):totable()

fun.take_while(function(x) return x < 3 end, {1, 2, 3, 1}):totable()

fun.take(function(x) return x < 3 end, {1, 2, 3, 1}):totable()

fun.drop(2, {1, 2, 3}):totable()

fun.drop_while(function(x) return x < 2 end, {1, 2, 3, 1}):totable()

a, b = fun.span(2, {1, 2, 3}) return a:totable(), b:totable()

a, b = fun.split(2, {1, 2, 3}) return a:totable(), b:totable()

fun.head{5, 6}

fun.head{}

fun.tail{5, 6}:totable()

fun.nth(2, {5, 6})

fun.nth(9, {5, 6})

fun.length{1, 2, 3}

fun.is_null{}

fun.is_null{1}

fun.sum{1, 2, 3}

fun.product{2, 3, 4}

fun.min{3, 1, 2}

fun.max{3, 1, 2}

fun.min{}

fun.min_by(function(a, b) if #a < #b then return a else return b end end, {'aaa', 'b', 'cc'})

fun.all(function(x) return x > 0 end, {1, 2})

fun.any(function(x) return x > 1 end, {1, 2})

fun.any(function(x) return x > 5 end, {1, 2})

fun.enumerate{'a', 'b'}:map(function(i, x) return i .. x end):totable()

fun.chain({1, 2}, {3}, fun.range(2)):totable()

fun.cycle{1, 2}:take(5):totable()

fun.duplicate('x'):take(3):totable()

fun.zeros():take(2):totable()

fun.ones():take(2):totable()

fun.tabulate(function(x) return x * x end):take(4):totable()

fun.index('b', {'a', 'b', 'c'})

fun.index('z', {'a'})

fun.indexes('a', {'a', 'b', 'a'}):totable()

fun.elem_index('b', {'a', 'b'})

a, b = fun.partition(function(x) return x > 1 end, {1, 2, 3}) return a:totable(), b:totable()

fun.grep('^a', {'ab', 'ba', 'ac'}):totable()

fun.intersperse('-', {1, 2, 3}):totable()

fun.each(function(x) seen = x end, {1, 2})

seen

fun.foreach(function(x) seen = x end, {7})

seen

fun.op.add(1, 2)

fun.operator.concat('a', 'b')

fun.range(3):map(function(x) return {x, x} end):totable()

fun.iter(box.tuple.new{1, 2, 3}):totable()

fun.range(10):filter(function(x) return x % 2 == 0 end):map(function(x) return x * x end):sum()

sum = 0

for _, x in fun.range(4) do sum = sum + x end

sum

fun.range()

fun.iter(5)

fun.iter()

fun.range(1, 5, 0)

fun.nth(0, {1})

tostring(fun.range(3))

fun.replicate

fun.is_prefix_of({1, 2}, {1, 2, 3})
