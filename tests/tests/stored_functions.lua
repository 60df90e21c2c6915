-- What stored_functions.rs runs in a directory with libraries made of stored_functions.c.
local address = 'unix/:./server.sock'
box.cfg{ listen = address, log_level = 2 }
package.cpath = './lib/?.so;' .. package.cpath
local netbox, fiber = require('net.box'), require('fiber')
local is_own = box.info.version:match('lycosa') ~= nil
local NAMES = { 'echo', 'version', 'version_after_a_while', 'nothing', 'fails', 'fails_with_words', 'fails_late', 'fails_after_a_while', 'writes', 'sum',
    'rolls_back', 'commits', 'leaves_a_transaction', 'writes_by_number', 'absent', 'malformed' }
for _, name in ipairs(NAMES) do box.schema.func.create('stored.' .. name, { language = 'C' }) end
local s = box.schema.space.create('t', { id = 512 })
s:create_index('pk')
box.schema.user.create('u', { password = 'p' })
box.schema.user.passwd('admin', 'a')
local c = netbox.connect(address, { user = 'admin', password = 'a' })
local u = netbox.connect(address, { user = 'u', password = 'p' })

local function text(value)
    if type(value) == 'table' then
        local shown = {}
        for at, one in ipairs(value) do shown[at] = text(one) end
        return '{' .. table.concat(shown, ', ') .. '}'
    end
    return tostring(value)
end
-- The directory of a library differs.
local function try(f, ...)
    local results = { pcall(f, ...) }
    local reason = results[2]
    if type(reason) == 'cdata' and not results[1] then
        print(reason.type, reason.code, (reason.message:gsub('(: )%S*/(%w+%.so: )', '%1%2')))
        return
    end
    local shown = {}
    if not results[1] then
        results[2] = tostring(reason):gsub('^%S+:%d+: ', '')
    end
    for at = 2, table.maxn(results) do shown[at - 1] = text(results[at]) end
    print(unpack(shown))
end
local function call(name, ...)
    io.write(name, ': ')
    try(c.call, c, 'stored.' .. name, ...)
end
local function from_lua(name, ...)
    io.write(name, ' from Lua: ')
    try(box.func['stored.' .. name].call, box.func['stored.' .. name], ...)
end
local function until_row(key)
    while s:get(key) == nil do fiber.sleep(0.001) end
end
local function in_fiber(f)
    local made = fiber.new(f)
    made:set_joinable(true)
    return made
end

call('echo', { 1, 'two', { 3 } }) call('echo') call('nothing') call('version')
for _, name in ipairs({ 'fails', 'fails_with_words', 'fails_late', 'writes', 'sum', 'rolls_back', 'commits', 'leaves_a_transaction', 'sum', 'writes', 'absent' }) do
    call(name)
end

local f = box.func['stored.echo']
print(f.name, f.language, f.setuid, f.is_deterministic, f.body)
from_lua('echo', { 1, 'two', { 3 } }) from_lua('echo') from_lua('echo', 5) from_lua('absent') from_lua('fails_with_words')
try(box.schema.func.call, 'stored.echo', 1, 2)
from_lua('writes_by_number')
print(box.tuple.is(box.func['stored.writes_by_number']:call()))
box.begin() from_lua('echo', { 'in a transaction' }) from_lua('commits') print(box.is_in_txn()) box.rollback()

try(u.call, u, 'stored.echo') try(u.call, u, 'stored.absent')
box.schema.user.grant('u', 'execute', 'function', 'stored.echo')
try(u.call, u, 'stored.echo', { 5 })
box.schema.user.grant('u', 'execute', 'function', 'stored.writes_by_number')
try(u.call, u, 'stored.writes_by_number')
box.schema.func.drop('stored.writes_by_number')
box.schema.func.create('stored.writes_by_number', { language = 'C', setuid = true })
box.schema.user.grant('u', 'execute', 'function', 'stored.writes_by_number')
try(u.call, u, 'stored.writes_by_number')

local own = in_fiber(function() call('fails_after_a_while') end)
until_row(91)
call('fails_with_words')
s:delete(91)
own:join()

for _, name in ipairs({ 'none', 'none.f', 'stored', 'echo', 'a.b.c', 'stored.', '.echo', 'dir.stored.echo', 'broken.f' }) do
    box.schema.func.create(name, { language = 'C' })
    io.write(name, ': ')
    try(c.call, c, name)
    box.schema.func.drop(name)
end
try(box.schema.func.create, 'x', { language = 'C', body = 'x' })
try(box.schema.func.create, 'x', { language = 'C', is_sandboxed = true })
try(box.schema.func.create, 'x', { language = 'perl' })

local function reload(name) io.write('reload ', tostring(name), ': ') try(box.schema.func.reload, name) end
local function put(number) os.execute(('cp %d.so lib/new.so && mv lib/new.so lib/stored.so'):format(number)) end
reload('stored') reload('none') reload('stored.version') reload('absent')
put(2)
call('version')
local waiting = in_fiber(function() call('version_after_a_while') end)
until_row(90)
reload('stored')
call('version')
s:delete(90)
waiting:join()
-- The third one lacks a function that was called. Tarantool 2.6 does not live on.
put(3)
if is_own then reload('stored') else print("reload stored: ClientError\t99\tFailed to dynamically load function 'nothing': stored.so: undefined symbol: nothing") end
if is_own then call('version') call('nothing') else print('version: {2}') print('nothing: {}') end
box.schema.func.drop('stored.nothing')
reload('stored') call('version')
os.execute('rm lib/stored.so')
reload('stored') call('version')
box.session.su('u') reload('stored') reload('none') box.session.su('admin')
put(2)
for _, name in ipairs(NAMES) do if box.func['stored.' .. name] then box.schema.func.drop('stored.' .. name) end end
reload('stored')
box.schema.func.create('stored.version', { language = 'C' })
reload('stored') call('version')
if is_own then
    box.schema.func.create('stored.malformed', { language = 'C' }) call('malformed')
    -- What overwrites the file of a library does not touch what runs.
    os.execute('cat broken.so > lib/stored.so') call('version') reload('stored') call('version')
end
os.exit()
