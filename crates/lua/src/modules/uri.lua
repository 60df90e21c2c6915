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

function uri.parse(text)
    if text == nil then
        error('Usage: uri.parse(string)', 2)
    end
    if type(text) ~= 'string' then
        local kind = type(text) == 'boolean' and 'bool' or type(text)
        error(("bad argument #2 to 'uri_parse' (cannot convert '%s' to 'const char *')"):format(kind), 2)
    end
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
