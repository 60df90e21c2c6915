-- merger: the rows of several ordered sources in one order.
--
-- A source has one method that matters, `next`, which gives its next row or nothing. A merger keeps the next row of each of its sources in a
-- heap: the first row is the smallest, each row is not greater than the two below it. A merger is a source itself.
local internal = ...

local ffi = require('ffi')

local compare, check = internal.key_def_compare_tuples, internal.key_def_check

local function illegal(text)
    error(internal.values.make_error(0, 'IllegalParams', text))
end

local function as_tuple(row)
    if box.tuple.is(row) then
        return row
    elseif type(row) ~= 'table' then
        illegal(('A tuple or a table expected, got %s'):format(type(row)))
    end
    return box.tuple.new(row)
end

local methods = {}
local source_metatable = { __index = methods, __name = 'merge_source' }

local function is_source(value)
    return type(value) == 'table' and getmetatable(value) == source_metatable
end

local function new_source(next_row)
    return setmetatable({ next = next_row }, source_metatable)
end

-- Sources -------------------------------------------------------------------------------------------------------------
local function generator_arguments(name, ...)
    local gen, param, state = ...
    local count = select('#', ...)
    local metatable = type(gen) == 'table' and getmetatable(gen)
    local can_be_called = type(gen) == 'function' or type(metatable) == 'table' and metatable.__call ~= nil
    if count < 1 or count > 3 or not can_be_called then
        error(('Usage: merger.%s(gen, param, state)'):format(name), 3)
    end
    return gen, param, state
end

local function new_tuple_source(...)
    local gen, param, state = generator_arguments('new_tuple_source', ...)
    return new_source(function()
        local row
        state, row = gen(param, state)
        if state == nil then
            return nil
        end
        return as_tuple(row)
    end)
end

-- A source of what a generator's values hold: `open` makes a function that gives the rows of one value.
local function chunked(gen, param, state, open)
    local rows
    return new_source(function()
        while true do
            local row = rows and rows()
            if row ~= nil then
                return row
            end
            local value
            state, value = gen(param, state)
            if state == nil then
                rows = nil
                return nil
            end
            rows = open(value)
        end
    end)
end

local function rows_of_table(list)
    if type(list) ~= 'table' then
        illegal('Expected <state>, <table>')
    end
    local at = 0
    return function()
        at = at + 1
        local row = list[at]
        if row == nil then
            return nil
        end
        return as_tuple(row)
    end
end

local function rows_of_buffer(buffer)
    if not internal.is_buffer(buffer) then
        illegal('Expected <state>, <buffer>')
    end
    local left
    return function()
        if left == nil then
            if buffer:size() == 0 then
                left = 0
                return nil
            end
            local fine, count, behind = pcall(internal.msgpack_header, buffer.rpos, buffer:size(), false)
            if not fine then
                illegal(('Invalid merge source %s'):format(tostring(ffi.cast('void *', buffer)):match('0x%x+') or ''))
            end
            left, buffer.rpos = count, behind
        end
        if left == 0 then
            return nil
        end
        local row, behind = internal.msgpack_tuple(buffer.rpos, buffer:size())
        left, buffer.rpos = left - 1, behind
        return row
    end
end

local function new_table_source(...)
    local gen, param, state = generator_arguments('new_table_source', ...)
    return chunked(gen, param, state, rows_of_table)
end

local function new_buffer_source(...)
    local gen, param, state = generator_arguments('new_buffer_source', ...)
    return chunked(gen, param, state, rows_of_buffer)
end

local function new_source_fromtable(...)
    local list = ...
    if select('#', ...) ~= 1 or type(list) ~= 'table' then
        error('Usage: merger.new_source_fromtable(<table>)', 2)
    end
    return new_source(rows_of_table(list))
end

local function new_source_frombuffer(...)
    local buffer = ...
    if select('#', ...) ~= 1 or not internal.is_buffer(buffer) then
        error('Usage: merger.new_source_frombuffer(<cdata<struct ibuf>>)', 2)
    end
    return new_source(rows_of_buffer(buffer))
end

-- The merger ------------------------------------------------------------------------------------------------------------
local USAGE = 'use: merger.new(key_def, {source, source, ...}[, {reverse = <boolean> or <nil>}])'

local function new(...)
    local definition, sources, options = ...
    local count = select('#', ...)
    if count < 2 or count > 3 or not internal.key_def.is(definition) or type(sources) ~= 'table'
        or options ~= nil and type(options) ~= 'table' then
        error('Bad params, ' .. USAGE, 2)
    end
    local is_reverse = options and options.reverse
    if is_reverse ~= nil and type(is_reverse) ~= 'boolean' then
        error('Bad param "reverse", ' .. USAGE, 2)
    end
    local list = {}
    for at, source in ipairs(sources) do
        if not is_source(source) then
            error('expected cdata as 3 argument', 2)
        end
        list[at] = source
    end

    -- The definition lives as long as whoever uses its number.
    local number, sign = internal.key_def.number_of(definition), is_reverse and -1 or 1
    -- Rows, the source of each, and the place of that source among its siblings: of equal rows the first source's comes first.
    local rows, owners, places = {}, {}, {}

    local function goes_before(a, b)
        local order = compare(number, rows[a], rows[b]) * sign
        return order < 0 or order == 0 and places[a] < places[b]
    end

    local function swap(a, b)
        rows[a], rows[b] = rows[b], rows[a]
        owners[a], owners[b] = owners[b], owners[a]
        places[a], places[b] = places[b], places[a]
    end

    local function sink(at)
        while true do
            local least = at
            for child = at * 2, math.min(at * 2 + 1, #rows) do
                if goes_before(child, least) then
                    least = child
                end
            end
            if least == at then
                return
            end
            swap(at, least)
            at = least
        end
    end

    local function rise(at)
        while at > 1 do
            local parent = math.floor(at / 2)
            if not goes_before(at, parent) then
                return
            end
            swap(at, parent)
            at = parent
        end
    end

    local function take(source)
        local row = source.next()
        if row ~= nil then
            check(number, row)
        end
        return row
    end

    local is_started = false
    return new_source(function()
        local _ = definition
        if not is_started then
            is_started = true
            for place, source in ipairs(list) do
                local row = take(source)
                if row ~= nil then
                    local at = #rows + 1
                    rows[at], owners[at], places[at] = row, source, place
                    rise(at)
                end
            end
        end
        local first = rows[1]
        if first == nil then
            return nil
        end
        local row = take(owners[1])
        if row ~= nil then
            rows[1] = row
        else
            local last = #rows
            rows[1], owners[1], places[1] = rows[last], owners[last], places[last]
            rows[last], owners[last], places[last] = nil, nil, nil
        end
        if #rows > 0 then
            sink(1)
        end
        return first
    end)
end

-- What a source can do ----------------------------------------------------------------------------------------------------
local SELECT_USAGE = 'use: merge_source:select([{buffer = <cdata<struct ibuf>> or <nil>, limit = <number> or <nil>}])'

function methods.select(self, options)
    if not is_source(self) or options ~= nil and type(options) ~= 'table' then
        error('Bad params, ' .. SELECT_USAGE, 2)
    end
    local buffer, limit = options and options.buffer, options and options.limit
    if buffer ~= nil and not internal.is_buffer(buffer) then
        error('Bad param "buffer", ' .. SELECT_USAGE, 2)
    elseif limit ~= nil and (type(limit) ~= 'number' or limit ~= limit) then
        error('Bad param "limit", ' .. SELECT_USAGE, 2)
    end
    limit = limit ~= nil and limit >= 0 and limit or math.huge
    local result = {}
    while #result < limit do
        local row = self.next()
        if row == nil then
            break
        end
        result[#result + 1] = row
    end
    if buffer == nil then
        return result
    end
    -- The header has its longest form, as Tarantool writes it.
    local count = #result
    local place = ffi.cast('uint8_t *', buffer:alloc(5))
    place[0] = 0xdd
    for at = 4, 1, -1 do
        place[at], count = count % 256, math.floor(count / 256)
    end
    for _, row in ipairs(result) do
        require('msgpack').encode(row, buffer)
    end
end

function methods.pairs(self)
    if not is_source(self) then
        error('Usage: merge_source:ipairs()', 2)
    end
    local fun = require('fun')
    return fun.wrap(function()
        local row = self.next()
        if row == nil then
            return nil
        end
        return self, row
    end, self, self)
end
methods.ipairs = methods.pairs
source_metatable.__pairs = methods.pairs
source_metatable.__ipairs = methods.pairs

package.loaded.merger = {
    new = new, new_tuple_source = new_tuple_source, new_table_source = new_table_source,
    new_buffer_source = new_buffer_source, new_source_fromtable = new_source_fromtable,
    new_source_frombuffer = new_source_frombuffer,
}
