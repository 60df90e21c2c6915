-- Prints what is in the data directory (the working directory), the same on either server.
box.cfg{ log_level = 2, log = os.getenv('SERVER_LOG'), read_only = false }

-- Maps with their keys in order, so that two servers print the same.
local function canonical(value)
    if type(value) ~= 'table' then
        return tostring(value)
    end
    local parts, keys = {}, {}
    if #value > 0 then
        for i, inner in ipairs(value) do
            parts[i] = canonical(inner)
        end
        return '[' .. table.concat(parts, ', ') .. ']'
    end
    for key in pairs(value) do
        keys[#keys + 1] = tostring(key)
    end
    table.sort(keys)
    for i, key in ipairs(keys) do
        parts[i] = key .. '=' .. canonical(value[key])
    end
    return '{' .. table.concat(parts, ', ') .. '}'
end

local lines = {}
local function show(name, rows)
    for _, row in ipairs(rows) do
        local fields = {}
        for i = 1, #row do
            fields[i] = canonical(row[i])
        end
        lines[#lines + 1] = name .. ' ' .. table.concat(fields, ' ')
    end
end
-- What is the server's own differs from version to version: only what the test made is compared.
for _, space in box.space._space:pairs({ 512 }, { iterator = 'GE' }) do
    show('_space', { space })
    for _, index in ipairs(box.space._index:select({ space[1] })) do
        show('_index', { index:update({ { '=', 4, index[4]:lower() } }) })
        local rows = box.space[space[1]].index[index[2]]:select()
        if index[4]:lower() == 'hash' then
            table.sort(rows, function(a, b) return tostring(a) < tostring(b) end)
        end
        show(space[3] .. '.' .. index[3], rows)
    end
end
for _, name in ipairs({ 'ann', 'reader' }) do
    local user = box.space._user.index.name:get(name)
    show('_user', { user })
    show('_priv', box.space._priv:select({ user[1] }))
end
show('_sequence', box.space._sequence:select())
show('_sequence_data', box.space._sequence_data:select())
show('_space_sequence', box.space._space_sequence:select())
local func = box.space._func.index.name:get('double')
lines[#lines + 1] = '_func ' .. func[3] .. ' ' .. func[6]
lines[#lines + 1] = 'double ' .. tostring(box.func.double:call({ 21 }))
lines[#lines + 1] = 'by name ' .. #box.space.stock.index.name:select('NAME3')
lines[#lines + 1] = 'next ' .. tostring(box.sequence.ids:next())
print(table.concat(lines, '\n'))
os.exit(0)
