-- The console: a line of Lua in, YAML out.
local internal = ...

local yaml = require('yaml')

local console = {}
local environment = _G

local function show(ok, ...)
    if not ok then
        local reason = ...
        if type(reason) ~= 'string' and type(reason) ~= 'cdata' and type(reason) ~= 'table' then
            reason = tostring(reason)
        end
        if require('ffi').istype('struct error', reason) then
            reason = reason.message
        end
        local fine, text = pcall(yaml.encode, { { error = reason } })
        return fine and text or ('---\n- error: %s\n...\n'):format(tostring(reason))
    end
    local count = select('#', ...)
    if count == 0 then
        return '---\n...\n'
    end
    local values = {}
    for i = 1, count do
        local value = select(i, ...)
        if value == nil then
            value = box.NULL
        end
        values[i] = value
    end
    setmetatable(values, internal.values.array_metatable)
    local fine, text = pcall(internal.yaml_encode_list, values)
    return fine and text or ('---\n- error: %s\n...\n'):format(tostring(text))
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

-- Runs a text and gives its answer as text.
function console.eval(text)
    if type(text) ~= 'string' then
        error('Usage: console.eval(code)', 2)
    end
    local chunk, reason = compile(text)
    if chunk == nil then
        return show(false, reason)
    end
    return show(pcall(setfenv(chunk, environment)))
end

function console.is_incomplete(text)
    local chunk, _, is_incomplete = compile(text)
    return chunk == nil and is_incomplete
end


package.loaded.console = console
internal.values.console = console.eval

-- Everything is defined: hand over what the C side calls.
internal.setup(internal.types, internal.values)
