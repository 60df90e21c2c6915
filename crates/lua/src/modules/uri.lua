-- uri: addresses taken apart and put together.

local uri = {}
-- Characters of names and passwords.
local NAME = "[%w%-%._~!$&'()*+,;=%%]"

local function not_empty(text)
    return text ~= '' and text or nil
end

-- Login, password and what follows them.
local function parse_login(rest, result)
    local login, behind = rest:match('^(' .. NAME .. '+)@(.*)$')
    if login then
        result.login = login
        return behind
    end
    local password
    login, password, behind = rest:match('^(' .. NAME .. '+):(' .. NAME .. '*)@(.*)$')
    if login then
        result.login, result.password = login, password
        return behind
    end
    return rest
end

-- A unix socket and a path behind it; nil if it is none.
local function parse_unix(rest, result)
    local socket, path = rest:match('^unix/:(/[^:]+)(.*)$')
    if socket == nil then
        socket, path = rest:match('^unix/:(%./[^:]+)(.*)$')
    end
    if socket == nil then
        socket, path = rest:match('^(/[^/:][^:]*)(.*)$')
        if rest == '/' then
            socket, path = '/', ''
        end
    end
    if socket == nil or socket:find('[%s]') then
        return nil
    end
    if path ~= '' then
        path = path:match('^:(/.*)$')
        if path == nil then
            return nil
        end
    end
    result.host, result.service, result.unix, result.path = 'unix/', socket, socket, not_empty(path)
    return true
end

-- Host and service; nil if they are none.
local function parse_host(rest, result)
    local host, behind = rest:match('^%[([%x:%.]+)%](.*)$')
    if host then
        result.ipv6 = host
    else
        host, behind = rest:match('^(' .. NAME .. '+)(.*)$')
        if host == nil then
            return nil
        end
        if host:match('^%d+%.%d+%.%d+%.%d+$') then
            result.ipv4 = host
        end
    end
    result.host = host
    if behind ~= '' then
        local service = behind:match('^:(%d+)$') or behind:match('^:(%a%w*)$')
        if service == nil and behind ~= ':' then
            return nil
        end
        result.service = service
    end
    return true
end

-- Parameters of a query by their names: for each the list of its values.
local function parameters(query)
    local result = {}
    for part in query:gmatch('[^&;]+') do
        local name, value = part:match('^([^=]*)=(.*)$')
        name = name or part
        result[name] = result[name] or {}
        table.insert(result[name], value or '')
    end
    return result
end

local function parse_text(text)
    -- A text for C ends at its first zero.
    text = text:match('^[^%z]*')
    if text:match('^%d+$') then
        return { service = text }
    end
    local result = {}
    local rest, fragment = text:match('^([^#]*)#(.*)$')
    rest, result.fragment = rest or text, fragment
    local before, query = rest:match('^([^?]*)%?(.*)$')
    rest, result.query = before or rest, query
    result.params = not_empty(query) and parameters(query) or nil
    local scheme, behind = rest:match('^(%a[%w+.-]*)://([^/].*)$')
    if scheme then
        result.scheme, rest = scheme, behind
    else
        -- What is no scheme for lack of a host is both.
        result.scheme = rest:match('^(%a[%w+.-]*):/')
    end
    rest = parse_login(rest, result)
    if parse_unix(rest, result) then
        return result
    end
    local authority, path = rest:match('^([^/]*)(/.*)$')
    rest, result.path = authority or rest, path
    if rest == '' and path == nil and result.login == nil and (query or fragment) then
        return result
    end
    return parse_host(rest, result) and result or nil
end

-- A list of values; nil if it is neither a value nor such a list.
local function values_of(given)
    local list = type(given) == 'table' and given or { given }
    local result = {}
    for at, value in ipairs(list) do
        if type(value) ~= 'string' and type(value) ~= 'number' then
            return nil
        end
        result[at] = tostring(value)
    end
    return result
end

-- Adds parameters of a table to what was parsed: `params` in place of those of the text, `default_params` where there are none.
local function add_parameters(result, given, replaces)
    for name, value in pairs(type(given) == 'table' and given or {}) do
        local values = values_of(value)
        if type(name) == 'string' and values then
            result.params = result.params or {}
            if replaces or result.params[name] == nil then
                result.params[name] = values
            end
        end
    end
    return result
end

local function parse_any(given)
    if type(given) == 'number' then
        given = tostring(given)
    end
    if type(given) == 'string' then
        return parse_text(given)
    elseif type(given) ~= 'table' then
        return nil
    end
    local text = given.uri or given[1]
    if type(text) ~= 'string' and type(text) ~= 'number' then
        return nil
    end
    local result = parse_text(tostring(text))
    if result == nil then
        return nil
    end
    result.login, result.password = given.login or result.login, given.password or result.password
    add_parameters(result, given.params, true)
    return add_parameters(result, given.default_params, false)
end

-- An address as a text, or as a table with parameters: { uri, params = {...}, login = ..., password = ... }.
function uri.parse(given)
    if given == nil then
        error('Usage: uri.parse(string)', 2)
    end
    if type(given) ~= 'string' and type(given) ~= 'table' then
        local kind = type(given) == 'boolean' and 'bool' or type(given)
        error(("bad argument #2 to 'uri_parse' (cannot convert '%s' to 'const char *')"):format(kind), 2)
    end
    return parse_any(given)
end

-- Several addresses: a text with commas, a table of addresses, or a table of one. nil if one of them is none.
function uri.parse_many(given)
    if type(given) ~= 'string' and type(given) ~= 'number' and type(given) ~= 'table' then
        error('Usage: uri.parse_many(string|table)', 2)
    end
    local list, defaults = {}, nil
    if type(given) == 'table' then
        if given.uri ~= nil or #given == 1 and given.params ~= nil then
            list[1] = given
        else
            defaults = given.default_params
            for _, one in ipairs(given) do
                list[#list + 1] = one
            end
        end
    else
        for one in tostring(given):gmatch('[^,]+') do
            list[#list + 1] = one:match('^%s*(.-)%s*$')
        end
    end
    local result = {}
    for at, one in ipairs(list) do
        local parsed = parse_any(one)
        if parsed == nil then
            return nil
        end
        result[at] = add_parameters(parsed, defaults, false)
    end
    return result
end

-- Every byte but letters, digits and -._~ as its number; a space as a plus, if that is asked for.
function uri.escape(text, options)
    if type(text) ~= 'string' then
        error('Usage: uri.escape(string, [options])', 2)
    end
    local has_plus = type(options) == 'table' and options.plus
    return (text:gsub('[^%w%-%._~]', function(character)
        return character == ' ' and has_plus and '+' or ('%%%02X'):format(character:byte())
    end))
end

function uri.unescape(text, options)
    if type(text) ~= 'string' then
        error('Usage: uri.unescape(string, [options])', 2)
    end
    if type(options) == 'table' and options.plus then
        text = text:gsub('%+', ' ')
    end
    return (text:gsub('%%(%x%x)', function(digits) return string.char(tonumber(digits, 16)) end))
end

uri.RFC3986 = { plus = false }
uri.FORM_URLENCODED = { plus = true }

local function uri_part(value)
    if value ~= nil and type(value) ~= 'string' then
        error(("cannot convert '%s' to 'const char *'"):format(type(value)), 3)
    end
    return value
end

function uri.format(parts, with_password)
    local login, password = uri_part(parts.login), uri_part(parts.password)
    local host, service = uri_part(parts.host), uri_part(parts.service)
    local text = uri_part(parts.scheme) and parts.scheme .. '://' or ''
    if host ~= nil then
        if login ~= nil then
            text = text .. login
            if password ~= nil and with_password then
                text = text .. ':' .. password
            end
            text = text .. '@'
        end
        text = text .. host
        if service ~= nil then
            text = text .. ':' .. service
        end
    end
    return text .. (uri_part(parts.path) or '') .. (uri_part(parts.query) and '?' .. parts.query or '')
        .. (uri_part(parts.fragment) and '#' .. parts.fragment or '')
end
package.loaded.uri = uri
