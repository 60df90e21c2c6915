//! Modules of Lua that Tarantool 2.6 has not, so that no golden script can ask it: varbinary, compat, trigger; and what handles of key definitions,
//! buffers and logs leave behind.

use std::process::Command;

/// Runs a script, which raises what is wrong, as a program of its own.
fn run(script: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("script.lua");
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
    let output =
        Command::new(lycosa_tests::binary()).arg(&path).current_dir(dir.path()).output().expect("the server starts");
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
        fails('Invalid argument', function() compat.sql_priv = 'x' end) fails('no longer available', function() compat.sql_priv = 'old' end)
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
        local parts = {} for i = 1, 300 do parts[i] = { fieldno = i, type = 'unsigned' } end
        fails('parts', key_def.new, parts)
        local b = buffer.ibuf()
        fails('', b.alloc, b, 2 ^ 60) fails('negative', b.alloc, b, -1) fails('', b.alloc, b, 0 / 0) is(b:size(), 0)
        local open = {} fine = true
        while fine and #open < 300 do fine, open[#open + 1] = pcall(xlog.pairs, log) end
        is(fine, false) is(open[1]() ~= nil, true)
    "#);
}
