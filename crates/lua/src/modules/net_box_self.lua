-- net.box.self: this process by the methods of a connection.
local internal = ...

local ffi = require('ffi')

local new_error, check_arguments = internal.net_box.new_error, internal.net_box.check_arguments
local codes = box.error

local function own_call(fine, ...)
    if not fine then
        local reason = ...
        if not ffi.istype('struct error', reason) then
            reason = new_error(codes.PROC_LUA, tostring(reason))
        end
        error(reason)
    end
    return ...
end

local own = {
    is_connected = function() return true end,
    wait_connected = function() return true end,
    ping = function() return true end,
    close = function() end,
    timeout = function(self) return self end,
    on_connect = function() end,
    on_disconnect = function() end,
    on_schema_reload = function() end,
    reload_schema = function() end,
    watch = function(_, key, callback) return box.watch(key, callback) end,
}

function own.call(_, name, arguments, options)
    local _ = options
    return own_call(pcall(internal.values.call, name, unpack(check_arguments(arguments, 'call'))))
end

function own.eval(_, text, arguments)
    local chunk, reason = loadstring(text)
    if chunk == nil then
        error(new_error(codes.PROC_LUA, reason))
    end
    return own_call(pcall(chunk, unpack(check_arguments(arguments, 'eval'))))
end

local self_connection = setmetatable({}, {
    __index = function(_, name)
        if name == 'space' then
            return box.space
        end
        return own[name]
    end,
    __serialize = function() return 'net.box.self' end,
})

package.loaded['net.box'].self = self_connection
