-- box.schema.sequence and box.sequence; and how objects by name, of sequences and functions, follow the schema.
local internal = ...

local check_options, check_value, fail = internal.check_options, internal.check_value, internal.fail
local atomically, named_row, with_defaults = internal.atomically, internal.named_row, internal.with_defaults

box.schema.sequence = {}
box.sequence = {}

local INT64_MAX, INT64_MIN = 9223372036854775807ULL, -9223372036854775807LL - 1

local sequence_options = { step = 'number', min = 'number', max = 'number', start = 'number', cycle = 'boolean', cache = 'number' }
local sequence_create_options = with_defaults({ if_not_exists = 'boolean' }, sequence_options)
local sequence_alter_options = with_defaults({ name = 'string' }, sequence_options)

function box.schema.sequence.create(name, options)
    check_value(name, 'name', 'string')
    options = check_options(options, sequence_create_options)
    local existing = box.space._vsequence.index.name:get(name)
    if existing ~= nil then
        if options.if_not_exists then
            return box.sequence[name], 'not created'
        end
        fail('SEQUENCE_EXISTS', name)
    end
    local step = options.step or 1
    local is_up = step > 0
    local min = options.min ~= nil and options.min or is_up and 1 or INT64_MIN
    local max = options.max ~= nil and options.max or is_up and INT64_MAX or -1
    local start = options.start ~= nil and options.start or is_up and min or max
    atomically(function()
        -- Numbers from 2^30 on are those of sessions.
        local top = box.space._sequence.index[0]:select({ 2 ^ 30 }, { iterator = 'LT', limit = 1 })[1]
        local id = (top and top[1] or 0) + 1
        box.space._sequence:insert({
            id, internal.effective_user(), name, step, min, max, start, options.cache or 0, options.cycle or false,
        })
    end)
    return box.sequence[name]
end

local function sequence_row(name)
    return name ~= nil and named_row(box.space._vsequence, name) or nil
end

function box.schema.sequence.alter(name, options)
    options = check_options(options, sequence_alter_options)
    local row = sequence_row(name)
    if row == nil then
        fail('NO_SUCH_SEQUENCE', tostring(name))
    end
    local operations = {}
    for i, name in ipairs({ 'name', 'step', 'min', 'max', 'start', 'cache', 'cycle' }) do
        if options[name] ~= nil then
            table.insert(operations, { '=', i + 2, options[name] })
        end
    end
    if #operations > 0 then
        box.space._sequence:update(row[1], operations)
    end
end

function box.schema.sequence.drop(name, options)
    options = check_options(options, { if_exists = 'boolean' })
    local row = sequence_row(name)
    if row == nil then
        if options.if_exists then
            return
        end
        fail('NO_SUCH_SEQUENCE', tostring(name))
    end
    atomically(function()
        internal.as_admin(function()
            internal.drop_grants_on('sequence', row[1])
            box.space._sequence_data:delete(row[1])
        end)
        box.space._sequence:delete(row[1])
    end)
end

-- There are no older schemas than that of the directory: what Tarantool has left there is read as it is.
function box.schema.upgrade() end

local sequence_methods = {}
local sequence_metatable = { __index = sequence_methods }

local function check_sequence(sequence, method)
    if type(sequence) ~= 'table' or sequence.id == nil then
        error(('Use sequence:%s(...) instead of sequence.%s(...)'):format(method, method), 3)
    end
end

function sequence_methods.next(sequence)
    check_sequence(sequence, 'next')
    return internal.sequence_next(sequence.id)
end
function sequence_methods.current(sequence)
    check_sequence(sequence, 'current')
    return internal.sequence_current(sequence.id)
end
function sequence_methods.set(sequence, value)
    check_sequence(sequence, 'set')
    internal.sequence_set(sequence.id, value)
end
function sequence_methods.reset(sequence)
    check_sequence(sequence, 'reset')
    internal.sequence_reset(sequence.id)
end
function sequence_methods.alter(sequence, options)
    check_sequence(sequence, 'alter')
    box.schema.sequence.alter(sequence.id, options)
end
function sequence_methods.drop(sequence)
    check_sequence(sequence, 'drop')
    box.schema.sequence.drop(sequence.id)
end

function box.schema.sequence.bless(sequence)
    setmetatable(sequence, sequence_metatable)
end

-- Sequences and functions by name follow the schema -----------------------------------------------------------------
-- Returns what brings `target`, objects by name, up to date: with a list of numbers those, else all of them.
local function follower(target, metatable, list, definition)
    local by_id = {}
    local function forget(id)
        local object = by_id[id]
        if object ~= nil and rawget(target, object.name) == object then
            target[object.name] = nil
        end
    end
    local function show(def)
        local object = by_id[def.id] or setmetatable({}, metatable)
        by_id[def.id] = object
        for key in pairs(object) do
            object[key] = nil
        end
        for key, value in pairs(def) do
            object[key] = value
        end
        if def.language ~= nil then
            object.uid = nil
        end
        -- Functions of SQL cannot be called here.
        if def.language ~= 'SQL_BUILTIN' then
            target[def.name] = object
        end
    end
    return function(ids)
        if ids == nil then
            local defs, alive = list(), {}
            for _, def in ipairs(defs) do
                alive[def.id] = true
            end
            for id in pairs(by_id) do
                forget(id)
                if not alive[id] then
                    by_id[id] = nil
                end
            end
            for _, def in ipairs(defs) do
                show(def)
            end
            return
        end
        for _, id in ipairs(ids) do
            forget(id)
        end
        for _, id in ipairs(ids) do
            local def = definition(id)
            if def == nil then
                by_id[id] = nil
            else
                show(def)
            end
        end
    end
end

-- Kept here: before the first box.cfg it is hidden.
local function_root = {}
box.func = function_root
local follow_sequences = follower(box.sequence, sequence_metatable, internal.sequences, internal.sequence_definition)
-- The metatable is there once the module of rights is loaded.
local follow_functions
function internal.refresh_objects(changes)
    follow_functions = follow_functions
        or follower(function_root, internal.function_metatable, internal.functions, internal.function_definition)
    follow_sequences(changes and changes.sequence)
    follow_functions(changes and changes.func)
end
