-- Random update operations on random rows, and what Tarantool answers to them.
--
-- `tarantool record.lua <from> <to>` prints a line for each seed: the row, the operations, what an update and what an upsert make of
-- them, as hexadecimal msgpack; for an error its number and text. The first field of every line is the seed. Some combinations end
-- Tarantool 2.6: record.sh then goes on behind the seed whose line is missing.
local msgpack = require('msgpack')
local decimal = require('decimal')
local ffi = require('ffi')

io.stdout:setvbuf('line')

local seed
local function random(n)
    -- A generator of its own: the same cases in every version of LuaJIT.
    seed = (seed * 1103515245 + 12345) % 2147483648
    return math.floor(seed / 65536) % n + 1
end

local function pick(list)
    return list[random(#list)]
end

local function hex(value)
    return (msgpack.encode(value):gsub('.', function(c) return ('%02x'):format(c:byte()) end))
end

local function map(pairs_of)
    return setmetatable(pairs_of, { __serialize = 'map' })
end

local function single(value)
    return ffi.cast('float', value)
end

local numbers = {
    1, 7, -3, 100, 2 ^ 31, 2 ^ 53, 18446744073709551615ULL, -9223372036854775807LL, 0.5, -1.25, 0.1, 1e300, 1.5e-30, -0.0,
    single(0.5), single(0.1), single(3e38), single(16777216), 1 / 0, decimal.new('1.5'), decimal.new('-0.001'),
    decimal.new('99999999999999999999999999999999999999'), decimal.new('1e20'),
}

local function scalar()
    local kind = random(10)
    if kind <= 6 then return pick(numbers) end
    if kind <= 8 then return pick({ 'text', 'abc', '', ('long'):rep(10) }) end
    return pick({ true, msgpack.NULL, 5 })
end

local function nested()
    return { 3, 4, { 5, 6 }, map({ a = 1, b = map({ c = 2, d = { 8, 9 } }) }) }
end

local function value()
    local kind = random(12)
    if kind == 1 then return { 1, 2 } end
    if kind == 2 then return map({ k = 1 }) end
    return scalar()
end

local function row()
    local result = { 1, scalar(), nested(), pick(numbers) }
    for _ = 1, random(3) - 1 do
        table.insert(result, value())
    end
    return result
end

local flat = { 1, 2, 2, 3, 4, 4, 4, 5, 6, 7, 8, -1, -1, -2, -5, 0, 2147483647, 2147483648, -2147483648 }
local paths = {
    '[2]', '[4]', '[5]', '[3]', '[3][1]', '[3][1]', '[3][2]', '[3][3]', '[3][3][1]', '[3][3][2]', '[3][3][3]', '[3][5]', '[3][6]',
    '[3][4]', '[3][4].a', '[3][4].a', '[3][4].b', '[3][4].b.c', '[3][4].b.d', '[3][4].b.d[1]', '[3][4].b.d[2]', '[3][4].b.e',
    '[3][4].z', '[3][4]["a"]', '[3].x', '[3][4].b.d[3]', '[2][1]', '[2].x', '[9].x', 'name', '[0]', '[3][', '[3][4]..', '[3][*]', '[*]',
}
local deep = {
    '[3][1]', '[3][2]', '[3][3]', '[3][3][1]', '[3][3][2]', '[3][4].a', '[3][4].b.c', '[3][4].b.d[1]', '[3][4].b.d[2]', '[3][4].b.e',
    '[3][4].b', '[3][5]', '[3][3][3]', '[3][4].z', '[3][4].b.d',
}

local function operation(fields)
    local field = pick(fields)
    local code = pick({ '=', '=', '!', '!', '#', '+', '-', '+', '&', '|', '^', ':' })
    if code == '#' then return { code, field, pick({ 1, 1, 1, 2, 9, 4294967296 }) } end
    if code == ':' then return { code, field, pick({ 1, 2, -1, -2, 5, 0, 100 }), pick({ 0, 1, 2, -1, -9 }), pick({ 'XY', '' }) } end
    if code == '+' or code == '-' then return { code, field, random(15) == 1 and scalar() or pick(numbers) } end
    if code == '&' or code == '|' or code == '^' then return { code, field, pick({ 3, 12, 2 ^ 40, -1 }) } end
    return { code, field, value() }
end

local function mixed()
    local all = {}
    for _, list in ipairs({ flat, flat, paths }) do
        for _, field in ipairs(list) do table.insert(all, field) end
    end
    return all
end

local all = mixed()

local function operations()
    local fields = pick({ flat, all, deep, deep, paths })
    local list = {}
    for _ = 1, pick({ 1, 2, 2, 3, 4, 6 }) do
        table.insert(list, operation(fields))
    end
    return list
end

local function answer(ok, result)
    if ok then return hex(result) end
    return ('%d %s'):format(result.code or 0, tostring(result))
end

for number = tonumber(arg[1]), tonumber(arg[2]) do
    seed = number * 7919 + 17
    for _ = 1, 5 do random(2) end
    local fields, list = row(), operations()
    local tuple = box.tuple.new(fields)
    io.write(('%d\t%s\t%s\t'):format(number, hex(tuple), hex(list)))
    local updated = answer(pcall(tuple.update, tuple, list))
    local upserted = answer(pcall(tuple.upsert, tuple, list))
    print(updated .. '\t' .. upserted)
end
os.exit(0)
