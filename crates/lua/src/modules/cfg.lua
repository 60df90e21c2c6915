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

local function negated(value) return not value end

-- Options by the names of old versions: the name that they have now, and what makes the new value of the old one.
local renamed = {
    logger = { 'log' },
    logger_nonblock = { 'log_nonblock' },
    panic_on_snap_error = { 'force_recovery', negated },
    panic_on_wal_error = { 'force_recovery', negated },
    replication_source = { 'replication' },
    slab_alloc_arena = { 'memtx_memory', function(gigabytes)
        if type(gigabytes) ~= 'number' then
            fail('CFG', 'slab_alloc_arena', 'should be of type number')
        end
        return math.floor(gigabytes * units.gib)
    end },
    slab_alloc_maximal = { 'memtx_max_tuple_size' },
    slab_alloc_minimal = { 'memtx_min_tuple_size' },
    snap_dir = { 'memtx_dir' },
    snapshot_count = { 'checkpoint_count' },
    snapshot_period = { 'checkpoint_interval' },
}

-- The options by the names that they have now; each old name gets a line in the log of events.
local function with_new_names(changes)
    local translated = {}
    for name, value in pairs(changes) do
        local new = renamed[name]
        if new == nil then
            translated[name] = value
        else
            package.loaded.log.warn('Deprecated option %s, please use %s instead', name, new[1])
            if new[2] ~= nil and value ~= nil then
                value = new[2](value)
            end
            if changes[new[1]] ~= nil and changes[new[1]] ~= value then
                fail('CFG', name, 'can not override a value for a deprecated option')
            end
            translated[new[1]] = value
        end
    end
    return translated
end

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
    local function uri_of(address)
        return type(address) == 'table' and (address.uri or address[1]) or address
    end
    local listeners = type(listen) == 'table' and listen.uri == nil and listen or { listen }
    for _, peer in pairs(type(peers) == 'table' and peers or { peers }) do
        local is_here = false
        for _, listener in ipairs(listeners) do
            is_here = is_here or is_own(uri_of(peer), uri_of(listener))
        end
        if not is_here then
            fail('UNSUPPORTED', 'Lycosa', 'replication from other instances yet')
        end
    end
end

-- What separates parameters becomes `%xx`.
local function escaped(text)
    return (text:gsub('[%%&=?#,]', function(letter) return ('%%%02X'):format(letter:byte()) end))
end

-- An address of `listen` as a text, with its parameters behind `?`.
local function address_text(value, defaults)
    local parameters = {}
    if type(value) == 'table' then
        if value.params ~= nil and type(value.params) ~= 'table' then
            fail('CFG', 'listen', "'params' of an address should be a table")
        end
        parameters = value.params or {}
        value = value.uri ~= nil and value.uri or value[1]
    end
    if type(value) ~= 'string' and type(value) ~= 'number' then
        fail('CFG', 'listen', 'an address should be a string, a number or a table of uri and params')
    end
    local text, names = tostring(value), {}
    local given = text:match('%?(.*)$') or ''
    for name in pairs(defaults) do
        if parameters[name] == nil and not ('&' .. given):find('&' .. name .. '=', 1, true) then
            names[#names + 1] = name
        end
    end
    for name in pairs(parameters) do
        names[#names + 1] = name
    end
    table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
    for _, name in ipairs(names) do
        local values = parameters[name]
        if values == nil then
            values = defaults[name]
        end
        for _, one in ipairs(type(values) == 'table' and values or { values }) do
            if type(name) ~= 'string' or type(one) ~= 'string' and type(one) ~= 'number' then
                fail('CFG', 'listen', 'parameters of an address should be strings by their names')
            end
            text = text .. (text:find('?', 1, true) and '&' or '?') .. escaped(name) .. '=' .. escaped(tostring(one))
        end
    end
    return text
end

-- A table that `listen` was given, as a list of texts.
local function address_list(value)
    if value.uri ~= nil or type(value.params) == 'table' then
        return { address_text(value, {}) }
    end
    local defaults = value.default_params
    if defaults ~= nil and type(defaults) ~= 'table' then
        fail('CFG', 'listen', "'default_params' should be a table")
    end
    local list = {}
    for key, one in pairs(value) do
        if key ~= 'default_params' and (type(key) ~= 'number' or key < 1 or key > #value or key % 1 ~= 0) then
            fail('CFG', 'listen', 'should be a list of addresses')
        end
    end
    for at, one in ipairs(value) do
        list[at] = address_text(one, defaults or {})
    end
    return list
end

-- Options as the process takes them.
local function for_process(values)
    if type(values.listen) ~= 'table' then
        return values
    end
    local result = {}
    for name, value in pairs(values) do
        result[name] = value
    end
    result.listen = setmetatable(address_list(values.listen), { __serialize = 'seq' })
    return result
end

-- True if an option has a value that the one in force need not be the same as: files named in an address may have changed.
local function may_differ(name, value)
    return name == 'listen' and (type(value) == 'table' or type(value) == 'string' and value:find('?', 1, true) ~= nil)
end

local function check_cfg(changes)
    if type(changes) ~= 'table' then
        error('Error: cfg should be a table', 3)
    end
    changes = with_new_names(changes)
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
    -- A port of 0 is known once somebody listens there.
    check_replication(checked.replication, checked.listen or is_loaded and internal.listen_addresses() or current.listen)
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
        local is_configured, reason = pcall(internal.configure, for_process(values))
        if not is_configured then
            -- If the database is open it is so with what was asked for, but nobody listens.
            current.listen = nil
            error(reason, 0)
        end
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
        if may_differ(name, value) or current[name] ~= value and not (value == nil and current[name] == nil) then
            if not known[name].is_dynamic then
                fail('RELOAD_CFG', name)
            end
            changed[name] = value
        end
    end
    if next(changed) ~= nil then
        internal.configure(for_process(changed))
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
-- But for what can be told of the process, as in Tarantool 2.11 and later.
local started = require('clock').monotonic()
local early = {
    id = function() return 0 end,
    uuid = function() return '00000000-0000-0000-0000-000000000000' end,
    lsn = function() return -1 end,
    signature = function() return -1 end,
    vclock = function() return setmetatable({}, { __serialize = 'map' }) end,
    ro = function() return true end,
    ro_reason = function() return 'config' end,
    status = function() return 'unconfigured' end,
    uptime = function() return math.floor(require('clock').monotonic() - started) end,
    pid = function() return require('tarantool').pid() end,
    package = function() return 'Tarantool' end,
    version = function() return require('tarantool').version end,
    replication = function() return setmetatable({}, { __serialize = 'map' }) end,
}
local function early_info()
    local result = {}
    for name, get in pairs(early) do
        result[name] = get()
    end
    return result
end
box.info = setmetatable({}, {
    __index = function(_, name) return early[name] and early[name]() end,
    __call = early_info,
    __serialize = early_info,
    __pairs = function() return pairs(early_info()) end,
})
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
