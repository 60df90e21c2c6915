-- box: transactions, snapshots and backups, what is absent, box.ctl, watchers.
local internal = ...

local fail, illegal = internal.fail, internal.illegal

-- Transactions ------------------------------------------------------------------------------------------------------
local function check_begin_options(options)
    if options == nil then
        return nil, nil
    end
    if type(options) ~= 'table' then
        illegal('options should be a table')
    end
    for name in pairs(options) do
        if name ~= 'timeout' and name ~= 'txn_isolation' and name ~= 'is_sync' then
            illegal(("unexpected option '%s'"):format(tostring(name)))
        end
    end
    local timeout, level = options.timeout, options.txn_isolation
    if timeout ~= nil and (type(timeout) ~= 'number' or not (timeout > 0)) then
        illegal('timeout must be a number greater than 0')
    end
    if level ~= nil and type(level) ~= 'string' and type(level) ~= 'number' then
        illegal('txn_isolation must be one of box.txn_isolation_level (keys or values)')
    end
    return timeout, level
end

-- Tarantool's names of isolation levels; transactions here are serializable, which keeps every one of them.
box.txn_isolation_level = {}
for code, name in pairs({ [0] = 'default', 'read-committed', 'read-confirmed', 'best-effort', 'linearizable' }) do
    box.txn_isolation_level[name] = code
    box.txn_isolation_level[name:upper():gsub('-', '_')] = code
end

function box.begin(options)
    internal.begin(check_begin_options(options))
end

function box.commit()
    internal.commit()
end

function box.rollback()
    internal.rollback()
end

box.is_in_txn = internal.is_in_txn
box.txn_id = internal.txn_id

local savepoint_metatable = { __name = 'savepoint' }

function box.savepoint()
    local handle = internal.savepoint()
    local guard = newproxy(true)
    getmetatable(guard).__gc = function() internal.savepoint_close(handle) end
    return setmetatable({ handle = handle, guard = guard }, savepoint_metatable)
end

function box.rollback_to_savepoint(savepoint)
    if getmetatable(savepoint) ~= savepoint_metatable then
        error('Usage: box.rollback_to_savepoint(savepoint)', 2)
    end
    if not box.is_in_txn() then
        fail('NO_SUCH_SAVEPOINT')
    end
    internal.rollback_to_savepoint(savepoint.handle)
end

local function finish_atomic(ok, ...)
    if not ok then
        box.rollback()
        error((...), 0)
    end
    box.commit()
    return ...
end

function box.atomic(first, ...)
    if type(first) == 'table' and (getmetatable(first) or {}).__call == nil then
        -- box.atomic(options, function, ...)
        local work = ...
        box.begin(first)
        return finish_atomic(pcall(work, select(2, ...)))
    end
    box.begin()
    return finish_atomic(pcall(first, ...))
end

-- The callbacks of open transactions: lists by the transaction's number.
local function trigger(name)
    local lists = {}
    -- The rows of a transaction as an iterator: position, old, new, space.
    local function iterator(rows)
        return function()
            return function(_, at)
                at = at + 1
                local row = rows[at]
                if row == nil then
                    return nil
                end
                return at, row[2], row[3], row[1]
            end, nil, 0
        end
    end
    box[name] = function(new, old)
        local id = internal.txn_id()
        if id == nil then
            error(('Usage inside a transaction: box.%s([function | nil, [function | nil]])'):format(name), 2)
        end
        local list = lists[id] or {}
        local result = internal.edit_triggers(list, new, old)
        if new ~= nil and lists[id] == nil then
            lists[id] = list
            internal[name](function(rows)
                lists[id] = nil
                if name == 'on_commit' then
                    -- In the order in which they were set; those of a rollback the last one first.
                    local in_order = {}
                    for at = #list, 1, -1 do in_order[#in_order + 1] = list[at] end
                    list = in_order
                end
                internal.run_triggers_logged(list, name, iterator(rows))
            end)
            -- Whichever way it ends, the list goes.
            internal[name == 'on_commit' and 'on_rollback' or 'on_commit'](function() lists[id] = nil end)
        end
        if result ~= nil then
            return result
        end
    end
end
trigger('on_commit')
trigger('on_rollback')

function box.once(key, work, ...)
    if type(key) ~= 'string' or type(work) ~= 'function' then
        illegal('Usage: box.once(key, func, ...)')
    end
    local name = 'once' .. key
    if box.space._schema:get(name) ~= nil then
        return
    end
    box.space._schema:put({ name })
    return work(...)
end

function box.snapshot()
    internal.snapshot()
    return 'ok'
end

-- Backups: the files stay as they are until `stop`.
box.backup = {
    start = function(number)
        if number ~= nil and number ~= 0 then
            illegal('Usage: box.backup.start([0]): Lycosa copies what is there now, and no older checkpoint')
        end
        local files = {}
        for name in internal.begin_backup():gmatch('%Z+') do
            files[#files + 1] = name
        end
        return files
    end,
    stop = function()
        internal.end_backup()
    end,
}

-- What is absent says so.
local function absent(what)
    return function() fail('UNSUPPORTED', 'Lycosa', what .. ' yet') end
end

-- SQL ---------------------------------------------------------------------------------------------------------------
-- What a statement has come to: an error is a result, as in Tarantool.
local function sql_result(ok, result)
    if not ok then
        return nil, result
    end
    for i, row in ipairs(result.rows or {}) do
        result.rows[i] = box.tuple.new(row)
    end
    return result
end

local function check_statement(source, name, usage)
    if type(source) ~= 'string' and (type(source) ~= 'number' or name == 'prepare') then
        error('Usage: ' .. usage, 3)
    end
end

function box.execute(source, params, options)
    check_statement(source, 'execute', 'box.execute(sqlstring[, params[, options]]) or box.execute(stmt_id[, params[, options]])')
    if params ~= nil and type(params) ~= 'table' then
        error('A parameter list must be a table', 2)
    end
    if options ~= nil and next(options) ~= nil then
        fail('ILLEGAL_PARAMS', 'options are not supported')
    end
    return sql_result(pcall(internal.sql_execute, source, params))
end

local prepared_methods = {
    execute = function(self, params) return box.execute(self.stmt_id, params) end,
    unprepare = function(self) return box.unprepare(self.stmt_id) end,
}

function box.prepare(text)
    check_statement(text, 'prepare', 'box.prepare(sqlstring)')
    local ok, result = pcall(internal.sql_prepare, text)
    if not ok then
        return nil, result
    end
    return setmetatable(result, { __index = prepared_methods })
end

function box.unprepare(statement)
    local id = type(statement) == 'table' and statement.stmt_id or statement
    if type(id) ~= 'number' then
        error('Usage: statement:unprepare() or box.unprepare(stmt_id)', 2)
    end
    local ok, result = pcall(internal.sql_unprepare, id)
    if not ok then
        return nil, result
    end
end

box.feedback = setmetatable({}, { __index = absent('reports to its makers (box.feedback)') })

-- Modules of Tarantool that are absent. Files of these names on the path are found first.
local absent_modules = {}
for name in ('swim metrics'):gmatch('%S+') do
    absent_modules[name] = true
end
table.insert(package.loaders, function(name)
    -- Raised here and not by a loader: a loader that has failed once makes every later try fail with another text.
    if absent_modules[name] then
        absent("the module '" .. name .. "'")()
    end
end)

-- Where rocks are, as `tarantoolctl rocks` and `tt rocks` put them, then what is installed for all.
package.path = '.rocks/share/tarantool/?.lua;.rocks/share/tarantool/?/init.lua;' .. package.path
    .. ';/usr/local/share/tarantool/?.lua;/usr/local/share/tarantool/?/init.lua'
    .. ';/usr/share/tarantool/?.lua;/usr/share/tarantool/?/init.lua'
package.cpath = '.rocks/lib/tarantool/?.so;' .. package.cpath
    .. ';/usr/local/lib/tarantool/?.so;/usr/lib/tarantool/?.so'

-- Control -----------------------------------------------------------------------------------------------------------
-- Waits until the instance is read-only, or is not.
local function wait_for(is_ro, timeout)
    local fiber = require('fiber')
    local deadline = fiber.clock() + (timeout or 1e9)
    while box.info.ro ~= is_ro do
        if fiber.clock() > deadline then
            fail('TIMEOUT')
        end
        fiber.sleep(0.01)
    end
end

local ctl_triggers = { on_shutdown = {}, on_schema_init = {}, on_election = {}, on_recovery_state = {} }
box.ctl = {
    wait_rw = function(timeout) wait_for(false, timeout) end,
    wait_ro = function(timeout) wait_for(true, timeout) end,
    -- One instance alone is its own leader: nothing is waited for.
    promote = function() end,
    demote = function() end,
    clear_synchro_queue = function() end,
    set_on_shutdown_timeout = function(seconds)
        if type(seconds) ~= 'number' or not (seconds >= 0) then
            error('set_on_shutdown_timeout takes a number of seconds', 2)
        end
    end,
    is_recovery_finished = function() return box.info.status == 'running' end,
    set_on_shutdown_timeout = function(seconds)
        if type(seconds) ~= 'number' or not (seconds >= 0) then
            error('Usage: box.ctl.set_on_shutdown_timeout(number of seconds)', 2)
        end
        internal.set_shutdown_timeout(seconds)
    end,
}

-- on_schema_init and on_recovery_state run when the database has been read, before box.cfg returns; on_shutdown before the process ends; on_election never,
-- since one instance elects nobody.
for name, list in pairs(ctl_triggers) do
    box.ctl[name] = function(new, old)
        local result = internal.edit_triggers(list, new, old)
        if result ~= nil then
            return result
        end
    end
end
internal.on_schema_init = ctl_triggers.on_schema_init
internal.on_recovery_state = ctl_triggers.on_recovery_state

function internal.values.shutdown()
    internal.run_triggers_logged(ctl_triggers.on_shutdown, 'on_shutdown')
    internal.end_programs()
end

-- Keys and who watches them -----------------------------------------------------------------------------------------
local watch_handle = {}
watch_handle.__index = watch_handle

function watch_handle:unregister()
    if type(self) ~= 'table' or getmetatable(self) ~= watch_handle then
        error('Usage: watcher:unregister()', 2)
    end
    if not internal.unwatch(self.number) then
        error('Watcher is already unregistered', 2)
    end
end
watch_handle.__serialize = function() return 'box.watcher' end
watch_handle.__tostring = watch_handle.__serialize

function box.watch(key, callback)
    if type(key) ~= 'string' or type(callback) ~= 'function' then
        error('Usage: box.watch(key, function)', 2)
    end
    return setmetatable({ number = internal.watch(key, callback) }, watch_handle)
end

function box.watch_once(key)
    if type(key) ~= 'string' then
        error('Usage: box.watch_once(key)', 2)
    end
    return internal.event(key)
end

function box.broadcast(key, value)
    if type(key) ~= 'string' then
        error('Usage: box.broadcast(key, value)', 2)
    end
    internal.broadcast(key, value)
end
