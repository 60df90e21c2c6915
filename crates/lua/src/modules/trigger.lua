-- internal.trigger: lists of functions, changed by a call and run one after the other.
local internal = ...

local trigger_methods = {}

local function is_callable(value)
    if type(value) == 'function' then
        return true
    end
    local metatable = getmetatable(value)
    return type(metatable) == 'table' and metatable.__call ~= nil
end

local trigger_metatable
trigger_metatable = {
    __index = trigger_methods,
    -- trigger(): a copy of the list; trigger(new), trigger(nil, old), trigger(new, old)
    __call = function(self, ...)
        local new, old = ...
        if select('#', ...) == 0 then
            return { unpack(self) }
        elseif old == nil and new == nil then
            error('Usage: trigger(new_callable, old_callable)', 2)
        elseif old ~= nil and not is_callable(old) or old ~= nil and new ~= nil and not is_callable(new) then
            error('Usage: trigger(new_callable, old_callable)', 2)
        elseif old == nil then
            if not is_callable(new) then
                error(('Usage: %s(callable)'):format(self.name), 2)
            end
            table.insert(self, new)
            return
        end
        for at, known in ipairs(self) do
            if known == old then
                if new == nil then
                    table.remove(self, at)
                    return old
                end
                self[at] = new
                return old
            end
        end
        error(('%s: trigger is not found'):format(self.name), 2)
    end,
}

-- Runs them all. What one raises ends the run.
function trigger_methods.run(self, ...)
    for _, known in ipairs({ unpack(self) }) do
        known(...)
    end
end

package.loaded['internal.trigger'] = {
    new = function(name)
        return setmetatable({ name = name }, trigger_metatable)
    end,
}

-- trigger: named functions of named events, as of Tarantool 3. An event is there as long as it has a function. Events of the server itself have
-- the names that Tarantool gives them; their functions are set where the server looks for them, too.
-- For each event its functions, the one that was set last first: { name, handler }.
local events = {}

-- What sets and takes away a function of an event of the server: function(new, old). nil: it is an event of the program.
local function setter(event)
    local session = event:match('^box%.session%.(on_%w+)$')
    if session then
        return box.session[session]
    end
    local control = event:match('^box%.ctl%.(on_[%w_]+)$')
    if control then
        return box.ctl[control]
    end
    local space, kind = event:match('^box%.space%.([^%.]+)%.(%w+_replace)$')
    if space == nil then
        space, kind = event:match('^box%.space%[(%d+)%]%.(%w+_replace)$')
        space = tonumber(space)
    end
    if space and (kind == 'on_replace' or kind == 'before_replace') then
        local object = type(box.cfg) ~= 'function' and box.space[space]
        if not object then
            internal.fail('NO_SUCH_SPACE', tostring(space))
        end
        return function(new, old) return object[kind](object, new, old) end
    end
    return nil
end

local function find(event, name)
    for at, known in ipairs(events[event] or {}) do
        if known[1] == name then
            return at, known
        end
    end
    return nil
end

local function check_names(event, name)
    if type(event) ~= 'string' then
        error(("bad argument #1 to '?' (string expected, got %s)"):format(event == nil and 'no value' or type(event)), 3)
    elseif type(name) ~= 'string' then
        error(("bad argument #2 to '?' (string expected, got %s)"):format(name == nil and 'no value' or type(name)), 3)
    end
end

local trigger = {}

function trigger.set(event, name, handler)
    check_names(event, name)
    if not is_callable(handler) then
        error(("bad argument #3 to '?' (callable expected, got %s)"):format(handler == nil and 'no value' or type(handler)), 2)
    end
    local set = setter(event)
    local at, known = find(event, name)
    if set then
        set(handler, known and known[2])
    end
    events[event] = events[event] or {}
    if at then
        events[event][at] = { name, handler }
    else
        table.insert(events[event], 1, { name, handler })
    end
    return handler
end

function trigger.del(event, name)
    check_names(event, name)
    local at, known = find(event, name)
    if at == nil then
        return nil
    end
    table.remove(events[event], at)
    if #events[event] == 0 then
        events[event] = nil
    end
    local set = setter(event)
    if set then
        -- Who was taken away there by other means is gone already.
        pcall(set, nil, known[2])
    end
    return known[2]
end

local function copy(event)
    local list = {}
    for at, known in ipairs(events[event] or {}) do
        list[at] = { known[1], known[2] }
    end
    return list
end

-- Runs them all. What one raises ends the run; one that was taken away meanwhile does not run.
function trigger.call(event, ...)
    check_names(event, '')
    for _, known in ipairs(copy(event)) do
        local _, now = find(event, known[1])
        if now then
            now[2](...)
        end
    end
end

function trigger.pairs(event)
    check_names(event, '')
    local list, at = copy(event), 0
    return function()
        at = at + 1
        if list[at] then
            return list[at][1], list[at][2]
        end
        return nil
    end
end

function trigger.info(event)
    local result = {}
    if event ~= nil then
        check_names(event, '')
        if events[event] then
            result[event] = copy(event)
        end
        return result
    end
    for name in pairs(events) do
        result[name] = copy(name)
    end
    return result
end

package.loaded.trigger = trigger
-- What it was called before it was declared stable.
package.loaded['experimental.trigger'] = trigger
