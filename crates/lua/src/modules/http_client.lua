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

local bodies = internal.http_bodies
local fail, give_up, left_until = bodies.fail, bodies.give_up, bodies.left_until
local network_failure = bodies.network_failure

local FOREVER = 500 * 365 * 86400
-- Bytes of the head of an answer, and of its body unless the option `max_body` says otherwise.
local HEAD_BYTES, BODY_BYTES = 1048576, 536870912
local REDIRECTS = 50
-- Interim answers before the one that counts.
local INTERIM = 10

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

-- True if a host is among those that no proxy is asked for: `*`, names, and domains with what is below them.
local function is_direct(host, list)
    for name in tostring(list or ''):gmatch('[^%s,]+') do
        name = name:lower():gsub('^%.', '')
        if name == '*' or host:lower() == name or host:lower():sub(-#name - 1) == '.' .. name then
            return true
        end
    end
    return false
end

-- The proxy that a request goes through: an address with the login there; nil if there is none.
local function proxy_of(url, options)
    local given = options.proxy
    if given == nil or given == '' or options.unix_socket or is_direct(url.host, options.no_proxy) then
        return nil
    elseif type(given) ~= 'string' then
        error('opts.proxy must be a string', 0)
    end
    local scheme = given:match('^(%a[%w+.-]*)://')
    if scheme and scheme:lower() ~= 'http' then
        internal.fail('UNSUPPORTED', 'http.client', ("a proxy of the kind '%s' yet"):format(scheme))
    end
    local proxy = parse_url(given)
    local has_port = given:gsub('^.*@', ''):gsub('^%a[%w+.-]*://', ''):match('^[^/]*:%d+')
    if not has_port then
        -- The port of libcurl.
        proxy.port = tostring(options.proxy_port or 1080)
    end
    proxy.login = options.proxy_user_pwd or proxy.login
    return proxy
end

local function proxy_login(proxy)
    return 'Proxy-Authorization: Basic ' .. digest.base64_encode(proxy.login, { nowrap = true })
end

local function dial(url, options, deadline, unreached)
    local connection, reason
    if options.unix_socket then
        connection = socket.tcp_connect('unix/', options.unix_socket, left_until(deadline))
    else
        connection, reason = socket.tcp_connect(url.host, url.port, left_until(deadline))
    end
    if connection == nil then
        left_until(deadline)
        give_up(595, reason ~= nil and unreached or "Couldn't connect to server")
    end
    return connection
end

-- Asks a proxy for a way to the server.
local function tunnel(connection, url, proxy, deadline)
    local host = url.host:find(':', 1, true) and '[' .. url.host .. ']' or url.host
    local place = host .. ':' .. url.port
    local lines = { ('CONNECT %s HTTP/1.1'):format(place), 'Host: ' .. place }
    if proxy.login then
        lines[#lines + 1] = proxy_login(proxy)
    end
    if connection:write(table.concat(lines, '\r\n') .. '\r\n\r\n', left_until(deadline)) == nil then
        left_until(deadline)
    end
    local status = bodies.read_line(connection, deadline):match('^HTTP/%d%.%d (%d%d%d)')
    local total = 0
    repeat
        local line = bodies.read_line(connection, deadline)
        total = total + #line
    until line == '' or total > HEAD_BYTES
    if status == nil or status:sub(1, 1) ~= '2' then
        fail(('Failure when receiving data from the peer: the proxy answers %s to CONNECT'):format(status or 'nothing'))
    end
end

local function secure(connection, url, options, deadline)
    local fine, why = internal.secure_socket(connection, settings_of(options), url.host, left_until(deadline))
    if not fine then
        left_until(deadline)
        if tostring(why):find('certificate', 1, true) then
            give_up(495, 'SSL peer certificate or SSH remote key was not OK')
        end
        fail('SSL connect error: ' .. tostring(why))
    end
end

-- Calls a function; the connection is closed if it fails.
local function guarded(connection, work, ...)
    local fine, result = pcall(work, ...)
    if not fine then
        pcall(connection.close, connection)
        error(result, 0)
    end
    return result
end

-- A connection over which the request is sent, and the proxy that it is sent to rather than to the server.
local function connect(url, options, deadline)
    local proxy = proxy_of(url, options)
    local connection = dial(proxy or url, options, deadline, proxy and "Couldn't resolve proxy name" or "Couldn't resolve host name")
    guarded(connection, function()
        if proxy and url.scheme == 'https' then
            tunnel(connection, url, proxy, deadline)
            proxy = nil
        end
        if url.scheme == 'https' then
            secure(connection, url, options, deadline)
        end
    end)
    return connection, proxy
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

-- The head of a request. The body is a text, nothing, or in chunks.
local function write_head(url, proxy, method, body, in_chunks, options)
    local headers = options.headers
    local keeps_alive = (options.keepalive_idle or 0) > 0 and (options.keepalive_interval or 0) > 0
    local target = proxy and ('%s://%s%s'):format(url.scheme, url.shown, url.path) or url.path
    local lines = { ('%s %s HTTP/1.1'):format(method, target) }
    local function add(name, value)
        if header_of(headers, name:lower()) == nil then
            lines[#lines + 1] = ('%s: %s'):format(name, value)
        end
    end
    add('Host', url.shown)
    if proxy and proxy.login then
        lines[#lines + 1] = proxy_login(proxy)
    end
    add('Accept', '*/*')
    add('Connection', keeps_alive and 'Keep-Alive' or 'close')
    if url.login then
        add('Authorization', 'Basic ' .. digest.base64_encode(url.login, { nowrap = true }))
    end
    if options.accept_encoding then
        add('Accept-Encoding', options.accept_encoding == '' and 'deflate, gzip' or options.accept_encoding)
    end
    if in_chunks then
        add('Transfer-Encoding', 'chunked')
        add('Content-Type', 'application/x-www-form-urlencoded')
    elseif body or method ~= 'GET' and method ~= 'HEAD' and method ~= 'OPTIONS' and method ~= 'TRACE' and method ~= 'CONNECT' then
        add('Content-Length', #(body or ''))
        add('Content-Type', 'application/x-www-form-urlencoded')
    end
    for name, value in pairs(headers) do
        lines[#lines + 1] = ('%s: %s'):format(name, value)
    end
    return table.concat(lines, '\r\n') .. '\r\n\r\n'
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

-- An answer may come before all was taken: whether it did is found out by reading.
local function send(connection, text, deadline)
    if connection:write(text, left_until(deadline)) == nil then
        left_until(deadline)
        return false
    end
    return true
end

local function send_chunk(connection, piece, deadline)
    if type(piece) ~= 'string' then
        error('a piece of a body must be a string', 0)
    end
    return piece == '' or send(connection, ('%x\r\n%s\r\n'):format(#piece, piece), deadline)
end

-- Reads the head that counts: a response whose `source` gives the body.
local function receive(connection, method, options, deadline)
    local status, version, headers, cookies
    for at = 1, INTERIM + 1 do
        status, version, headers, cookies = read_head(connection, deadline)
        if status >= 200 then
            break
        elseif at > INTERIM then
            fail('too many interim answers')
        end
    end
    local source
    if method ~= 'HEAD' and status ~= 204 and status ~= 304 then
        source = bodies.of(connection, headers, options.accept_encoding, options.max_body)
    end
    return {
        status = status, reason = status < 400 and 'Ok' or 'Unknown', proto = version, headers = headers, cookies = cookies,
    }, source
end

local function perform(url, method, body, options, deadline)
    local connection, proxy = connect(url, options, deadline)
    local response = guarded(connection, function()
        local in_chunks = type(body) == 'function'
        local text = write_head(url, proxy, method, body, in_chunks, options)
        if in_chunks then
            send(connection, text, deadline)
            -- One that wants no more has an answer for it.
            for piece in body do
                if not send_chunk(connection, piece, deadline) then
                    break
                end
            end
            send(connection, '0\r\n\r\n', deadline)
        else
            send(connection, text .. (body or ''), deadline)
        end
        local response, source = receive(connection, method, options, deadline)
        local content = source and bodies.whole(source, options.max_body, deadline) or ''
        response.body = content ~= '' and content or nil
        return response
    end)
    pcall(connection.close, connection)
    return response
end

-- A request whose body is written, and its answer's read, piece by piece.
local io_methods = {}

local function deadline_of(timeout)
    if timeout ~= nil and type(timeout) ~= 'number' then
        error('timeout must be a number', 3)
    end
    return fiber.clock() + (timeout or FOREVER)
end

local function take_answer(self, deadline)
    local response, source = receive(self._connection, self._method, self._options, deadline)
    for name, value in pairs(response) do
        self[name] = value
    end
    self._source, self._is_written = source, true
end

-- Sends a piece of the body.
function io_methods.write(self, text, timeout)
    if type(text) ~= 'string' then
        error('Usage: io:write(string[, timeout])', 2)
    elseif self._is_written then
        error('the request is finished', 2)
    end
    if not send_chunk(self._connection, text, deadline_of(timeout)) then
        fail('Failed sending data to the peer')
    end
    return #text
end

-- The body is whole: takes the head of the answer.
function io_methods.finish(self, timeout)
    local deadline = deadline_of(timeout)
    if not self._is_written then
        self._is_written = true
        send(self._connection, '0\r\n\r\n', deadline)
        take_answer(self, deadline)
    elseif self._connection then
        pcall(self._connection.close, self._connection)
        self._connection, self._source = nil, nil
    end
    return self
end

-- Reads so many bytes of the answer's body, or up to a delimiter: an empty text at the end, and less before it.
function io_methods.read(self, what, timeout)
    local limit, delimiters = what, {}
    if type(what) == 'string' then
        limit, delimiters = self._options.max_body, { what }
    elseif type(what) == 'table' then
        limit = what.chunk or what.size or self._options.max_body
        delimiters = what.delimiter or what.line or {}
        delimiters = type(delimiters) == 'string' and { delimiters } or delimiters
    end
    if type(limit) ~= 'number' or limit < 0 or type(delimiters) ~= 'table' then
        error('Usage: io:read(delimiter|chunk|{delimiter = x, chunk = x}, timeout)', 2)
    elseif not self._is_written then
        error('the request is not finished: io:finish() comes first', 2)
    end
    local deadline = deadline_of(timeout)
    while true do
        local stop = #self._rest >= limit and limit or nil
        for _, delimiter in ipairs(delimiters) do
            local _, last = self._rest:find(delimiter, 1, true)
            stop = last and math.min(last, stop or last) or stop
        end
        local piece = stop == nil and self._source and self._source(deadline) or nil
        if piece == nil then
            stop = stop or #self._rest
            local text = self._rest:sub(1, stop)
            self._rest = self._rest:sub(stop + 1)
            return text
        elseif #self._rest + #piece > self._options.max_body then
            fail(('more than %d bytes of an answer wait to be read'):format(self._options.max_body))
        end
        self._rest = self._rest .. piece
    end
end

local io_metatable = { __index = io_methods }

local function open_io(url_text, method, options, deadline)
    local url = parse_url(url_text)
    local connection, proxy = connect(url, options, deadline)
    return guarded(connection, function()
        local has_body = method == 'POST' or method == 'PUT' or method == 'PATCH'
        send(connection, write_head(url, proxy, method, nil, has_body, options), deadline)
        local object = setmetatable({
            _connection = connection, _method = method, _options = options, _rest = '', _is_written = false,
        }, io_metatable)
        if not has_body then
            take_answer(object, deadline)
        end
        return object
    end)
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
        elseif type(body) == 'function' then
            fail('Send failed since rewinding of the data stream failed')
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
local UNSUPPORTED = { 'ca_path', 'interface' }

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
    if used.accept_encoding ~= nil and type(used.accept_encoding) ~= 'string' then
        error('opts.accept_encoding must be a string', 2)
    elseif (used.accept_encoding or ''):find('[%c]') then
        error('opts.accept_encoding must not have line breaks', 2)
    end
    used.max_body = used.max_body == nil and BODY_BYTES or used.max_body
    if type(used.max_body) ~= 'number' or not (used.max_body >= 0 and used.max_body <= BODY_BYTES) then
        error(('opts.max_body must be a number of bytes up to %d'):format(BODY_BYTES), 2)
    end
    if body ~= nil and type(body) ~= 'string' and type(body) ~= 'table' and type(body) ~= 'function' then
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
    local deadline = fiber.clock() + timeout
    local fine, response
    if used.chunked then
        if body ~= nil then
            error('a request in chunks gets its body by io:write()', 2)
        end
        fine, response = pcall(open_io, url, method:upper(), used, deadline)
    else
        fine, response = pcall(request_with_redirects, url, method:upper(), body ~= '' and body or nil, used, deadline)
    end
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
    return getmetatable(response) == io_metatable and response or setmetatable(response, response_metatable)
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
