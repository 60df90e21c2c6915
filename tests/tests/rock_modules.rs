//! Modules of Lua that Tarantool 2.6 has not, so that no golden script can ask it: varbinary, compat, trigger; and what handles of key definitions,
//! buffers and logs leave behind; modules with a half in C; what shards of one instance ask of `box.cfg`, and
//! routers of connections.

use std::path::Path;
use std::process::Command;

/// Runs a script, which raises what is wrong, as a program of its own.
fn run(script: &str) {
    run_in(tempfile::tempdir().expect("a directory").path(), script);
}

/// As `run`, in a directory where something may lie.
fn run_in(dir: &Path, script: &str) {
    let path = dir.join("script.lua");
    let text = format!(
        "box.cfg{{log_level = 2}}\n\
         local function is(got, wanted, what)\n\
             if not rawequal(got, wanted) then error(('%s: got %s, wanted %s'):format(what or 'a value', tostring(got), tostring(wanted)), 2) end\n\
         end\n\
         local function fails(text, work, ...)\n\
             local fine, reason = pcall(work, ...)\n\
             if fine or not tostring(reason):find(text, 1, true) then error(('no error \"%s\" but %s'):format(text, tostring(reason)), 2) end\n\
         end\n\
         local fine, reason = pcall(function()\n{script}\nend)\n\
         print(fine and 'all is right' or reason)\n\
         os.exit(fine and 0 or 1)\n"
    );
    std::fs::write(&path, text).expect("the directory can be written");
    let output = Command::new(lycosa_tests::binary()).arg(&path).current_dir(dir).output().expect("the server starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("all is right"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn varbinary_is_bin_on_fields_and_in_answers() {
    run(r#"
        local varbinary, msgpack, ffi = require('varbinary'), require('msgpack'), require('ffi')
        local v = varbinary.new('a\0\255')
        is(#v, 3) is(tostring(v), 'a\0\255') is(varbinary.is(v), true) is(varbinary.is('a'), false)
        is(v == varbinary.new('a\0\255'), true) is(v == 'a\0\255', true) is(v == varbinary.new('b'), false)
        is(#varbinary.new(), 0) is(#varbinary.new(v), 3) is(#varbinary.new(ffi.cast('const char *', 'abc'), 2), 2)
        fails('Usage: varbinary.new', varbinary.new, 5) fails('Usage: varbinary.new', varbinary.new, ffi.cast('const char *', 'abc'))
        fails('Usage: varbinary.new', varbinary.new, ffi.cast('const char *', 'abc'), -1)
        is(msgpack.encode(v), '\xc4\3a\0\255') is(msgpack.encode(varbinary.new()), '\xc4\0') is(msgpack.encode({ v }), '\x91\xc4\3a\0\255')
        is(#msgpack.encode(varbinary.new(('x'):rep(70000))), 70005)
        is(require('json').encode({ varbinary.new('abc') }), '["abc"]')
        for _, engine in ipairs({ 'memtx', 'vinyl' }) do
            local s = box.schema.space.create(engine, { engine = engine, format = { { 'id', 'varbinary' }, { 'n', 'unsigned' } } })
            s:create_index('pk', { parts = { { 'id', 'varbinary' } } })
            fails('type does not match', s.insert, s, { 'text', 1 })
            s:insert({ v, 1 }) s:insert({ varbinary.new('b'), 2 })
            is(s:get(v).n, 1) is(s:get({ varbinary.new('b') }).n, 2) is(s:count(), 2) is(s:select({ varbinary.new('a') }, { iterator = 'GT' })[1].n, 1)
            -- Bytes become strings, until the program asks for objects.
            is(type(s:get(v).id), 'string')
            require('compat').binary_data_decoding = 'new'
            is(varbinary.is(s:get(v).id), true) is(s:get(v).id == v, true) is(varbinary.is(msgpack.decode('\xc4\1x')), true)
            is(type(msgpack.decode('\xa1x')), 'string')
            require('compat').binary_data_decoding = 'default'
            is(type(msgpack.decode('\xc4\1x')), 'string')
            s:drop()
        end
    "#);
}

#[test]
fn compat_has_the_options_of_later_versions() {
    run(r#"
        local compat, json = require('compat'), require('json')
        is(compat.json_escape_forward_slash.current, 'default') is(compat.json_escape_forward_slash.default, 'old')
        is(json.encode('a/b\\/"'), '"a\\/b\\\\\\/\\""')
        compat.json_escape_forward_slash = 'new'
        is(json.encode('a/b\\/"'), '"a/b\\\\/\\""') is(json.decode(json.encode('a/b\\/"')), 'a/b\\/"')
        is(compat.json_escape_forward_slash.current, 'new')
        compat({ json_escape_forward_slash = 'default', box_tuple_new_vararg = 'new' })
        is(json.encode('/'), '"\\/"') is(#box.tuple.new({ 1, 2 }, {}), 2)
        compat.box_tuple_new_vararg = 'old'
        is(#box.tuple.new(1, 2), 2)
        compat.box_session_push_deprecation = 'new'
        fails('deprecated', box.session.push, 1)
        compat.box_session_push_deprecation = 'old'
        compat.box_info_cluster_meaning = 'new' is(box.info.cluster.uuid, nil)
        compat.box_info_cluster_meaning = 'old' is(type(box.info.cluster.uuid), 'string')
        compat.box_error_unpack_type_and_code = 'new' is(box.error.new(box.error.UNKNOWN):unpack().base_type, nil)
        compat.box_error_unpack_type_and_code = 'old' is(box.error.new(box.error.UNKNOWN):unpack().base_type, 'ClientError')
        local channel = require('fiber').channel(3)
        channel:put(1) channel:close() is(channel:get(0), nil)
        compat.fiber_channel_close_mode = 'new'
        channel = require('fiber').channel(3)
        channel:put(1) channel:put(2) channel:close() is(channel:put(3), false) is(channel:get(0), 1) is(channel:get(0), 2) is(channel:get(0), nil)
        compat.fiber_channel_close_mode = 'default'
        fails('Invalid option', function() compat.nosuch = 'new' end) fails('Invalid option', function() return compat.nosuch end)
        fails('Invalid argument', function() compat.sql_priv = 'x' end) fails('no longer available', function() compat.wal_cleanup_delay_deprecation = 'new' end) compat.sql_priv = 'old' compat.sql_seq_scan_default = 'old'
        fails('Invalid argument', compat, { json_escape_forward_slash = 'new', sql_priv = 5 }) is(json.encode('/'), '"\\/"')
        fails('Invalid argument', compat, 5)
        local way
        compat.add_option({ name = 'own', default = 'old', brief = 'ours', action = function(is_new) way = is_new end, run_action_now = true })
        is(way, false) compat.own = 'new' is(way, true)
        fails('bad action', compat.add_option, { name = 'x', default = 'old', brief = 'y' }) fails('bad default', compat.add_option, { name = 'x', default = 'odd', brief = 'y', action = print })
        is(loadstring(compat.dump('current')) ~= nil, true) loadstring(compat.dump())() is(compat.own.current, 'new')
        is(#compat.dump('new') > 100, true) fails('Usage', compat.dump, 'odd') is(type(compat.help()), 'string')
        is(require('yaml').encode(compat):find('own: new', 1, true) ~= nil, true)
    "#);
}

#[test]
fn triggers_have_names_and_events() {
    run(r#"
        local trigger, said = require('trigger'), {}
        is(require('experimental.trigger'), trigger)
        local function say(text) return function(...) said[#said + 1] = text .. table.concat({ ... }, ',') end end
        local function heard() local text = table.concat(said, ' ') said = {} return text end
        local a = say('a')
        is(trigger.set('e', 'a', a), a) trigger.set('e', 'b', say('b')) trigger.set('e', 'c', say('c'))
        trigger.call('e', 1, 2) is(heard(), 'c1,2 b1,2 a1,2')
        trigger.set('e', 'b', say('B')) trigger.call('e') is(heard(), 'c B a')
        is(trigger.del('e', 'a'), a) is(trigger.del('e', 'a'), nil) trigger.call('e') is(heard(), 'c B')
        local names = {} for name, handler in trigger.pairs('e') do names[#names + 1] = name .. type(handler) end
        is(table.concat(names, ' '), 'cfunction bfunction')
        is(trigger.info().e[1][1], 'c') is(#trigger.info('e').e, 2) is(next(trigger.info('nosuch')), nil) trigger.call('nosuch')
        trigger.set('e', 'd', function() trigger.del('e', 'b') end) trigger.call('e') is(heard(), 'c')
        trigger.set('e', 'd', function() error('no') end) fails('no', trigger.call, 'e') is(heard(), '')
        trigger.del('e', 'c') trigger.del('e', 'd') is(next(trigger.info()), nil)
        trigger.set('e', 'f', setmetatable({}, { __call = function(_, x) said[1] = x end })) trigger.call('e', 'y') is(heard(), 'y')
        for _, bad in ipairs({ { nil, 'x', a }, { 'e', nil, a }, { 'e', 'x', 5 }, { 5, 'x', a }, { 'e', {}, a } }) do
            fails('bad argument', trigger.set, bad[1], bad[2], bad[3])
        end
        fails('bad argument', trigger.del, 'e') fails('bad argument', trigger.call) fails('bad argument', trigger.pairs)
        -- Events of the server.
        local s = box.schema.space.create('t') s:create_index('pk')
        trigger.set('box.space.t.on_replace', 'x', say('x')) trigger.set('box.space[' .. s.id .. '].before_replace', 'y', say('y'))
        local function quiet(old, new) said[#said + 1] = 'n' .. tostring(new and new[1]) end
        trigger.set('box.space.t.on_replace', 'x', quiet) trigger.set('box.space[' .. s.id .. '].before_replace', 'y', function(_, new) said[#said + 1] = 'before' return new end)
        s:insert({ 1 }) is(heard(), 'before n1')
        trigger.del('box.space.t.on_replace', 'x') s:insert({ 2 }) is(heard(), 'before')
        trigger.del('box.space[' .. s.id .. '].before_replace', 'y') s:insert({ 3 }) is(heard(), '')
        fails("Space 'nosuch' does not exist", trigger.set, 'box.space.nosuch.on_replace', 'x', a)
        trigger.set('box.session.on_connect', 'x', a) is(box.session.on_connect()[1], a) trigger.del('box.session.on_connect', 'x') is(#box.session.on_connect(), 0)
        trigger.set('box.ctl.on_shutdown', 'x', a) is(box.ctl.on_shutdown()[1], a) trigger.del('box.ctl.on_shutdown', 'x') is(#box.ctl.on_shutdown(), 0)
    "#);
}

#[test]
fn addresses_have_parameters() {
    run(r#"
        local uri, json = require('uri'), require('json')
        local function said(value) return json.encode(value) end
        local parsed = uri.parse('localhost:3301?a=1&a=2&b=3&c')
        is(said(parsed.params.a), '["1","2"]') is(said(parsed.params.c), '[""]') is(parsed.service, '3301') is(parsed.query, 'a=1&a=2&b=3&c')
        is(uri.parse('unix/:/tmp/x?transport=ssl').unix, '/tmp/x') is(uri.parse('localhost:1').params, nil)
        parsed = uri.parse({ 'localhost:3301?a=1', params = { a = { '5', 6 }, z = 'y' }, default_params = { a = 'no', d = 1 } })
        is(said(parsed.params.a), '["5","6"]') is(parsed.params.z[1], 'y') is(parsed.params.d[1], '1')
        is(uri.parse({ uri = 'localhost:1', login = 'me', password = 'x' }).login, 'me')
        parsed = uri.parse_many('localhost:1, localhost:2?x=y,unix/:/tmp/a')
        is(#parsed, 3) is(parsed[2].params.x[1], 'y') is(parsed[3].unix, '/tmp/a')
        parsed = uri.parse_many({ 'localhost:1', { 'localhost:2', params = { a = '1' } }, default_params = { t = 'plain' } })
        is(#parsed, 2) is(parsed[1].params.t[1], 'plain') is(parsed[2].params.a[1], '1') is(parsed[2].params.t[1], 'plain')
        is(#uri.parse_many({ uri = 'localhost:1', params = { a = '1' } }), 1) is(#uri.parse_many({}), 0)
        is(uri.parse_many('localhost:port:x'), nil) is(uri.parse({}), nil) is(uri.parse({ {} }), nil) is(uri.parse_many({ {} }), nil)
        fails('Usage', uri.parse_many) fails('Usage', uri.parse) fails('cannot convert', uri.parse, 5)
        is(uri.escape('a b/c?'), 'a%20b%2Fc%3F') is(uri.unescape('a%20b%2Fc%3F'), 'a b/c?') is(uri.unescape('%zz%4'), '%zz%4')
        is(uri.escape('a b', { plus = true }), 'a+b') is(uri.unescape('a+b%20c', { plus = true }), 'a b c') is(uri.unescape('a+b'), 'a+b')
        fails('Usage', uri.escape) fails('Usage', uri.unescape, 5)
    "#);
}

/// Calls with wrong arguments found each of these: what lay where the pointer led was read as a name.
#[test]
fn pointers_are_no_names() {
    run(r#"
        local ffi, fio, msgpack = require('ffi'), require('fio'), require('msgpack')
        for _, pointer in ipairs({ ffi.typeof('unsigned char *'), ffi.cast('char *', 5), ffi.new('int[3]'), 5LL }) do
            fails('Usage', fio.chown, 'x', pointer, 'root') fails('Usage', fio.chown, 'x', 'root', pointer)
            fails('bad arguments', os.setenv, 'x', pointer) fails('expected', msgpack.object_from_raw, pointer)
        end
        fails('expected', msgpack.object_from_raw, ffi.cast('char *', 5), -1)
        os.setenv('x', 'y') is(os.getenv('x'), 'y') os.setenv('x', box.NULL) is(os.getenv('x'), nil)
    "#);
}

/// Handles are numbers of things outside of Lua, or bytes kept by their address: the collector frees both.
#[test]
fn handles_that_nobody_holds_are_freed() {
    run(r#"
        local key_def, buffer, xlog, fio = require('key_def'), require('buffer'), require('xlog'), require('fio')
        local log = fio.glob('*.snap')[1]
        local function open_logs()
            local count = 0
            for _, name in ipairs(fio.listdir('/proc/self/fd')) do
                if (fio.readlink('/proc/self/fd/' .. name) or ''):find('.snap', 1, true) then count = count + 1 end
            end
            return count
        end
        collectgarbage() collectgarbage()
        local memory = collectgarbage('count')
        for i = 1, 100000 do key_def.new({ { fieldno = 1, type = 'unsigned' } }) end
        for i = 1, 1000 do local step = xlog.pairs(log) step() end
        for i = 1, 3000 do local b = buffer.ibuf() b:alloc(100000) end
        collectgarbage() collectgarbage()
        is(open_logs(), 0, 'open logs') is(collectgarbage('count') < memory + 2000, true, 'memory')
        -- What is held counts, up to its bound.
        local held, fine = {}, true
        while fine and #held < 70000 do fine, held[#held + 1] = pcall(key_def.new, { { fieldno = 1, type = 'unsigned' } }) end
        is(fine, false) is(held[1]:compare({ 1 }, { 2 }), -1)
        held = nil collectgarbage() collectgarbage()
        is(pcall(key_def.new, { { fieldno = 1, type = 'unsigned' } }), true)
        local crypto = require('crypto')
        for i = 1, 100000 do crypto.digest.md5('x') crypto.digest.md5.new() end
        for i = 1, 1000 do pcall(crypto.cipher.aes128.cbc.decrypt, 'x', ('k'):rep(16), ('i'):rep(16)) end
        held, fine = {}, true
        while fine and #held < 70000 do fine, held[#held + 1] = pcall(crypto.digest.md5.new) end
        is(fine, false) is(#held > 65000, true) is(#held[1]:result(), 16)
        held = nil collectgarbage() collectgarbage()
        is(#crypto.digest.md5('x'), 16)
        local parts = {} for i = 1, 300 do parts[i] = { fieldno = i, type = 'unsigned' } end
        fails('parts', key_def.new, parts)
        local b = buffer.ibuf()
        fails('', b.alloc, b, 2 ^ 60) fails('negative', b.alloc, b, -1) fails('', b.alloc, b, 0 / 0) is(b:size(), 0)
        local open = {} fine = true
        while fine and #open < 300 do fine, open[#open + 1] = pcall(xlog.pairs, log) end
        is(fine, false) is(open[1]() ~= nil, true)
    "#);
}

/// What Tarantool 2.6 has not: bodies in chunks, whole or piece by piece. What a proxy does that lets one through. Bodies without end.
#[test]
fn http_bodies_go_and_come_in_pieces() {
    run(r#"
        local client, fiber, socket, digest = require('http.client'), require('fiber'), require('socket'), require('digest')
        local function read_body(c)
            local pieces = {}
            while true do
                local size = tonumber(c:read('\r\n', 5), 16)
                if size == 0 then c:read('\r\n', 5) return table.concat(pieces, '|') end
                pieces[#pieces + 1] = c:read(size, 5) c:read(2, 5)
            end
        end
        -- A megabyte of zeros, packed.
        local bomb = digest.base64_decode('H4sIAAAAAAAC/+3BMQEAAADCoPVPbQhfo' .. ('A'):rep(1355) .. 'PgMc6jinAAAQAA==')
        local gone, head = 0
        local server = socket.tcp_server('127.0.0.1', 0, function(c)
            head = c:read('\r\n\r\n', 5)
            if head == nil or head == '' then return end
            if head:find('^CONNECT') then c:write('HTTP/1.1 200 OK\r\nX: y\r\n\r\nplain text') return end
            local body = head:find('chunked') and read_body(c) or ''
            if head:find('/slow') then
                c:write('HTTP/1.1 200 OK\r\n\r\n')
                for i = 1, 3 do c:write('piece ' .. i .. '\n') fiber.sleep(0.02) end
            elseif head:find('/bomb') then
                c:write('HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ' .. #bomb .. '\r\n\r\n' .. bomb)
            elseif head:find('/endless') then
                c:write('HTTP/1.1 200 OK\r\n\r\n')
                while c:write(('x'):rep(100000)) do end
                gone = gone + 1
            elseif head:find('/moved') then
                c:write('HTTP/1.1 307 Moved\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n')
            else
                c:write('HTTP/1.1 200 OK\r\nContent-Length: ' .. #body .. '\r\n\r\n' .. body)
            end
        end)
        local url = 'http://127.0.0.1:' .. server:name().port
        -- A function gives the body.
        local left = 3
        local function body() if left > 0 then left = left - 1 return ('abc'):sub(1, left) end end
        local r = client.post(url .. '/', body, { timeout = 5 })
        is(r.status, 200) is(r.body, 'ab|a') is(head:find('Content%-Length'), nil)
        fails('must be a string', client.post, url .. '/', function() return 5 end, { timeout = 5 })
        fails('thrown', client.post, url .. '/', function() error('thrown') end, { timeout = 5 })
        left = 3 fails('rewinding', client.post, url .. '/moved', body, { timeout = 5 })
        -- Pieces are written and read.
        local io = client.post(url .. '/', nil, { chunked = true, timeout = 5 })
        is(io:write('one'), 3) io:write('') io:write(('z'):rep(100000))
        fails('not finished', io.read, io, 5) fails('Usage', io.write, io, 5)
        io:finish(5)
        is(io.status, 200) is(io.headers['content-length'], '100004')
        is(io:read(2), 'on') is(io:read('|', 5), 'e|') is(#io:read({ chunk = 200000 }, 5), 100000) is(io:read(5), '') is(io:read('x'), '')
        fails('is finished', io.write, io, 'x') io:finish() fails('Usage', io.read, io) fails('Usage', io.read, io, -1)
        local get = client.get(url .. '/slow', { chunked = true, timeout = 5 })
        is(get.status, 200)
        is(get:read('\n', 5), 'piece 1\n') is(get:read({ delimiter = '\n' }, 5), 'piece 2\n') is(get:read(100, 5), 'piece 3\n') is(get:read(1), '')
        fails('io:write', client.post, url .. '/', 'body', { chunked = true })
        -- What is too much is not taken.
        is(#client.get(url .. '/bomb', { accept_encoding = '', timeout = 5 }).body, 1048576)
        fails('larger than 100000 bytes', client.get, url .. '/bomb', { accept_encoding = 'gzip', max_body = 100000, timeout = 5 })
        fails('larger than 50000 bytes', client.get, url .. '/endless', { max_body = 50000, timeout = 5 })
        fails('max_body', client.get, url, { max_body = -1 }) fails('max_body', client.get, url, { max_body = 2 ^ 60 })
        fails('max_body', client.get, url, { max_body = 'x' }) fails('accept_encoding', client.get, url, { accept_encoding = 5 })
        fails('line breaks', client.get, url, { accept_encoding = 'a\r\nb: c' })
        local unread = client.get(url .. '/endless', { chunked = true, timeout = 5 })
        is(#unread:read(10, 5), 10)
        fails('wait to be read', unread.read, client.get(url .. '/endless', { chunked = true, timeout = 5, max_body = 200000 }), 'none')
        unread = nil
        for _ = 1, 500 do collectgarbage() if gone == 3 then break end fiber.sleep(0.01) end
        is(gone, 3, 'connections that nobody reads')
        -- A proxy that lets one through to what is no TLS.
        fails('SSL connect error', client.get, 'https://far.example/', { proxy = url, timeout = 5 })
        is(head:match('^[^\r]*'), 'CONNECT far.example:443 HTTP/1.1')
        fails('does not support', client.get, url, { proxy = 'socks5://127.0.0.1:1' })
        is(client.get('http://127.0.0.1:1/', { proxy = 'http://127.0.0.1:1', timeout = 5 }).status, 595)
        server:close()
    "#);
}

/// The half of a rock that is C, as `http` has one.
const C_HALF: &str = r#"
    typedef struct lua_State lua_State;
    typedef int (*function)(lua_State *);
    extern double luaL_checknumber(lua_State *, int);
    extern const char *luaL_checklstring(lua_State *, int, unsigned long *);
    extern int luaL_error(lua_State *, const char *, ...);
    extern void lua_pushnumber(lua_State *, double);
    extern void lua_pushlstring(lua_State *, const char *, unsigned long);
    extern void lua_createtable(lua_State *, int, int);
    extern void lua_pushcclosure(lua_State *, function, int);
    extern void lua_setfield(lua_State *, int, const char *);
    extern void lua_pushvalue(lua_State *, int);
    extern void lua_call(lua_State *, int, int);

    static int add(lua_State *L) { lua_pushnumber(L, luaL_checknumber(L, 1) + luaL_checknumber(L, 2)); return 1; }
    static int fail(lua_State *L) { return luaL_error(L, "no %s", luaL_checklstring(L, 1, 0)); }
    static int call(lua_State *L) { lua_pushvalue(L, 1); lua_pushlstring(L, "a\0b", 3); lua_call(L, 1, 1); return 1; }
    int luaopen_rock_half(lua_State *L)
    {
        lua_createtable(L, 0, 3);
        lua_pushcclosure(L, add, 0); lua_setfield(L, -2, "add");
        lua_pushcclosure(L, fail, 0); lua_setfield(L, -2, "fail");
        lua_pushcclosure(L, call, 0); lua_setfield(L, -2, "call");
        return 1;
    }
"#;

#[test]
fn a_module_in_c_finds_the_functions_of_lua() {
    let dir = tempfile::tempdir().expect("a directory");
    let library = dir.path().join(".rocks/lib/tarantool/rock");
    std::fs::create_dir_all(&library).expect("the directory can be written");
    let source = dir.path().join("half.c");
    std::fs::write(&source, C_HALF).expect("the directory can be written");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(library.join("half.so")).arg(&source).status();
    assert!(compiled.expect("there is a C compiler").success());
    run_in(
        dir.path(),
        r#"
        local half = require('rock.half')
        is(half.add(1, 2), 3) fails('bad argument #1', half.add, 'x') fails('no way', half.fail, 'way')
        is(half.call(function(text) require('fiber').sleep(0) return #text end), 3)
        fails('inside', half.call, function() error('inside') end)
        local sum, fibers = 0, {}
        for i = 1, 10 do
            fibers[i] = require('fiber').new(function() sum = half.add(sum, half.call(function(text) require('fiber').yield() return #text end)) end)
            fibers[i]:set_joinable(true)
        end
        for i = 1, 10 do fibers[i]:join() end
        is(sum > 0, true)
    "#,
    );
}

#[test]
fn an_instance_may_replicate_from_itself_only() {
    let rig = |listen: &str, replication: &str, wanted: &str| {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("script.lua");
        let script = format!(
            "print(type(box.cfg))\n\
             print(pcall(box.cfg, {{log_level = 2, listen = {listen}, replication = {replication}}}))\n\
             print(type(box.cfg)) os.exit()"
        );
        std::fs::write(&path, script).expect("the directory can be written");
        let output = Command::new(lycosa_tests::binary()).arg(&path).current_dir(dir.path()).output();
        let said = String::from_utf8_lossy(&output.expect("the server starts").stdout).into_owned();
        assert!(said.starts_with("function\n") && said.contains(wanted), "{listen} {replication}: {said}");
    };
    for (listen, replication) in [
        ("'unix/:./x.sock'", "'u:p@unix/:./x.sock'"),
        ("'unix/:./x.sock'", "{'unix/:./x.sock'}"),
        ("'unix/:./x.sock'", "{}"),
        ("'unix/:./x.sock'", "{{uri = 'unix/:./x.sock'}}"),
    ] {
        rig(listen, replication, "true\ntable");
    }
    for (listen, replication) in [
        ("'unix/:./x.sock'", "'unix/:./y.sock'"),
        ("'unix/:./x.sock'", "{'unix/:./x.sock', 'unix/:./y.sock'}"),
        ("nil", "'127.0.0.1:3301'"),
        ("'127.0.0.1:0'", "'127.0.0.1:3301'"),
        ("'127.0.0.1:0'", "'other:0'"),
        ("'127.0.0.1:0'", "'%%%'"),
        ("'127.0.0.1:0'", "{{}}"),
    ] {
        rig(listen, replication, "does not support replication from other instances yet\nfunction");
    }
}

#[test]
fn indexes_of_a_connection_name_their_collations() {
    run(r#"
        local key_def, net, fio = require('key_def'), require('net.box'), require('fio')
        local uri = 'unix/:' .. fio.pathjoin(fio.cwd(), 'a.sock')
        box.cfg{listen = uri}
        box.schema.user.grant('guest', 'super')
        local s = box.schema.space.create('s', { format = { { 'id', 'unsigned' }, { 'name', 'string' } } })
        s:create_index('pk')
        s:create_index('name', { parts = { { 'name', collation = 'unicode_ci' }, { 'id' } } })
        s:create_index('plain', { parts = { { 'name' }, { 'id' } } })
        local connection = net.connect(uri)
        local far = connection.space.s.index
        is(far.name.parts[1].collation, 'unicode_ci') is(far.name.parts[2].collation, nil) is(far.plain.parts[1].collation, nil)
        local tuple = box.tuple.new
        is(key_def.new(far.name.parts):compare(tuple({ 1, 'NAME' }), tuple({ 1, 'name' })), 0)
        is(key_def.new(far.plain.parts):compare(tuple({ 1, 'NAME' }), tuple({ 1, 'name' })) < 0, true)
        -- What is made later, too.
        s:create_index('late', { parts = { { 'name', collation = 'unicode' } }, unique = false })
        connection:reload_schema()
        is(connection.space.s.index.late.parts[1].collation, 'unicode')
    "#);
}

#[test]
fn a_script_knows_its_binary() {
    run(r#"
        is(arg[-1], require('fio').readlink('/proc/self/exe'))
        is(arg[0]:match('[^/]*$'), 'script.lua')
    "#);
}

#[test]
fn pairs_starts_after_a_row_or_a_position() {
    run(r#"
        for _, engine in ipairs({ 'memtx', 'vinyl' }) do
            local s = box.schema.space.create(engine, { engine = engine })
            s:create_index('pk')
            s:create_index('by', { parts = { { 2, 'unsigned' } }, unique = false })
            for id = 1, 350 do s:insert({ id, id % 7 }) end
            local function sum(...)
                local rows, last = 0, nil
                for _, row in s.index.by:pairs(...) do rows, last = rows + 1, row[1] end
                return rows, last
            end
            local rows, last = sum({ 3 }, { after = { 10, 3 } })
            is(rows, 48) is(last, 346)
            rows, last = sum({ 3 }, { iterator = 'LE', after = { 10, 3 } })
            is(rows, 151) is(last, 7)
            is((sum(nil, { after = { 7, 0 } })), 349)
            -- Pages that are just full, and what is after the last one.
            local seen = 0
            for _, row in s:pairs(nil, { after = { 50 } }) do seen = seen + 1 is(row[1], 50 + seen) end
            is(seen, 300)
            is(s:pairs(nil, { after = { 350 } }):length(), 0)
            local page, position = s:select(nil, { limit = 5, fetch_pos = true })
            is(#page, 5) is(s:pairs(nil, { after = position }):head()[1], 6)
        end
    "#);
}
