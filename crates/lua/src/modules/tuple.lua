-- Tuple objects: cdata `struct tuple *` that holds one reference to a row. Field names win over method names.
local internal = ...

local ffi = require('ffi')

local field, names_of = internal.tuple_field, internal.tuple_names
local methods = {}

local function is_tuple(value)
    return ffi.istype('struct tuple', value)
end
internal.is_tuple = is_tuple

local function check_tuple(value, usage)
    if not is_tuple(value) then
        error('Usage: ' .. usage, 3)
    end
    return value
end

local function count_of(tuple)
    return (internal.tuple_info(tuple))
end

function methods.next(tuple, position)
    check_tuple(tuple, 'tuple:next(tuple, pos)')
    position = position == nil and 0 or position
    if type(position) ~= 'number' and type(position) ~= 'cdata' then
        local text = "bad argument #2 to 'box_tuple_field' (cannot convert '%s' to 'unsigned int')"
        error(text:format(type(position)), 2)
    end
    -- Places are numbers of 32 bits: -1 is far behind the end.
    local at = tonumber(ffi.cast('uint32_t', position))
    if at >= count_of(tuple) then
        return nil
    end
    return position + 1, field(tuple, at + 1)
end

local function iterate(state, position)
    position = position + 1
    if position > state.count then
        return nil
    end
    return position, field(state.tuple, position)
end

function methods.pairs(tuple)
    check_tuple(tuple, 'tuple:pairs(tuple)')
    local fun = require('fun')
    return fun.wrap(iterate, { tuple = tuple, count = count_of(tuple) }, 0)
end
methods.ipairs = methods.pairs

function internal.tuple_pairs(tuple)
    return iterate, { tuple = tuple, count = count_of(tuple) }, 0
end

-- Which fields a range names, bounded by those there are.
local function checked_range(from, to, count, level)
    from, to = from or 1, to or count
    if type(from) ~= 'number' or from < 1 then
        error('tuple.totable: invalid second argument', level)
    end
    if type(to) ~= 'number' or to < 1 and to ~= count then
        error('tuple.totable: invalid third argument', level)
    end
    return from, math.min(to, count)
end

function methods.totable(tuple, from, to)
    check_tuple(tuple, 'tuple:totable([from[, to]])')
    local all = internal.tuple_table(tuple)
    if from == nil and to == nil then
        return all
    end
    from, to = checked_range(from, to, #all, 3)
    local part = {}
    for i = from, to do
        part[#part + 1] = all[i]
    end
    return setmetatable(part, internal.values.array_metatable)
end

function methods.tomap(tuple, options)
    check_tuple(tuple, 'tuple:tomap(opts)')
    if options ~= nil and type(options) ~= 'table' then
        error('Usage: tuple:tomap(opts)', 2)
    end
    local map = {}
    local names = names_of(tuple)
    local all = internal.tuple_table(tuple)
    for i, name in ipairs(names) do
        if i <= #all then
            map[name] = all[i]
        end
    end
    if not (options and options.names_only) then
        for i = 1, #all do
            map[i] = all[i]
        end
    end
    return map
end

function methods.unpack(tuple, from, to)
    check_tuple(tuple, 'tuple:unpack([from[, to]])')
    local all = internal.tuple_table(tuple)
    return unpack(all, checked_range(from, to, #all, 3))
end

function methods.slice(tuple, from, to)
    check_tuple(tuple, 'tuple:slice(start[, end])')
    if type(from) ~= 'number' or to ~= nil and type(to) ~= 'number' then
        error('tuple.slice(): bad arguments', 2)
    end
    local all = internal.tuple_table(tuple)
    local count = #all
    local first = from
    if first < 0 then
        first = first + count
    end
    if first < 0 or first >= count then
        error('tuple.slice(): start >= field count', 2)
    end
    local last = to or count
    if last < 0 then
        last = last + count
    end
    if last <= 0 or last > count then
        error('tuple.slice(): end > field count', 2)
    end
    if last <= first then
        error('tuple.slice(): start must be less than end', 2)
    end
    return unpack(all, first + 1, last)
end

-- The arguments of find and findall: a value, or how many fields are passed over and a value. Returns where to begin.
local function find_arguments(tuple, usage, ...)
    local count = select('#', ...)
    if count == 0 then
        error('Usage: ' .. usage, 3)
    end
    local from, value = 1, ...
    if count >= 2 then
        from, value = ...
        from = tonumber(from) or error('Usage: ' .. usage, 3)
        if from < 0 or from > count_of(tuple) then
            error('error: invalid key to \'next\'', 3)
        end
        from = from + 1
    end
    return from, value
end

function methods.find(tuple, ...)
    check_tuple(tuple, 'tuple:find([offset, ]val)')
    local from, value = find_arguments(tuple, 'tuple:find([offset, ]val)', ...)
    local all = internal.tuple_table(tuple)
    for i = from, #all do
        if all[i] == value then
            return i
        end
    end
    return nil
end

function methods.findall(tuple, ...)
    check_tuple(tuple, 'tuple:findall([offset, ]val)')
    local from, value = find_arguments(tuple, 'tuple:findall([offset, ]val)', ...)
    local all, found = internal.tuple_table(tuple), {}
    for i = from, #all do
        if all[i] == value then
            found[#found + 1] = i
        end
    end
    return found
end

function methods.transform(tuple, position, count, ...)
    check_tuple(tuple, 'tuple:transform()')
    if type(position) ~= 'number' or type(count) ~= 'number' then
        error('tuple.transform(): bad arguments', 2)
    end
    local fields = count_of(tuple)
    if position == 0 or position < -fields then
        error('tuple.transform(): offset is out of bound', 2)
    end
    if count < 0 then
        error('tuple.transform(): len is negative', 2)
    end
    position = math.min(position, fields + 1)
    local all = internal.tuple_table(tuple)
    local first = position < 0 and position + fields + 1 or position
    local remove = math.min(count or 0, fields - first + 1)
    local result = {}
    for i = 1, first - 1 do
        result[#result + 1] = all[i]
    end
    for i = 1, select('#', ...) do
        local value = select(i, ...)
        result[#result + 1] = value == nil and box.NULL or value
    end
    for i = first + remove, fields do
        result[#result + 1] = all[i]
    end
    return internal.tuple_new(result)
end

function methods.update(tuple, operations)
    check_tuple(tuple, 'tuple:update({ { op, field, arg}+ })')
    if type(operations) ~= 'table' then
        error('Usage: tuple:update({ { op, field, arg}+ })', 2)
    end
    return internal.tuple_update(tuple, operations, false)
end

function methods.upsert(tuple, operations)
    check_tuple(tuple, 'tuple:upsert({ { op, field, arg}+ })')
    if type(operations) ~= 'table' then
        error('Usage: tuple:upsert({ { op, field, arg}+ })', 2)
    end
    return internal.tuple_update(tuple, operations, true)
end

function methods.bsize(tuple)
    check_tuple(tuple, 'tuple:bsize()')
    return select(2, internal.tuple_info(tuple))
end

function methods.format(tuple)
    return internal.tuple_format(tuple)
end

methods.__serialize = methods.totable
internal.values.tuple_methods = methods

ffi.metatype('struct tuple', {
    __index = internal.tuple_index,
    __len = function(tuple)
        return count_of(tuple)
    end,
    __tostring = function(tuple)
        return internal.tuple_text(tuple)
    end,
    -- The same row, not an equal one.
    __eq = function(a, b)
        return ffi.cast('void *', a) == ffi.cast('void *', b)
    end,
})

box.tuple = {
    new = function(...)
        if select('#', ...) == 0 then
            return internal.tuple_new({})
        end
        local first = ...
        if select('#', ...) == 1 or internal.tweaks.tuple_new_takes_options then
            if type(first) == 'table' or is_tuple(first) then
                return internal.tuple_new(first)
            end
            return internal.tuple_new({ first == nil and box.NULL or first })
        end
        local list = {}
        for i = 1, select('#', ...) do
            local value = select(i, ...)
            list[i] = value == nil and box.NULL or value
        end
        return internal.tuple_new(setmetatable(list, internal.values.array_metatable))
    end,
    is = is_tuple,
    bsize = methods.bsize, find = methods.find, findall = methods.findall, unpack = methods.unpack,
    totable = methods.totable, tomap = methods.tomap, slice = methods.slice, transform = methods.transform,
    update = methods.update, upsert = methods.upsert, next = methods.next, pairs = methods.pairs,
    ipairs = methods.ipairs,
}
