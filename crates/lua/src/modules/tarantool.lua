-- tarantool: what the program is; title, tonumber64, variables of the environment.
local internal = ...

local ffi = require('ffi')

ffi.cdef[[
int getpid(void);
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
extern char **environ;
]]

-- The version that programs decide their behaviour by.
local version = '2.11.0-0-glycosa'
package.loaded.tarantool = {
    version = version, package = 'Tarantool', _TARANTOOL = version,
    build = {
        target = jit.os .. '-' .. (jit.arch == 'x64' and 'x86_64' or jit.arch) .. '-Release', options = 'lycosa',
        compiler = 'rustc', flags = '', mod_format = 'so',
    },
    pid = function() return ffi.C.getpid() end,
    uptime = function() return internal.info().uptime end,
    lycosa = internal.version(),
}
_G._TARANTOOL = version

local number_types = {}
for _, name in ipairs({ 'int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'int64_t', 'uint64_t', 'float', 'double' }) do
    number_types[#number_types + 1] = ffi.typeof(name)
end

function _G.tonumber64(...)
    local value, base = ...
    local count = select('#', ...)
    if count == 0 then
        error("bad argument #1 to '?' (value expected)", 0)
    end
    base = rawequal(base, nil) and -1 or internal.check_integer(count, 2, base)
    if base ~= -1 and (base < 2 or base > 36) then
        error("bad argument #2 to '?' (base out of range)", 0)
    end
    if type(value) == 'string' then
        return internal.tonumber64(value, base == -1 and 0 or base)
    end
    local is_number = type(value) == 'number'
    if type(value) == 'cdata' then
        for _, ctype in ipairs(number_types) do
            is_number = is_number or ffi.istype(ctype, value)
        end
    end
    if not is_number then
        return nil
    end
    if base ~= -1 and base ~= 10 then
        error("bad argument #1 to '?' (string expected)", 0)
    end
    return value
end

function os.setenv(name, value)
    if type(name) ~= 'string' or type(value) == 'cdata' and value ~= nil then
        error('os.setenv(name, [value]): bad arguments', 2)
    end
    if value == nil then
        ffi.C.unsetenv(name)
    else
        ffi.C.setenv(name, value, 1)
    end
end

function os.environ()
    local result, at = {}, 0
    while ffi.C.environ[at] ~= nil do
        local name, value = ffi.string(ffi.C.environ[at]):match('^([^=]*)=(.*)$')
        if name then
            result[name] = value
        end
        at = at + 1
    end
    return result
end

package.loaded.title = {
    update = function() end, get = function() return 'lycosa' end, get_custom = function() return '' end,
    set_custom = function() end,
}
