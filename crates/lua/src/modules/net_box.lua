-- net.box: connections to servers of Tarantool's binary protocol.
--
-- One fiber of each connection connects, logs in, fetches the schema and then reads answers; another one writes what callers have queued. A
-- caller makes a future, and waits for it unless it asked not to. A connection that nobody refers to any more is closed by the collector: its
-- fibers know it through a weak reference only.
--
--     initial --> auth --> fetch_schema --> active --> error | closed
--        ^                      ^-------------'|
--        '---- error_reconnect <---------------'
local internal = ...

local ffi = require('ffi')
local digest = require('digest')
local fiber = require('fiber')
local fun_errno = require('errno')
local msgpack = require('msgpack')
local socket = require('socket')
local uri = require('uri')

local REQUEST = {
    select = 1, insert = 2, replace = 3, update = 4, delete = 5, call_16 = 6, auth = 7, eval = 8, upsert = 9, call = 10,
    execute = 11, prepare = 13, begin = 14, commit = 15, rollback = 16, ping = 64, id = 73, watch = 74, unwatch = 75, event = 76, watch_once = 77,
    chunk = 128,
}
local KEY = {
    type = 0x00, sync = 0x01, schema_version = 0x05, space_id = 0x10, index_id = 0x11, limit = 0x12, offset = 0x13,
    iterator = 0x14, index_base = 0x15, fetch_position = 0x1f, key = 0x20, tuple = 0x21, name = 0x22, user = 0x23,
    expression = 0x27, ops = 0x28, after_position = 0x2e, after_tuple = 0x2f, data = 0x30, error_24 = 0x31,
    position = 0x35, error = 0x52, version = 0x54, features = 0x55, timeout = 0x56, event_key = 0x57, event_data = 0x58,
    txn_isolation = 0x59, metadata = 0x32, bind_metadata = 0x33, bind_count = 0x34, sql_text = 0x40, sql_bind = 0x41,
    sql_info = 0x42, statement_id = 0x43,
}
local ERROR_FLAG = 0x8000
local GREETING_BYTES = 128
local PROTOCOL_VERSION = 4
-- Bits of features by their names.
local FEATURES = {
    streams = 0, transactions = 1, error_extension = 2, watchers = 3, pagination = 4, space_and_index_names = 5,
    watch_once = 6,
}
local OWN_FEATURES = { 0, 1, 2, 3, 4, 6 }
local VCOLLATION, VSPACE, VINDEX = 277, 281, 289
-- The collation of the parts that have none.
local NO_COLLATION = 0
-- An iterator over everything.
local ALL = 2
local CONNECT_S = 10
local FOREVER = 500 * 365 * 86400
-- Bytes that a connection reads in one go at first.
local BUFFER_BYTES = 16384
-- Reads of a schema that changes all the time, one right after the other.
local RELOADS = 100

local ISOLATION = { ['default'] = 0, ['read-committed'] = 1, ['read-confirmed'] = 2, ['best-effort'] = 3 }

local codes = box.error

local function new_error(code, text)
    return internal.values.make_error(code, 'ClientError', text)
end

-- Raises what is wrong with how something was called.
local function misused(text)
    error(new_error(codes.PROC_LUA, text))
end

local function no_connection(reason)
    return new_error(codes.NO_CONNECTION, tostring(reason or 'Connection is not established'))
end

local function timed_out()
    return new_error(codes.TIMEOUT, 'Timeout exceeded')
end

-- Futures -----------------------------------------------------------------------------------------------------------------
local future_methods = {}
local future_metatable = {
    __index = future_methods, __name = 'net.box.request',
    __tostring = function() return 'net.box.request' end,
    __serialize = function() return 'net.box.request' end,
}

local function new_future(transport, sync, finish, on_push, context)
    return setmetatable({
        id = sync, transport = transport, finish = finish, cond = fiber.cond(), pushed = {}, on_push = on_push,
        on_push_ctx = context,
    }, future_metatable)
end

local function end_future(future, value, reason)
    if future.is_done then
        return
    end
    future.is_done, future.value, future.reason = true, value, reason
    future.transport.requests[future.id] = nil
    future.cond:broadcast()
    if future.when_done then
        future.when_done(future)
    end
end

function future_methods.is_ready(self)
    return self.is_done or false
end

function future_methods.result(self)
    if not self.is_done then
        return nil, new_error(codes.PROC_LUA, 'Response is not ready')
    elseif self.reason ~= nil then
        return nil, self.reason
    end
    return self.value
end

local function check_timeout(timeout, usage)
    if timeout == nil then
        return FOREVER
    elseif type(timeout) ~= 'number' or timeout < 0 then
        error(usage, 3)
    end
    return timeout
end

function future_methods.wait_result(self, timeout)
    timeout = check_timeout(timeout, 'Usage: future:wait_result(timeout)')
    local deadline = fiber.clock() + timeout
    while not self.is_done do
        local left = deadline - fiber.clock()
        if left <= 0 then
            return nil, timed_out()
        end
        self.cond:wait(left)
    end
    return self:result()
end

function future_methods.discard(self)
    if not self.is_done then
        end_future(self, nil, new_error(codes.PROC_LUA, 'Response is discarded'))
    end
end

-- The messages that came before the answer, then the answer. A time-out is for each.
function future_methods.pairs(self, timeout)
    timeout = check_timeout(timeout, 'Usage: future:pairs(timeout)')
    local function step(_, at)
        if at == nil or at == box.NULL then
            return nil
        end
        local deadline = fiber.clock() + timeout
        at = at + 1
        while true do
            if self.pushed[at] ~= nil then
                return at, self.pushed[at].value
            elseif self.is_done then
                if at > #self.pushed + 1 or self.was_shown and at > #self.pushed + 1 then
                    return nil
                elseif self.reason ~= nil then
                    return box.NULL, self.reason
                end
                return at, self.value
            end
            local left = deadline - fiber.clock()
            if left <= 0 then
                return box.NULL, timed_out()
            end
            self.cond:wait(left)
        end
    end
    return step, nil, 0
end

-- Transport -----------------------------------------------------------------------------------------------------------------
local transport_methods = {}
local transport_metatable = { __index = transport_methods }

local function connection_of(transport)
    return transport.owner[1]
end

-- Goes over to a state; whoever waits for one looks again.
local function set_state(transport, state, reason)
    transport.state, transport.error = state, reason
    local connection = connection_of(transport)
    if connection then
        connection.state, connection.error = state, reason
        local was_connected = connection._is_connected
        connection._is_connected = state == 'active' or state == 'fetch_schema' and was_connected
            or state == 'graceful_shutdown'
        if connection._is_connected ~= was_connected then
            local name = connection._is_connected and 'on_connect' or 'on_disconnect'
            local triggers = connection['_' .. name]
            if #triggers > 0 then
                fiber.new(internal.run_triggers_logged, triggers, name, connection)
            end
        end
    end
    transport.state_cond:broadcast()
end

local function fail_requests(transport, reason)
    local requests = transport.requests
    transport.requests, transport.outgoing = {}, {}
    for _, future in pairs(requests) do
        end_future(future, nil, no_connection(reason))
    end
end

-- Queues a packet. Returns the future of its answer.
function transport_methods.send(self, stream, finish, on_push, context, kind, ...)
    local sync = self.next_sync
    self.next_sync = sync + 1
    -- What cannot be encoded raises before anything is noted.
    local packet = internal.remote_packet(kind, sync, stream, ...)
    local future = new_future(self, sync, finish, on_push, context)
    self.requests[sync] = future
    self.outgoing[#self.outgoing + 1] = packet
    self.output_cond:signal()
    return future
end

-- Queues a packet that nobody answers.
function transport_methods.tell(self, kind, ...)
    self.outgoing[#self.outgoing + 1] = internal.remote_packet(kind, self.next_sync, nil, ...)
    self.next_sync = self.next_sync + 1
    self.output_cond:signal()
end

local function write_all(transport, stream)
    while not transport.is_closed and transport.stream == stream do
        if #transport.outgoing == 0 then
            transport.output_cond:wait()
        else
            local bytes = table.concat(transport.outgoing)
            transport.outgoing = {}
            if stream:write(bytes) == nil then
                -- Whoever reads finds out, too.
                pcall(stream.shutdown, stream, 'RW')
                return
            end
        end
    end
end

-- Takes more bytes of a stream; waits for them. Raises what goes wrong.
local function fill(transport, stream, deadline)
    local input = transport.input
    local size = input.last - input.first
    if input.first > 0 then
        ffi.copy(input.bytes, input.bytes + input.first, size)
        input.first, input.last = 0, size
    end
    if input.last == input.size then
        -- Doubled, whatever was announced: memory is taken for what has come.
        local bytes = ffi.new('char[?]', input.size * 2)
        ffi.copy(bytes, input.bytes, size)
        input.keep, input.size = bytes, input.size * 2
        input.bytes = ffi.cast('char *', bytes)
    end
    local count = stream:sysread(input.bytes + input.last, input.size - input.last)
    if count == 0 then
        error('Peer closed', 0)
    elseif count ~= nil then
        input.last = input.last + count
    elseif stream:errno() ~= fun_errno.EAGAIN and stream:errno() ~= fun_errno.EINTR then
        error(stream:error(), 0)
    else
        local left = deadline and deadline - fiber.clock() or nil
        if left and left <= 0 then
            error('Connection timed out', 0)
        end
        stream:readable(left)
    end
end

-- The next packet: its header, and where its body is until the next call. Raises what goes wrong.
local function read_packet(transport, stream, deadline)
    local input = transport.input
    while true do
        local size = input.last - input.first
        local total = size > 0 and internal.remote_announced(input.bytes + input.first, size) or nil
        if total and total <= size then
            local start, stop = input.bytes + input.first, input.bytes + input.first + total
            input.first = input.first + total
            -- The length takes 1, 2, 3, 5 or 9 bytes.
            local length_bytes = ({ [0xcc] = 2, [0xcd] = 3, [0xce] = 5, [0xcf] = 9 })[ffi.cast('uint8_t *', start)[0]] or 1
            local header, body = internal.msgpack_decode_pointer(start + length_bytes, tonumber(stop - start) - length_bytes)
            if type(header) ~= 'table' then
                error('Invalid MsgPack - packet header', 0)
            end
            return header, body, tonumber(stop - body)
        end
        fill(transport, stream, deadline)
    end
end

local function decode_body(body, size)
    if size <= 0 then
        return {}
    end
    local value = internal.msgpack_decode_pointer(body, size)
    return type(value) == 'table' and value or {}
end

-- The error of a body: the causes that it names, or its text.
local function error_of(kind, body, size)
    local map = decode_body(body, size)
    local code = kind % ERROR_FLAG
    local stack = type(map[KEY.error]) == 'table' and map[KEY.error][0] or nil
    local previous
    if type(stack) == 'table' then
        for at = #stack, 1, -1 do
            local part = type(stack[at]) == 'table' and stack[at] or {}
            previous = internal.values.make_error(tonumber(part[5]) or code, tostring(part[0] or 'ClientError'),
                tostring(part[3] or ''), type(part[6]) == 'table' and part[6] or nil, previous)
        end
    end
    return previous or new_error(code, tostring(map[KEY.error_24] or 'Unknown error'))
end

-- Schema --------------------------------------------------------------------------------------------------------------------
local space_methods, index_methods = {}, {}

local function key_parts(parts, collation_names)
    local result = {}
    for at, part in ipairs(type(parts) == 'table' and parts or {}) do
        local field = part.field or part[1]
        result[at] = {
            fieldno = tonumber(field) and field + 1 or field, type = part.type or part[2],
            is_nullable = part.is_nullable or false, collation = collation_names[part.collation], path = part.path,
        }
    end
    return result
end

-- The objects of spaces and indexes for rows of their system spaces. Spaces that were there before stay the same objects.
local function install_schema(connection, spaces, indexes, collations)
    local old, list, collation_names = connection.space, {}, {}
    for _, row in ipairs(collations) do
        collation_names[row[1]] = row[1] ~= NO_COLLATION and row[2] or nil
    end
    for _, row in ipairs(spaces) do
        local id, name, flags = row[1], row[3], type(row[6]) == 'table' and row[6] or {}
        local space = rawget(old, id) or setmetatable({}, connection._space_mt)
        for field in pairs(space) do
            space[field] = nil
        end
        space.id, space.name, space.engine, space.field_count, space.enabled = id, name, row[4], row[5], true
        space.temporary, space.is_sync = flags.temporary or false, flags.is_sync or false
        space._format, space.connection, space.index = row[7], connection, {}
        list[id], list[name] = space, space
    end
    for _, row in ipairs(indexes) do
        local space = list[row[1]]
        if space then
            local options = type(row[5]) == 'table' and row[5] or {}
            local index = setmetatable({
                space = space, id = row[2], name = row[3], type = row[4]:upper(), unique = options.unique ~= false,
                parts = key_parts(row[6], collation_names),
            }, connection._index_mt)
            space.index[row[2]], space.index[row[3]] = index, index
        end
    end
    connection.space = list
end

-- What is done to a list of rows: kept as they are.
local function take_values(body, size)
    return internal.remote_data(body, size, 'values') or {}
end

-- Asks for the schema; `done` is called when it has come, or with what went wrong.
local function fetch_schema(transport, done)
    local function ask(space)
        return transport:send(nil, take_values, nil, nil, REQUEST.select, KEY.space_id, space, KEY.index_id, 0, KEY.iterator,
            ALL, KEY.limit, 0xffffffff, KEY.offset, 0, KEY.key, {})
    end
    local spaces, indexes, collations = ask(VSPACE), ask(VINDEX), ask(VCOLLATION)
    local function look()
        if not spaces.is_done or not indexes.is_done or not collations.is_done then
            return
        end
        local reason = spaces.reason or indexes.reason
        local connection = connection_of(transport)
        if reason == nil and connection then
            -- Old servers have no space of collations.
            install_schema(connection, spaces.value, indexes.value, collations.value or {})
            transport.schema_version = math.min(spaces.schema_version, indexes.schema_version)
            connection.schema_version = transport.schema_version
        end
        done(reason)
    end
    spaces.when_done, indexes.when_done, collations.when_done = look, look, look
end

local function run_reload_triggers(connection)
    if connection and #connection._on_schema_reload > 0 then
        fiber.new(internal.run_triggers_logged, connection._on_schema_reload, 'on_schema_reload', connection)
    end
end

-- The server's schema is another one than ours.
local function note_schema_version(transport, version)
    if not transport.is_fetching_schema or version == nil or version == transport.schema_version or transport.reload then
        return
    end
    transport.reload = true
    set_state(transport, 'fetch_schema')
    local reloads = 0
    local function reload()
        reloads = reloads + 1
        transport.newest_version = nil
        fetch_schema(transport, function(reason)
            local newest = transport.newest_version
            if reason == nil and newest ~= nil and newest ~= transport.schema_version and reloads < RELOADS then
                return reload()
            end
            transport.reload = nil
            if transport.state == 'fetch_schema' then
                set_state(transport, 'active')
                run_reload_triggers(connection_of(transport))
            end
        end)
    end
    reload()
end

-- Watchers --------------------------------------------------------------------------------------------------------------------
local function notify(watcher, key, value)
    watcher.value, watcher.has_value = value, true
    if watcher.is_running then
        watcher.has_news = true
        return
    end
    watcher.is_running = true
    fiber.new(function()
        repeat
            watcher.has_news = false
            local fine, reason = pcall(watcher.callback, key, watcher.value)
            if not fine then
                internal.log('error', 'net.box: watch: ' .. tostring(reason))
            end
        until not watcher.has_news or watcher.is_gone
        watcher.is_running = false
    end)
end

local function note_event(transport, body, size)
    local map = decode_body(body, size)
    local key, value = map[KEY.event_key], map[KEY.event_data]
    local watched = transport.watched[key]
    if watched == nil then
        return
    end
    -- The next event comes when this one is acknowledged.
    transport:tell(REQUEST.watch, KEY.event_key, key)
    watched.value, watched.has_value = value, true
    for watcher in pairs(watched.watchers) do
        notify(watcher, key, value)
    end
    if key == 'box.shutdown' and value == true then
        local connection = connection_of(transport)
        if connection and #connection._on_shutdown > 0 and transport.state == 'active' then
            set_state(transport, 'graceful_shutdown')
            fiber.new(internal.run_triggers_logged, connection._on_shutdown, 'on_shutdown', connection)
        end
    end
end

-- The life of a connection ------------------------------------------------------------------------------------------------------
local function dispatch(transport, header, body, size)
    local kind, sync, version = header[KEY.type], header[KEY.sync], header[KEY.schema_version]
    if kind == REQUEST.event then
        return note_event(transport, body, size)
    end
    transport.newest_version = version or transport.newest_version
    local future = transport.requests[tonumber(sync)]
    if future ~= nil then
        if kind == REQUEST.chunk then
            local message = (internal.remote_data(body, size, 'values') or {})[1]
            if message == nil then
                message = box.NULL
            end
            if type(future.on_push) == 'table' or future.on_push == nil then
                future.pushed[#future.pushed + 1] = { value = message }
                if future.on_push then
                    table.insert(future.on_push, message)
                end
                future.cond:broadcast()
            else
                local fine, reason = pcall(future.on_push, future.on_push_ctx, message)
                if not fine then
                    end_future(future, nil, reason)
                end
            end
            return
        end
        future.schema_version = version
        if kind ~= 0 then
            end_future(future, nil, error_of(kind, body, size))
        else
            local fine, value, reason = pcall(future.finish, body, size, future)
            if not fine then
                end_future(future, nil, value)
            else
                end_future(future, value, reason)
            end
        end
    end
    note_schema_version(transport, version)
end

-- Sends a request during the handshake and takes its answer.
local function ask_now(transport, stream, deadline, kind, ...)
    local sync = transport.next_sync
    transport.next_sync = sync + 1
    if stream:write(internal.remote_packet(kind, sync, nil, ...), deadline - fiber.clock()) == nil then
        error(stream:error() or 'Connection timed out', 0)
    end
    while true do
        local header, body, size = read_packet(transport, stream, deadline)
        if tonumber(header[KEY.sync]) == sync then
            return header[KEY.type], body, size
        end
    end
end

local function check_features(transport, options)
    local wanted = options.required_protocol_version
    if wanted and transport.protocol_version < wanted then
        error(('Protocol version (%d) < required (%d)'):format(transport.protocol_version, wanted), 0)
    end
    local missing = {}
    for _, name in ipairs(options.required_protocol_features or {}) do
        if not transport.features[name] then
            missing[#missing + 1] = name
        end
    end
    if #missing > 0 then
        error(('Protocol features missing: %s'):format(table.concat(missing, ', ')), 0)
    end
end

local function handshake(transport, stream, deadline)
    local input = transport.input
    while input.last - input.first < GREETING_BYTES do
        fill(transport, stream, deadline)
    end
    local greeting = ffi.string(input.bytes + input.first, GREETING_BYTES)
    input.first = input.first + GREETING_BYTES
    local major, minor, patch, protocol, instance = greeting:match('^Tarantool (%d+)%.(%d+)%.(%d+)%S* %((.-)%) ?(%S*)')
    if major == nil then
        error("Can't decode handshake", 0)
    elseif protocol ~= 'Binary' then
        error('Unsupported protocol: ' .. protocol, 0)
    end
    local connection = connection_of(transport)
    if connection == nil then
        error('Connection closed', 0)
    end
    connection.protocol, connection.peer_uuid = protocol, instance
    connection.peer_version_id = (tonumber(major) * 256 + tonumber(minor)) * 256 + tonumber(patch)
    local features = setmetatable({ unpack(OWN_FEATURES) }, { __serialize = 'seq' })
    local kind, body, size = ask_now(transport, stream, deadline, REQUEST.id, KEY.version, PROTOCOL_VERSION, KEY.features, features)
    transport.protocol_version, transport.features = 0, {}
    if kind == 0 then
        local map = decode_body(body, size)
        transport.protocol_version = tonumber(map[KEY.version]) or 0
        local given = {}
        for _, bit in ipairs(type(map[KEY.features]) == 'table' and map[KEY.features] or {}) do
            given[tonumber(bit)] = true
        end
        for name, bit in pairs(FEATURES) do
            transport.features[name] = given[bit] or false
        end
    end
    connection.peer_protocol_version, connection.peer_protocol_features = transport.protocol_version, transport.features
    local options = transport.options
    check_features(transport, options)
    if options.auth_type ~= nil and options.auth_type ~= 'chap-sha1' then
        error(("Authentication method '%s' is not supported"):format(tostring(options.auth_type)), 0)
    end
    if options.user ~= nil then
        set_state(transport, 'auth')
        local salt = digest.base64_decode(greeting:sub(65, 108))
        local proof = {}
        -- Guest needs no proof.
        if options.user ~= 'guest' or options.password ~= nil then
            proof = { 'chap-sha1', internal.remote_proof(options.password or '', salt) }
        end
        kind, body, size = ask_now(transport, stream, deadline, REQUEST.auth, KEY.user, options.user, KEY.tuple, proof)
        if kind ~= 0 then
            error(error_of(kind, body, size), 0)
        end
    end
end

-- One connection, from its beginning to its end. Raises why it has ended.
local function live(transport)
    local options = transport.options
    local deadline = fiber.clock() + options.connect_timeout
    local stream, reason = socket.tcp_connect(transport.host, transport.port, options.connect_timeout)
    if stream == nil then
        error(reason ~= nil and tostring(reason.message or reason) or fun_errno.strerror(), 0)
    end
    if transport.is_closed then
        stream:close()
        error('Connection closed', 0)
    end
    if transport.secure then
        local fine, why = internal.secure_socket(stream, transport.secure, transport.host, math.max(deadline - fiber.clock(), 0))
        if not fine then
            stream:close()
            error(why, 0)
        end
    end
    transport.stream = stream
    local bytes = ffi.new('char[?]', BUFFER_BYTES)
    transport.input = { keep = bytes, bytes = ffi.cast('char *', bytes), first = 0, last = 0, size = BUFFER_BYTES }
    pcall(stream.setsockopt, stream, 'tcp', 'TCP_NODELAY', true)
    handshake(transport, stream, deadline)
    transport.outgoing, transport.reload = {}, nil
    for key in pairs(transport.watched) do
        transport:tell(REQUEST.watch, KEY.event_key, key)
    end
    fiber.new(write_all, transport, stream):name('net.box/writer')
    if transport.is_fetching_schema then
        set_state(transport, 'fetch_schema')
        fetch_schema(transport, function(why)
            if why ~= nil then
                transport.failure = why
                pcall(stream.shutdown, stream, 'RW')
            elseif transport.stream == stream and transport.state == 'fetch_schema' then
                set_state(transport, 'active')
                run_reload_triggers(connection_of(transport))
            end
        end)
    else
        set_state(transport, 'active')
    end
    while not transport.is_closed do
        dispatch(transport, read_packet(transport, stream))
    end
    error('Connection closed', 0)
end

local function work(transport)
    local can_go_on = true
    while can_go_on and not transport.is_closed do
        local fine, reason = pcall(live, transport)
        reason = transport.failure or reason
        transport.failure = nil
        local stream = transport.stream
        transport.stream = nil
        if stream and stream._gc_socket.fd >= 0 then
            pcall(stream.close, stream)
        end
        transport.output_cond:broadcast()
        if not fine and tostring(reason) == 'fiber is cancelled' then
            transport.is_closed = true
        end
        if transport.is_closed then
            break
        end
        if ffi.istype('struct error', reason) then
            reason = reason.message
        end
        reason = tostring(reason)
        local after = connection_of(transport) and transport.options.reconnect_after
        if after then
            set_state(transport, 'error_reconnect', reason)
            fail_requests(transport, reason)
            local waited, cause = pcall(transport.state_cond.wait, transport.close_cond, after)
            can_go_on = waited
            if waited and not transport.is_closed then
                set_state(transport, 'initial')
            else
                reason = waited and 'Connection closed' or tostring(cause)
            end
        else
            set_state(transport, 'error', reason)
            fail_requests(transport, reason)
            return
        end
    end
    if transport.state ~= 'closed' then
        set_state(transport, 'closed', 'Connection closed')
    end
    fail_requests(transport, 'Connection closed')
end

-- Ends a connection. May be called by the collector: nothing here waits.
function transport_methods.close(self)
    if self.is_closed then
        return
    end
    self.is_closed = true
    local stream = self.stream
    if stream and stream._gc_socket.fd >= 0 then
        pcall(stream.close, stream)
    end
    self.output_cond:broadcast()
    self.close_cond:broadcast()
    if self.state ~= 'error' then
        set_state(self, 'closed', 'Connection closed')
    end
    fail_requests(self, 'Connection closed')
end

-- Waits until a state is reached that a function accepts, or none can be any more.
local function wait_state(transport, accepts, deadline)
    while true do
        local state = transport.state
        if accepts(state) then
            return true
        elseif state == 'error' or state == 'closed' then
            return false
        end
        local left = deadline - fiber.clock()
        if left <= 0 then
            return false
        end
        transport.state_cond:wait(left)
    end
end

local function is_active(state)
    return state == 'active' or state == 'graceful_shutdown'
end

-- Requests ------------------------------------------------------------------------------------------------------------------------
local connection_methods = {}

local function finish_values(body, size)
    return internal.remote_data(body, size, 'values') or {}
end

local function finish_rows(body, size)
    return internal.remote_data(body, size, 'rows') or {}
end

local function finish_value(body, size)
    local values = internal.remote_data(body, size, 'values')
    return values and values[1]
end

local function finish_nothing()
    return true
end

local function finish_raw(body, size)
    local raw = internal.remote_data(body, size, 'raw')
    return raw and msgpack.object_from_raw(raw) or nil
end

-- Puts what has come behind the end of a buffer as it is, or only what the answer is about. The value is how many bytes that is.
local function finish_into(buffer, is_data_only)
    return function(body, size)
        if is_data_only then
            body = internal.remote_data(body, size, 'raw') or ''
            size = #body
        end
        ffi.copy(buffer:alloc(size), body, size)
        return size
    end
end

local function check_self(self, name)
    if type(self) ~= 'table' or getmetatable(self) == nil or rawget(self, '_transport') == nil then
        misused(('Use remote:%s(...) instead of remote.%s(...):'):format(name, name))
    end
end

local function deadline_of(self, options)
    local timeout = options and options.timeout
    if timeout == nil and self._deadlines[fiber.self():id()] then
        local deadline = self._deadlines[fiber.self():id()]
        self._deadlines[fiber.self():id()] = nil
        return deadline
    end
    return fiber.clock() + (tonumber(timeout) or FOREVER)
end

-- Does a request. Returns its value, or a future.
local function perform(self, options, finish, kind, ...)
    local transport = self._transport
    local deadline = deadline_of(self, options)
    if not is_active(transport.state) and not (transport.state == 'fetch_schema' and self._is_connected) then
        if not wait_state(transport, is_active, deadline) then
            local reason
            if transport.state == 'error' or transport.state == 'closed' or transport.state == 'error_reconnect' then
                reason = no_connection(transport.error)
            else
                reason = timed_out()
            end
            if options and options.is_async then
                local future = new_future(transport, 0, finish)
                end_future(future, nil, reason)
                return future
            end
            error(reason)
        end
    end
    if options and options.buffer ~= nil then
        if not internal.is_buffer(options.buffer) then
            misused('net.box: the option buffer must be an ibuf')
        end
        finish = finish_into(options.buffer, options.skip_header)
    elseif options and options.return_raw then
        finish = finish_raw
    end
    local on_push, context = options and options.on_push, options and options.on_push_ctx
    local is_async = options and options.is_async
    if on_push ~= nil and type(on_push) ~= (is_async and 'table' or 'function') and type(on_push) ~= 'function' then
        error('To handle pushes in an async request use future:pairs()', 3)
    end
    local future = transport:send(self._stream_id, finish, on_push, context, kind, ...)
    if is_async then
        return future
    end
    local value, reason = future:wait_result(math.max(deadline - fiber.clock(), 0))
    if reason ~= nil then
        future:discard()
        error(reason)
    end
    return value
end

local function check_arguments(arguments, what)
    if arguments ~= nil and type(arguments) ~= 'table' and not (type(arguments) == 'cdata' and box.tuple.is(arguments)) then
        local text = what == 'call' and 'func_name' or 'expression'
        error(('Use remote:%s(%s, {arg1, arg2, ...}, opts) instead of remote:%s(%s, arg1, arg2, ...)'):format(what, text,
            what, text), 3)
    end
    return arguments or {}
end

-- The values of a call, one after the other; a future or raw values as they are.
local function unpacked(result, options)
    if options and (options.is_async or options.return_raw or options.buffer) or type(result) ~= 'table' then
        return result
    end
    local count = #result
    return unpack(result, 1, count)
end

function connection_methods.call(self, name, arguments, options)
    check_self(self, 'call')
    arguments = check_arguments(arguments, 'call')
    local kind = self.opts and self.opts.call_16 and REQUEST.call_16 or REQUEST.call
    return unpacked(perform(self, options, finish_values, kind, KEY.name, tostring(name), KEY.tuple, arguments), options)
end

function connection_methods.call_16(self, name, ...)
    check_self(self, 'call_16')
    local result = perform(self, nil, finish_rows, REQUEST.call_16, KEY.name, tostring(name), KEY.tuple, { ... })
    return unpack(result)
end

function connection_methods.eval(self, text, arguments, options)
    check_self(self, 'eval')
    arguments = check_arguments(arguments, 'eval')
    return unpacked(perform(self, options, finish_values, REQUEST.eval, KEY.expression, text, KEY.tuple, arguments), options)
end

function connection_methods.ping(self, options)
    check_self(self, 'ping')
    options = options or {}
    if options.is_async then
        return perform(self, options, finish_nothing, REQUEST.ping)
    end
    return (pcall(perform, self, options, finish_nothing, REQUEST.ping))
end

-- A bound for the next request of this fiber.
function connection_methods.timeout(self, seconds)
    check_self(self, 'timeout')
    self._deadlines[fiber.self():id()] = fiber.clock() + seconds
    return self
end

function connection_methods.close(self)
    check_self(self, 'close')
    self._transport:close()
end

function connection_methods.is_connected(self)
    check_self(self, 'is_connected')
    return self._is_connected
end

function connection_methods.wait_connected(self, timeout)
    check_self(self, 'wait_connected')
    return wait_state(self._transport, is_active, fiber.clock() + (timeout or FOREVER))
end

function connection_methods.wait_state(self, wanted, timeout)
    check_self(self, 'wait_state')
    return wait_state(self._transport, function(state)
        return type(wanted) == 'table' and wanted[state] or wanted == state or false
    end, fiber.clock() + (timeout or FOREVER))
end

function connection_methods.reload_schema(self)
    check_self(self, 'reload_schema')
    if not self._transport.is_fetching_schema then
        return
    end
    self:ping()
    wait_state(self._transport, is_active, fiber.clock() + FOREVER)
end

for _, name in ipairs({ 'on_connect', 'on_disconnect', 'on_shutdown', 'on_schema_reload' }) do
    connection_methods[name] = function(self, new, old)
        check_self(self, name)
        local result = internal.edit_triggers(self['_' .. name], new, old)
        if name == 'on_shutdown' and new ~= nil and self._transport.features.watchers then
            self._transport:watch('box.shutdown')
        end
        if new == nil and old == nil then
            return result
        end
    end
end

function transport_methods.watch(self, key)
    if self.watched[key] == nil then
        self.watched[key] = { watchers = {} }
        if self.stream and (is_active(self.state) or self.state == 'fetch_schema') then
            self:tell(REQUEST.watch, KEY.event_key, key)
        end
    end
    return self.watched[key]
end

local function check_feature(self, name)
    wait_state(self._transport, is_active, fiber.clock() + FOREVER)
    if not self._transport.features[name] then
        internal.fail('UNSUPPORTED', 'Remote server', name)
    end
end

function connection_methods.watch(self, key, callback)
    check_self(self, 'watch')
    if type(key) ~= 'string' or type(callback) ~= 'function' then
        error('Usage: conn:watch(key, func)', 2)
    end
    check_feature(self, 'watchers')
    local transport = self._transport
    local watched = transport:watch(key)
    local watcher = { callback = callback }
    watched.watchers[watcher] = true
    if watched.has_value then
        notify(watcher, key, watched.value)
    end
    return { unregister = function()
        if watcher.is_gone then
            error('Watcher is already unregistered', 2)
        end
        watcher.is_gone = true
        watched.watchers[watcher] = nil
        if next(watched.watchers) == nil and key ~= 'box.shutdown' and transport.watched[key] == watched then
            transport.watched[key] = nil
            if transport.stream then
                transport:tell(REQUEST.unwatch, KEY.event_key, key)
            end
        end
    end }
end

function connection_methods.watch_once(self, key, options)
    check_self(self, 'watch_once')
    check_feature(self, 'watch_once')
    return perform(self, options, finish_value, REQUEST.watch_once, KEY.event_key, key)
end

-- Streams -------------------------------------------------------------------------------------------------------------------------
local stream_methods = setmetatable({}, { __index = connection_methods })

function connection_methods.new_stream(self)
    check_self(self, 'new_stream')
    check_feature(self, 'streams')
    local transport = self._transport
    transport.last_stream = transport.last_stream + 1
    local stream = {
        _stream_id = transport.last_stream, _conn = self._conn or self, _transport = transport,
        _deadlines = setmetatable({}, { __mode = 'k' }),
    }
    -- The spaces of a stream are those of its connection, asked through the stream.
    local spaces = setmetatable({}, {
        __index = function(_, name)
            local space = stream._conn.space[name]
            if space == nil then
                return nil
            end
            local indexes = {}
            local own = setmetatable({ connection = stream, index = indexes }, {
                __index = function(_, field)
                    local value = space[field]
                    return value
                end,
            })
            for key, index in pairs(space.index) do
                indexes[key] = setmetatable({ space = own }, { __index = index })
            end
            return own
        end,
    })
    return setmetatable(stream, {
        __index = function(_, name)
            if name == 'space' then
                return spaces
            end
            local method = stream_methods[name]
            if method ~= nil then
                return method
            end
            return stream._conn[name]
        end,
        __serialize = function() return { stream_id = stream._stream_id, state = stream._conn.state } end,
    })
end

function stream_methods.begin(self, begin_options, options)
    local parts = {}
    if begin_options and begin_options.timeout ~= nil then
        parts[#parts + 1], parts[#parts + 2] = KEY.timeout, begin_options.timeout
    end
    if begin_options and begin_options.txn_isolation ~= nil then
        local level = ISOLATION[begin_options.txn_isolation] or tonumber(begin_options.txn_isolation)
        if level == nil then
            internal.illegal("txn_isolation must be one of box.txn_isolation_level (keys or values)")
        end
        parts[#parts + 1] = KEY.txn_isolation
        parts[#parts + 1] = level
    end
    perform(self, options, finish_nothing, REQUEST.begin, unpack(parts))
end

function stream_methods.commit(self, options)
    perform(self, options, finish_nothing, REQUEST.commit)
end

function stream_methods.rollback(self, options)
    perform(self, options, finish_nothing, REQUEST.rollback)
end

-- Statements of SQL are in net_box_statements.lua, what spaces and indexes of a connection can do in net_box_spaces.lua.
internal.net_box = {
    KEY = KEY, REQUEST = REQUEST, space_methods = space_methods, index_methods = index_methods, perform = perform,
    decode_body = decode_body, finish_rows = finish_rows, finish_value = finish_value, new_error = new_error,
    check_arguments = check_arguments, connection_methods = connection_methods, finish_nothing = finish_nothing,
    check_self = check_self, misused = misused,
}

-- Connecting --------------------------------------------------------------------------------------------------------------------------
local connection_metatable = {
    __index = connection_methods, __name = 'net.box.connection',
    __serialize = function(self)
        return {
            host = self.host, port = self.port, opts = self.opts.reconnect_after and { reconnect_after = self.opts.reconnect_after } or nil,
            state = self.state, error = self.error, protocol = self.protocol, schema_version = self.schema_version,
            peer_uuid = self.peer_uuid, peer_version_id = self.peer_version_id,
        }
    end,
}

local function new_connection(host, port, options)
    local transport = setmetatable({
        host = host, port = port, options = options, state = 'initial', state_cond = fiber.cond(), output_cond = fiber.cond(),
        close_cond = fiber.cond(), requests = {}, outgoing = {}, next_sync = 1, watched = {}, last_stream = 0, features = {},
        is_fetching_schema = options.fetch_schema ~= false, owner = setmetatable({}, { __mode = 'v' }),
    }, transport_metatable)
    local connection = setmetatable({
        host = host, port = port, opts = options, state = 'initial', space = {}, _transport = transport, _is_connected = false,
        _deadlines = setmetatable({}, { __mode = 'k' }), _on_connect = {}, _on_disconnect = {}, _on_shutdown = {},
        _on_schema_reload = {}, _space_mt = { __index = space_methods }, _index_mt = { __index = index_methods },
    }, connection_metatable)
    -- Closed when nobody refers to it: what this holds does not refer to it.
    local guard = newproxy(true)
    getmetatable(guard).__gc = function() transport:close() end
    connection._guard = guard
    transport.owner[1] = connection
    return connection, transport
end

-- Options that a text or a table of an address brings with it.
local function parse_address(address, options)
    if type(address) == 'table' then
        options.user = options.user or address.login
        options.password = options.password or address.password
        options._params = address.params
        if address.uri == nil and address[1] == nil then
            return address.unix and 'unix/' or address.host, address.unix or address.service
        end
        address = address.uri or address[1]
    end
    local parsed = type(address) == 'number' and { service = tostring(address) } or type(address) == 'string' and uri.parse(address)
    if not parsed then
        return nil
    end
    options.user = options.user or parsed.login
    options.password = options.password or parsed.password
    options._query = parsed.query
    if parsed.unix then
        return 'unix/', parsed.unix
    elseif parsed.service == nil and tonumber(parsed.host) then
        return '127.0.0.1', parsed.host
    end
    return parsed.host ~= nil and parsed.host ~= '' and parsed.host or '127.0.0.1', parsed.service
end

local USAGE = 'usage: connect(uri[, opts] | host, port[, opts])'

local function connect(first, second, third)
    local host, port, given
    local options = {}
    if type(second) == 'table' or second == nil then
        given = second
        for name, value in pairs(given or {}) do
            options[name] = value
        end
        host, port = parse_address(first, options)
    else
        given = third
        for name, value in pairs(given or {}) do
            options[name] = value
        end
        host, port = first, second
    end
    if host == nil or port == nil then
        misused(USAGE)
    end
    if options.user == nil and options.password ~= nil then
        internal.fail('PROC_LUA', 'net.box: user is not defined')
    end
    local secure = internal.secure_of_options(options)
    options.connect_timeout = tonumber(options.connect_timeout)
        or type(options.wait_connected) == 'number' and options.wait_connected or CONNECT_S
    local connection, transport = new_connection(host, tostring(port), options)
    transport.secure = secure
    local worker = fiber.new(work, transport)
    worker:name(('net.box/%s:%s'):format(host, port), { truncate = true })
    connection._fiber, transport.worker = worker, worker
    if options.wait_connected ~= false then
        connection:wait_connected(tonumber(options.wait_connected) or FOREVER)
    end
    return connection
end

package.loaded['net.box'] = {
    connect = connect, new = connect,
    timeout = function(seconds)
        return { connect = function(...)
            local first, second, third = ...
            local options = {}
            local given = (type(second) == 'table' or second == nil) and second or third
            for name, value in pairs(given or {}) do
                options[name] = value
            end
            options.wait_connected = options.wait_connected or seconds
            if type(second) == 'table' or second == nil then
                return connect(first, options)
            end
            return connect(first, second, options)
        end }
    end,
}
