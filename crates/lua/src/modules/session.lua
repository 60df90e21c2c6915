-- box.session: who asks, and what runs when sessions begin and end.
local internal = ...

local ffi = require('ffi')

local fail, as_admin = internal.fail, internal.as_admin

local storages = {}
local session = {}

-- Descriptors of the sockets of consoles, by session.
internal.session_fds = {}

function session.id() return (internal.session()) end
function session.uid() return (select(2, internal.session())) end
function session.euid() return (select(3, internal.session())) end
function session.type() return (select(4, internal.session())) end
function session.sync() return (select(6, internal.session())) end
-- Before the database is open nobody but these two is there.
local first_users = { [0] = 'guest', [1] = 'admin' }
local function name_of(id) return first_users[id] or internal.user_name(id) end
function session.user() return name_of((select(2, internal.session()))) end
function session.effective_user() return name_of((select(3, internal.session()))) end
-- The number of a session that a call is given; nothing of it if the call is given none.
local function session_of(name, refusal, ...)
    local count = select('#', ...)
    if count == 0 then
        return nil
    end
    if count > 1 then
        error(('session.%s(sid): bad arguments'):format(name), 3)
    end
    local id = ...
    local is_number = type(id) == 'number' or type(id) == 'string' and tonumber(id) ~= nil
    if not is_number and not (name ~= 'peer' and (ffi.istype('int64_t', id) or ffi.istype('uint64_t', id))) then
        error(refusal:format(type(id)), 3)
    end
    id = tonumber(id)
    if name ~= 'exists' and not internal.session_exists(id) then
        error(('session.%s(): session does not exist'):format(name), 3)
    end
    return id
end
function session.fd(...)
    local id = session_of('fd', 'expected int64_t as -1 argument', ...)
    return internal.session_fds[id or session.id()] or -1
end
function session.exists(...)
    local id = session_of('exists', 'expected int64_t as -1 argument', ...)
    return id == nil or internal.session_exists(id)
end
function session.peer(...)
    local id = session_of('peer', "bad argument #1 to '?' (number expected, got %s)", ...)
    if id == nil then
        return (select(5, internal.session()))
    end
    return internal.session_peer(id)
end

function session.su(...)
    if select('#', ...) == 0 then
        error('session.su(): bad arguments', 2)
    end
    local name, work = ...
    local id
    if type(name) ~= 'string' then
        -- What is no number counts as 0, the guest.
        id = math.floor(tonumber(name) or 0)
    else
        local row = as_admin(function() return box.space._user.index.name:get(name) end)
        if row == nil or row[4] ~= 'user' then
            fail('NO_SUCH_USER', tostring(name))
        end
        id = row[1]
    end
    internal.check_su(id)
    if work ~= nil and type(work) ~= 'function' then
        local kind = type(work)
        error(("bad argument #2 to '?' (function expected, got %s)"):format(kind), 2)
    end
    if work == nil then
        internal.set_user(id, true)
        return
    end
    local before, birth = internal.set_user(id, false)
    local function finish(ok, ...)
        internal.restore_user(before, birth)
        if not ok then
            error((...), 0)
        end
        return ...
    end
    return finish(pcall(work, select(3, ...)))
end

function session.push(...)
    if select('#', ...) ~= 1 then
        error('Usage: box.session.push(data)', 2)
    end
    if internal.tweaks.session_push_is_gone then
        error('box.session.push is deprecated. Consider using box.broadcast instead.', 2)
    end
    local ok, reason = pcall(internal.session_push, (...))
    if not ok then
        return nil, reason
    end
    return true
end

setmetatable(session, {
    __index = function(_, key)
        if key == 'storage' then
            local id = internal.session()
            if storages[id] == nil then
                storages[id] = {}
                internal.storage_was_made()
            end
            return storages[id]
        end
    end,
})

-- The settings of the session by name; what is assigned is set.
session.settings = setmetatable({}, {
    __index = function(_, name)
        local row = type(name) == 'string' and box.space._session_settings:get(name) or nil
        if row == nil then
            fail('PROC_LUA', ("Session setting %s doesn't exist"):format(tostring(name)))
        end
        return row[2]
    end,
    __newindex = function(_, name, value)
        if type(name) ~= 'string' or box.space._session_settings:update(name, { { '=', 2, value } }) == nil then
            fail('NO_SUCH_SESSION_SETTING', tostring(name))
        end
    end,
    __serialize = function()
        local result = {}
        for _, row in box.space._session_settings:pairs() do
            result[row[1]] = row[2]
        end
        return result
    end,
})

-- What runs when a connection comes, goes, or has logged in.
local triggers = { on_connect = {}, on_disconnect = {}, on_auth = {} }

-- Tells which events are wanted: the end of a session also ends its storage.
local function announce(name)
    local wanted = #triggers[name] > 0 or name == 'on_disconnect' and next(storages) ~= nil
    internal.set_session_triggers(name, wanted)
end
internal.storage_was_made = function() announce('on_disconnect') end

for name, list in pairs(triggers) do
    session[name] = function(new, old)
        local result = internal.edit_triggers(list, new, old)
        announce(name)
        if result ~= nil then
            return result
        end
    end
end

function internal.values.session_event(name, ...)
    internal.run_triggers_logged(triggers[name], name, ...)
    if name == 'on_disconnect' then
        storages[internal.session()] = nil
        announce(name)
    end
end

box.session = session
