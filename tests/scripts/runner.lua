-- Runs one golden script and prints every statement with the answer that this
-- server gave. Called as `SERVER runner.lua SCRIPT.lua [ENGINE]` in an empty directory.
--
-- The printed form is our own and does not depend on the server's yaml or json
-- encoders, so that a fault there shows only in the scripts about them. It must
-- be equal between two runs: addresses are masked, keys of maps are sorted, and
-- the places of errors (file and line) are cut off, since a function that is
-- Lua in one server may be native in another.

local DEPTH_MAX = 12
local LINE_BYTES_MAX = 100

local ffi = require('ffi')

-- The engine of spaces that do not say which. See README.md, "Engines".
local ENGINE = arg[2] or 'memtx'

-- A script may ask for a log by a line `-- wal_mode: write`. Without a log no
-- commit yields, so that statements answer the same however the disk is. The
-- disk engine of Tarantool changes no schema without one.
local function wal_mode_of(path)
    for line in io.lines(path) do
        local mode = string.match(line, '^%-%- wal_mode: (%w+)$')
        if mode then
            return mode
        end
    end
    return ENGINE == 'memtx' and 'none' or 'write'
end

box.cfg{
    log = 'server.log',
    log_level = 1,
    memtx_memory = 64 * 1024 * 1024,
    wal_mode = wal_mode_of(arg[1]),
}

if ENGINE ~= 'memtx' then
    local create = box.schema.space.create
    local function create_in_engine(name, options, ...)
        if options == nil or type(options) == 'table' and options.engine == nil then
            local given = options
            options = {engine = ENGINE}
            for key, value in pairs(given or {}) do
                options[key] = value
            end
        end
        return create(name, options, ...)
    end
    box.schema.space.create = create_in_engine
    box.schema.create_space = create_in_engine
end

local has_decimal, decimal = pcall(require, 'decimal')

-- The scripts may break what they like in the global table: keep our own.
local pcall, type, tostring, pairs, ipairs, select = pcall, type, tostring, pairs, ipairs, select
local getmetatable, rawget, loadstring = getmetatable, rawget, loadstring
local format, rep, byte, sub = string.format, string.rep, string.byte, string.sub
local gsub, match, find = string.gsub, string.match, string.find
local concat, sort = table.concat, table.sort
local write, floor = io.write, math.floor
local tuple_is = box.tuple.is
local exit = os.exit

-- Length of the UTF-8 sequence that starts at i, or nil if it is not one.
local function utf8_length(text, i)
    local first = byte(text, i)
    local length
    if first >= 0xc2 and first <= 0xdf then
        length = 2
    elseif first >= 0xe0 and first <= 0xef then
        length = 3
    elseif first >= 0xf0 and first <= 0xf4 then
        length = 4
    else
        return nil
    end
    for k = i + 1, i + length - 1 do
        local next_byte = byte(text, k)
        if next_byte == nil or next_byte < 0x80 or next_byte > 0xbf then
            return nil
        end
    end
    return length
end

local ESCAPES = {
    [34] = '\\"', [92] = '\\\\', [10] = '\\n', [13] = '\\r', [9] = '\\t',
}

local function quote(text)
    local out = {'"'}
    local i = 1
    while i <= #text do
        local code = byte(text, i)
        local length = 1
        if ESCAPES[code] then
            out[#out + 1] = ESCAPES[code]
        elseif code >= 32 and code < 127 then
            out[#out + 1] = sub(text, i, i)
        else
            length = code >= 0x80 and utf8_length(text, i)
            if length then
                out[#out + 1] = sub(text, i, i + length - 1)
            else
                out[#out + 1] = format('\\x%02x', code)
                length = 1
            end
        end
        i = i + length
    end
    out[#out + 1] = '"'
    return concat(out)
end

local function mask_addresses(text)
    return (gsub(text, '0x%x%x%x%x+', '0x'))
end

-- `file:line: text` becomes `text`. See the head of this file.
local function cut_place(text)
    local before
    repeat
        before = text
        text = gsub(text, '^%[string "[^\n]-"%]:%d+: ', '')
        text = gsub(text, '^[%w_./-]+%.lua:%d+: ', '')
        text = gsub(text, '^script:%d+: ', '')
    until text == before
    return text
end

-- In the message of an error object the place of a script's own error stays.
local function cut_builtin_place(text)
    return (gsub(text, '^builtin/[%w_./-]+%.lua:%d+: ', ''))
end

local function number_text(value)
    if value ~= value then
        return 'nan'
    elseif value == floor(value) and value > -2^53 and value < 2^53 then
        return format('%.0f', value)
    end
    return format('%.14g', value)
end

local function is_struct(value, name)
    return type(value) == 'cdata' and find(tostring(ffi.typeof(value)), 'struct ' .. name, 1, true) ~= nil
end

local function is_error(value)
    return is_struct(value, 'error')
end

local function error_text(value)
    if is_error(value) then
        return format('error %s %s: %s', tostring(value.code), tostring(value.type),
            mask_addresses(cut_builtin_place(tostring(value.message))))
    elseif type(value) == 'string' then
        return 'error: ' .. mask_addresses(cut_place(value))
    end
    return nil
end

local encode

local function encode_cdata(value, depth, seen)
    if is_error(value) then
        return error_text(value)
    elseif tuple_is(value) then
        return 'tuple' .. encode(value:totable(), depth + 1, seen)
    elseif ffi.istype('int64_t', value) or ffi.istype('uint64_t', value) then
        return tostring(value)
    elseif ffi.istype('void *', value) and value == nil then
        return 'box.NULL'
    elseif is_struct(value, 'tt_uuid') then
        return 'uuid ' .. tostring(value)
    elseif has_decimal and decimal.is_decimal(value) then
        return 'decimal ' .. tostring(value)
    end
    return mask_addresses('cdata ' .. tostring(ffi.typeof(value)))
end

-- Numbers before strings before the rest, each in its own order.
local function key_before(a, b)
    if type(a) ~= type(b) then
        return type(a) < type(b)
    elseif type(a) == 'number' or type(a) == 'string' then
        return a < b
    end
    return tostring(a) < tostring(b)
end

local function encode_key(key)
    if type(key) == 'string' and match(key, '^[%a_][%w_]*$') then
        return key
    end
    return '[' .. encode(key, 0, {}) .. ']'
end

-- Elements of a table as text, and the brackets that enclose them.
local function encode_elements(value, depth, seen)
    local count = 0
    local key_max = 0
    local is_array = true
    for key in pairs(value) do
        count = count + 1
        if type(key) ~= 'number' or key < 1 or key ~= floor(key) then
            is_array = false
        elseif key > key_max then
            key_max = key
        end
    end
    local metatable = getmetatable(value)
    local hint = type(metatable) == 'table' and rawget(metatable, '__serialize')
    if count == 0 then
        is_array = hint ~= 'map' and hint ~= 'mapping'
    elseif key_max > 2 * count + 10 then
        is_array = false
    end
    local elements = {}
    if is_array then
        for i = 1, key_max do
            elements[i] = encode(value[i], depth + 1, seen)
        end
        return elements, '[', ']'
    end
    local keys = {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    sort(keys, key_before)
    for i, key in ipairs(keys) do
        elements[i] = encode_key(key) .. ': ' .. encode(value[key], depth + 1, seen)
    end
    return elements, '{', '}'
end

-- Objects of the catalog print as a kind and a name: their inside is private.
local function catalog_name(value)
    if rawget(value, 'engine') ~= nil and rawget(value, 'index') ~= nil then
        return 'space ' .. quote(tostring(value.name))
    elseif rawget(value, 'space_id') ~= nil and rawget(value, 'parts') ~= nil then
        return 'index ' .. quote(tostring(value.name))
    end
    return nil
end

encode = function(value, depth, seen)
    local kind = type(value)
    if kind == 'nil' or kind == 'boolean' then
        return tostring(value)
    elseif kind == 'number' then
        return number_text(value)
    elseif kind == 'string' then
        return quote(value)
    elseif kind == 'cdata' then
        return encode_cdata(value, depth, seen)
    elseif kind ~= 'table' then
        return kind
    elseif seen[value] then
        return '<cycle>'
    elseif depth > DEPTH_MAX then
        return '<deep>'
    end
    local name = depth >= 0 and catalog_name(value)
    if name then
        return name
    end
    seen[value] = true
    local elements, open, close = encode_elements(value, depth, seen)
    seen[value] = nil
    return open .. concat(elements, ', ') .. close
end

-- A long list of values is broken into one line for each element.
local function encode_answer(value)
    local line = encode(value, 0, {})
    if #line <= LINE_BYTES_MAX or type(value) ~= 'table' or catalog_name(value) then
        return line
    end
    local elements, open, close = encode_elements(value, 0, {[value] = true})
    return open .. '\n     ' .. concat(elements, ',\n     ') .. '\n   ' .. close
end

local function print_answer(ok, ...)
    if not ok then
        local value = (...)
        write('!! ', error_text(value) or ('error: ' .. encode_answer(value)), '\n')
        return
    end
    local count = select('#', ...)
    if count == 0 then
        write('=>\n')
    end
    for i = 1, count do
        write('=> ', encode_answer((select(i, ...))), '\n')
    end
end

-- Chunks are separated by blank lines. A chunk is its comment lines and its code.
local function read_chunks(path)
    local file = assert(io.open(path))
    local chunks = {}
    local chunk = nil
    for line in file:lines() do
        if match(line, '^%s*$') then
            chunk = nil
        elseif not match(line, '^%-%- engines: ') then
            if chunk == nil then
                chunk = {comment = {}, code = {}}
                chunks[#chunks + 1] = chunk
            end
            local is_comment = #chunk.code == 0 and match(line, '^%-%-') ~= nil
            local lines = is_comment and chunk.comment or chunk.code
            lines[#lines + 1] = line
        end
    end
    file:close()
    return chunks
end

local function run(chunk)
    for _, line in ipairs(chunk.comment) do
        write(line, '\n')
    end
    if #chunk.code == 0 then
        return
    end
    local code = concat(chunk.code, '\n')
    write(code, '\n')
    local program = loadstring('return ' .. code, '=script')
    local message
    if program == nil then
        program, message = loadstring(code, '=script')
    end
    if program == nil then
        write('!! does not compile: ', cut_place(message), '\n')
        return
    end
    print_answer(pcall(program))
end

-- A server that dies shall still have told how far it came.
io.stdout:setvbuf('line')

local chunks = read_chunks(arg[1])
for i, chunk in ipairs(chunks) do
    if i > 1 then
        write('\n')
    end
    run(chunk)
end
io.stdout:flush()
exit(0)
