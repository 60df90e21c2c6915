-- box.cfg: options are checked, handed to the process and shown; before the first call the database is hidden.
local internal = ...

local fail = internal.fail

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

local local_hosts = { ['localhost'] = true, ['127.0.0.1'] = true, ['::1'] = true }
local any_hosts = { ['*'] = true, ['0.0.0.0'] = true, ['::'] = true }

-- True if an address leads to where this instance listens.
local function is_own(address, listen)
    local uri = require('uri')
    local peer, own = uri.parse(tostring(address)), uri.parse(tostring(listen))
    if peer == nil or own == nil or peer.service ~= own.service or peer.unix ~= own.unix then
        return false
    end
    local is_anywhere = own.host == nil or any_hosts[own.host]
    return peer.host == own.host or local_hosts[peer.host] and (is_anywhere or local_hosts[own.host]) or false
end

-- An instance may be told to replicate from itself, as a shard of one instance is: there is nothing to do.
local function check_replication(peers, listen)
    if peers == nil then
        return
    end
    for _, peer in pairs(type(peers) == 'table' and peers or { peers }) do
        if type(peer) == 'table' then
            peer = peer.uri or peer[1]
        end
        if listen == nil or type(listen) == 'table' or not is_own(peer, listen) then
            fail('UNSUPPORTED', 'Lycosa', 'replication from other instances yet')
        end
    end
end

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
    check_replication(checked.replication, checked.listen ~= nil and checked.listen or current.listen)
    if checked.hot_standby == true then
        fail('UNSUPPORTED', 'Lycosa', 'hot standby yet')
    end
    return checked
end


local guarded = { 'space', 'sequence', 'func', 'schema', 'slab', 'stat', 'info', 'begin', 'commit', 'rollback',
    'snapshot', 'atomic', 'savepoint', 'rollback_to_savepoint', 'on_commit', 'on_rollback', 'once', 'is_in_txn', 'txn_id' }
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
        -- Everything has been read by now: the states come one right after the other.
        for _, state in ipairs({ 'snapshot_recovered', 'wal_recovered', 'indexes_built', 'synced' }) do
            for _, f in ipairs(internal.on_recovery_state) do
                f(state)
            end
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

-- A function until then: programs tell by its type whether it was called.
function box.cfg(changes)
    return internal.apply_cfg(changes or {})
end
package.loaded.box = box
