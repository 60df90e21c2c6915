-- fiber: cooperative fibers, conditions, channels.
local internal = ...

local fiber = {}
local object_of = setmetatable({}, { __mode = 'v' })
local methods = {}
local metatable

-- What fibers leave behind for who joins them, and what they store, by number.
local outcomes = {}
local storages = {}
local joinable = {}
local joiners = {}

local function wrap(id)
    local object = object_of[id]
    if object == nil then
        object = setmetatable({ number__ = id }, metatable)
        object_of[id] = object
    end
    return object
end

-- The number of a fiber object. `count` is how many arguments its caller was given.
local function id_of(value, count)
    if type(value) ~= 'table' or getmetatable(value) ~= metatable then
        local got = count == 0 and 'no value' or type(value)
        error(("bad argument #1 to '?' (fiber expected, got %s)"):format(got), 3)
    end
    return value.number__
end

-- The same where the number of a fiber will do as well.
local function number_of(value, count)
    if type(value) == 'number' then
        return value
    end
    return id_of(value, count)
end

local function check_alive(id)
    if internal.fiber_status(id) == 'dead' and not joinable[id] then
        error('the fiber is dead', 3)
    end
end

metatable = {
    __index = function(self, key)
        if key == 'storage' then
            local id = self.number__
            if storages[id] == nil then
                if internal.fiber_status(id) == 'dead' then
                    error('the fiber is dead', 2)
                end
                storages[id] = {}
            end
            return storages[id]
        end
        return methods[key]
    end,
    __tostring = function(self)
        return ('fiber: %d'):format(self.number__)
    end,
    __serialize = function(self)
        local status = internal.fiber_status(self.number__)
        return { id = self.number__, name = internal.fiber_name(self.number__), status = status }
    end,
    __eq = function(a, b)
        return a.number__ == b.number__
    end,
}

-- Called in every fiber at its end.
function internal.values.fiber_ended(id, ok, ...)
    storages[id] = nil
    if joinable[id] then
        local first = ...
        if ok then
            outcomes[id] = { true, select('#', ...), ... }
        else
            -- Who joins gets an error object, whatever was raised.
            if not require('ffi').istype('struct error', first) then
                first = internal.values.make_error(0, 'LuajitError', tostring(first))
            end
            outcomes[id] = { false, 1, first }
        end
        for _, waiter in ipairs(joiners[id] or {}) do
            internal.fiber_wake(waiter)
        end
        joiners[id] = nil
    else
        joinable[id] = nil
        if not ok and tostring((...)) ~= 'fiber is cancelled' then
            internal.log('error', tostring((...)))
        end
    end
end

local function check_function(f, usage)
    if type(f) ~= 'function' then
        local meta = getmetatable(f)
        if not (type(meta) == 'table' and meta.__call) then
            error(usage, 3)
        end
    end
end

function fiber.create(f, ...)
    check_function(f, 'fiber.create(function, ...): bad arguments')
    return wrap(internal.fiber_spawn(false, f, ...))
end

function fiber.new(f, ...)
    check_function(f, 'fiber.new(function, ...): bad arguments')
    return wrap(internal.fiber_spawn(true, f, ...))
end

function fiber.self()
    return wrap(internal.fiber_self())
end

function fiber.find(...)
    if select('#', ...) == 0 then
        error('fiber.find(id): bad arguments', 2)
    end
    local id = tonumber((...))
    if id == nil or internal.fiber_status(id) == 'dead' then
        return nil
    end
    return wrap(id)
end

function fiber.id(...)
    if select('#', ...) == 0 then
        return internal.fiber_self()
    end
    -- No tail call: errors name the place of the caller.
    local id = id_of((...))
    return id
end

function fiber.name(...)
    local object, name, options = ...
    if select('#', ...) == 0 then
        return internal.fiber_name(internal.fiber_self())
    end
    if type(object) == 'string' or type(object) == 'number' then
        -- fiber.name('new name') renames the running fiber.
        if type(name) == 'table' then
            options = name
        end
        object, name = fiber.self(), object
    end
    if type(object) ~= 'table' or getmetatable(object) ~= metatable then
        error(("bad argument #1 to '?' (string expected, got %s)"):format(type(object)), 2)
    end
    local id = object.number__
    check_alive(id)
    if name == nil then
        return internal.fiber_name(id)
    end
    name = tostring(name)
    if #name > 255 and not (options and options.truncate) then
        error('Fiber name is too long', 2)
    end
    internal.fiber_name(id, name:sub(1, 255))
end

function fiber.status(...)
    if select('#', ...) == 0 then
        return 'running'
    end
    return internal.fiber_status(id_of((...)))
end

function fiber.sleep(seconds)
    if type(seconds) ~= 'number' then
        error('fiber.sleep(delay): bad arguments', 2)
    end
    internal.fiber_sleep(seconds)
end

function fiber.yield()
    internal.fiber_sleep(0)
end

function fiber.testcancel(...)
    if select('#', ...) > 0 then
        error('fiber.testcancel(): bad arguments', 2)
    end
    if internal.fiber_is_cancelled() then
        error(internal.values.make_error(0, 'FiberIsCancelled', 'fiber is cancelled'))
    end
end

function fiber.cancel(...)
    local id = number_of((...), select('#', ...))
    if id == internal.fiber_self() then
        internal.fiber_cancel(id)
        return fiber.testcancel()
    end
    check_alive(id)
    internal.fiber_cancel(id)
end
fiber.kill = fiber.cancel

function fiber.wakeup(...)
    local id = number_of((...), select('#', ...))
    check_alive(id)
    internal.fiber_wake(id)
end

function fiber.set_joinable(...)
    local object, is_joinable = ...
    if select('#', ...) ~= 2 then
        error('fiber.set_joinable(id, yesno): bad arguments', 2)
    end
    local id = number_of(object)
    check_alive(id)
    joinable[id] = is_joinable and true or nil
end

function fiber.join(...)
    local id = number_of((...), select('#', ...))
    if not joinable[id] then
        error(internal.fiber_status(id) == 'dead' and 'the fiber is dead' or 'the fiber is not joinable', 2)
    end
    while outcomes[id] == nil do
        if internal.fiber_status(id) == 'dead' then
            error('the fiber is dead', 2)
        end
        joiners[id] = joiners[id] or {}
        table.insert(joiners[id], internal.fiber_self())
        internal.fiber_park()
    end
    local outcome = outcomes[id]
    outcomes[id], joinable[id] = nil, nil
    return outcome[1], unpack(outcome, 3, outcome[2] + 2)
end

function fiber.info()
    local result = {}
    for _, entry in ipairs(internal.fiber_list()) do
        local id, name, switches = entry[1], entry[2], entry[3]
        result[id] = { fid = id, name = name, csw = switches, memory = { total = 0, used = 0 }, backtrace = {} }
    end
    return result
end

function fiber.top()
    return { cpu = {}, cpu_misses = 0 }
end
function fiber.top_enable() end
function fiber.top_disable() end

fiber.time = internal.clock_wall
fiber.clock = internal.clock_monotonic
function fiber.time64() return internal.clock_ns(true) / 1000ULL end
function fiber.clock64() return internal.clock_ns(false) / 1000ULL end

function fiber.set_max_slice(seconds)
    local bound = type(seconds) == 'table' and (seconds.err or 0) or seconds
    if type(bound) ~= 'number' then
        error('fiber.set_max_slice(slice): bad arguments', 2)
    end
    internal.set_max_slice(bound)
end
fiber.set_slice, fiber.extend_slice = function() end, function() end
function fiber.check_slice() end

for _, name in ipairs({ 'id', 'name', 'status', 'cancel', 'kill', 'wakeup', 'set_joinable', 'join' }) do
    methods[name] = fiber[name]
end
function methods.info(object)
    return fiber.info()[object.number__]
end
function methods.testcancel() fiber.testcancel() end

-- Waiting in a queue ------------------------------------------------------------------------------------------------
local function deadline_of(timeout)
    return timeout and timeout < 1e9 and internal.clock_monotonic() + timeout or nil
end

-- Parks the running fiber as a member of a queue. True if it was woken by `release`.
local function wait_in(queue, deadline)
    local ticket = { id = internal.fiber_self() }
    queue[#queue + 1] = ticket
    local ok, reason = pcall(function()
        while not ticket.is_released do
            local left
            if deadline then
                left = deadline - internal.clock_monotonic()
                if left <= 0 then
                    return
                end
            end
            internal.fiber_park(left)
        end
    end)
    if not ticket.is_released then
        for i, other in ipairs(queue) do
            if other == ticket then
                table.remove(queue, i)
                break
            end
        end
    end
    if not ok then
        error(reason, 0)
    end
    return ticket.is_released or false, ticket
end

local function release(queue, value)
    local ticket = table.remove(queue, 1)
    if ticket then
        ticket.is_released, ticket.value = true, value
        internal.fiber_wake(ticket.id)
    end
    return ticket
end

local function check_timeout(timeout, usage)
    if timeout ~= nil and (type(timeout) ~= 'number' or timeout < 0) then
        error(usage, 3)
    end
end

local cond = {}
cond.__index = cond

function fiber.cond()
    return setmetatable({ waiters = {} }, cond)
end

function cond:wait(timeout)
    if getmetatable(self) ~= cond then
        error('usage: cond:wait([timeout])', 2)
    end
    check_timeout(timeout, 'usage: cond:wait([timeout])')
    local is_released = wait_in(self.waiters, deadline_of(timeout))
    return is_released
end

function cond:signal()
    release(self.waiters)
end

function cond:broadcast()
    while release(self.waiters) do
    end
end

cond.__tostring = function() return 'cond' end
cond.__serialize = function() return 'cond' end

local channel = {}
channel.__index = channel

function fiber.channel(size)
    if size ~= nil and type(size) ~= 'number' then
        error('fiber.channel(size): bad arguments', 2)
    end
    if size ~= nil and size < 0 then
        error('fiber.channel(size): negative size', 2)
    end
    return setmetatable({ size_ = size or 0, items = {}, first = 1, last = 0, readers = {}, writers = {} }, channel)
end

local function push(self, value)
    self.last = self.last + 1
    self.items[self.last] = value
end

local function shift(self)
    local value = self.items[self.first]
    self.items[self.first] = nil
    self.first = self.first + 1
    return value
end

function channel:put(...)
    local value, timeout = ...
    if select('#', ...) == 0 then
        error('usage: channel:put(var [, timeout])', 2)
    end
    check_timeout(timeout, 'usage: channel:put(var [, timeout])')
    if self.is_closed_ then
        return false
    end
    if release(self.readers, value) then
        return true
    end
    if self:count() < self.size_ then
        push(self, value)
        return true
    end
    local deadline = deadline_of(timeout)
    -- The value travels with the ticket: a reader takes it from there.
    local queue = self.writers
    self.pending = self.pending or {}
    local id = internal.fiber_self()
    self.pending[id] = value
    local is_released, ticket = wait_in(queue, deadline)
    self.pending[id] = nil
    return is_released and ticket.value ~= 'closed'
end

function channel:get(timeout)
    check_timeout(timeout, 'usage: channel:get([timeout])')
    if self:count() > 0 then
        local value = shift(self)
        local writer = self.writers[1]
        if writer then
            push(self, self.pending[writer.id])
            release(self.writers, 'taken')
        end
        return value
    end
    if self.writers[1] then
        local value = self.pending[self.writers[1].id]
        release(self.writers, 'taken')
        return value
    end
    if self.is_closed_ then
        return nil
    end
    local is_released, ticket = wait_in(self.readers, deadline_of(timeout))
    if is_released then
        return ticket.value
    end
    return nil
end

function channel:count() return self.last - self.first + 1 end
function channel:size() return self.size_ end
function channel:is_full() return self:count() >= self.size_ end
function channel:is_empty() return self:count() == 0 end
function channel:has_readers() return self.readers[1] ~= nil end
function channel:has_writers() return self.writers[1] ~= nil end
function channel:is_closed() return self.is_closed_ or false end
function channel:close()
    self.is_closed_ = true
    if not internal.tweaks.channel_closes_gently then
        self.items, self.first, self.last = {}, 1, 0
    end
    while release(self.readers, nil) do
    end
    while release(self.writers, 'closed') do
    end
end

channel.__tostring = function(self)
    return self.is_closed_ and 'channel: closed' or ('channel: %d'):format(self:count())
end
channel.__serialize = channel.__tostring

package.loaded.fiber = fiber
