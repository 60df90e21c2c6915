-- module socket: servers and clients over TCP, unix sockets and datagrams

socket, fiber, errno = require('socket'), require('fiber'), require('errno')

-- a server answers lines

server, address = socket.tcp_server('127.0.0.1', 0, {name = 'echo', handler = function(client, from)
    while true do
        local line = client:read({delimiter = {'\n', ';'}})
        if line == nil or line == '' then break end
        client:write('[' .. line .. ']')
    end
end})

address.host, address.family, address.type, address.protocol

port = server:name().port

port > 0, server:name().family, server:name().type, server:name().protocol, server:peer()

client = socket.tcp_connect('127.0.0.1', port)

client:peer().port == port, client:name().host, client:nonblock(), client:errno(), client:error()

client:write('one\ntwo;'), client:read(']', 1), client:read(5, 1), client:read({chunk = 1, delimiter = ']'}, 1)

client:read(1, 0.01), client:errno() == errno.ETIMEDOUT, client:error()

client:write('three'), client:read(1, 0), client:write('\n'), client:read(100, 0.1), client:read({delimiter = 'e', chunk = 3}, 1), client:read({chunk = 2}, 1)

client:read('\n]', 1)

client:read(0, 1), client:read('', 1)

client:read()

client:read(-1)

client:readable(0), client:writable(0), client:wait(0), client:readable(0.01)

client:write(''), client:write('x', 1)

client:write(5)

client:send('y\n'), client:readable(1), client:recv(3), client:recv(100), client:recv(10), client:errno() == errno.EAGAIN

client:syswrite('z\n'), client:readable(), client:sysread(2), client:sysread(100), client:sysread(1), client:errno() == errno.EAGAIN

client:shutdown('W'), client:read(10, 1), client:read(10, 1), client:errno()

client:shutdown('X')

client:close()

client:close()

client:read(1)

client:name()

server:close()

socket.tcp_connect('127.0.0.1', port), errno() == errno.ECONNREFUSED

-- a unix socket

server = socket.tcp_server('unix/', 'a.sock', function(client, from) client:write(from.family .. from.host) end)

server:name().host, server:name().port, server:name().family, server:name().type

client = socket.tcp_connect('unix/', 'a.sock')

client:peer().port, client:read(100), client:name().port

client:close(), server:close()

server = socket.tcp_server('unix/', 'a.sock', function(client) end)

server ~= nil, server:close()

socket.tcp_connect('unix/', 'nothing.sock'), errno() == errno.ENOENT

-- datagrams

a, b = socket('AF_INET', 'SOCK_DGRAM', 'udp'), socket('AF_INET', 'SOCK_DGRAM', 'udp')

a:bind('127.0.0.1', 0), b:bind('127.0.0.1', 0), a:name().type, a:name().protocol

a:sendto('127.0.0.1', b:name().port, 'hello'), b:readable(1)

text, from = b:recvfrom(100)

text, from.host, from.family, from.port == a:name().port

b:recvfrom(), b:errno() == errno.EAGAIN

a:sysconnect('127.0.0.1', b:name().port), a:send('more'), b:readable(1), b:recv()

a:close(), b:close()

-- by hand

s = socket('AF_INET', 'SOCK_STREAM', 'tcp')

s:setsockopt('SOL_SOCKET', 'SO_REUSEADDR', true), s:getsockopt('SOL_SOCKET', 'SO_REUSEADDR')

s:setsockopt('SOL_SOCKET', 'SO_REUSEADDR', 0), s:getsockopt('SOL_SOCKET', 'SO_REUSEADDR')

s:getsockopt('SOL_SOCKET', 'SO_TYPE'), s:getsockopt('SOL_SOCKET', 'SO_ERROR')

s:setsockopt('SOL_SOCKET', 'SO_NOTHING', 1)

s:getsockopt('SOL_SOCKET', 'SO_NOTHING')

s:setsockopt('SOL_SOCKET', 'SO_TYPE', 1)

s:linger()

s:linger(true, 3)

s:linger()

s:bind('127.0.0.1', 0), s:listen(), s:accept(), s:errno() == errno.EAGAIN

c = socket('AF_INET', 'SOCK_STREAM', 'tcp')

c:sysconnect('127.0.0.1', s:name().port), c:errno() == errno.EINPROGRESS, c:writable(1), s:readable(1)

d, from = s:accept()

d:peer().port == c:name().port, from.host, from.family, from.port == c:name().port

d:close(), c:read(1), c:close(), s:close()

s = socket('AF_INET', 'SOCK_STREAM', 'tcp')

s:bind('no such host', 1)

s:sysconnect('no such host', 1)

s:connect

s:close()

socket('AF_NOTHING', 'SOCK_STREAM'), socket('AF_INET', 'SOCK_NOTHING')

-- names

socket.getaddrinfo('127.0.0.1', 80)

socket.getaddrinfo('127.0.0.1', '80', {type = 'SOCK_STREAM'})

socket.getaddrinfo('::1', 80, {type = 'SOCK_DGRAM'})

socket.getaddrinfo('127.0.0.1', 'http', {type = 'SOCK_STREAM', protocol = 'tcp'})

socket.getaddrinfo('127.0.0.1', 80, {type = 'SOCK_NOTHING'})

-- waiting for any descriptor

a, b = socket('AF_UNIX', 'SOCK_STREAM', 0), socket.iowait

b(a:fd(), 'W', 0) ~= nil

pcall(b, -1, 'X', 0)

b(nil, nil, 0.01)

a:close()

-- a socket that is closed wakes who waits for it

server = socket.tcp_server('127.0.0.1', 0, function(client) client:read(1) end)

client = socket.tcp_connect('127.0.0.1', server:name().port)

f = fiber.create(function() return client:readable(10) end)

f:set_joinable(true)

begun = fiber.clock()

client:close()

f:join()

fiber.clock() - begun < 5, server:close()

socket.tcp_server('127.0.0.1', 0)

socket.tcp_server('127.0.0.1', 0, {})

socket.tcp_server('no such host', 0, function() end) == nil
