-- http.client: requests over HTTP 1.1, each over a connection of its own, with TLS for https.
--
-- What is wrong with the network is a response with a status of its own, as in Tarantool: 408 a time-out, 444 nothing came, 495 the certificate is not
-- trusted, 595 nobody was reached. What is wrong with an answer raises.
local internal = ...

local digest = require('digest')
local fiber = require('fiber')
local json = require('json')
local msgpack = require('msgpack')
local socket = require('socket')
local yaml = require('yaml')

local FOREVER = 500 * 365 * 86400
-- Bytes of the head of an answer, and of its body.
local HEAD_BYTES, BODY_BYTES = 1048576, 536870912
local REDIRECTS = 50
-- Interim answers before the one that counts.
local INTERIM = 10

local function fail(text)
    error(internal.values.make_error(0, 'SystemError', 'curl: ' .. text))
end

-- Outcomes that are responses, told apart from errors by their type.
local network_failure = {}

local function give_up(status, reason)
    error(setmetatable({ status = status, reason = reason }, network_failure), 0)
end

-- Addresses -------------------------------------------------------------------------------------------------------------------
local function parse_url(url)
    if url:find('[%c%s]') then
        fail('URL using bad/illegal format or missing URL')
    end
    local scheme, rest = url:match('^(%a[%w+.-]*)://(.*)$')
    scheme, rest = scheme and scheme:lower() or 'http', rest or url
    if scheme ~= 'http' and scheme ~= 'https' then
        fail('Unsupported protocol')
    end
    local authority, path = rest:match('^([^/?#]*)([^#]*)')
    local login, address = authority:match('^(.*)@([^@]*)$')
    address = address or authority
    local host, port = address:match('^%[([%x:.]+)%]:?(%d*)$')
    if host == nil then
        host, port = address:match('^([^:]+):?(%d*)$')
    end
    if host == nil or tonumber(port or '') and tonumber(port) > 65535 then
        fail('URL using bad/illegal format or missing URL')
    end
    if path:sub(1, 1) ~= '/' then
        path = '/' .. path
    end
    return {
        scheme = scheme, host = host, port = port ~= '' and port or scheme == 'https' and '443' or '80', path = path,
        login = login, shown = address,
    }
end

-- Where a redirection leads from an address.
local function redirected(url, location)
    if location:match('^%a[%w+.-]*://') then
        return location
    elseif location:sub(1, 2) == '//' then
        return url.scheme .. ':' .. location
    end
    local base = ('%s://%s'):format(url.scheme, url.shown)
    if location:sub(1, 1) == '/' then
        return base .. location
    elseif location:sub(1, 1) == '?' then
        return base .. url.path:match('^[^?]*') .. location
    end
    return base .. url.path:match('^[^?]*'):match('^(.*/)') .. location
end

-- Settings of TLS by the options that they are made of.
local known_settings = setmetatable({}, { __mode = 'v' })

local function settings_of(options)
    local verifies_host = options.verify_host == nil or options.verify_host == true or options.verify_host == 2
    local verifies_peer = options.verify_peer == nil or options.verify_peer == true or options.verify_peer == 1
    local key = table.concat({
        options.ca_file or '', options.ssl_cert or '', options.ssl_key or '', tostring(verifies_host), tostring(verifies_peer),
    }, '\0')
    local settings = known_settings[key]
    if settings == nil then
        settings = internal.secure_for_web(options.ca_file, options.ssl_cert, options.ssl_key, verifies_host, verifies_peer)
        known_settings[key] = settings
    end
    return settings
end

local function left_until(deadline)
    local left = deadline - fiber.clock()
    if left <= 0 then
        give_up(408, 'Timeout was reached')
    end
    return left
end

local function connect(url, options, deadline)
    local connection, reason
    if options.unix_socket then
        connection = socket.tcp_connect('unix/', options.unix_socket, left_until(deadline))
    else
        connection, reason = socket.tcp_connect(url.host, url.port, left_until(deadline))
    end
    if connection == nil then
        left_until(deadline)
        give_up(595, reason ~= nil and "Couldn't resolve host name" or "Couldn't connect to server")
    end
    if url.scheme == 'https' then
        local settings = settings_of(options)
        local fine, why = internal.secure_socket(connection, settings, url.host, left_until(deadline))
        if not fine then
            connection:close()
            left_until(deadline)
            if tostring(why):find('certificate', 1, true) then
                give_up(495, 'SSL peer certificate or SSH remote key was not OK')
            end
            fail('SSL connect error: ' .. tostring(why))
        end
    end
    return connection
end

-- Requests -----------------------------------------------------------------------------------------------------------------------
local CONTENT = {
    ['application/json'] = { json.encode, json.decode },
    ['application/yaml'] = { yaml.encode, yaml.decode },
    ['application/msgpack'] = { msgpack.encode, msgpack.decode },
}

-- The value of a header by its name in any letters.
local function header_of(headers, wanted)
    for name, value in pairs(headers) do
        if name:lower() == wanted then
            return value
        end
    end
    return nil
end

local function escape(text)
    return (tostring(text):gsub('[^%w%-._~]', function(letter) return ('%%%02X'):format(letter:byte()) end))
end

local function write_request(url, method, body, headers, keeps_alive)
    local lines = { ('%s %s HTTP/1.1'):format(method, url.path) }
    local function add(name, value)
        if header_of(headers, name:lower()) == nil then
            lines[#lines + 1] = ('%s: %s'):format(name, value)
        end
    end
    add('Host', url.shown)
    add('Accept', '*/*')
    add('Connection', keeps_alive and 'Keep-Alive' or 'close')
    if url.login then
        add('Authorization', 'Basic ' .. digest.base64_encode(url.login, { nowrap = true }))
    end
    if body or method ~= 'GET' and method ~= 'HEAD' and method ~= 'OPTIONS' and method ~= 'TRACE' and method ~= 'CONNECT' then
        add('Content-Length', #(body or ''))
        add('Content-Type', 'application/x-www-form-urlencoded')
    end
    for name, value in pairs(headers) do
        lines[#lines + 1] = ('%s: %s'):format(name, value)
    end
    return table.concat(lines, '\r\n') .. '\r\n\r\n' .. (body or '')
end

local function read(connection, what, deadline)
    local text = connection:read(what, left_until(deadline))
    if text == nil then
        left_until(deadline)
        fail('Failure when receiving data from the peer')
    end
    return text
end

local function read_line(connection, deadline)
    local line = read(connection, { delimiter = '\n', chunk = HEAD_BYTES }, deadline)
    if line:sub(-1) ~= '\n' then
        fail('Transferred a partial file')
    end
    return (line:gsub('\r?\n$', ''))
end

local function read_exactly(connection, count, deadline)
    if count == 0 then
        return ''
    end
    local text = read(connection, count, deadline)
    if #text < count then
        fail('Transferred a partial file')
    end
    return text
end

local function check_size(size)
    if not size or size > BODY_BYTES then
        fail(('the body of an answer is larger than %d bytes'):format(BODY_BYTES))
    end
    return size
end

local function read_chunked(connection, deadline)
    local pieces, total = {}, 0
    while true do
        local digits = read_line(connection, deadline):match('^%s*(%x+)')
        local size = digits and #digits <= 12 and tonumber(digits, 16)
        if not size then
            fail('Problem with chunked data')
        elseif size == 0 then
            break
        end
        total = check_size(total + size)
        pieces[#pieces + 1] = read_exactly(connection, size, deadline)
        read_line(connection, deadline)
    end
    for _ = 1, 1000 do
        if read_line(connection, deadline) == '' then
            return table.concat(pieces)
        end
    end
    fail('Problem with chunked data')
end

local function read_to_end(connection, deadline)
    local text = read(connection, BODY_BYTES + 1, deadline)
    check_size(#text)
    return text
end

-- The head of an answer: status, version, headers by names in small letters, cookies.
local function read_head(connection, deadline)
    local head = connection:read({ delimiter = { '\r\n\r\n', '\n\n' }, chunk = HEAD_BYTES }, left_until(deadline))
    if head == nil then
        left_until(deadline)
        give_up(444, 'Server returned nothing (no headers, no data)')
    elseif head == '' then
        give_up(444, 'Server returned nothing (no headers, no data)')
    end
    local major, minor, status = head:match('^HTTP/(%d)%.(%d) (%d%d%d)')
    if status == nil then
        fail('Unsupported protocol')
    elseif not head:match('\n\r?\n$') then
        fail(#head >= HEAD_BYTES and 'the head of an answer is too large' or 'Transferred a partial file')
    end
    local headers, cookies = {}, nil
    for line in head:gmatch('\n([^\n]+)') do
        local name, value = line:match('^([^%s:]+):%s*(.-)%s*$')
        if name then
            name = name:lower()
            if name == 'set-cookie' then
                local cookie, content, rest = value:match('^%s*([^=;]+)=([^;]*)(.*)$')
                if cookie then
                    cookies = cookies or {}
                    local options = {}
                    for option in rest:gmatch(';%s*([^;]+)') do
                        options[#options + 1] = option
                    end
                    cookies[cookie] = { content, options }
                end
            end
            headers[name] = headers[name] and headers[name] .. ',' .. value or value
        end
    end
    return tonumber(status), { tonumber(major), tonumber(minor) }, headers, cookies
end

local response_metatable = {
    __index = {
        -- The body by its type.
        decode = function(self)
            local kind = (self.headers and self.headers['content-type'] or 'application/json'):match('^[^;%s]*')
            local content = CONTENT[kind]
            if content == nil then
                error(("Unable to decode body with content type '%s'"):format(kind), 2)
            end
            return content[2](self.body)
        end,
    },
}

local function perform(url, method, body, options, deadline)
    local connection = connect(url, options, deadline)
    local fine, response = pcall(function()
        local keeps_alive = (options.keepalive_idle or 0) > 0 and (options.keepalive_interval or 0) > 0
        local text = write_request(url, method, body, options.headers, keeps_alive)
        -- An answer may come before all was taken: whether it did is found out by reading.
        if connection:write(text, left_until(deadline)) == nil then
            left_until(deadline)
        end
        local status, version, headers, cookies
        for at = 1, INTERIM + 1 do
            status, version, headers, cookies = read_head(connection, deadline)
            if status >= 200 then
                break
            elseif at > INTERIM then
                fail('too many interim answers')
            end
        end
        local content
        local length = headers['content-length']
        if method ~= 'HEAD' and status ~= 204 and status ~= 304 then
            if (headers['transfer-encoding'] or ''):lower():find('chunked', 1, true) then
                content = read_chunked(connection, deadline)
            elseif length then
                content = read_exactly(connection, check_size(length:match('^%d+$') and tonumber(length)), deadline)
            else
                content = read_to_end(connection, deadline)
            end
        end
        return {
            status = status, reason = status < 400 and 'Ok' or 'Unknown', proto = version, headers = headers, cookies = cookies,
            body = content ~= '' and content or nil,
        }
    end)
    pcall(connection.close, connection)
    if not fine then
        error(response, 0)
    end
    return response
end

local function request_with_redirects(url_text, method, body, options, deadline)
    for _ = 0, REDIRECTS do
        local url = parse_url(url_text)
        local response = perform(url, method, body, options, deadline)
        local location = response.headers.location
        local is_redirect = response.status >= 300 and response.status < 400 and response.status ~= 304 and location
        if not is_redirect or options.follow_location == false then
            return response
        end
        if response.status == 303 and method ~= 'HEAD' or (response.status == 301 or response.status == 302) and method == 'POST' then
            method, body = 'GET', nil
        end
        url_text = redirected(url, location)
        -- What was meant for one server is not told to another.
        if parse_url(url_text).shown ~= url.shown then
            local kept = {}
            for name, value in pairs(options.headers) do
                local lower = name:lower()
                if lower ~= 'authorization' and lower ~= 'cookie' and lower ~= 'host' then
                    kept[name] = value
                end
            end
            options = setmetatable({ headers = kept }, { __index = options })
        end
    end
    fail('Number of redirects hit maximum amount')
end

-- Clients --------------------------------------------------------------------------------------------------------------------------
local UNSUPPORTED = { 'proxy', 'accept_encoding', 'chunked', 'ca_path', 'interface' }

local function checked_headers(given)
    local headers = {}
    if given ~= nil and type(given) ~= 'table' then
        error('opts.headers must be a table', 4)
    end
    for name, value in pairs(given or {}) do
        if type(name) ~= 'string' or type(value) ~= 'string' then
            error('opts.headers values should be strings', 4)
        elseif name:find('[%c%s:]') or value:find('[\r\n%z]') then
            error('opts.headers must not have line breaks', 4)
        end
        headers[name] = value
    end
    return headers
end

local client_methods = {}

function client_methods.request(self, method, url, body, options)
    if type(method) ~= 'string' or type(url) ~= 'string' then
        error('request(method, url[, body, [options]])', 2)
    elseif options ~= nil and type(options) ~= 'table' then
        error('fifth argument must be a table', 2)
    elseif not method:match('^[%a-]+$') then
        error('the method of a request is a word', 2)
    end
    local used = {}
    for name, value in pairs(options or {}) do
        used[name] = value
    end
    for _, name in ipairs(UNSUPPORTED) do
        if used[name] ~= nil and used[name] ~= '' and used[name] ~= false then
            internal.fail('UNSUPPORTED', 'http.client', ("option '%s' yet"):format(name))
        end
    end
    used.headers = checked_headers(used.headers)
    if body ~= nil and type(body) ~= 'string' and type(body) ~= 'table' then
        error('fourth argument must be a string', 2)
    elseif type(body) == 'table' then
        local kind = header_of(used.headers, 'content-type')
        if kind == nil then
            kind = 'application/json'
            used.headers['Content-Type'] = kind
        end
        local content = CONTENT[kind:match('^[^;%s]*')]
        if content == nil then
            error(("Unable to encode body with content type '%s'"):format(kind), 2)
        end
        body = content[1](body)
    end
    if type(used.params) == 'table' then
        local pairs_of = {}
        for name, value in pairs(used.params) do
            pairs_of[#pairs_of + 1] = escape(name) .. '=' .. escape(value)
        end
        table.sort(pairs_of)
        url = url .. (url:find('?', 1, true) and '&' or '?') .. table.concat(pairs_of, '&')
    end
    local timeout = tonumber(used.timeout) or FOREVER
    local statistics = self._statistics
    statistics.total_requests = statistics.total_requests + 1
    statistics.active_requests = statistics.active_requests + 1
    statistics.sockets_added = statistics.sockets_added + 1
    local fine, response = pcall(request_with_redirects, url, method:upper(), body ~= '' and body or nil, used,
        fiber.clock() + timeout)
    statistics.active_requests = statistics.active_requests - 1
    statistics.sockets_deleted = statistics.sockets_deleted + 1
    if fine then
        local name = response.status == 200 and 'http_200_responses' or 'http_other_responses'
        statistics[name] = statistics[name] + 1
    else
        statistics.failed_requests = statistics.failed_requests + 1
        if getmetatable(response) ~= network_failure then
            error(response, 0)
        end
    end
    return setmetatable(response, response_metatable)
end

for _, method in ipairs({ 'get', 'head', 'options', 'trace', 'connect', 'delete' }) do
    client_methods[method] = function(self, url, options)
        return client_methods.request(self, method:upper(), url, nil, options)
    end
end
for _, method in ipairs({ 'post', 'put', 'patch' }) do
    client_methods[method] = function(self, url, body, options)
        return client_methods.request(self, method:upper(), url, body, options)
    end
end

function client_methods.stat(self)
    local result = {}
    for name, value in pairs(self._statistics) do
        result[name] = value
    end
    return result
end

local client_metatable = { __index = client_methods }

local function new(options)
    if options ~= nil and type(options) ~= 'table' then
        error('Usage: http.client.new([opts])', 2)
    end
    return setmetatable({ _statistics = {
        total_requests = 0, active_requests = 0, failed_requests = 0, http_200_responses = 0, http_other_responses = 0,
        sockets_added = 0, sockets_deleted = 0,
    } }, client_metatable)
end

local module, default = { new = new }, new()
for name, method in pairs(client_methods) do
    if name ~= 'stat' then
        module[name] = function(...) return method(default, ...) end
    end
end
package.loaded['http.client'] = module
