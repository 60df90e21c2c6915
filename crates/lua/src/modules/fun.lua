-- fun: iterators over anything that iterates, with the names of the `fun` library.
--
-- An iterator is a table {gen, param, state} with methods; generators are called as gen(param, state) and return the next state and
-- the values, nil at the end.
local fun = {}
local methods = {}
local iterator_metatable

local function wrap(gen, param, state)
    return setmetatable({ gen = gen, param = param, state = state }, iterator_metatable), param, state
end

iterator_metatable = {
    __index = methods,
    __call = function(self, param, state)
        return self.gen(param, state)
    end,
    __tostring = function() return '<generator>' end,
}

local function nothing() return nil end

local function text_gen(text, state)
    state = state + 1
    if state > #text then
        return nil
    end
    return state, text:sub(state, state)
end

local function array_gen(list, state)
    state = state + 1
    local value = list[state]
    if value == nil then
        return nil
    end
    return state, value
end

local function map_gen(map, key)
    local value
    key, value = next(map, key)
    return key, key, value
end

local function raw_iter(object, param, state)
    if object == nil then
        error('invalid iterator', 3)
    end
    local kind = type(object)
    if kind == 'table' then
        local metatable = getmetatable(object)
        if metatable == iterator_metatable then
            return object.gen, object.param, object.state
        end
        if metatable and metatable.__ipairs then
            return metatable.__ipairs(object)
        end
        if metatable and metatable.__pairs then
            return metatable.__pairs(object)
        end
        if #object > 0 then
            return array_gen, object, 0
        end
        if next(object) == nil then
            return nothing, nil, nil
        end
        return map_gen, object, nil
    elseif kind == 'function' then
        return object, param, state
    elseif kind == 'string' then
        if #object == 0 then
            return nothing, nil, nil
        end
        return text_gen, object, 0
    elseif kind == 'cdata' and box.internal.is_tuple(object) then
        local inner = object:pairs()
        return inner.gen, inner.param, inner.state
    end
    error(("object %s of type \"%s\" is not iterable"):format(tostring(object), kind), 3)
end

-- Registers a function that takes its iterator last, and the method that takes it first.
local function define(name, arity, body)
    if arity == 0 then
        fun[name] = function(gen, param, state)
            return body(raw_iter(gen, param, state))
        end
        methods[name] = function(self)
            return body(self.gen, self.param, self.state)
        end
    elseif arity == 1 then
        fun[name] = function(first, gen, param, state)
            return body(first, raw_iter(gen, param, state))
        end
        methods[name] = function(self, first)
            return body(first, self.gen, self.param, self.state)
        end
    else
        fun[name] = function(first, second, gen, param, state)
            return body(first, second, raw_iter(gen, param, state))
        end
        methods[name] = function(self, first, second)
            return body(first, second, self.gen, self.param, self.state)
        end
    end
end

local function alias(new, old)
    fun[new], methods[new] = fun[old], methods[old]
end

function fun.iter(object, param, state)
    return wrap(raw_iter(object, param, state))
end
function fun.wrap(gen, param, state)
    return wrap(gen, param, state)
end
function methods.unwrap(self)
    return self.gen, self.param, self.state
end
function fun.unwrap(self)
    return self.gen, self.param, self.state
end

-- Walking -----------------------------------------------------------------------------------------------------------
define('each', 1, function(f, gen, param, state)
    local function step(next_state, ...)
        if next_state ~= nil then
            f(...)
        end
        return next_state
    end
    repeat
        state = step(gen(param, state))
    until state == nil
end)
alias('for_each', 'each')
alias('foreach', 'each')

-- Generators --------------------------------------------------------------------------------------------------------
function fun.range(start, stop, step)
    if step == nil then
        if stop == nil then
            if start == 0 then
                return wrap(nothing, nil, nil)
            end
            stop = start
            start = stop > 0 and 1 or -1
        end
        step = start <= stop and 1 or -1
    end
    assert(type(start) == 'number', 'start must be a number')
    assert(type(stop) == 'number', 'stop must be a number')
    assert(type(step) == 'number', 'step must be a number')
    assert(step ~= 0, 'step must not be zero')
    return wrap(function(_, at)
        local value = at + step
        if step > 0 and value > stop or step < 0 and value < stop then
            return nil
        end
        return value, value
    end, nil, start - step)
end

function fun.duplicate(...)
    local count, values = select('#', ...), { ... }
    return wrap(function(_, at)
        return at + 1, unpack(values, 1, count)
    end, nil, 0)
end
fun.xrepeat, fun.replicate = fun.duplicate, fun.duplicate

function fun.tabulate(f)
    return wrap(function(_, at)
        return at + 1, f(at)
    end, nil, 0)
end
function fun.zeros() return fun.duplicate(0) end
function fun.ones() return fun.duplicate(1) end
function fun.rands(low, high)
    if low == nil then
        return wrap(function() return 0, math.random() end, nil, 0)
    end
    if high == nil then
        low, high = 0, low
    end
    assert(low < high, 'empty interval')
    return wrap(function() return 0, math.random(low, high - 1) end, nil, low - 1)
end

-- Slices ------------------------------------------------------------------------------------------------------------
local function values_of(next_state, ...)
    if next_state == nil then
        return nil
    end
    return ...
end

define('nth', 1, function(n, gen, param, state)
    assert(n > 0, 'invalid first argument to nth')
    for _ = 1, n - 1 do
        state = gen(param, state)
        if state == nil then
            return nil
        end
    end
    return values_of(gen(param, state))
end)

define('head', 0, function(gen, param, state)
    local function checked(next_state, ...)
        if next_state == nil then
            error('head: iterator is empty', 3)
        end
        return ...
    end
    return checked(gen(param, state))
end)
alias('car', 'head')

define('tail', 0, function(gen, param, state)
    state = gen(param, state)
    if state == nil then
        return wrap(nothing, nil, nil)
    end
    return wrap(gen, param, state)
end)
alias('cdr', 'tail')

define('take_n', 1, function(n, gen, param, state)
    assert(n >= 0, 'invalid first argument to take_n')
    local function step(count, next_state, ...)
        if next_state == nil then
            return nil
        end
        return { count, next_state }, ...
    end
    return wrap(function(_, at)
        if at[1] >= n then
            return nil
        end
        return step(at[1] + 1, gen(param, at[2]))
    end, nil, { 0, state })
end)

define('take_while', 1, function(f, gen, param, state)
    local function step(next_state, ...)
        if next_state == nil or not f(...) then
            return nil
        end
        return next_state, ...
    end
    return wrap(function(_, at) return step(gen(param, at)) end, nil, state)
end)

define('take', 1, function(n_or_f, gen, param, state)
    if type(n_or_f) == 'number' then
        return fun.take_n(n_or_f, gen, param, state)
    end
    return fun.take_while(n_or_f, gen, param, state)
end)

define('drop_n', 1, function(n, gen, param, state)
    assert(n >= 0, 'invalid first argument to drop_n')
    for _ = 1, n do
        state = gen(param, state)
        if state == nil then
            return wrap(nothing, nil, nil)
        end
    end
    return wrap(gen, param, state)
end)

define('drop_while', 1, function(f, gen, param, state)
    local function test(next_state, ...)
        if next_state == nil then
            return nil, false
        end
        return next_state, f(...)
    end
    while true do
        local next_state, is_dropped = test(gen(param, state))
        if next_state == nil then
            return wrap(nothing, nil, nil)
        end
        if not is_dropped then
            return wrap(gen, param, state)
        end
        state = next_state
    end
end)

define('drop', 1, function(n_or_f, gen, param, state)
    if type(n_or_f) == 'number' then
        return fun.drop_n(n_or_f, gen, param, state)
    end
    return fun.drop_while(n_or_f, gen, param, state)
end)

define('span', 1, function(n_or_f, gen, param, state)
    return fun.take(n_or_f, gen, param, state), fun.drop(n_or_f, gen, param, state)
end)
alias('split', 'span')
alias('split_at', 'span')

-- Search ------------------------------------------------------------------------------------------------------------
define('index', 1, function(value, gen, param, state)
    local at = 0
    for _, found in gen, param, state do
        at = at + 1
        if found == value then
            return at
        end
    end
    return nil
end)
alias('index_of', 'index')
alias('elem_index', 'index')

define('indexes', 1, function(value, gen, param, state)
    return wrap(function(_, at)
        local position, inner = at[1], at[2]
        while true do
            local found
            inner, found = gen(param, inner)
            if inner == nil then
                return nil
            end
            position = position + 1
            if found == value then
                return { position, inner }, position
            end
        end
    end, nil, { 0, state })
end)
alias('indices', 'indexes')
alias('elem_indexes', 'indexes')
alias('elem_indices', 'indexes')

-- Filters -----------------------------------------------------------------------------------------------------------
define('filter', 1, function(f, gen, param, state)
    local function test(next_state, ...)
        if next_state == nil then
            return true, nil
        end
        return f(...) and true or false, next_state, ...
    end
    local function finish(is_taken, next_state, ...)
        return is_taken, next_state, ...
    end
    local function loop(is_taken, next_state, ...)
        if is_taken then
            return next_state, ...
        end
        return loop(test(gen(param, next_state)))
    end
    return wrap(function(_, at) return loop(finish(test(gen(param, at)))) end, nil, state)
end)
alias('remove_if', 'filter')

define('grep', 1, function(f_or_pattern, gen, param, state)
    if type(f_or_pattern) == 'string' then
        local pattern = f_or_pattern
        f_or_pattern = function(text) return text:find(pattern) ~= nil end
    end
    return fun.filter(f_or_pattern, gen, param, state)
end)

define('partition', 1, function(f, gen, param, state)
    return fun.filter(f, gen, param, state), fun.filter(function(...) return not f(...) end, gen, param, state)
end)

-- Folding -----------------------------------------------------------------------------------------------------------
define('foldl', 2, function(f, accumulated, gen, param, state)
    local function step(next_state, ...)
        if next_state ~= nil then
            accumulated = f(accumulated, ...)
        end
        return next_state
    end
    repeat
        state = step(gen(param, state))
    until state == nil
    return accumulated
end)
alias('reduce', 'foldl')

define('length', 0, function(gen, param, state)
    local count = 0
    while true do
        state = gen(param, state)
        if state == nil then
            return count
        end
        count = count + 1
    end
end)

define('is_null', 0, function(gen, param, state)
    return gen(param, state) == nil
end)

define('is_prefix_of', 1, function(first, gen, param, state)
    local own, own_param, own_state = raw_iter(first)
    while true do
        local a, b
        own_state, a = own(own_param, own_state)
        state, b = gen(param, state)
        if own_state == nil then
            return true
        end
        if state == nil or a ~= b then
            return false
        end
    end
end)
methods.is_prefix_of = function(self, other) return fun.is_prefix_of(self, other) end

define('all', 1, function(f, gen, param, state)
    local function test(next_state, ...)
        if next_state == nil then
            return nil, true
        end
        return next_state, f(...)
    end
    local ok
    repeat
        state, ok = test(gen(param, state))
    until state == nil or not ok
    return state == nil
end)
alias('every', 'all')

define('any', 1, function(f, gen, param, state)
    local function test(next_state, ...)
        if next_state == nil then
            return nil, false
        end
        return next_state, f(...)
    end
    local ok
    repeat
        state, ok = test(gen(param, state))
    until state == nil or ok
    return not not ok
end)
alias('some', 'any')

local function fold_values(name, empty, combine)
    define(name, 0, function(gen, param, state)
        local result = empty
        for _, value in gen, param, state do
            result = combine(result, value)
        end
        return result
    end)
end
fold_values('sum', 0, function(a, b) return a + b end)
fold_values('product', 1, function(a, b) return a * b end)

local function best(name, is_better)
    define(name, 0, function(gen, param, state)
        local result
        for _, value in gen, param, state do
            if result == nil or is_better(value, result) then
                result = value
            end
        end
        if result == nil then
            error(name .. ': iterator is empty', 3)
        end
        return result
    end)
end
best('min', function(a, b) return a < b end)
best('max', function(a, b) return a > b end)
alias('minimum', 'min')
alias('maximum', 'max')

local function best_by(name, title)
    define(name, 1, function(choose, gen, param, state)
        local result
        for _, value in gen, param, state do
            if result == nil then
                result = value
            else
                result = choose(result, value)
            end
        end
        if result == nil then
            error(title .. ': iterator is empty', 3)
        end
        return result
    end)
end
best_by('min_by', 'min')
best_by('max_by', 'max')
alias('minimum_by', 'min_by')
alias('maximum_by', 'max_by')

define('totable', 0, function(gen, param, state)
    local list = {}
    for _, value in gen, param, state do
        list[#list + 1] = value
    end
    return list
end)

define('tomap', 0, function(gen, param, state)
    local map = {}
    for _, key, value in gen, param, state do
        map[key] = value
    end
    return map
end)

-- Transformations ---------------------------------------------------------------------------------------------------
define('map', 1, function(f, gen, param, state)
    local function step(next_state, ...)
        if next_state == nil then
            return nil
        end
        return next_state, f(...)
    end
    return wrap(function(_, at) return step(gen(param, at)) end, nil, state)
end)

define('enumerate', 0, function(gen, param, state)
    local function step(count, next_state, ...)
        if next_state == nil then
            return nil
        end
        return { count + 1, next_state }, count, ...
    end
    return wrap(function(_, at) return step(at[1], gen(param, at[2])) end, nil, { 1, state })
end)

-- A separator stands before every value but is taken after it, as the library has it.
define('intersperse', 1, function(separator, gen, param, state)
    return wrap(function(_, at)
        if at[1] then
            return { false, at[2] }, separator
        end
        local inner, value = gen(param, at[2])
        if inner == nil then
            return nil
        end
        return { true, inner }, value
    end, nil, { false, state })
end)

-- Compositions ------------------------------------------------------------------------------------------------------
-- How many of the arguments are iterators: the last may be an iterator followed by its param and state.
local function count_of(...)
    local count = select('#', ...)
    if count >= 3 then
        local third = select(count - 2, ...)
        if type(third) == 'table' and getmetatable(third) == iterator_metatable and third.param == select(count - 1, ...)
            and third.state == select(count, ...) then
            return count - 2
        end
    end
    return count
end

function fun.zip(...)
    local count = count_of(...)
    local gens, params, states = {}, {}, {}
    for i = 1, count do
        gens[i], params[i], states[i] = raw_iter((select(i, ...)))
    end
    return wrap(function(_, at)
        local next_states, values = {}, {}
        for i = 1, count do
            local inner, value = gens[i](params[i], at[i])
            if inner == nil then
                return nil
            end
            next_states[i], values[i] = inner, value
        end
        return next_states, unpack(values, 1, count)
    end, nil, states)
end
methods.zip = fun.zip

define('cycle', 0, function(gen, param, state)
    local function step(next_state, ...)
        if next_state == nil then
            return gen(param, state)
        end
        return next_state, ...
    end
    return wrap(function(_, at) return step(gen(param, at)) end, nil, state)
end)

function fun.chain(...)
    local count = count_of(...)
    local gens, params, states = {}, {}, {}
    for i = 1, count do
        gens[i], params[i], states[i] = raw_iter((select(i, ...)))
    end
    local advance
    local function step(i, next_state, ...)
        if next_state == nil then
            if i == count then
                return nil
            end
            return advance(i + 1, states[i + 1])
        end
        return { i, next_state }, ...
    end
    function advance(i, state)
        return step(i, gens[i](params[i], state))
    end
    if count == 0 then
        return wrap(nothing, nil, nil)
    end
    return wrap(function(_, at) return advance(at[1], at[2]) end, nil, { 1, states[1] })
end
methods.chain = fun.chain

fun.operator = {
    lt = function(a, b) return a < b end, le = function(a, b) return a <= b end, eq = function(a, b) return a == b end,
    ne = function(a, b) return a ~= b end, neq = function(a) return -a end, ge = function(a, b) return a >= b end, gt = function(a, b) return a > b end,
    add = function(a, b) return a + b end, sub = function(a, b) return a - b end, mul = function(a, b) return a * b end,
    div = function(a, b) return a / b end, mod = function(a, b) return a % b end, pow = function(a, b) return a ^ b end,
    neg = function(a) return -a end, unm = function(a) return -a end, truediv = function(a, b) return a / b end,
    floordiv = function(a, b) return math.floor(a / b) end,
    intdiv = function(a, b)
        local quotient = a / b
        return a >= 0 and math.floor(quotient) or math.ceil(quotient)
    end,
    concat = function(a, b) return a .. b end, length = function(a) return #a end, len = function(a) return #a end,
    land = function(a, b) return a and b end, lor = function(a, b) return a or b end, lnot = function(a) return not a end,
    truth = function(a) return not not a end,
}
fun.op = fun.operator

setmetatable(fun, {
    __call = function(self, ...)
        for name, f in pairs(self) do
            _G[name] = f
        end
        return self, ...
    end,
})

package.loaded.fun = fun
