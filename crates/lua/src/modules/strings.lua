-- string.* and table.* beyond Lua's own.
local internal = ...

local ffi = require('ffi')

local function check_string(value, position, name)
    if type(value) ~= 'string' then
        error(("bad argument #%d to 'string.%s' (string expected, got %s)"):format(position, name, type(value)), 3)
    end
end

-- An argument as C code takes whole numbers. `count`: how many arguments there are.
function internal.check_integer(count, at, value)
    local number = (type(value) == 'number' or type(value) == 'string') and tonumber(value)
    if not number then
        error(("bad argument #%d to '?' (number expected, got %s)"):format(at, count < at and 'no value' or type(value)), 0)
    end
    return number < 0 and math.ceil(number) or math.floor(number)
end

local check_integer = internal.check_integer

function string.split(text, separator, max)
    check_string(text, 1, 'split')
    if separator ~= nil and type(separator) ~= 'string' then
        error(("bad argument #2 to 'string.split' (string expected, got %s)"):format(type(separator)), 2)
    end
    if max ~= nil and (type(max) ~= 'number' or max < 0) then
        error(("bad argument #3 to 'string.split' (positive integer expected, got %s)"):format(type(max)), 2)
    end
    if separator == '' then
        error("bad argument #2 to 'string.split' (non-empty string expected, got empty string)", 2)
    end
    max = max or math.huge
    local parts, from = {}, 1
    if separator == nil then
        from = text:find('%S') or #text + 1
        while from <= #text and #parts < max do
            local first, last = text:find('%s+', from)
            if first == nil then
                break
            end
            parts[#parts + 1] = text:sub(from, first - 1)
            from = last + 1
        end
        if from <= #text then
            local rest = text:sub(from)
            parts[#parts + 1] = #parts >= max and rest:gsub('%s+$', '') or rest
        end
        return parts
    end
    while #parts < max do
        local first, last = text:find(separator, from, true)
        if first == nil then
            break
        end
        parts[#parts + 1] = text:sub(from, first - 1)
        from = last + 1
    end
    parts[#parts + 1] = text:sub(from)
    return parts
end

local function pad(name, before, after)
    return function(text, width, char)
        check_string(text, 1, name)
        if type(width) ~= 'number' or width < 0 then
            error(("bad argument #2 to 'string.%s' (positive integer expected, got %s)"):format(name, type(width)), 2)
        end
        if char ~= nil and (type(char) ~= 'string' or #char ~= 1) then
            error(("bad argument #3 to 'string.%s' (char expected, got %s)"):format(name, type(char)), 2)
        end
        char = char or ' '
        local missing = math.max(width - #text, 0)
        return char:rep(before(missing)) .. text .. char:rep(after(missing))
    end
end

local function none() return 0 end
local function all(missing) return missing end
string.ljust = pad('ljust', none, all)
string.rjust = pad('rjust', all, none)
string.center = pad('center', function(missing) return math.floor(missing / 2) end,
    function(missing) return math.ceil(missing / 2) end)

local function check_places(name, from, to)
    for at, place in pairs({ [3] = from, [4] = to }) do
        if place ~= nil and type(place) ~= 'number' then
            error(("bad argument #%d to 'string.%s' (integer expected, got %s)"):format(at, name, type(place)), 3)
        end
    end
end

function string.startswith(text, prefix, from, to)
    check_string(text, 1, 'startswith')
    check_string(prefix, 2, 'startswith')
    check_places('startswith', from, to)
    return text:sub(from or 1, to or #text):sub(1, #prefix) == prefix
end

function string.endswith(text, suffix, from, to)
    check_string(text, 1, 'endswith')
    check_string(suffix, 2, 'endswith')
    check_places('endswith', from, to)
    local part = text:sub(from or 1, to or #text)
    return suffix == '' or part:sub(-#suffix) == suffix
end

function string.hex(text)
    check_string(text, 1, 'hex')
    return (text:gsub('.', function(char) return ('%02x'):format(char:byte()) end))
end

function string.fromhex(text)
    check_string(text, 1, 'fromhex')
    if #text % 2 ~= 0 then
        error("bad argument #1 to 'string.fromhex' (even amount of chars expected, got odd amount)", 2)
    end
    if text:find('%X') then
        error("bad argument #1 to 'string.fromhex' (hex string expected, got non hex chars)", 2)
    end
    return (text:gsub('..', function(pair) return string.char(tonumber(pair, 16)) end))
end

local SPACES = ' \t\n\v\f\r'

local function stripper(name, left, right)
    return function(text, chars)
        check_string(text, 1, name)
        if chars ~= nil and type(chars) ~= 'string' then
            error(("bad argument #2 to 'string.%s' (string expected, got %s)"):format(name, type(chars)), 2)
        end
        chars = chars or SPACES
        local is_stripped = {}
        for at = 1, #chars do
            is_stripped[chars:byte(at)] = true
        end
        local first, last = 1, #text
        while left and first <= last and is_stripped[text:byte(first)] do
            first = first + 1
        end
        while right and last >= first and is_stripped[text:byte(last)] do
            last = last - 1
        end
        return text:sub(first, last)
    end
end

string.strip = stripper('strip', true, true)
string.lstrip = stripper('lstrip', true, false)
string.rstrip = stripper('rstrip', false, true)

-- table.copy and table.deepcopy.
local function deepcopy(value, seen)
    if type(value) ~= 'table' then
        return value
    end
    if seen[value] then
        return seen[value]
    end
    local metatable = getmetatable(value)
    if type(metatable) == 'table' and metatable.__copy then
        return metatable.__copy(value)
    end
    local copy = {}
    seen[value] = copy
    for key, inner in next, value do
        copy[deepcopy(key, seen)] = deepcopy(inner, seen)
    end
    return setmetatable(copy, metatable)
end

function table.deepcopy(value)
    return deepcopy(value, {})
end

function table.copy(value, is_shallow)
    if not is_shallow then
        return deepcopy(value, {})
    end
    if type(value) ~= 'table' then
        return value
    end
    local copy = {}
    for key, inner in next, value do
        copy[key] = inner
    end
    return setmetatable(copy, getmetatable(value))
end

local function table_equals(a, b)
    if type(a) ~= 'table' or type(b) ~= 'table' then
        return a == b
    end
    for key, value in pairs(a) do
        if not table_equals(value, b[key]) then
            return false
        end
    end
    for key in pairs(b) do
        if a[key] == nil then
            return false
        end
    end
    return true
end
table.equals = table_equals

if not table.new then
    table.new = require('table.new')
end
package.loaded['table.clear'] = package.loaded['table.clear'] or require('table.clear')
table.clear = package.loaded['table.clear']

-- utf8: characters instead of bytes.
local utf8 = {}

-- A text argument as C code takes it: numbers are text, too.
local function text_of(value, usage)
    if type(value) ~= 'string' and type(value) ~= 'number' then
        error(usage, 3)
    end
    return tostring(value)
end

function utf8.len(...)
    local count, text, from, to = select('#', ...), ...
    local usage = 'Usage: utf8.len(<string>, [i, [j]])'
    if count > 3 then
        error(usage, 2)
    end
    text = text_of(text, usage)
    from = rawequal(from, nil) and 1 or check_integer(count, 2, from)
    to = rawequal(to, nil) and -1 or check_integer(count, 3, to)
    return internal.utf8_len(text, from, to)
end

function utf8.char(...)
    local count = select('#', ...)
    if count == 0 then
        error('Usage: utf8.char(<char code>', 2)
    end
    local parts = {}
    for i = 1, count do
        parts[i] = internal.utf8_char(check_integer(count, i, (select(i, ...))))
    end
    return table.concat(parts)
end

function utf8.sub(...)
    local count, text, from, to = select('#', ...), ...
    local usage = 'Usage: utf8.sub(<string>, [i, [j]])'
    if count < 2 then
        error(usage, 2)
    end
    text = text_of(text, usage)
    from = check_integer(count, 2, from)
    to = count < 3 and -1 or check_integer(count, 3, to)
    return internal.utf8_sub(text, from, to)
end

function utf8.next(...)
    local count, text, from = select('#', ...), ...
    local usage = 'Usage: utf8.next(<string>, [<byte offset>])'
    if count > 2 then
        error(usage, 2)
    end
    text = text_of(text, usage)
    return internal.utf8_next(text, rawequal(from, nil) and 1 or check_integer(count, 2, from))
end

for name, is_upper in pairs({ upper = true, lower = false }) do
    utf8[name] = function(...)
        local usage = ('Usage: utf8.%s(<string>)'):format(name)
        if select('#', ...) ~= 1 then
            error(usage, 2)
        end
        return internal.utf8_case(text_of((...), usage), is_upper)
    end
end

for _, class in ipairs({ 'alpha', 'digit', 'lower', 'upper' }) do
    utf8['is' .. class] = function(...)
        local value = ...
        if select('#', ...) ~= 1 then
            error(('Usage: utf8.is%s(<string> or <one symbol code>)'):format(class), 2)
        end
        return internal.utf8_class(type(value) == 'string' and value or check_integer(1, 1, value), class)
    end
end

for name, collation in pairs({ cmp = 'unicode', casecmp = 'unicode_ci' }) do
    utf8[name] = function(...)
        local usage = ('Usage: utf8.%s(<string1>, <string2>)'):format(name)
        if select('#', ...) ~= 2 then
            error(usage, 2)
        end
        local a, b = ...
        return internal.utf8_compare(text_of(a, usage), text_of(b, usage), collation)
    end
end

_G.utf8 = utf8
package.loaded.utf8 = utf8

package.loaded.strict = {
    on = function()
        setmetatable(_G, {
            __newindex = function(globals, name, value)
                local info = debug.getinfo(2, 'S')
                if info and info.what ~= 'main' and info.what ~= 'C' then
                    error(("assign to undeclared variable '%s'"):format(name), 2)
                end
                rawset(globals, name, value)
            end,
            __index = function(_, name)
                error(("variable '%s' is not declared"):format(name), 2)
            end,
        })
    end,
    off = function() setmetatable(_G, nil) end,
}
