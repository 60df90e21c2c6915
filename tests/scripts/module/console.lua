-- module console: a conversation on a unix socket

socket, console, yaml = require('socket'), require('console'), require('yaml')

server = console.listen('unix/:./c.sock')

server:name().host, server:name().port

client = socket.tcp_connect('unix/', './c.sock')

greeting = client:read(128)

#greeting, greeting:match('^Tarantool [%d.]+ %(Lua console%) +\n(.*)$')

function ask(text, stop) client:write(text .. '\n') return client:read(stop or '...\n', 1) end

ask('1 + 1')

ask('')

ask('-- nothing')

ask('x = 5')

ask('x, nil, nil')

ask('return x;')

ask('{1, {2, 3}, a = 5}')

ask('{1, 2}, "text", "1", "", "true", " a: b", "two\\nlines", box.NULL')

ask('setmetatable({}, {__serialize = function() return "own" end})')

ask('(function() local t = {} t[1] = t return t end)()')

ask('(function() local t = {5} return {t, t} end)()')

ask('"' .. ('word '):rep(30) .. '"')

ask('error("x")')

ask('error({a = 1})')

ask('error()')

ask('error(box.error.new(1, "x"))')

ask('box.error(1, "x")')

ask('nosuch(')

ask('nosuch.x')

ask('for i = 1, 2 do')

ask('1;2')

ask('~')

ask('\\nosuch')

ask('\\set')

ask('\\set nosuch x')

ask('\\set output')

ask('\\set output nosuch')

ask('\\set output lua,nosuch')

ask('\\set language')

ask('\\set language nosuch')

ask('\\set language lua')

ask('\\set output lua', ';')

ask('1, 2, {a = 1, 5}', ';')

ask('"a\\"b\\n\\0", 1LL, 1ULL, box.NULL, nil, 1.5, true', ';')

ask('nil', ';')

ask('y = 1', ';')

ask('error("x")', ';')

ask('{{}, {1, {2}}}', ';')

ask('\\set output lua,block', ';')

ask('{1, {2}}, {a = 1, b = {c = 2}}', ';')

ask('error("x")', ';')

ask('\\set output lua,line', ';')

ask('{1, {2}}', ';')

ask('\\set output yaml')

ask('\\set delimiter ;')

ask('1 +\n1;')

ask('for i = 1, 2 do\nend;')

ask('require("console").delimiter();')

ask('require("console").delimiter("");')

ask('\\set delimiter ab')

ask('1ab')

ask('\\set delimiter ab')

ask('1;')

ask('box.session.type(), box.session.user(), box.session.effective_user(), box.session.peer(), box.session.id() > 0, box.session.fd() > 0')

ask('box.session.exists(box.session.id())')

ask('box.session.storage.x')

ask('box.session.storage.x, box.session.sync()')

ask('box.begin()')

ask('box.is_in_txn()')

ask("require('console').get_default_output()")

-- a second client has a session and settings of its own

other = socket.tcp_connect('unix/', './c.sock')

other:read(128):len()

other:write('\\set output lua\nx\n'), other:read(';'), other:read(';'), ask('x')

other:write('\\quit\n'), other:read(100), other:close()

console.delimiter()

console.connect('./c.sock')

console.set_default_output('lua')

console.get_default_output()

console.eval('1, 2')

console.set_default_output('nosuch')

console.set_default_output('yaml')

console.on_start(1)

client:write('\\q\n'), client:read(100), client:close()

server:close()

console.listen('no such host:1')
