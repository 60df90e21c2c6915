-- Rows in buckets over several instances, as vshard has them: one instance a shard, a router, buckets that move while clients write.
--
--     shards.lua storage <name>        a storage; its socket <name>.sock is in the directory above
--     shards.lua router <name>...      the router over storages that are there already; does the whole run and prints what it found
--
-- It asks of the server what vshard asks: box.cfg.replication with oneself in it, functions and a user with rights, triggers on _bucket that
-- look at the rows of a commit, and of net.box futures, reconnecting, triggers of connections, and calls without a schema. A move goes in steps,
-- each of which is durable, so that an instance that dies is asked afterwards how far it came:
--
--     source       active --> sending ---------------------------> sent, rows go
--     destination             receiving, rows come --> active --'
local fiber = require('fiber')
local log = require('log')
local net = require('net.box')

local role, own_name = arg[1], arg[2]
local BUCKETS = 40
local ROWS_A_CHUNK = 7
local USER, PASSWORD = 'storage', 'secret'
-- Whoever waits longer has found a fault.
local PATIENCE_S = 60

local function uri_of(name)
    return ('%s:%s@unix/:%s/%s.sock'):format(USER, PASSWORD, require('fio').abspath('..'), name)
end

local function connect(name)
    return net.connect(uri_of(name), { reconnect_after = 0.05, wait_connected = false, fetch_schema = false })
end

-- A storage ---------------------------------------------------------------------------------------------------------------
local function run_storage()
    box.cfg({
        listen = uri_of(own_name):match('@(.*)'), replication = { uri_of(own_name) }, wal_mode = 'fsync', read_only = false,
        log_level = 2, replication_connect_quorum = 1,
    })
    box.once('schema', function()
        box.schema.user.create(USER, { password = PASSWORD })
        local buckets = box.schema.space.create('_bucket', {
            format = { { 'id', 'unsigned' }, { 'status', 'string' }, { 'destination', 'string', is_nullable = true } },
        })
        buckets:create_index('pk')
        buckets:create_index('status', { parts = { 'status' }, unique = false })
        for _, engine in ipairs({ 'memtx', 'vinyl' }) do
            local rows = box.schema.space.create('rows_' .. engine, {
                engine = engine, format = { { 'id', 'unsigned' }, { 'bucket_id', 'unsigned' }, { 'value', 'string' } },
            })
            rows:create_index('pk')
            rows:create_index('bucket_id', { parts = { 'bucket_id' }, unique = false })
        end
        for _, name in ipairs({ 'storage_put', 'storage_get', 'bucket_create', 'bucket_send', 'bucket_recv', 'bucket_status',
            'bucket_list', 'storage_rows' }) do
            box.schema.func.create(name, { setuid = true })
            box.schema.user.grant(USER, 'execute', 'function', name)
        end
    end)
    local buckets = box.space._bucket
    local spaces = { box.space.rows_memtx, box.space.rows_vinyl }
    -- What is active, as of the last commit; requests that run in each bucket.
    local active, running, changed = {}, {}, fiber.cond()
    for _, bucket in buckets:pairs() do
        active[bucket.id] = bucket.status == 'active' or nil
    end
    buckets:on_replace(function()
        box.on_commit(function(rows)
            for _, _, new, space_id in rows() do
                if space_id == buckets.id and new ~= nil then
                    active[new.id] = new.status == 'active' or nil
                end
            end
            changed:broadcast()
        end)
    end)

    local function wrong_bucket(id)
        local bucket = buckets:get(id)
        error(('wrong bucket %d %s'):format(id, bucket and bucket.destination or ''), 0)
    end

    -- Runs a function while the bucket stays where it is.
    local function with_bucket(id, work)
        if not active[id] then
            wrong_bucket(id)
        end
        running[id] = (running[id] or 0) + 1
        local fine, result = pcall(work)
        running[id] = running[id] > 1 and running[id] - 1 or nil
        changed:broadcast()
        if not fine then
            error(result, 0)
        end
        return result
    end

    function storage_put(id, bucket_id, value)
        return with_bucket(bucket_id, function()
            box.begin()
            for _, space in ipairs(spaces) do
                space:insert({ id, bucket_id, value })
            end
            box.commit()
            return true
        end)
    end

    function storage_get(id, bucket_id)
        return with_bucket(bucket_id, function()
            local in_memory, on_disk = spaces[1]:get(id), spaces[2]:get(id)
            return in_memory and on_disk and in_memory.value == on_disk.value and in_memory.value or box.NULL
        end)
    end

    function bucket_create(first, last)
        box.begin()
        for id = first, last do
            buckets:insert({ id, 'active' })
        end
        box.commit()
    end

    function bucket_status(id)
        local bucket = buckets:get(id)
        return bucket and bucket.status or box.NULL
    end

    function bucket_list()
        local list = setmetatable({}, { __serialize = 'seq' })
        for _, bucket in buckets.index.status:pairs('active') do
            list[#list + 1] = bucket.id
        end
        return list
    end

    function storage_rows()
        local found = setmetatable({}, { __serialize = 'seq' })
        for _, row in spaces[1]:pairs() do
            found[#found + 1] = row.id
        end
        return found, spaces[2]:count()
    end

    -- Takes a part of a bucket. What was begun twice begins anew.
    function bucket_recv(id, is_first, parts, is_last)
        box.begin()
        local bucket = buckets:get(id)
        if is_first then
            if bucket and bucket.status == 'active' then
                box.rollback()
                error('the bucket is here', 0)
            end
            for _, space in ipairs(spaces) do
                for _, row in ipairs(space.index.bucket_id:select(id)) do
                    space:delete(row.id)
                end
            end
            buckets:replace({ id, 'receiving' })
        elseif bucket == nil or bucket.status ~= 'receiving' then
            box.rollback()
            error('the bucket is not being received', 0)
        end
        for space_id, rows in pairs(parts) do
            for _, row in ipairs(rows) do
                spaces[tonumber(space_id)]:insert(row)
            end
        end
        if is_last then
            buckets:replace({ id, 'active' })
        end
        box.commit()
        return true
    end

    local peers = {}

    -- What was sent before is not here any more: its rows go, a few at a time.
    local function finish_sent(id, destination)
        buckets:replace({ id, 'sent', destination })
        for _, space in ipairs(spaces) do
            repeat
                local rows = space.index.bucket_id:select(id, { limit = ROWS_A_CHUNK })
                box.begin()
                for _, row in ipairs(rows) do
                    space:delete(row.id)
                end
                box.commit()
            until #rows == 0
        end
    end

    -- Asks the other side how far a move came, until it answers.
    local function recover(id, destination)
        local peer = peers[destination] or connect(destination)
        peers[destination] = peer
        while true do
            local fine, status = pcall(peer.call, peer, 'bucket_status', { id }, { timeout = 1 })
            if fine and status == 'active' then
                return finish_sent(id, destination)
            elseif fine then
                buckets:replace({ id, 'active' })
                return
            end
            fiber.sleep(0.02)
        end
    end

    function bucket_send(id, destination)
        local bucket = buckets:get(id)
        if not bucket or bucket.status ~= 'active' then
            wrong_bucket(id)
        end
        buckets:replace({ id, 'sending', destination })
        while running[id] do
            changed:wait(1)
        end
        local peer = peers[destination] or connect(destination)
        peers[destination] = peer
        local fine, reason = pcall(function()
            local options = { timeout = 5 }
            peer:call('bucket_recv', { id, true, {}, false }, options)
            for number, space in ipairs(spaces) do
                local chunk = {}
                for _, row in space.index.bucket_id:pairs(id) do
                    chunk[#chunk + 1] = row
                    if #chunk == ROWS_A_CHUNK then
                        peer:call('bucket_recv', { id, false, { [tostring(number)] = chunk }, false }, options)
                        chunk = {}
                    end
                end
                peer:call('bucket_recv', { id, false, { [tostring(number)] = chunk }, false }, options)
            end
            -- A future: its answer may get lost, which says nothing about the bucket.
            local last = peer:call('bucket_recv', { id, false, {}, true }, { is_async = true })
            local answer, why = last:wait_result(5)
            if answer == nil then
                last:discard()
                error(why)
            end
        end)
        if fine then
            finish_sent(id, destination)
        else
            recover(id, destination)
        end
        return fine, not fine and tostring(reason) or nil
    end

    -- Who died in a move goes on with it.
    for _, bucket in ipairs(buckets.index.status:select('sending')) do
        fiber.new(recover, bucket.id, bucket.destination)
    end
    for _, bucket in ipairs(buckets.index.status:select('sent')) do
        fiber.new(finish_sent, bucket.id, bucket.destination)
    end
    print('ready')
end

-- The router --------------------------------------------------------------------------------------------------------------
local function run_router(names)
    local storages, connects, disconnects = {}, 0, 0
    for _, name in ipairs(names) do
        local storage = connect(name)
        storage:on_connect(function() connects = connects + 1 end)
        storage:on_disconnect(function() disconnects = disconnects + 1 end)
        storages[name] = storage
    end
    local routes = {}

    -- Asks all at once who has which bucket.
    local function discover()
        local futures = {}
        for _, name in ipairs(names) do
            futures[name] = storages[name]:call('bucket_list', {}, { is_async = true })
        end
        for name, future in pairs(futures) do
            local answer = future:wait_result(1)
            for _, id in ipairs(answer and answer[1] or {}) do
                routes[id] = name
            end
        end
    end

    -- Calls where the bucket is, however often it moves meanwhile.
    local function route(bucket_id, name, arguments)
        local deadline, reason = fiber.clock() + PATIENCE_S, nil
        while fiber.clock() < deadline do
            local place = routes[bucket_id]
            if place then
                local fine, answer = pcall(storages[place].call, storages[place], name, arguments, { timeout = 2 })
                if fine then
                    return true, answer
                end
                reason = tostring(answer)
                if reason:find('Duplicate key', 1, true) then
                    -- An answer was lost with its connection.
                    return true
                end
                local moved = reason:match('^wrong bucket %d+ (%S+)$')
                if moved then
                    routes[bucket_id] = moved
                end
            end
            fiber.sleep(0.01)
            discover()
        end
        return false, reason
    end

    for _, name in ipairs(names) do
        assert(storages[name]:wait_connected(PATIENCE_S), 'no connection to ' .. name)
    end
    for at, name in ipairs(names) do
        local share = BUCKETS / #names
        storages[name]:call('bucket_create', { (at - 1) * share + 1, at * share })
    end
    discover()

    -- Clients write all the time; what was acknowledged is noted.
    local acknowledged, next_id, is_over, failures, writers = {}, 0, false, {}, {}
    for number = 1, 8 do
        writers[number] = fiber.new(function()
            while not is_over do
                next_id = next_id + 1
                local id = next_id
                local fine, reason = route(id % BUCKETS + 1, 'storage_put', { id, id % BUCKETS + 1, 'value ' .. id })
                if fine then
                    acknowledged[#acknowledged + 1] = id
                else
                    failures[#failures + 1] = tostring(reason)
                end
            end
        end)
        writers[number]:set_joinable(true)
    end

    local moves, broken = 0, 0
    local function move(bucket_id)
        local source = routes[bucket_id]
        local destination = names[1] == source and names[2] or names[1]
        local fine, went = pcall(storages[source].call, storages[source], 'bucket_send', { bucket_id, destination }, { timeout = 20 })
        moves = moves + 1
        if not fine or not went then
            broken = broken + 1
        end
        discover()
    end
    local function wait_rows(count)
        local wanted, deadline = #acknowledged + count, fiber.clock() + PATIENCE_S
        while #acknowledged < wanted and fiber.clock() < deadline do
            fiber.sleep(0.01)
        end
    end

    wait_rows(300)
    for id = 1, BUCKETS / 2 do
        move(id)
    end
    wait_rows(300)
    -- Somebody kills a storage now, and starts it again, while buckets go to it and from it.
    io.stdout:write('kill\n')
    io.stdout:flush()
    for _ = 1, 2 do
        for id = 1, BUCKETS do
            move(id)
        end
    end
    wait_rows(300)
    is_over = true
    for _, writer in ipairs(writers) do
        writer:join()
    end

    -- Every bucket is active in one place, in the end.
    local deadline, places = fiber.clock() + PATIENCE_S, nil
    repeat
        places = {}
        for _, name in ipairs(names) do
            for _, id in ipairs(storages[name]:call('bucket_list')) do
                places[id] = (places[id] or 0) + 1
            end
        end
        local count = 0
        for id = 1, BUCKETS do
            count = count + (places[id] == 1 and 1 or 0)
        end
        if count ~= BUCKETS then
            fiber.sleep(0.05)
        end
    until count == BUCKETS or fiber.clock() > deadline
    local misplaced, lost, doubled = 0, 0, 0
    for id = 1, BUCKETS do
        misplaced = misplaced + (places[id] == 1 and 0 or 1)
    end
    for _, id in ipairs(acknowledged) do
        local fine, value = route(id % BUCKETS + 1, 'storage_get', { id, id % BUCKETS + 1 })
        if not fine or value ~= 'value ' .. id then
            lost = lost + 1
        end
    end
    -- What was sent is gone from where it was: each row is in one place.
    deadline = fiber.clock() + PATIENCE_S
    repeat
        local seen = {}
        doubled = 0
        for _, name in ipairs(names) do
            local rows, on_disk = storages[name]:call('storage_rows')
            doubled = doubled + math.abs(#rows - on_disk)
            for _, id in ipairs(rows) do
                doubled = doubled + (seen[id] and 1 or 0)
                seen[id] = true
            end
        end
        if doubled > 0 then
            fiber.sleep(0.05)
        end
    until doubled == 0 or fiber.clock() > deadline
    print(('rows %d, moves %d, broken %d, connects %d, disconnects %d'):format(#acknowledged, moves, broken, connects, disconnects))
    print(('lost %d, doubled %d, misplaced %d, failures %d %s'):format(lost, doubled, misplaced, #failures, failures[1] or ''))
    for _, storage in pairs(storages) do
        storage:close()
    end
    os.exit(lost + doubled + misplaced + #failures == 0 and connects > #names and 0 or 1)
end

if role == 'storage' then
    run_storage()
elseif role == 'router' then
    fiber.create(run_router, { unpack(arg, 2) })
else
    log.error('shards.lua storage <name> | router <name>...')
    os.exit(2)
end
