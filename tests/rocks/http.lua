-- http: the server answers curl: parameters, templates, cookies, bodies in pieces, files, errors, and requests that are none
local fiber, fio, socket, tap = require('fiber'), require('fio'), require('socket'), require('tap')
box.cfg({ log_level = 1 })
local s = box.schema.space.create('rows')
s:create_index('pk')

fio.mktree('public')
local file = fio.open('public/page.html', { 'O_WRONLY', 'O_CREAT' }, tonumber('644', 8))
file:write('<p>a page</p>')
file:close()

local probe = socket.tcp_server('127.0.0.1', 0, function() end)
local port = probe:name().port
probe:close()
local httpd = require('http.server').new('127.0.0.1', port, { log_requests = false, log_errors = false })
httpd:route({ path = '/hello', method = 'GET' }, function(request)
    return request:render({ text = 'hello ' .. tostring(request:query_param('name')) })
end)
httpd:route({ path = '/rows/:id', method = 'POST' }, function(request)
    s:replace({ tonumber(request:stash('id')), request:post_param('value') })
    return { status = 201, body = 'kept' }
end)
httpd:route({ path = '/rows/:id', method = 'GET' }, function(request)
    local row = s:get(tonumber(request:stash('id')))
    return row and { status = 200, body = row[2] } or { status = 404 }
end)
httpd:route({ path = '/list', template = '<ul>\n% for _, row in rows:pairs() do\n<li><%= row[2] %></li>\n% end\n</ul>' }, function(request)
    return request:render({ rows = s })
end)
httpd:route({ path = '/pieces' }, function(request)
    return request:iterate(ipairs({ 'one ', 'two ', 'three' }))
end)
httpd:route({ path = '/cookie' }, function(request)
    return request:render({ text = tostring(request:cookie('seen')) }):setcookie({ name = 'seen', value = 'yes' })
end)
httpd:route({ path = '/slow' }, function(request)
    fiber.sleep(0.1)
    return request:render({ text = 'slow' })
end)
httpd:route({ path = '/broken' }, function() error('broken on purpose') end)
httpd:start()

-- Runs curl; other fibers run meanwhile, those that answer it.
local function curl(arguments, path)
    local out = fio.pathjoin(fio.cwd(), 'out')
    os.remove(out)
    os.remove(out .. '.done')
    os.execute(("(curl -s -m 10 %s 'http://127.0.0.1:%d%s' > '%s' 2>/dev/null; mv '%s' '%s.done') &"):format(arguments, port, path, out, out,
        out))
    local deadline = fiber.clock() + 15
    while not fio.path.exists(out .. '.done') and fiber.clock() < deadline do
        fiber.sleep(0.01)
    end
    local handle = fio.open(out .. '.done', { 'O_RDONLY' })
    local text = handle and handle:read() or ''
    if handle then
        handle:close()
    end
    return text
end

local test = tap.test('http')
test:plan(15)
test:is(curl('', '/hello?name=a%20b'), 'hello a b', 'a parameter')
test:is(curl("-d 'value=%3Cx%3E%26'", '/rows/1'), 'kept', 'a form')
test:is(curl('', '/rows/1'), '<x>&', 'a part of the path')
test:is(curl("-o /dev/null -w '%{http_code}'", '/rows/2'), '404', 'a status')
test:is((curl('', '/list'):gsub('%s', '')), '<ul><li>&lt;x&gt;&amp;</li></ul>', 'a template')
test:is(curl('', '/pieces'), 'one two three', 'in pieces')
test:is(curl('', '/cookie'), 'nil', 'no cookie')
test:ok(curl('-i', '/cookie'):find('Set%-cookie: seen=yes'), 'a cookie is set')
test:is(curl("-b 'seen=yes'", '/cookie'), 'yes', 'and comes back')
test:is(curl('', '/page.html'), '<p>a page</p>', 'a file')
test:ok(curl('-i', '/broken'):find('500') and curl('', '/broken'):find('broken on purpose'), 'an error')
test:is(curl("-o /dev/null -w '%{http_code}'", '/../../etc/passwd --path-as-is'), '000', 'what is no path')
-- Two requests on one connection, and what is no request.
local peer = socket.tcp_connect('127.0.0.1', port)
peer:write('GET /hello?name=1 HTTP/1.1\r\n\r\nGET /hello?name=2 HTTP/1.1\r\nConnection: close\r\n\r\n')
local both = peer:read({ chunk = 65536, delimiter = 'hello 2' }, 10)
test:ok(both and both:find('hello 1') and both:find('hello 2'), 'one connection, two requests')
peer:close()
peer = socket.tcp_connect('127.0.0.1', port)
peer:write('\0\255nonsense\r\n\r\n')
test:ok((peer:read(1024, 10) or ''):find('400 Bad request'), 'what is no request')
peer:close()
local begun, answers = fiber.clock(), 0
for _ = 1, 50 do
    fiber.create(function()
        local client = socket.tcp_connect('127.0.0.1', port)
        client:write('GET /slow HTTP/1.0\r\n\r\n')
        local answer = client:read({ chunk = 65536, delimiter = 'slow' }, 10) or ''
        answers = answers + (answer:find('slow') and 1 or 0)
        client:close()
    end)
end
while answers < 50 and fiber.clock() - begun < 10 do
    fiber.sleep(0.01)
end
test:ok(answers == 50 and fiber.clock() - begun < 2, ('fifty at once: %d in %.1f s'):format(answers, fiber.clock() - begun))
httpd:stop()
os.exit(test:check() and 0 or 1)
