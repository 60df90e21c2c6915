-- Two shards of vshard, one instance each, as processes of their own; whoever loads this is the router over them.
-- vshard is found as `require` finds it. The directory that the router runs in holds those of the storages and their
-- sockets.
--
--     local cluster = dofile('cluster.lua')
--     cluster.start('a', setup)       a storage; `setup` is the path of a script that it runs once it is configured
--     cluster.kill('a')               with no time to say goodbye
--     cluster.router()                the router is configured, and the buckets are there
--     cluster.finish(test)            the script ends as its tests did
--
-- A storage has, besides what `setup` gives it: `reweigh(a, b)`, new weights of the shards; `bucket_states()`;
-- `storage_info()`; `storage_alive()`.
local fiber, fio, popen = require('fiber'), require('fio'), require('popen')
local NAMES = { 'a', 'b' }
local BUCKETS = 200
local here = debug.getinfo(1, 'S').source:match('^@?(.*)$')
local cluster = { names = NAMES, buckets = BUCKETS, here = fio.dirname(fio.abspath(here)) }

-- The instances are known by their place in the alphabet.
function cluster.shard(name)
    local at = name:byte() - ('a'):byte() + 1
    return ('cbf06940-0790-498b-948d-042b6295600%d'):format(at), ('8a274925-a26d-47fc-9e1b-af88ce93900%d'):format(at)
end

function cluster.config(directory, weights)
    local sharding = {}
    for at, name in ipairs(NAMES) do
        local shard, instance = cluster.shard(name)
        sharding[shard] = {
            weight = weights and weights[at] or 1,
            replicas = {
                [instance] = {
                    uri = ('storage:secret@unix/:%s/%s.sock'):format(directory, name), name = name, master = true,
                },
            },
        }
    end
    return { sharding = sharding, bucket_count = BUCKETS, collect_bucket_garbage_interval = 0.1, log_level = 3 }
end

-- The side of a storage ----------------------------------------------------------------------------------------------
local function run_storage(name, directory, setup)
    fio.mkdir(fio.pathjoin(directory, name))
    fio.chdir(fio.pathjoin(directory, name))
    -- Its life ends with that of whoever started it.
    fiber.new(function()
        require('socket').iowait(0, 'R')
        os.exit(0)
    end)
    vshard = require('vshard')
    local _, instance = cluster.shard(name)
    vshard.storage.rebalancer_disable()
    vshard.storage.cfg(cluster.config(directory), instance)
    function reweigh(...)
        vshard.storage.rebalancer_enable()
        vshard.storage.cfg(cluster.config(directory, { ... }), instance)
        vshard.storage.rebalancer_wakeup()
        return true
    end
    function bucket_states()
        local states = {}
        for _, bucket in box.space._bucket:pairs() do
            states[#states + 1] = { bucket.id, bucket.status }
        end
        return setmetatable(states, { __serialize = 'seq' })
    end
    function storage_info()
        return vshard.storage.info()
    end
    box.once('cluster', function()
        for _, function_name in ipairs({ 'reweigh', 'bucket_states', 'storage_info', 'storage_alive' }) do
            box.schema.func.create(function_name, { setuid = true })
            box.schema.user.grant('storage', 'execute', 'function', function_name)
        end
    end)
    dofile(setup)
    function storage_alive()
        return name
    end
end

-- The side of the router ---------------------------------------------------------------------------------------------
local running = {}

function cluster.start(name, setup)
    local directory = fio.cwd()
    local script = fio.pathjoin(directory, 'storage-' .. name .. '.lua')
    local file = fio.open(script, { 'O_CREAT', 'O_WRONLY', 'O_TRUNC' }, tonumber('644', 8))
    file:write(('package.path = %q\npackage.cpath = %q\nCLUSTER_STORAGE = { %q, %q, %q }\ndofile(%q)\n'):format(
        package.path, package.cpath, name, directory, setup, fio.pathjoin(cluster.here, 'cluster.lua')))
    file:close()
    local log = fio.pathjoin(directory, name .. '.log')
    local command = ('exec %s %s >>%s 2>&1'):format(fio.readlink('/proc/self/exe'), script, log)
    running[name] = popen.new({ '/bin/sh', '-c', command }, { stdin = popen.opts.PIPE })
end

function cluster.kill(name)
    running[name]:signal(popen.signal.SIGKILL)
    running[name]:wait()
    running[name]:close()
end

-- The end of what a storage logged.
function cluster.log(name)
    local file = fio.open(fio.pathjoin(fio.cwd(), name .. '.log'))
    local text = file and file:read() or ''
    return text:sub(-3000)
end

function cluster.wait_for(patience_s, condition)
    local deadline = fiber.clock() + patience_s
    local value = condition()
    while not value and fiber.clock() < deadline do
        fiber.sleep(0.02)
        value = condition()
    end
    return value
end

function cluster.call(name, ...)
    return vshard.router.routeall()[(cluster.shard(name))]:callrw(...)
end

function cluster.wait_alive(name)
    local alive = cluster.wait_for(60, function()
        return cluster.call(name, 'storage_alive', {}, { timeout = 1 }) == name
    end)
    assert(alive, name .. ' does not answer: ' .. cluster.log(name))
end

function cluster.router()
    vshard = require('vshard')
    vshard.router.cfg(cluster.config(fio.cwd()))
    for _, name in ipairs(NAMES) do
        cluster.wait_alive(name)
    end
    assert(vshard.router.bootstrap({ timeout = 10 }))
end

-- How many buckets are active in each place; nothing while one of them is in two places or in none, or what was sent is
-- not yet gone.
function cluster.settled()
    local counts, seen, total = {}, {}, 0
    for _, name in ipairs(NAMES) do
        local states = cluster.call(name, 'bucket_states', {}, { timeout = 5 })
        if not states then
            return nil
        end
        counts[name] = 0
        for _, state in ipairs(states) do
            if state[2] == 'active' then
                if seen[state[1]] then
                    return nil
                end
                seen[state[1]] = true
                counts[name] = counts[name] + 1
                total = total + 1
            else
                return nil
            end
        end
    end
    return total == BUCKETS and counts or nil
end

if CLUSTER_STORAGE then
    run_storage(unpack(CLUSTER_STORAGE))
end
-- The end of a script of tests: the exit status says whether all have passed, and logs of the storages come if not.
function cluster.finish(test)
    local is_fine = test:check()
    for _, name in ipairs(is_fine and {} or NAMES) do
        test:diag('%s: %s', name, cluster.log(name))
    end
    os.exit(is_fine and 0 or 1)
end

return cluster
