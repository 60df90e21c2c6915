-- box.schema.space and .index: rows of the system spaces, written by names.
local internal = ...

box.schema = {
    SPACE_ID = 280, VSPACE_ID = 281, INDEX_ID = 288, VINDEX_ID = 289, FUNC_ID = 296, VFUNC_ID = 297, USER_ID = 304,
    VUSER_ID = 305, PRIV_ID = 312, VPRIV_ID = 313, CLUSTER_ID = 320, TRUNCATE_ID = 330, SCHEMA_ID = 272,
    SYSTEM_ID_MIN = 256, SYSTEM_ID_MAX = 511, SYSTEM_USER_ID_MIN = 0, SYSTEM_USER_ID_MAX = 2, ADMIN_ID = 1, GUEST_ID = 0,
    PUBLIC_ROLE_ID = 2, SUPER_ROLE_ID = 31, SYSTEM_ROLE_ID_MIN = 2, SPACE_MAX = 2147483647, INDEX_MAX = 128, FIELD_MAX = 2147483647,
    NAME_MAX = 65000, FORMAT_ID_MAX = 65534, REPLICA_MAX = 32, COLLATION_ID = 276, SEQUENCE_ID = 284, SEQUENCE_DATA_ID = 285,
    SPACE_SEQUENCE_ID = 340, FK_CONSTRAINT_ID = 356, CK_CONSTRAINT_ID = 364, FUNC_INDEX_ID = 372, SESSION_SETTINGS_ID = 380,
    INDEX_FIELD_MAX = 32767, INDEX_PART_MAX = 255, TRIGGER_ID = 328, VCOLLATION_ID = 277, VSEQUENCE_ID = 286,
    VINYL_DEFERRED_DELETE_ID = 257, SQL_BIND_PARAMETER_MAX = 65000,
}

local illegal, fail = internal.illegal, internal.fail

-- Options of spaces that Tarantool does not have stand below 'checks', which it and its tools pass over.
local function set_own_options(flags, options)
    local own = type(flags.checks) == 'table' and #flags.checks == 0 and flags.checks or {}
    if options.ttl ~= nil or type(options.ttl) == 'cdata' then
        local ttl = options.ttl
        -- {} or box.NULL: rows do not expire any more.
        if ttl == nil or type(ttl) == 'table' and next(ttl) == nil then
            own.ttl = nil
        else
            own.ttl = ttl
        end
    end
    if options.memory_limit ~= nil then
        own.memory_limit = options.memory_limit ~= 0 and options.memory_limit or nil
        if own.memory_limit == nil then
            own.eviction = nil
        end
    end
    if options.eviction ~= nil then
        own.eviction = options.eviction
    end
    if options.actions ~= nil then
        own.foreign_key = next(options.actions) ~= nil and internal.map(options.actions) or nil
    end
    for name, value in pairs(own) do
        own[name] = type(value) == 'table' and internal.map(value) or value
    end
    flags.checks = next(own) ~= nil and internal.map(own) or nil
end

local function array(list)
    return setmetatable(list, internal.values.array_metatable)
end

-- Maps of system rows are written in a fixed order: the same calls make the same rows, and the same log, in every process.
local ordered_map_metatable = { __serialize = 'ordered' }

local function map(table)
    return setmetatable(table, ordered_map_metatable)
end
internal.array, internal.map = array, map

local int64, uint64 = internal.types.int64, internal.types.uint64
local istype = require('ffi').istype

-- The type of an argument: 64-bit integers are numbers as well.
local function type_of(value)
    local kind = type(value)
    if kind == 'cdata' and (istype(int64, value) or istype(uint64, value)) then
        return 'number'
    end
    return kind
end

-- Whether a value is of one of the types that a template names ("number, string", "any").
local function has_type(value, wanted)
    if wanted == 'any' then
        return true
    end
    local kind = type_of(value)
    for name in wanted:gmatch('%a+') do
        if name == kind then
            return true
        end
    end
    return false
end

-- Checks options against {name = type}; box.NULL is of no type. Errors: code 1, as Tarantool words it.
local function check_options(options, template)
    if options == nil then
        return {}
    end
    if type(options) ~= 'table' then
        illegal('options should be a table')
    end
    if options.dont_check then
        return options
    end
    -- Whatever indexes a pointer reads memory.
    assert(type(template) == 'table', 'a template is a table')
    for name, value in pairs(options) do
        local wanted = template[name]
        if wanted == nil then
            illegal("unexpected option '%s'", tostring(name))
        end
        if not has_type(value, wanted) then
            if wanted:find(',') then
                illegal("options parameter '%s' should be one of types: %s", name, wanted)
            end
            illegal("options parameter '%s' should be of type %s", name, wanted)
        end
    end
    return options
end

local function check_value(value, name, wanted)
    if not has_type(value, wanted) then
        illegal('%s should be a %s', name, wanted)
    end
end

internal.check_options, internal.check_value = check_options, check_value

local function with_defaults(options, defaults)
    local result = {}
    for name, value in pairs(defaults) do
        result[name] = value
    end
    for name, value in pairs(options) do
        result[name] = value
    end
    return result
end

internal.with_defaults = with_defaults

-- Runs steps in one transaction, or in the one that is open.
local function atomically(steps)
    if box.is_in_txn() then
        return steps()
    end
    box.begin()
    local ok, result = pcall(steps)
    if not ok then
        box.rollback()
        error(result, 0)
    end
    box.commit()
    return result
end
internal.atomically = atomically

-- The row that a name or a number stands for in a view by which the user sees such objects. What is neither is refused as a key is.
local function named_row(view, name)
    if type(name) == 'string' then
        return view.index.name:get({ name })
    end
    return view:get({ name })
end
internal.named_row = named_row

-- The number of a user or role; nil if there is none.
local function user_id(user)
    local row = named_row(box.space._vuser, user)
    return row and row[1]
end
internal.user_id = user_id

-- Constraints -------------------------------------------------------------------------------------------------------
-- {name = function, function, ...} or a function's name, as {name = number of the function}.
local function constraint_map(given, prefix)
    if type(given) == 'string' then
        given = { given }
    elseif type(given) ~= 'table' then
        illegal(prefix .. 'constraint must be string or table')
    end
    local result = {}
    for name, func in pairs(given) do
        local row
        if type(func) == 'number' and type(name) == 'string' then
            row = box.space._vfunc:get(func)
        elseif type(func) == 'string' then
            row = box.space._vfunc.index.name:get(func)
        else
            illegal('%sconstraint function is expected to be a string, but got %s', prefix, type(func))
        end
        if row == nil then
            illegal("%sconstraint function was not found by name '%s'", prefix, tostring(func))
        end
        if type(name) == 'number' then
            name = func
        elseif type(name) ~= 'string' then
            illegal('%sconstraint name is expected to be a string, but got %s', prefix, type(name))
        end
        result[name] = row[1]
    end
    return map(result)
end

-- One foreign key; what happens to rows that name another goes to `actions`, by the name of the key.
local function foreign_key_row(name, def, own, prefix, is_complex, actions)
    local field = def.field
    if field == nil then
        illegal(prefix .. 'foreign key: field must be specified')
    end
    if def.space ~= nil and type(def.space) ~= 'string' and type(def.space) ~= 'number' then
        illegal(prefix .. 'foreign key: space must be string or number')
    end
    local function field_ref(value, what)
        if type(value) ~= 'string' and type(value) ~= 'number' then
            illegal('%sforeign key: %s must be string or number', prefix, what)
        end
        return type(value) == 'number' and value - 1 or value
    end
    if not is_complex then
        field = field_ref(field, 'field')
    else
        if type(field) ~= 'table' or next(field) == nil then
            illegal(prefix .. 'foreign key: field must be a table with local field -> foreign field mapping')
        end
        local pairs_of = {}
        for here, there in pairs(field) do
            pairs_of[field_ref(here, 'local field')] = field_ref(there, 'foreign field')
        end
        field = map(pairs_of)
    end
    for key in pairs(def) do
        if key ~= 'space' and key ~= 'field' and key ~= 'on_delete' and key ~= 'on_update' then
            illegal("%sforeign key: unexpected parameter '%s'", prefix, tostring(key))
        end
    end
    local is_own = def.space == nil or def.space == own.id or def.space == own.name
    local row = { field = field }
    if not is_own then
        local parent = box.space[def.space]
        if parent == nil then
            illegal('%sforeign key: space %s was not found', prefix, tostring(def.space))
        end
        row.space = parent.id
    end
    if def.on_delete ~= nil or def.on_update ~= nil then
        actions[name] = map({ on_delete = def.on_delete, on_update = def.on_update })
    end
    return map(row)
end

local function foreign_key_map(given, own, prefix, is_complex, actions)
    if type(given) ~= 'table' then
        illegal(prefix .. 'foreign key must be a table')
    end
    if given.field ~= nil and (type(given.space) ~= 'table' or type(given.field) ~= 'table') then
        -- One without a name has that of the space that it is about.
        local is_own = given.space == nil or given.space == own.id or given.space == own.name
        local parent = not is_own and box.space[given.space]
        local name = is_own and (own.name or 'unknown') or parent and parent.name or tostring(given.space)
        given = { [name] = given }
    end
    local result = {}
    for name, def in pairs(given) do
        if type(name) ~= 'string' then
            illegal(prefix .. 'foreign key name must be a string')
        end
        if type(def) ~= 'table' then
            illegal("%sforeign key definition must be a table with 'space' and 'field' members", prefix)
        end
        result[name] = foreign_key_row(name, def, own, prefix, is_complex, actions)
    end
    return map(result)
end

-- Formats -----------------------------------------------------------------------------------------------------------
-- The name may be the first element and the type the second; where one of them is given by its key, an element that is left over is
-- kept, and refused by who writes the row.
local function format_row(given, i, own, actions)
    local field = {}
    if type(given) == 'table' then
        for key, value in pairs(given) do
            if key == 1 and given.name == nil then
                field.name = value
            elseif key == 1 and given.type == nil or key == 2 and given.type == nil and given.name == nil then
                field.type = value
            elseif key == 'collation' then
                local row = box.space._vcollation.index.name:get({ value })
                if row == nil then
                    illegal("format[%d]: collation was not found by name '%s'", i, value)
                end
                field.collation = row[1]
            elseif key == 'constraint' then
                field.constraint = constraint_map(value, ('format[%d]: '):format(i))
            elseif key == 'foreign_key' then
                field.foreign_key = foreign_key_map(value, own, ('format[%d]: '):format(i), false, actions)
            else
                field[key] = value
            end
        end
    else
        field.name = given
    end
    if type(field.name) ~= 'string' then
        illegal('format[%d]: name (string) is expected', i)
    end
    if field.type == nil then
        field.type = 'any'
    elseif type(field.type) ~= 'string' then
        illegal('format[%d]: type must be a string', i)
    end
    for key in pairs(field) do
        if type(key) ~= 'string' then
            return field
        end
    end
    return map(field)
end

-- `own`: number and name of the space; `actions` gets what happens to rows that name others.
local function format_rows(format, own, actions)
    local rows = {}
    for i, given in ipairs(format or {}) do
        rows[i] = format_row(given, i, own or {}, actions or {})
    end
    return array(rows)
end

-- A format as it is given: fields that foreign keys name have numbers from 1, and what happens stands with the key.
local function shown_format(row)
    local own = type(row[6].checks) == 'table' and row[6].checks.foreign_key or {}
    local format = row[7]
    for _, field in ipairs(format) do
        for name, key in pairs(type(field.foreign_key) == 'table' and field.foreign_key or {}) do
            if type(key.field) == 'number' then
                key.field = key.field + 1
            end
            for event, action in pairs(own[name] or {}) do
                key[event] = action
            end
        end
    end
    return format
end

-- Spaces ------------------------------------------------------------------------------------------------------------
box.schema.space = {}

-- The methods of all spaces and indexes: what a program adds to them all have.
box.schema.space_mt = internal.space_methods
box.schema.index_mt, box.schema.memtx_index_mt, box.schema.vinyl_index_mt = internal.index_methods, internal.index_methods, internal.index_methods

function box.schema.space.bless(space)
    internal.bless_space(space)
end

local function next_space_id()
    local _schema = box.space._schema
    -- The right to write there is enough.
    local row = _schema:update('max_id', { { '+', 2, 1 } })
    if row == nil then
        local top = internal.as_admin(function() return box.space._space.index[0]:max() end)
        row = _schema:insert({ 'max_id', math.max(top and top[1] or 0, box.schema.SYSTEM_ID_MAX) + 1 })
    end
    while internal.as_admin(function() return box.space._space:get(row[2]) end) ~= nil do
        row = _schema:update('max_id', { { '+', 2, 1 } })
    end
    return row[2]
end

function box.schema.space.create(name, options)
    check_value(name, 'name', 'string')
    options = check_options(options, {
        if_not_exists = 'boolean', engine = 'string', id = 'number', field_count = 'number', user = 'string, number',
        format = 'table', is_local = 'boolean', temporary = 'boolean', is_sync = 'boolean', ttl = 'table, cdata',
        memory_limit = 'number', eviction = 'string', constraint = 'string, table', foreign_key = 'table',
    })
    options = with_defaults(options, { engine = 'memtx', field_count = 0, temporary = false })
    if options.engine == 'disk' then
        options.engine = 'vinyl'
    end
    local existing = box.space[name]
    if existing then
        if options.if_not_exists then
            return existing, 'not created'
        end
        fail('SPACE_EXISTS', name)
    end
    local owner = internal.effective_user()
    if options.user then
        owner = user_id(options.user)
        if owner == nil then
            fail('NO_SUCH_USER', tostring(options.user))
        end
    end
    local actions = {}
    local own = { id = options.id, name = name }
    local format = format_rows(options.format, own, actions)
    local flags = map({})
    if options.constraint ~= nil then
        flags.constraint = constraint_map(options.constraint, '')
    end
    if options.foreign_key ~= nil then
        flags.foreign_key = foreign_key_map(options.foreign_key, own, '', true, actions)
    end
    if options.is_local then
        flags.group_id = 1
    end
    if options.temporary then
        flags.temporary = true
    end
    if options.is_sync then
        flags.is_sync = true
    end
    options.actions = actions
    set_own_options(flags, options)
    local id = atomically(function()
        local id = options.id or next_space_id()
        box.space._space:insert({ id, owner, name, options.engine, options.field_count, flags, format })
        return id
    end)
    return box.space[id], 'created'
end
box.schema.create_space = box.schema.space.create

function box.schema.space.format(id, format)
    check_value(id, 'id', 'number')
    if format == nil then
        local row = box.space._vspace:get(id)
        if row == nil then
            fail('NO_SUCH_SPACE', '#' .. tostring(id))
        end
        return shown_format(row)
    end
    check_value(format, 'format', 'table')
    local space = box.space[id]
    local actions = {}
    local operations = { { '=', 7, format_rows(format, { id = id, name = space and space.name }, actions) } }
    if next(actions) ~= nil then
        local flags = box.space._space:get(id)[6]
        for name, one in pairs(type(flags.checks) == 'table' and flags.checks.foreign_key or {}) do
            actions[name] = actions[name] or map(one)
        end
        set_own_options(flags, { actions = actions })
        table.insert(operations, { '=', 6, map(flags) })
    end
    box.space._space:update(id, operations)
end

-- Drops the sequence that was made with a primary key.
local function drop_generated_sequence(space_id)
    local link = box.space._space_sequence:delete(space_id)
    if link ~= nil and link[3] then
        internal.as_admin(function() box.schema.sequence.drop(link[2]) end)
    end
end

function box.schema.space.drop(id, name, options)
    check_value(id, 'space_id', 'number')
    options = check_options(options, { if_exists = 'boolean' })
    if box.space[id] == nil then
        if options.if_exists then
            return
        end
        fail('NO_SUCH_SPACE', name or '#' .. tostring(id))
    end
    atomically(function()
        drop_generated_sequence(id)
        local indexes = box.space._vindex:select({ id })
        for i = #indexes, 1, -1 do
            box.space._index:delete({ id, indexes[i][2] })
        end
        internal.as_admin(function()
            internal.drop_grants_on('space', id)
            box.space._truncate:delete(id)
        end)
        if box.space._space:delete(id) == nil then
            fail('NO_SUCH_SPACE', name or '#' .. tostring(id))
        end
    end)
end

function box.schema.space.rename(id, name)
    check_value(id, 'space_id', 'number')
    check_value(name, 'space_name', 'string')
    box.space._space:update(id, { { '=', 3, name } })
end

function box.schema.space.alter(id, options)
    local space = box.space[id]
    if space == nil then
        fail('NO_SUCH_SPACE', '#' .. tostring(id))
    end
    options = check_options(options, {
        field_count = 'number', user = 'string, number', format = 'table', temporary = 'boolean', is_sync = 'boolean',
        name = 'string', ttl = 'table, cdata', memory_limit = 'number', eviction = 'string',
        constraint = 'string, table', foreign_key = 'table',
    })
    local actions, own = {}, { id = id, name = options.name or space.name }
    local row = box.space._space:get(id)
    local operations = {}
    if options.user then
        table.insert(operations, { '=', 2, user_id(options.user) or fail('NO_SUCH_USER', tostring(options.user)) })
    end
    if options.name then
        table.insert(operations, { '=', 3, options.name })
    end
    if options.field_count then
        table.insert(operations, { '=', 5, options.field_count })
    end
    local format = options.format and format_rows(options.format, own, actions)
    local has_constraints = options.constraint ~= nil or options.foreign_key ~= nil or next(actions) ~= nil
    local has_own = type(options.ttl) ~= 'nil' or options.memory_limit or options.eviction
    if options.temporary ~= nil or has_own or has_constraints then
        local flags = row[6]
        if options.constraint ~= nil then
            flags.constraint = constraint_map(options.constraint, '')
            flags.constraint = next(flags.constraint) ~= nil and flags.constraint or nil
        elseif flags.constraint then
            map(flags.constraint)
        end
        if options.foreign_key ~= nil then
            local keys = next(options.foreign_key) ~= nil and options.foreign_key or map({})
            flags.foreign_key = foreign_key_map(keys, own, '', true, actions)
            flags.foreign_key = next(flags.foreign_key) ~= nil and flags.foreign_key or nil
        end
        if has_constraints then
            local before = type(flags.checks) == 'table' and flags.checks.foreign_key or {}
            for key, one in pairs(before) do
                local is_kept = options.foreign_key == nil or flags.foreign_key == nil or flags.foreign_key[key] == nil
                if actions[key] == nil and is_kept then
                    actions[key] = map(one)
                end
            end
            options.actions = actions
        end
        if options.temporary ~= nil then
            flags.temporary = options.temporary and true or nil
        end
        set_own_options(flags, options)
        table.insert(operations, { '=', 6, map(flags) })
    end
    if format then
        table.insert(operations, { '=', 7, format })
    end
    if #operations > 0 then
        box.space._space:update(id, operations)
    end
end

-- Indexes -----------------------------------------------------------------------------------------------------------
box.schema.index = {}

local function field_by_name(space_id, name)
    for i, field in ipairs(box.schema.space.format(space_id)) do
        if field.name == name then
            return i, field
        end
    end
end

local type_aliases = { num = 'unsigned', uint = 'unsigned', str = 'string', int = 'integer' }

-- A flat list, field, type, field, type ..., as a list of parts.
local function parts_of_pairs(given)
    local list = {}
    for i = 1, #given, 2 do
        if #given % 2 ~= 0 or type(given[i]) ~= 'number' then
            illegal('options.parts: expected field_no (number), type (string) pairs')
        elseif given[i] == 0 then
            illegal('invalid index parts: field_no must be one-based')
        elseif type(given[i + 1]) ~= 'string' then
            illegal('options.parts: expected field_no (number), type (string) pairs')
        elseif given[i] < 0 then
            fail('WRONG_INDEX_PARTS', 'field id must be an integer')
        end
        list[#list + 1] = { given[i], given[i + 1] }
    end
    return list
end

-- The number of a collation by its name or number; nil for 'none', which is the absence of one.
local function part_collation(i, given)
    local view, row = box.space._vcollation, nil
    if type(given) == 'string' then
        row = view.index.name:get(given) or view.index.name:get(given:lower())
    else
        row = view:get(given)
    end
    if row == nil then
        illegal('options.parts[%d]: collation was not found by name \'%s\'', i, tostring(given))
    end
    return row[2] ~= 'none' and row[1] or nil
end

-- The keys of a part, checked one by one; and what is said of one that is unknown, once the field is known to be good.
local function part_keys(i, given)
    local part, unknown = {}, nil
    for key, value in pairs(given) do
        if key == 1 or key == 'field' then
            part.field = value
        elseif key == 2 or key == 'type' then
            if type(value) ~= 'string' then
                illegal('options.parts[%d]: type (string) is expected', i)
            end
            part.type = value
        elseif key == 'collation' then
            part.collation = part_collation(i, value)
        elseif key == 'is_nullable' then
            if type(value) ~= 'boolean' then
                illegal('options.parts[%d]: type (boolean) is expected', i)
            end
            part.is_nullable = value
        elseif key == 'path' then
            part.path = value
        else
            unknown = type(key) == 'string' and ("unexpected option '%s'"):format(key) or 'key must be a string'
        end
    end
    return part, unknown
end

-- The number of a part's field, from 1.
local function part_field(space_id, i, field)
    if type(field) == 'string' then
        local number = field_by_name(space_id, field)
        if number == nil then
            local head = field:match('^([^%.%[]+)[%.%[]')
            if head and field_by_name(space_id, head) then
                fail('UNSUPPORTED', 'Lycosa', 'indexes on JSON paths yet')
            end
            illegal('options.parts[%d]: field was not found by name \'%s\'', i, field)
        end
        return number
    elseif type(field) ~= 'number' then
        illegal('options.parts[%d]: field (name or number) is expected', i)
    elseif field <= 0 then
        illegal('options.parts[%d]: field (number) must be one-based', i)
    end
    return field
end

-- One part as it stands in a row: {field=0.., type=.., collation=, is_nullable=}. A flat list takes nothing over from the format.
local function part_of(space_id, format, i, given, is_flat)
    local part, unknown = part_keys(i, type(given) == 'table' and given or { given })
    local field = part_field(space_id, i, part.field)
    if unknown ~= nil then
        fail('WRONG_INDEX_OPTIONS', i, unknown)
    end
    if part.path ~= nil and type(part.path) ~= 'string' then
        fail('WRONG_INDEX_OPTIONS', i, "'path' must be string")
    end
    if part.path ~= nil then
        fail('UNSUPPORTED', 'Lycosa', 'indexes on JSON paths yet')
    end
    local known = format[field]
    local kind = part.type and part.type:lower()
    kind = type_aliases[kind] or kind
    if kind == nil then
        kind = known and known.type ~= 'any' and known.type or 'scalar'
    end
    if part.collation ~= nil and kind ~= 'string' and kind ~= 'scalar' then
        fail('WRONG_INDEX_OPTIONS', i, 'collation is reasonable only for string and scalar parts')
    end
    part.field, part.type = field - 1, kind
    if part.is_nullable == nil and not is_flat and known and known.is_nullable then
        part.is_nullable = true
    end
    return part
end

-- The four spellings of parts as rows. Parts that have only a field and a type are written as pairs.
local function parts_of(space_id, given)
    if type(given) == 'string' or type(given) == 'number' then
        given = { given }
    end
    if type(given) ~= 'table' then
        illegal("options.parts should be a table")
    end
    if #given == 0 then
        illegal('options.parts must have at least one part')
    end
    local is_flat = type(given[1]) == 'number' and type(given[2]) == 'string'
    local list = is_flat and parts_of_pairs(given) or given
    local format = box.schema.space.format(space_id)
    local parts, is_simple = {}, true
    for i, one in ipairs(list) do
        parts[i] = part_of(space_id, format, i, one, is_flat)
        for key in pairs(parts[i]) do
            is_simple = is_simple and (key == 'field' or key == 'type')
        end
    end
    for i, part in ipairs(parts) do
        parts[i] = is_simple and array({ part.field, part.type }) or map(part)
    end
    return array(parts)
end

local index_options = {
    parts = 'table', unique = 'boolean', id = 'number', if_not_exists = 'boolean', dimension = 'number',
    distance = 'string', sequence = 'boolean, number, string, table', type = 'string', func = 'number, string',
    hint = 'boolean', page_size = 'number', range_size = 'number', run_count_per_level = 'number',
    run_size_ratio = 'number', bloom_fpr = 'number',
}

-- How an index on disk is kept: options that its row has, by the names of box.cfg's without `vinyl_`.
local disk_options = { 'page_size', 'range_size', 'run_count_per_level', 'run_size_ratio', 'bloom_fpr' }

local function check_distance(options)
    local distance = options.distance and options.distance:lower()
    if distance and distance ~= 'euclid' and distance ~= 'manhattan' then
        fail('WRONG_INDEX_OPTIONS', 4, "distance must be either 'euclid' or 'manhattan'")
    end
end

-- Connects a space's primary key with a sequence as the `sequence` option asks.
local function sequence_for(space, parts, wanted, index_id)
    if wanted == nil or wanted == false then
        return nil
    end
    if index_id ~= 0 then
        fail('MODIFY_INDEX', space.name, box.space[space.id].name, 'sequence cannot be used with a secondary key')
    end
    local field_no, id = 0, nil
    local options = type(wanted) == 'table' and wanted or { id = wanted }
    if type(wanted) == 'table' then
        check_options(wanted, { id = 'number, string', field = 'number, string' })
    end
    if options.field ~= nil then
        local number = options.field
        if type(number) == 'string' then
            number = field_by_name(space.id, number)
            if number == nil then
                illegal('sequence field was not found by name \'%s\'', tostring(options.field))
            end
        end
        field_no = number - 1
    else
        local part = parts[1]
        field_no = part.field or part[1]
    end
    id = options.id
    local is_generated = false
    if id == nil or id == true then
        id, is_generated = nil, true
    else
        local row = type(id) == 'string' and box.space._vsequence.index.name:get(id) or
            type(id) == 'number' and box.space._vsequence:get(id) or nil
        if row == nil then
            fail('NO_SUCH_SEQUENCE', tostring(id))
        end
        id = row[1]
    end
    return { id = id, field_no = field_no, is_generated = is_generated }
end

local function connect_sequence(space_id, connection)
    if connection.is_generated and connection.id == nil then
        connection.id = box.schema.sequence.create(box.space[space_id].name .. '_seq', {}).id
    end
    box.space._space_sequence:replace({ space_id, connection.id, connection.is_generated, connection.field_no, '' })
end

function box.schema.index.create(space_id, name, options)
    check_value(space_id, 'space_id', 'number')
    check_value(name, 'name', 'string')
    options = check_options(options, index_options)
    local space = box.space[space_id]
    if space == nil then
        fail('NO_SUCH_SPACE', '#' .. tostring(space_id))
    end
    local existing = space.index[name]
    if existing then
        if options.if_not_exists then
            return existing, 'not created'
        end
        fail('INDEX_EXISTS', name)
    end
    box.space._space_sequence:get(space_id)
    check_distance(options)
    -- It is kept as it was written.
    local written = options.type or 'tree'
    local kind = written:lower()
    if (kind == 'bitset' or kind == 'rtree') and space.engine ~= 'vinyl' then
        fail('UNSUPPORTED', 'Lycosa', kind .. ' indexes yet')
    end
    if options.func ~= nil then
        fail('UNSUPPORTED', 'Lycosa', 'functional indexes yet')
    end
    local parts
    if options.parts == nil then
        local format = box.schema.space.format(space_id)
        local known = format[1]
        parts = parts_of(space_id, { { 1, known and known.type ~= 'any' and known.type or 'unsigned' } })
    else
        parts = parts_of(space_id, options.parts)
    end
    local id = options.id
    if id == nil then
        -- Another index may be on its way, and gets the number that is free now.
        internal.wait_for_change(space_id)
        id = 0
        for _, row in ipairs(box.space._vindex:select({ space_id })) do
            if row[2] >= id then
                id = row[2] + 1
            end
        end
    end
    local flags = map({ unique = options.unique ~= false })
    if options.dimension ~= nil then
        flags.dimension = options.dimension
    end
    for _, option in ipairs(disk_options) do
        local default = box.cfg['vinyl_' .. option]
        if options[option] ~= nil then
            flags[option] = options[option]
        elseif space.engine == 'vinyl' and default ~= 0 then
            flags[option] = default
        end
    end
    local connection = sequence_for({ id = space_id, name = name }, parts, options.sequence, id)
    atomically(function()
        box.space._index:insert({ space_id, id, name, written, flags, parts })
        if connection then
            connect_sequence(space_id, connection)
        end
    end)
    return box.space[space_id].index[name]
end

local function index_row(space_id, index_id)
    local row = box.space._index:get({ space_id, index_id })
    if row == nil then
        fail('NO_SUCH_INDEX_ID', index_id, box.space[space_id] and box.space[space_id].name or '#' .. tostring(space_id))
    end
    return row
end

function box.schema.index.drop(space_id, index_id)
    check_value(space_id, 'space_id', 'number')
    check_value(index_id, 'index_id', 'number')
    atomically(function()
        if index_id == 0 then
            drop_generated_sequence(space_id)
        end
        box.space._index:delete({ space_id, index_id })
    end)
end

function box.schema.index.rename(space_id, index_id, name)
    check_value(space_id, 'space_id', 'number')
    check_value(index_id, 'index_id', 'number')
    check_value(name, 'name', 'string')
    box.space._index:update({ space_id, index_id }, { { '=', 3, name } })
end

function box.schema.index.alter(space_id, index_id, options)
    local space = box.space[space_id]
    if space == nil then
        fail('NO_SUCH_SPACE', '#' .. tostring(space_id))
    end
    if space.index[index_id] == nil then
        fail('NO_SUCH_INDEX_ID', index_id, space.name)
    end
    if options == nil then
        return
    end
    options = check_options(options, with_defaults({ name = 'string' }, index_options))
    local row = index_row(space_id, index_id):totable()
    map(row[5])
    for _, part in ipairs(row[6]) do
        -- Others are lists of a field and its type.
        if part.field then
            map(part)
        end
    end
    if options.id ~= nil then
        illegal('Index id can not be changed: operation is not supported')
    end
    check_distance(options)
    if options.name then
        row[3] = options.name
    end
    if options.type then
        row[4] = options.type:lower()
    end
    if options.unique ~= nil then
        row[5].unique = options.unique
    end
    for _, option in ipairs(disk_options) do
        if options[option] ~= nil then
            row[5][option] = options[option]
        end
    end
    if options.parts then
        row[6] = parts_of(space_id, options.parts)
    end
    local sequence = options.sequence
    local connection = sequence_for({ id = space_id, name = row[3] }, row[6], sequence, index_id)
    atomically(function()
        if sequence == false then
            drop_generated_sequence(space_id)
        end
        box.space._index:replace(row)
        if connection then
            connect_sequence(space_id, connection)
        end
    end)
end
