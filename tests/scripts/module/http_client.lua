-- module http.client: requests, answers in all forms, and what becomes of broken ones

client, fiber, socket = require('http.client'), require('fiber'), require('socket')

replies = {
    ['/plain'] = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nX-A: 2\r\nSet-Cookie: a=b; Path=/; Secure\r\n\r\nhello',
    ['/chunked'] = 'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: 1\r\n\r\n',
    ['/close'] = 'HTTP/1.0 404 Not Found\r\n\r\nuntil the end',
    ['/redirect'] = 'HTTP/1.1 302 Found\r\nLocation: /plain\r\nContent-Length: 0\r\n\r\n',
    ['/cut'] = 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello',
    ['/empty'] = '',
    ['/204'] = 'HTTP/1.1 204 No Content\r\n\r\n',
    ['/continue'] = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    ['/large'] = 'HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n' .. ('z'):rep(300000),
    ['/json'] = 'HTTP/1.1 500 Oops\r\nContent-Length: 7\r\nContent-Type: application/json\r\n\r\n{"a":1}',
}

function handle(c)
    local head = c:read('\r\n\r\n', 5)
    if head == nil or head == '' then return end
    local length = tonumber(head:lower():match('content%-length: (%d+)') or 0)
    body = length > 0 and c:read(length) or ''
    line, seen = head:match('^[^\r]*'), {}
    for name, value in head:gmatch('\n([%w-]+): ([^\r]*)') do if name ~= 'Host' then seen[name:lower()] = value end end
    local path = head:match('^%S+ ([^%s?]+)')
    if path == '/slow' then fiber.sleep(1) end
    c:write(replies[path] or replies['/plain'])
end

server = socket.tcp_server('127.0.0.1', 0, handle)

url = 'http://127.0.0.1:' .. server:name().port

http = client.new({max_connections = 5})

function shown(fine, r) if not fine then return r end return r.status, r.reason, r.body and #r.body < 100 and r.body or r.body and #r.body, r.headers, r.proto, r.cookies end

shown(pcall(http.get, http, url .. '/plain'))

line, body, seen

shown(pcall(http.get, http, url .. '/chunked'))

shown(pcall(http.get, http, url .. '/close'))

shown(pcall(http.get, http, url .. '/cut'))

shown(pcall(http.get, http, url .. '/empty'))

shown(pcall(http.get, http, url .. '/204'))

http:get(url .. '/continue').body

shown(pcall(http.get, http, url .. '/large'))

shown(pcall(http.get, http, url .. '/json'))

shown(pcall(http.get, http, url .. '/slow', {timeout = 0.1}))

http:get(url .. '/redirect').body

shown(pcall(http.get, http, url .. '/redirect', {follow_location = false}))

http:post(url .. '/plain', 'body text', {headers = {['X-Y'] = 'z', ['Content-Type'] = 'a/b'}}).status

line, body, seen

http:put(url .. '/plain').status

line, body, seen

http:head(url .. '/plain').body

line

http:delete(url .. '/plain').status, http:options(url .. '/plain').status, http:patch(url .. '/plain', 'x').status

line, body, seen

http:request('GET', url .. '/plain?a=b#c', nil, {headers = {n = 5}}).status

line, seen

client.get(url .. '/plain').body

shown(pcall(http.get, http, 'http://127.0.0.1:1/'))

shown(pcall(http.get, http, 'http://nosuch.invalid/'))

shown(pcall(http.get, http, url .. '/plain', {unix_socket = './nosuch'}))

http:get(url .. '/plain', {headers = {Connection = 'x', ['User-Agent'] = 'me'}}).status

seen

http:stat()

many, sum = {}, 0 for i = 1, 30 do many[i] = fiber.new(function() sum = sum + #http:get(url .. '/large').body end) many[i]:set_joinable(true) end for i = 1, 30 do many[i]:join() end

sum

server:close()
