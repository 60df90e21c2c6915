-- internal.argparse: options and arguments of a command line.

-- Options that a line names, in its order: { name, value or nil }; and what stands beside them. `is_flag`: takes no value from what follows.
local function split(arguments, is_flag)
    local named, rest = {}, {}
    local function refuse(at)
        error(('bad argument #%d: ID not valid'):format(at))
    end
    local at = 1
    while at <= #arguments do
        local argument = arguments[at]
        if argument:sub(1, 2) == '--' then
            local text = argument:sub(3)
            local name, value = text:match('^([%a_][%w_%-]+)=(.*)$')
            name = name or text:match('^[%a_][%w_%-]+$') or refuse(at)
            local follower = arguments[at + 1]
            if value == nil and follower ~= nil and follower:sub(1, 1) ~= '-' and not is_flag(name) then
                value, at = follower, at + 1
            end
            table.insert(named, { name, value })
        elseif argument:sub(1, 1) == '-' and argument ~= '-' then
            for name in (argument:match('^%-([%a_]+)$') or refuse(at)):gmatch('.') do
                table.insert(named, { name })
            end
        else
            table.insert(rest, argument)
        end
        at = at + 1
    end
    return named, rest
end

local function converted(name, value, kind)
    local function refuse(expected)
        local given = value == nil and 'nothing' or ('"%s"'):format(value)
        error(('Bad value for parameter "%s". %s, got %s'):format(name, expected, given))
    end
    if kind == nil then
        return value == nil or value
    elseif kind == 'boolean' then
        return value == nil or refuse('No value expected')
    elseif kind == 'number' then
        return tonumber(value or '') or refuse('Expected number')
    elseif kind == 'string' then
        return value or refuse('Expected string')
    end
    error(('Bad conversion format "%s" provided for %s'):format(kind, name))
end

-- { name = value, or a list of what was given several times; arguments beside the options by number }. `known`: a list of names and of
-- { name, type }; a `+` behind the type makes a list. Without it every option is taken.
local function parse(arguments, known)
    local kinds, is_list = {}, {}
    for _, one in ipairs(known or {}) do
        local name, kind = one, nil
        if type(one) == 'table' then
            name, kind = one[1], one[2]
        end
        if name ~= nil then
            is_list[name] = kind ~= nil and kind:sub(-1) == '+'
            kinds[name] = kind and (is_list[name] and kind:sub(1, -2) or kind) or false
        end
    end
    local named, result = split(arguments, function(name) return kinds[name] == 'boolean' end)
    local unknown = {}
    for _, option in ipairs(named) do
        local name, kind = option[1], kinds[option[1]]
        if known ~= nil and kind == nil then
            unknown[name] = true
        else
            local value, before = converted(name, option[2], kind or nil), result[name]
            if is_list[name] then
                result[name] = before or {}
                table.insert(result[name], value)
            elseif kind or before == nil then
                result[name] = value
            elseif type(before) == 'table' then
                table.insert(before, value)
            else
                result[name] = { before, value }
            end
        end
    end
    if next(unknown) ~= nil then
        local names = {}
        for name in pairs(unknown) do
            table.insert(names, name)
        end
        table.sort(names)
        error('unknown options: ' .. table.concat(names, ', '))
    end
    return result
end

package.loaded['internal.argparse'] = { parse = parse }
