-- The functions that Tokyo Tyrant gives to those that `ext` calls, as globals. They act on the space of the listener that asks for them, with the rights of
-- whom the call acts as.
local name, kind = ...
local ffi, fiber, log = require('ffi'), require('fiber'), require('log')
local is_table, is_fixed = kind == 'table', kind == 'fixed'
local place, locked, stash = nil, {}, {}
-- They are globals wherever globals have to be declared.
setfenv(1, setmetatable({}, {__index = _G, __newindex = function(_, global, value) rawset(_G, global, value) end}))

local function space() return box.space[name] end
local function key_of(key) return is_fixed and tonumber(key) or tostring(key) end

local function value_of(value)
    if not is_table then
        value = tostring(value)
        return is_fixed and value:sub(1, 255) or value
    end
    local columns = {}
    for column, text in pairs(value) do
        columns[tostring(column)] = tostring(text)
    end
    return setmetatable(columns, {__serialize = 'map'})
end

function _put(key, value)
    space():replace({key_of(key), value_of(value)})
    return true
end

function _putkeep(key, value)
    return box.atomic(function()
        return space():get(key_of(key)) == nil and _put(key, value)
    end)
end

function _putcat(key, value)
    return box.atomic(function()
        local row = space():get(key_of(key))
        if row == nil then
            return _put(key, value)
        elseif not is_table then
            return _put(key, row[2] .. tostring(value))
        end
        local columns = {}
        for column, text in pairs(row[2]) do
            columns[column] = text
        end
        for column, text in pairs(value) do
            columns[column] = text
        end
        return _put(key, columns)
    end)
end

function _out(key)
    return box.atomic(function()
        return space():get(key_of(key)) ~= nil and space():delete(key_of(key)) ~= nil
    end)
end

function _get(key)
    local row = space():get(key_of(key))
    return row and row[2]
end

function _vsiz(key)
    local value = _get(key)
    return value and #value or -1
end

function _iterinit()
    place = ''
    return true
end

-- The next key behind the one before: of an unordered space in no order, each once.
function _iternext()
    if place == nil then
        return nil
    end
    local index, is_first = space().index[0], place == ''
    local iterator = is_first and 'ALL' or 'GT'
    local row = index:select(is_first and {} or {place}, {iterator = iterator, limit = 1})[1]
    place = row and row[1]
    return row and tostring(row[1])
end

function _fwmkeys(prefix, max)
    local keys, is_ordered = {}, not is_fixed and space().index[0].type == 'TREE'
    for _, row in space():pairs(is_ordered and {prefix} or {}, {iterator = is_ordered and 'GE' or 'ALL'}) do
        local is_meant = tostring(row[1]):sub(1, #prefix) == prefix
        if max and max >= 0 and #keys >= max or is_ordered and not is_meant then
            break
        elseif is_meant then
            table.insert(keys, tostring(row[1]))
        end
    end
    return keys
end

-- Numbers are kept as the machine keeps them.
local function add(key, number, kind_of_number)
    return box.atomic(function()
        local old, size = _get(key), ffi.sizeof(kind_of_number)
        local sum = ffi.new(kind_of_number .. '[1]')
        if old ~= nil then
            if #old ~= size then
                return nil
            end
            ffi.copy(sum, old, size)
        end
        sum[0] = sum[0] + number
        _put(key, ffi.string(sum, size))
        return tonumber(sum[0])
    end)
end

function _addint(key, number) return not is_table and add(key, number, 'int32_t') or nil end
function _adddouble(key, number) return not is_table and add(key, number, 'double') or nil end

function _vanish()
    for _, row in space():pairs() do
        space():delete(row[1])
    end
    return true
end

function _rnum() return space():len() end
function _size() return space():bsize() end
function _sync() return true end

function _foreach(visit)
    for _, row in space():pairs() do
        if not visit(tostring(row[1]), row[2]) then
            return false
        end
    end
    return true
end

-- A store beside the database, in memory.
function _stashput(key, value)
    stash[tostring(key)] = tostring(value)
    return true
end

function _stashget(key) return stash[tostring(key)] end

function _stashout(key)
    local is_there = stash[tostring(key)] ~= nil
    stash[tostring(key)] = nil
    return is_there
end

function _stashvanish()
    stash = {}
    return true
end

function _lock(key)
    while locked[key] do
        fiber.sleep(0.001)
    end
    locked[key] = true
    return true
end

function _unlock(key)
    local was_locked = locked[key] ~= nil
    locked[key] = nil
    return was_locked
end

function _split(text, delimiters)
    local class = '[' .. (delimiters and delimiters:gsub('%W', '%%%0') or '%z') .. ']'
    local parts, from = {}, 1
    while true do
        local first, last = text:find(class, from)
        table.insert(parts, text:sub(from, (first or 0) - 1))
        if not first then
            return parts
        end
        from = last + 1
    end
end

function _time() return fiber.time() end

function _sleep(seconds)
    fiber.sleep(seconds)
    return true
end

function _log(message, level)
    local say = level == 2 and log.error or level == 0 and log.debug or log.info
    say('%s', tostring(message))
end
