-- box.info, box.stat, box.slab and box.runtime.
local internal = ...

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
    cluster = function(now)
        return internal.tweaks.cluster_is_whole and { name = box.NULL } or { uuid = now.cluster_uuid }
    end,
    replicaset = function(now) return { uuid = now.cluster_uuid } end,
    replication = function(now)
        return setmetatable({ { id = 1, uuid = now.uuid, lsn = now.lsn } }, { __serialize = 'map' })
    end,
    replication_anon = function() return setmetatable({ count = 0 }, { __call = function() return {} end }) end,
    -- A list only if there are several.
    listen = function()
        local addresses = internal.listen_addresses()
        return #addresses > 1 and addresses or addresses[1]
    end,
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
local function net_counts()
    local now = internal.info()
    local counts, uptime = now.statistics, math.max(now.uptime, 1)
    local function of(name, current)
        local total = counts[name] or 0
        return { total = total, rps = math.floor(total / uptime), current = current }
    end
    return {
        CONNECTIONS = of('CONNECTIONS', counts.connections_open), REQUESTS = of('REQUESTS', counts.requests_open),
        REQUESTS_IN_PROGRESS = of('REQUESTS', counts.requests_open),
        -- A request of a stream waits as every other one does.
        REQUESTS_IN_STREAM_QUEUE = { total = 0, rps = 0, current = 0 },
        STREAMS = of('STREAMS', counts.streams_open), WATCHERS = { current = internal.watchers() }, SENT = of('SENT'),
        RECEIVED = of('RECEIVED'),
    }
end

local function shown(get, more)
    return setmetatable(more or {}, {
        __index = function(_, name) return get()[name] end,
        __call = function() return get() end,
        __serialize = function() return get() end,
    })
end

-- The same for each network thread: sockets are served on one.
local net_stat = shown(net_counts, { thread = shown(function() return { net_counts() } end) })

box.stat = setmetatable({
    net = net_stat,
    vinyl = disk_stat,
    eviction = function() return internal.info().eviction end,
    expiry = function() return internal.info().expiry end,
    doors = function() return internal.info().doors end,
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
