-- internal.trigger: lists of functions, changed by a call and run one after the other.
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
