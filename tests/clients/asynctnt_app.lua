-- What the tests of asynctnt expect of the server: the release does not contain it. Written from what they call.
local fiber = require('fiber')
local uuid = require('uuid')

local version = {_TARANTOOL:match('^(%d+)%.(%d+)')}
version = tonumber(version[1]) * 100 + tonumber(version[2])
local sql = pcall(box.execute, 'SELECT 1')

local field = {'unsigned', 'string', 'unsigned', 'unsigned', '*', '*'}
local function tester_format(count)
    local format = {}
    for i = 1, count do
        format[i] = {name = 'f' .. i, type = field[i]}
    end
    return format
end

box.once('asynctnt', function()
    for _, user in ipairs({'t1', 'guest'}) do
        if user ~= 'guest' then
            box.schema.user.create(user, {password = user})
        end
        box.schema.user.grant(user, 'read,write,execute,create,drop,alter', 'universe', nil, {if_not_exists = true})
    end
    box.schema.func.create('change_format', {setuid = true})
    local tester = box.schema.space.create('tester', {format = tester_format(5)})
    tester:create_index('primary')
    tester:create_index('txt', {unique = false, parts = {2, 'string'}})
    local plain = box.schema.space.create('no_schema_space')
    plain:create_index('primary')
    plain:create_index('primary_hash', {type = 'hash', parts = {1, 'unsigned'}})
    local function typed(name, first, second, type)
        box.schema.space.create(name, {format = {{first, 'unsigned'}, {second, type}}}):create_index('primary')
    end
    typed('tester_ext_dec', 'f1', 'f2', 'decimal')
    typed('tester_ext_uuid', 'f1', 'f2', 'uuid')
    if version >= 210 then
        local _, err = pcall(typed, 'tester_ext_datetime', 'id', 'dt', 'datetime')
        if err then
            require('log').error('no spaces with datetime: %s', err)
        end
    end
    if sql then
        box.execute('CREATE TABLE sql_space (id INT PRIMARY KEY, name TEXT COLLATE "unicode")')
        box.execute('CREATE TABLE sql_space_autoincrement (id INT PRIMARY KEY AUTOINCREMENT, name TEXT)')
        box.execute('CREATE TABLE sql_space_autoincrement_multiple (id INT PRIMARY KEY AUTOINCREMENT, name TEXT)')
    end
end)

function change_format()
    box.space.tester:format(tester_format(6))
end

local emptied = {
    'tester', 'no_schema_space', 'tester_ext_dec', 'tester_ext_uuid', 'tester_ext_datetime',
    'SQL_SPACE', 'SQL_SPACE_AUTOINCREMENT', 'SQL_SPACE_AUTOINCREMENT_MULTIPLE',
}
-- Row by row: a real truncate is a change of the schema.
function truncate()
    for _, name in ipairs(emptied) do
        local space = box.space[name]
        if space ~= nil then
            for _, row in ipairs(space:select()) do
                space:delete(row[1])
            end
        end
    end
end

function func_long(seconds)
    fiber.sleep(seconds)
    return 'ok'
end

function func_param(value)
    return {value}
end

function func_param_bare(value)
    return value
end

function func_hello()
    return {'hello'}
end

function func_hello_bare()
    return 'hello'
end

function func_load_bin_str()
    return box.space.tester:insert({100, uuid.bin(), 12, 15, 'hello'})
end

function raise()
    box.error({reason = 'my reason'})
end

function async_action()
    for i = 1, 5 do
        box.session.push('hello_' .. i)
        fiber.sleep(0.01)
    end
    return 'ret'
end

function make_third_index(name)
    return {box.space.tester:create_index(name, {parts = {3, 'unsigned'}}).id}
end
