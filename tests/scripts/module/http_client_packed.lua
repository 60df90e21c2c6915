-- module http.client: answers that are packed, and proxies

client, fiber, socket = require('http.client'), require('fiber'), require('socket')

function unhex(text) return (text:gsub('..', function(digits) return string.char(tonumber(digits, 16)) end)) end

-- "hello hello hello hello" by gzip, zlib, and without a frame

packed = { gzip = unhex('1f8b08000000000002ffcb48cdc9c957c8402701e3513d8d17000000'), zlib = unhex('789ccb48cdc9c957c8402701680308b1'), raw = unhex('cb48cdc9c957c8402701') }

lines, replies = {}, {}

function reply(path, coding, body) replies[path] = 'HTTP/1.1 200 OK\r\nContent-Encoding: ' .. coding .. '\r\nContent-Length: ' .. #body .. '\r\n\r\n' .. body end

reply('/gzip', 'gzip', packed.gzip)

reply('/zlib', 'deflate', packed.zlib)

reply('/raw', 'deflate', packed.raw)

reply('/plain', 'identity', 'hello')

reply('/empty', 'gzip', '')

reply('/unknown', 'what', 'hello')

reply('/damaged', 'gzip', 'hello')

replies['/chunked'] = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n' .. packed.gzip:gsub('.', function(byte) return '1\r\n' .. byte .. '\r\n' end) .. '0\r\n\r\n'

function handle(c) local head = c:read('\r\n\r\n', 5) if head == nil or head == '' then return end seen = {} for line in head:gmatch('[^\r\n]+') do if not line:find('^User') and not line:find('^Connection') and not line:find('^Keep') and not line:find('^Proxy%-Connection') then table.insert(seen, (line:gsub('127.0.0.1:%d+', 'HERE'))) end end c:write(replies[head:match('^%S+ http://[^/]+(/[^%s?]*)') or head:match('^%S+ ([^%s?]+)')] or replies['/plain']) end

server = socket.tcp_server('127.0.0.1', 0, handle)

url = 'http://127.0.0.1:' .. server:name().port

function get(path, options) options = options or {} options.timeout = 5 local fine, r = pcall(client.get, url .. path, options) if not fine then return tostring(r) end return r.status, r.body, r.headers['content-encoding'] end

get('/gzip', {accept_encoding = 'gzip'})

seen

get('/zlib', {accept_encoding = 'deflate'})

get('/raw', {accept_encoding = 'deflate'})

get('/chunked', {accept_encoding = 'gzip, deflate'})

get('/plain', {accept_encoding = 'gzip'})

get('/empty', {accept_encoding = 'gzip'})

get('/gzip') == 200, select(2, get('/gzip')) == packed.gzip

get('/unknown', {accept_encoding = 'gzip'})

get('/unknown')

get('/damaged', {accept_encoding = 'gzip'})

-- proxies

proxy = '127.0.0.1:' .. server:name().port

function through(options) options.timeout = 5 local fine, r = pcall(client.get, 'http://far.away.example/plain?a=b', options) if not fine then return tostring(r) end return r.status, r.body end

through({proxy = 'http://' .. proxy})

seen

through({proxy = proxy})

through({proxy = '127.0.0.1', proxy_port = server:name().port})

through({proxy = 'http://' .. proxy, proxy_user_pwd = 'user:pass'})

seen

through({proxy = 'http://u:p@' .. proxy})

seen

get('/plain', {proxy = 'http://127.0.0.1:1', no_proxy = 'a.example,127.0.0.1'})

get('/plain', {proxy = 'http://127.0.0.1:1', no_proxy = '*'})

get('/plain', {proxy = 'http://127.0.0.1:1'})

-- no way through a proxy that does not know it

replies['far.away.example:443'] = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n'

fine, r = pcall(client.get, 'https://far.away.example/', {proxy = 'http://' .. proxy, timeout = 5})

tostring(r):sub(1, 47)

seen[1], seen[2]

server:close()
