-- The console: Lua in, text out, in the form that is asked for.
local internal = ...

local ffi = require('ffi')
local fiber = require('fiber')
local json = require('json')
local yaml = require('yaml')

local console = {}
local environment = _G

-- Longest list of completions.
local COMPLETIONS_MAX = 500
-- Values nested deeper are shown by their address.
local DEPTH_MAX = 32

-- What runs now, by the names that consoles gave: {name = fiber}.
local running = {}

local function is_tuple(value)
    return type(value) == 'cdata' and box.tuple.is(value)
end

-- A copy in which what cannot be written down is its address, as `function: 0x...`.
local function printable(value, depth)
    local kind = type(value)
    if kind == 'function' or kind == 'thread' or kind == 'userdata' then
        return tostring(value)
    end
    if kind ~= 'table' then
        return value
    end
    if depth > DEPTH_MAX then
        return tostring(value)
    end
    local metatable = getmetatable(value)
    local serialize = type(metatable) == 'table' and metatable.__serialize or nil
    if type(serialize) == 'function' then
        return printable(serialize(value), depth + 1)
    end
    local copy = {}
    for key, field in next, value do
        copy[type(key) == 'table' and tostring(key) or printable(key, depth + 1)] = printable(field, depth + 1)
    end
    return type(serialize) == 'string' and setmetatable(copy, { __serialize = serialize }) or copy
end

-- Encodes as it is, or with addresses for what has no other form.
local function encoded(encode, value)
    local fine, text = pcall(encode, value)
    if not fine then
        fine, text = pcall(function() return encode(printable(value, 0)) end)
    end
    return fine, text
end

-- Yaml --------------------------------------------------------------------------------------------------------------
local function yaml_of(values, count)
    if count == 0 then
        return '---\n...\n'
    end
    setmetatable(values, internal.values.array_metatable)
    local fine, text = encoded(internal.yaml_encode_list, values)
    return fine and text or ('---\n- error: %s\n...\n'):format(tostring(text))
end

console.yaml_of = yaml_of

-- Lua ---------------------------------------------------------------------------------------------------------------
local function lua_of(value)
    if value == nil then
        return 'nil'
    end
    if is_tuple(value) then
        value = value:totable()
    end
    if type(value) == 'string' then
        return ('%q'):format(value):gsub('\\\n', '\\n')
    end
    if type(value) ~= 'table' then
        local text = tostring(value)
        return (type(value) == 'cdata' and not tonumber(value)) and ('%q'):format(text) or text
    end
    local parts, length = {}, #value
    for i = 1, length do
        parts[i] = lua_of(value[i])
    end
    local names = {}
    for key in next, value do
        if not (type(key) == 'number' and key >= 1 and key <= length and key % 1 == 0) then
            names[#names + 1] = key
        end
    end
    table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
    for _, key in ipairs(names) do
        local is_word = type(key) == 'string' and key:match('^[%a_][%w_]*$')
        parts[#parts + 1] = (is_word and key or '[' .. lua_of(key) .. ']') .. ' = ' .. lua_of(value[key])
    end
    return '{' .. table.concat(parts, ', ') .. '}'
end

-- Tables ------------------------------------------------------------------------------------------------------------
local function cell_of(value)
    if value == nil then
        return ''
    end
    if type(value) == 'string' then
        return value
    end
    if type(value) == 'table' or is_tuple(value) then
        local fine, text = encoded(json.encode, value)
        return fine and text or tostring(value)
    end
    return tostring(value)
end

-- The rows of a result, and the names of their columns: those of the format, of the keys, or numbers.
local function rows_of(value)
    local list = value
    if is_tuple(value) or type(value) ~= 'table' then
        list = { value }
    elseif #value == 0 and next(value) ~= nil then
        list = { value }
    elseif #value > 0 and type(value[1]) ~= 'table' and not is_tuple(value[1]) then
        list = { value }
    end
    local names, width, rows = {}, 0, {}
    local columns = {}
    for _, row in ipairs(list) do
        if is_tuple(row) then
            if #names == 0 then
                names = internal.tuple_names(row)
            end
            row = row:totable()
        end
        if type(row) ~= 'table' then
            row = { row }
        end
        local cells = {}
        if #row == 0 and next(row) ~= nil then
            local keys = {}
            for key in next, row do
                keys[#keys + 1] = tostring(key)
            end
            table.sort(keys)
            for _, key in ipairs(keys) do
                if columns[key] == nil then
                    names[#names + 1] = key
                    columns[key] = #names
                end
                cells[columns[key]] = cell_of(row[key])
                width = math.max(width, columns[key])
            end
        else
            width = math.max(width, #row)
            for i = 1, #row do
                cells[i] = cell_of(row[i])
            end
        end
        rows[#rows + 1] = cells
    end
    local header = {}
    for i = 1, width do
        header[i] = names[i] or 'col' .. i
    end
    return header, rows
end

local function letters(text)
    return utf8.len(text) or #text
end

-- A table of names, as box.info is, has a line for each.
local function listed(value)
    if type(value) ~= 'table' or is_tuple(value) then
        return value
    end
    local metatable = getmetatable(value)
    if type(metatable) == 'table' and type(metatable.__serialize) == 'function' then
        value = metatable.__serialize(value)
    end
    if type(value) ~= 'table' or #value > 0 or next(value) == nil then
        return value
    end
    local list = {}
    for key, field in next, value do
        list[#list + 1] = { name = tostring(key), value = field }
    end
    table.sort(list, function(a, b) return a.name < b.name end)
    return list
end

local function table_of(value)
    local header, rows = rows_of(listed(value))
    local widths = {}
    for i, name in ipairs(header) do
        widths[i] = letters(name)
    end
    for _, cells in ipairs(rows) do
        for i = 1, #header do
            cells[i] = (cells[i] or ''):gsub('[%c]', ' ')
            widths[i] = math.max(widths[i], letters(cells[i]))
        end
    end
    local rule, lines = '+', {}
    for i = 1, #header do
        rule = rule .. ('-'):rep(widths[i] + 2) .. '+'
    end
    local function line(cells)
        local text = '|'
        for i = 1, #header do
            text = text .. ' ' .. cells[i] .. (' '):rep(widths[i] - letters(cells[i])) .. ' |'
        end
        lines[#lines + 1] = text
    end
    if #header > 0 then
        lines[1] = rule
        line(header)
        lines[#lines + 1] = rule
        for _, cells in ipairs(rows) do
            line(cells)
        end
        if #rows > 0 then
            lines[#lines + 1] = rule
        end
    end
    lines[#lines + 1] = ('%d row%s'):format(#rows, #rows == 1 and '' or 's')
    return table.concat(lines, '\n') .. '\n'
end

local function csv_of(value)
    local header, rows = rows_of(value)
    local lines = {}
    local function line(cells)
        local quoted = {}
        for i = 1, #header do
            local cell = cells[i] or ''
            quoted[i] = cell:find('[",\r\n]') and '"' .. cell:gsub('"', '""') .. '"' or cell
        end
        lines[#lines + 1] = table.concat(quoted, ',')
    end
    if #header > 0 then
        line(header)
    end
    for _, cells in ipairs(rows) do
        line(cells)
    end
    return #lines > 0 and table.concat(lines, '\n') .. '\n' or ''
end

local function each(values, count, show)
    local parts = {}
    for i = 1, count do
        parts[i] = show(values[i])
    end
    return table.concat(parts)
end

local forms = {
    yaml = yaml_of,
    lua = function(values, count)
        local parts = {}
        for i = 1, count do
            parts[i] = lua_of(printable(values[i], 0))
        end
        return table.concat(parts, ', ') .. ';\n'
    end,
    table = function(values, count) return each(values, count, table_of) end,
    csv = function(values, count) return each(values, count, csv_of) end,
    json = function(values, count)
        return each(values, count, function(value)
            local fine, text = encoded(json.encode, value)
            return (fine and text or json.encode({ error = tostring(text) })) .. '\n'
        end)
    end,
}

local function show_error(form, reason)
    local message = reason
    if type(reason) ~= 'string' and type(reason) ~= 'cdata' and type(reason) ~= 'table' then
        message = tostring(reason)
    end
    if ffi.istype('struct error', reason) then
        message = reason.message
    end
    if form == 'yaml' then
        local fine, text = encoded(yaml.encode, { { error = message } })
        return fine and text or ('---\n- error: %s\n...\n'):format(tostring(reason))
    end
    return 'error: ' .. (type(message) == 'string' and message or tostring(reason)) .. '\n'
end

-- The answer and whether it is an error.
local function show(form, ok, ...)
    if not ok then
        return show_error(form, (...)), true
    end
    local count = select('#', ...)
    local values = {}
    for i = 1, count do
        local value = select(i, ...)
        if value == nil then
            value = box.NULL
        end
        values[i] = value
    end
    return forms[form](values, count), false
end

-- Compiles an expression or statements. Returns nil and the reason, and whether more lines may complete it.
local function compile(text)
    if text:sub(1, 1) == '=' then
        text = 'return ' .. text:sub(2)
    end
    local chunk = loadstring('return ' .. text, '=console')
    local reason
    if chunk == nil then
        chunk, reason = loadstring(text, '=console')
    end
    return chunk, reason, reason ~= nil and reason:sub(-#"'<eof>'") == "'<eof>'"
end

-- Runs a text in a form under a name by which it can be cancelled. Gives the answer as text, and whether it is an error.
local function run(text, form, name)
    form = forms[form] and form or 'yaml'
    local chunk, reason = compile(text)
    if chunk == nil then
        return show(form, false, reason)
    end
    if name ~= nil then
        running[name] = fiber.self()
    end
    local function finish(...)
        if name ~= nil then
            running[name] = nil
        end
        return show(form, ...)
    end
    return finish(pcall(setfenv(chunk, environment)))
end

function console.is_incomplete(text)
    local chunk, _, is_incomplete = compile(text)
    return chunk == nil and is_incomplete
end

-- The names in a value that begin with a prefix, into `found`.
local function names_in(value, prefix, found, depth)
    if depth > 8 then
        return
    end
    local function take(name, field)
        if type(name) == 'string' and name:sub(1, #prefix) == prefix and name:match('^[%a_][%w_]*$')
            and (prefix ~= '' or name:sub(1, 2) ~= '__') and found[name] == nil then
            found[name] = type(field)
        end
    end
    if is_tuple(value) then
        for _, name in ipairs(internal.tuple_names(value)) do
            take(name, 0)
        end
        return
    end
    if type(value) == 'table' then
        for name, field in next, value do
            take(name, field)
        end
    end
    local metatable = getmetatable(value)
    if type(metatable) ~= 'table' then
        return
    end
    if type(metatable.__pairs) == 'function' then
        pcall(function()
            for name, field in pairs(value) do
                take(name, field)
            end
        end)
    end
    if type(metatable.__index) == 'table' then
        names_in(metatable.__index, prefix, found, depth + 1)
    end
end

-- What the name at the end of a text may go on as: a list of whole names, sorted. A name with a dot or colon is looked up, nothing is called.
function console.complete(text)
    local word = text:match('[%a_][%w_%.:]*$') or ''
    local path, mark, prefix = word:match('^(.*)([%.:])([%w_]*)$')
    if path == nil then
        path, mark, prefix = '', '', word
    end
    local value = environment
    for name in path:gmatch('[%w_]+') do
        local fine, field = pcall(function() return value[name] end)
        if not fine or field == nil then
            return {}
        end
        value = field
    end
    local found, list = {}, {}
    names_in(value, prefix, found, 0)
    for name, kind in pairs(found) do
        if mark ~= ':' or kind == 'function' then
            list[#list + 1] = path .. mark .. name .. (kind == 'function' and '(' or '')
        end
    end
    table.sort(list)
    for i = #list, COMPLETIONS_MAX + 1, -1 do
        list[i] = nil
    end
    return list
end

-- What consoles ask, over the network too: a text and whether it is an error.
function console.request(kind, text, form, name)
    if kind == 'run' then
        return run(text, form, name)
    elseif kind == 'incomplete' then
        return console.is_incomplete(text) and 'yes' or 'no', false
    elseif kind == 'complete' then
        return table.concat(console.complete(text), '\n'), false
    elseif kind == 'cancel' then
        if running[name] ~= nil then
            running[name]:cancel()
        end
        return '', false
    end
    error('Usage: console.request(kind, text, form, name)', 2)
end

package.loaded.console = console
internal.values.console = console.request

-- Everything is defined: hand over what the C side calls.
internal.setup(internal.types, internal.values)
