-- box itself: configuration, transactions, information.
local internal = ...

local fail, illegal = internal.fail, internal.illegal

-- Configuration -----------------------------------------------------------------------------------------------------
-- Options by Tarantool's names: types, default, bounds, and whether they may change while the server runs.
local known = internal.options()

local is_loaded = false
local current = {}

local units = { b = 1, kb = 1e3, kib = 1024, mb = 1e6, mib = 1048576, gb = 1e9, gib = 1073741824, s = 1, ms = 0.001, m = 60, h = 3600 }

-- "256MiB" and "30s" for numbers, as newer configurations write them.
local function number_of(value)
    if type(value) ~= 'string' then
        return value
    end
    local digits, unit = value:match('^%s*([%d%.]+)%s*(%a*)%s*$')
    local factor = unit == '' and 1 or unit and units[unit:lower()]
    return digits and factor and tonumber(digits) * factor or value
end

local has_type = {
    number = function(value) return type(value) == 'number' end,
    string = function(value) return type(value) == 'string' end,
    boolean = function(value) return type(value) == 'boolean' end,
    table = function(value) return type(value) == 'table' end,
}

local function check_cfg(changes)
    if type(changes) ~= 'table' then
        error('Error: cfg should be a table', 3)
    end
    local checked = {}
    for name, value in pairs(changes) do
        local option = known[name]
        if option == nil then
            fail('CFG', tostring(name), 'unexpected option')
        end
        local wanted = option.types
        if value == '' and name ~= 'listen' or value == nil then
            value = nil
        else
            if wanted == 'number' then
                value = number_of(value)
            end
            local ok = false
            for kind in wanted:gmatch('%a+') do
                ok = ok or has_type[kind](value)
            end
            if not ok then
                if option.type_error then
                    fail('CFG', name, option.type_error)
                end
                if wanted:find(',') then
                    fail('CFG', name, 'should be one of types ' .. wanted)
                end
                fail('CFG', name, 'should be of type ' .. wanted)
            end
        end
        checked[name] = value == nil and box.NULL or value
    end
    if checked.wal_mode ~= nil and checked.wal_mode ~= 'none' and checked.wal_mode ~= 'write' and checked.wal_mode ~= 'fsync' then
        fail('CFG', 'wal_mode', checked.wal_mode)
    end
    if checked.log_format ~= nil and checked.log_format ~= 'plain' and checked.log_format ~= 'json' then
        fail('CFG', 'log_format', known.log_format.type_error)
    end
    for name, value in pairs(checked) do
        local option = known[name]
        if option.min and value ~= nil and (value < option.min or value > option.max) then
            fail('CFG', name, option.bounds_error)
        end
    end
    for _, name in ipairs({ 'memtx_memory', 'vinyl_memory' }) do
        if checked[name] ~= nil and checked[name] < 0 then
            fail('CFG', name, ('must be >= 0 and <= 4398046510080, but it is %d'):format(checked[name]))
        end
        if is_loaded and checked[name] ~= nil and checked[name] < current[name] then
            fail('CFG', name, 'cannot decrease memory size at runtime')
        end
    end
    if checked.replication ~= nil and not (type(checked.replication) == 'table' and next(checked.replication) == nil) then
        fail('UNSUPPORTED', 'Lycosa', 'replication yet')
    end
    if checked.hot_standby == true then
        fail('UNSUPPORTED', 'Lycosa', 'hot standby yet')
    end
    return checked
end


local guarded = { 'space', 'sequence', 'func', 'schema', 'session', 'slab', 'stat', 'info', 'begin', 'commit', 'rollback',
    'snapshot', 'atomic', 'savepoint', 'rollback_to_savepoint', 'on_commit', 'on_rollback', 'once', 'is_in_txn' }
local hidden = {}

local function install()
    setmetatable(box, nil)
    for name, value in pairs(hidden) do
        box[name] = value
    end
    hidden = {}
    box.cfg = setmetatable({}, {
        __index = current,
        __call = function(_, changes) return internal.apply_cfg(changes or {}) end,
        __newindex = function()
            error('Attempt to modify a read-only table', 2)
        end,
        __serialize = function() return current end,
        __pairs = function() return pairs(current) end,
    })
    is_loaded = true
end

-- Shows the options that are in force; called once the database is open.
function internal.show_cfg(values)
    if values.log_level ~= nil then
        package.loaded.log.level(values.log_level)
    end
    for name, option in pairs(known) do
        current[name] = option.default
    end
    for name, value in pairs(values) do
        if value == nil then
            current[name] = nil
        else
            current[name] = value
        end
    end
end

function internal.apply_cfg(changes)
    local checked = check_cfg(changes)
    if not is_loaded then
        local values = {}
        for name, option in pairs(known) do
            values[name] = option.default
        end
        for name, value in pairs(checked) do
            values[name] = value
        end
        internal.configure(values)
        internal.show_cfg(values)
        install()
        internal.refresh_now()
        for _, f in ipairs(internal.on_schema_init) do
            f()
        end
        return
    end
    local changed = {}
    for name, value in pairs(checked) do
        if current[name] ~= value and not (value == nil and current[name] == nil) then
            if not known[name].is_dynamic then
                fail('RELOAD_CFG', name)
            end
            changed[name] = value
        end
    end
    if next(changed) ~= nil then
        internal.configure(changed)
        if changed.log_level ~= nil then
            package.loaded.log.level(changed.log_level)
        end
        for name, value in pairs(changed) do
            if value == nil then
                current[name] = known[name].default
            else
                current[name] = value
            end
        end
    end
end

-- Called by the process when it has opened the database itself (`lycosa serve`).
function internal.values.opened(values)
    internal.show_cfg(values)
    install()
end

-- Transactions ------------------------------------------------------------------------------------------------------
function box.begin()
    internal.begin()
end

function box.commit()
    internal.commit()
end

function box.rollback()
    internal.rollback()
end

box.is_in_txn = internal.is_in_txn

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
        box.begin()
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

for _, name in ipairs({ 'execute', 'prepare', 'unprepare' }) do
    box[name] = absent('SQL (box.' .. name .. ')')
end
box.feedback = setmetatable({}, { __index = absent('reports to its makers (box.feedback)') })

-- Modules of Tarantool that are absent. Files of these names on the path are found first.
local absent_modules = {}
for name in ([[net.box socket buffer datetime varbinary xlog key_def merger http.client crypto csv iconv pickle popen pwd tap swim
    compat experimental.trigger trigger metrics help]]):gmatch('%S+') do
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

-- Information -------------------------------------------------------------------------------------------------------
local function callable(work)
    return setmetatable({}, { __call = work, __serialize = function() return {} end })
end

-- The snapshots that there are, by the signatures in their names.
local function checkpoints()
    local list = {}
    for _, name in ipairs(require('fio').listdir(box.cfg.memtx_dir) or {}) do
        local signature = name:match('^(%d+)%.snap$')
        if signature then
            list[#list + 1] = { signature = tonumber(signature), references = {} }
        end
    end
    table.sort(list, function(a, b) return a.signature < b.signature end)
    return list
end

-- Tables in tables, of values by dotted names.
function internal.nested(values)
    local result = {}
    for path, value in pairs(values) do
        local place = result
        for part, dot in path:gmatch('([^.]+)(%.?)') do
            if dot == '' then
                place[part] = value
            else
                place[part] = place[part] or {}
                place = place[part]
            end
        end
    end
    return result
end

local function disk_stat() return internal.nested(internal.disk_statistics()) end

local info_fields = {
    id = function() return 1 end,
    uuid = function(now) return now.uuid end,
    name = function() return box.NULL end,
    lsn = function(now) return now.lsn end,
    signature = function(now) return now.signature end,
    vclock = function(now) return setmetatable(now.vclock, { __serialize = 'map' }) end,
    ro = function(now) return now.ro end,
    ro_reason = function(now) return now.ro and 'config' or nil end,
    status = function(now) return now.status end,
    uptime = function(now) return math.floor(now.uptime) end,
    pid = function() return require('tarantool').pid() end,
    package = function() return 'Tarantool' end,
    version = function() return require('tarantool').version end,
    cluster = function(now) return { uuid = now.cluster_uuid } end,
    replicaset = function(now) return { uuid = now.cluster_uuid } end,
    replication = function(now)
        return { { id = 1, uuid = now.uuid, lsn = now.lsn } }
    end,
    replication_anon = function() return setmetatable({ count = 0 }, { __call = function() return {} end }) end,
    listen = function() return internal.listen_address() end,
    schema_version = function(now) return now.schema_version end,
    election = function() return { state = 'follower', vote = 0, leader = 0, term = 1 } end,
    synchro = function() return { queue = { owner = 0, term = 0, len = 0, busy = false }, quorum = 1 } end,
    sql = function() return callable(function() return { cache = { size = 0, stmt_count = 0 } } end) end,
    vinyl = function() return callable(disk_stat) end,
    memory = function(now)
        return callable(function()
            local disk = disk_stat().memory
            return {
                data = now.memory_rows + disk.level0, index = now.memory_indexes + disk.page_index + disk.bloom_filter,
                cache = disk.tuple_cache, tx = disk.tx, net = 0, lua = now.lua_kb * 1024,
            }
        end)
    end,
    gc = function(now)
        return callable(function()
            return { vclock = now.vclock, signature = now.signature, checkpoints = checkpoints(), consumers = {} }
        end)
    end,
    recovery = function() return internal.recovery_report() end,
}

local function all_info()
    local now, result = internal.info(), {}
    for name, get in pairs(info_fields) do
        result[name] = get(now)
    end
    return result
end

box.info = setmetatable({}, {
    __index = function(_, name)
        local get = info_fields[name]
        return get and get(internal.info())
    end,
    __call = all_info,
    __serialize = all_info,
    __pairs = function() return pairs(all_info()) end,
})

local stat_names = {
    'SELECT', 'INSERT', 'REPLACE', 'UPDATE', 'UPSERT', 'DELETE', 'CALL', 'EVAL', 'AUTH', 'ERROR', 'EXECUTE', 'PREPARE',
}
local function all_stat()
    local counts, uptime, result = internal.info().statistics, math.max(internal.info().uptime, 1), {}
    for _, name in ipairs(stat_names) do
        local total = counts[name] or 0
        result[name] = { total = total, rps = math.floor(total / uptime) }
    end
    return result
end
function box.internal.schema_version()
    return internal.info().schema_version
end

-- What goes over connections.
local net_stat = setmetatable({}, {
    __index = function(self, name) return getmetatable(self).__call()[name] end,
    __call = function()
        local counts, uptime = internal.info().statistics, math.max(internal.info().uptime, 1)
        local function of(name, current)
            return { total = counts[name], rps = math.floor(counts[name] / uptime), current = current }
        end
        return {
            CONNECTIONS = of('CONNECTIONS', counts.connections_open), REQUESTS = of('REQUESTS', counts.requests_open),
            SENT = of('SENT'), RECEIVED = of('RECEIVED'),
        }
    end,
})
getmetatable(net_stat).__serialize = getmetatable(net_stat).__call

box.stat = setmetatable({
    net = net_stat,
    vinyl = disk_stat,
    reset = function() internal.reset_statistics() end,
}, {
    __index = function(_, name) return all_stat()[name] end,
    __call = all_stat,
    __serialize = all_stat,
})

box.slab = {
    info = function()
        local now = internal.info()
        local function percent(part, whole)
            return ('%.2f%%'):format(100 * part / math.max(whole, 1))
        end
        local size, rows = now.memory_reserved, now.memory_rows
        return {
            quota_size = now.memory_limit, quota_used = size, quota_used_ratio = percent(size, now.memory_limit),
            arena_size = size, arena_used = now.memory_used, arena_used_ratio = percent(now.memory_used, size),
            items_size = size, items_used = rows, items_used_ratio = percent(rows, size),
        }
    end,
    stats = function() return {} end,
    check = function() end,
}

box.runtime = {
    info = function()
        return { lua = internal.info().lua_kb * 1024, used = internal.info().lua_kb * 1024, maxalloc = internal.info().memory_limit }
    end,
}

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

local ctl_triggers = { on_shutdown = {}, on_schema_init = {}, on_election = {} }
box.ctl = {
    wait_rw = function(timeout) wait_for(false, timeout) end,
    wait_ro = function(timeout) wait_for(true, timeout) end,
    -- One instance alone is its own leader: nothing is waited for.
    promote = function() end,
    demote = function() end,
    clear_synchro_queue = function() end,
    is_recovery_finished = function() return box.info.status == 'running' end,
}

-- on_schema_init runs when the database has been read, before box.cfg returns; on_shutdown before the process ends; on_election never,
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

-- Keys and who watches them -----------------------------------------------------------------------------------------
local watchers, watched_values = {}, {}

local function notify(watcher, key)
    if watcher.is_running or watcher.is_gone then
        watcher.has_news = true
        return
    end
    watcher.is_running = true
    require('fiber').new(function()
        repeat
            watcher.has_news = false
            local ok, reason = pcall(watcher.callback, key, watched_values[key])
            if not ok then
                internal.log('error', 'box.watch: ' .. tostring(reason))
            end
        until not watcher.has_news or watcher.is_gone
        watcher.is_running = false
    end)
end

function box.watch(key, callback)
    if type(key) ~= 'string' or type(callback) ~= 'function' then
        error('Usage: box.watch(key, function)', 2)
    end
    local watcher = { callback = callback }
    watchers[key] = watchers[key] or {}
    watchers[key][watcher] = true
    notify(watcher, key)
    return { unregister = function()
        if watcher.is_gone then
            error('Watcher is already unregistered', 2)
        end
        watcher.is_gone = true
        watchers[key][watcher] = nil
    end }
end

function box.broadcast(key, value)
    if type(key) ~= 'string' then
        error('Usage: box.broadcast(key, value)', 2)
    end
    watched_values[key] = value
    for watcher in pairs(watchers[key] or {}) do
        notify(watcher, key)
    end
end

function internal.values.shutdown()
    internal.run_triggers_logged(ctl_triggers.on_shutdown, 'on_shutdown')
end

-- Before box.cfg nothing of the database is there.
for _, name in ipairs(guarded) do
    hidden[name] = box[name]
    box[name] = nil
end
setmetatable(box, {
    __index = function(_, name)
        if hidden[name] ~= nil then
            error('Please call box.cfg{} first', 2)
        end
    end,
})

box.cfg = setmetatable({}, {
    __call = function(_, changes) return internal.apply_cfg(changes or {}) end,
    __index = function() return nil end,
    __newindex = function() error('Please call box.cfg{} first', 2) end,
})
package.loaded.box = box
