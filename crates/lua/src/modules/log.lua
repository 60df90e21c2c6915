-- log: lines of programs in the log of events.
local internal = ...

local levels = { fatal = 0, syserror = 1, error = 2, crit = 3, warn = 4, info = 5, verbose = 6, debug = 7 }
local log_level = 5
local log = { cfg = nil }

local function logger(level, name)
    return function(text, ...)
        if levels[level] > log_level then
            return
        end
        if select('#', ...) > 0 and type(text) == 'string' then
            text = text:format(...)
        elseif type(text) == 'table' then
            text = package.loaded.json.encode(text)
        end
        text = tostring(text)
        local caller = debug.getinfo(2, 'Sl')
        local place = caller and ('%s:%d'):format(caller.short_src:match('[^/]*$'), math.max(caller.currentline, 0))
        internal.log(level, name and name .. ': ' .. text or text, place)
    end
end

local function fill_log(target, name)
    for _, level in ipairs({ 'error', 'crit', 'warn', 'info', 'verbose', 'debug' }) do
        target[level] = logger(level, name)
    end
    return target
end

fill_log(log)
function log.level(level)
    if level == nil then
        return log_level
    end
    level = levels[level] or tonumber(level)
    if type(level) ~= 'number' or level < 0 or level > 7 then
        error('log.level: expected a number from 0 to 7 or the name of a level', 2)
    end
    log_level = level
    internal.set_log(tostring(level), nil)
    return log_level
end
function log.new(name)
    return fill_log({}, name)
end
function log.rotate() internal.rotate_log() end
log.pid = package.loaded.tarantool.pid
function log.log_format(format)
    if format ~= 'plain' and format ~= 'json' then
        error("log_format: expected 'json' or 'plain'", 2)
    end
    internal.set_log(nil, format)
end
log.cfg = setmetatable({ level = 5, format = 'plain' }, {
    __call = function(self, options)
        for key, value in pairs(options or {}) do
            if key == 'level' then
                log.level(value)
            elseif key == 'format' then
                log.log_format(value)
            end
            rawset(self, key, value)
        end
    end,
})
package.loaded.log = log
