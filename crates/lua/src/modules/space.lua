-- box.space, spaces and indexes as objects. They follow the schema: `internal.values.refresh` is called when it has changed.
local internal = ...

local fun = require('fun')

local space_methods, index_methods = {}, {}
local space_metatable = { __index = space_methods }
local index_metatable = { __index = index_methods }

internal.space_methods, internal.index_methods = space_methods, index_methods

-- Gives a table that describes a space, and those of its indexes, their methods.
function internal.bless_space(space)
    setmetatable(space, space_metatable)
    for _, index in pairs(type(space.index) == 'table' and space.index or {}) do
        setmetatable(index, index_metatable)
    end
end

-- All objects by space id: identity is kept while a space lives.
local objects = {}

box.space = setmetatable({}, {
    __serialize = function(self)
        local result = {}
        for name, space in pairs(self) do
            if type(name) == 'string' then
                result[name] = space
            end
        end
        return result
    end,
})

local root = box.space

-- What may be a list of operations.
local function is_list(value)
    return type(value) == 'table' or internal.is_tuple(value)
end

local iterators = {
    EQ = 0, REQ = 1, ALL = 2, LT = 3, LE = 4, GE = 5, GT = 6, BITS_ALL_SET = 7, BITS_ANY_SET = 8, BITS_ALL_NOT_SET = 9,
    OVERLAPS = 10, NEIGHBOR = 11,
}
box.index = {}
for name, code in pairs(iterators) do
    box.index[name] = code
end

-- The code of the wanted iterator; nil if none is wanted: then an empty key means ALL and any other EQ. The parameter has
-- Tarantool's name, which shows in the error that a number in its place gets.
local function iterator_of(opts, index, key)
    local kind = type(opts)
    if kind ~= 'table' and kind ~= 'nil' and kind ~= 'string' then
        -- Of two faults that of the key is named.
        internal.check_key(index.space_id, index.id, key)
    end
    local iterator = opts and opts.iterator
    if iterator == nil or iterator == false then
        iterator = kind == 'string' and opts or nil
    end
    if iterator == nil then
        return nil
    end
    if type(iterator) == 'number' then
        return iterator
    end
    if type(iterator) == 'string' then
        local code = iterators[iterator:upper()]
        if code ~= nil then
            return code
        end
    end
    internal.check_key(index.space_id, index.id, key)
    internal.fail('ITERATOR_TYPE', tostring(iterator))
end

local function is_empty_key(key)
    return key == nil or type(key) == 'table' and next(key) == nil or internal.is_tuple(key) and #key == 0
end

local function check_space(space, method)
    if type(space) ~= 'table' or rawget(space, 'id') == nil then
        error(('Use space:%s(...) instead of space.%s(...)'):format(method, method), 3)
    end
end

local function check_index(index, method)
    if type(index) ~= 'table' or rawget(index, 'id') == nil or rawget(index, 'space_id') == nil then
        error(('Use index:%s(...) instead of index.%s(...)'):format(method, method), 3)
    end
end

local function check_alive(space)
    if root[space.id] == nil then
        internal.fail('NO_SUCH_SPACE', space.name)
    end
end

local function primary(space)
    local index = space.index[0]
    if index == nil then
        internal.fail('NO_SUCH_INDEX_ID', 0, space.name)
    end
    return index
end

-- Space methods -----------------------------------------------------------------------------------------------------
function space_methods.insert(space, tuple)
    check_space(space, 'insert')
    return internal.insert(space.id, tuple)
end

function space_methods.replace(space, tuple)
    check_space(space, 'replace')
    return internal.replace(space.id, tuple)
end

function space_methods.put(space, tuple)
    check_space(space, 'put')
    return internal.replace(space.id, tuple)
end

function space_methods.update(space, key, operations)
    check_space(space, 'update')
    return primary(space):update(key, operations)
end

function space_methods.upsert(space, tuple, operations, deprecated)
    check_space(space, 'upsert')
    if deprecated ~= nil then
        local text = 'Error: extra argument in upsert call: %s. Usage :upsert(tuple, operations)'
        internal.fail('PROC_LUA', text:format(tostring(deprecated)))
    end
    if not is_list(tuple) or not is_list(operations) then
        error('Usage space:upsert(tuple_key, ops)', 2)
    end
    return internal.upsert(space.id, tuple, operations)
end

function space_methods.delete(space, key)
    check_space(space, 'delete')
    return primary(space):delete(key)
end

function space_methods.get(space, key, options)
    check_space(space, 'get')
    return primary(space):get(key, options)
end

function space_methods.select(space, key, options)
    check_space(space, 'select')
    return primary(space):select(key, options)
end

function space_methods.pairs(space, key, options)
    check_space(space, 'pairs')
    if space.index[0] == nil then
        -- A space without indexes has no rows.
        return fun.iter({})
    end
    return primary(space):pairs(key, options)
end

function space_methods.count(space, key, options)
    check_space(space, 'count')
    if space.index[0] == nil then
        return 0
    end
    return primary(space):count(key, options)
end

function space_methods.len(space)
    check_space(space, 'len')
    if space.index[0] == nil then
        return 0
    end
    return (internal.size(space.id))
end

function space_methods.bsize(space)
    check_space(space, 'bsize')
    check_alive(space)
    return (select(2, internal.size(space.id)))
end

function space_methods.truncate(space)
    check_space(space, 'truncate')
    internal.truncate(space.id)
end

function space_methods.auto_increment(space, tuple)
    check_space(space, 'auto_increment')
    local index = primary(space)
    -- The name shows in the error that a text in the first field gets.
    local top = index:max()
    local max = 0
    if top ~= nil then
        max = top[1]
    end
    table.insert(tuple, 1, max + 1)
    return space:insert(tuple)
end

function space_methods.format(space, format)
    check_space(space, 'format')
    return box.schema.space.format(space.id, format)
end

function space_methods.frommap(space, map, options)
    check_space(space, 'frommap')
    if type(map) ~= 'table' or options ~= nil and type(options) ~= 'table' then
        error('Usage: space:frommap(map, opts)', 2)
    end
    local row, positions, last = {}, {}, 0
    if internal.space_definition(space.id) == nil then
        return nil, ("Space with id '%d' doesn't exist"):format(space.id)
    end
    for i, field in ipairs(space:format()) do
        positions[field.name] = i
    end
    for name, value in pairs(map) do
        local position = positions[name]
        if position == nil then
            return nil, ("Unknown field '%s'"):format(tostring(name))
        end
        row[position] = value
        last = math.max(last, position)
    end
    if options and options.table then
        return row
    end
    for i = 1, last do
        if row[i] == nil then
            row[i] = box.NULL
        end
    end
    setmetatable(row, internal.values.array_metatable)
    local reason = internal.check_row(space.id, row)
    if reason ~= nil then
        return nil, reason
    end
    return box.tuple.new(row)
end

function space_methods.create_index(space, name, options)
    check_space(space, 'create_index')
    check_alive(space)
    return box.schema.index.create(space.id, name, options)
end

function space_methods.drop(space)
    check_space(space, 'drop')
    check_alive(space)
    box.schema.space.drop(space.id, space.name)
end

function space_methods.rename(space, name)
    check_space(space, 'rename')
    check_alive(space)
    box.schema.space.rename(space.id, name)
end

function space_methods.alter(space, options)
    check_space(space, 'alter')
    box.schema.space.alter(space.id, options)
end

function space_methods.run_triggers(space, is_enabled)
    check_space(space, 'run_triggers')
    check_alive(space)
    internal.run_triggers(space.id, is_enabled)
end

local function trigger_setter(name, is_before)
    -- By space object: they go with it.
    local lists = setmetatable({}, { __mode = 'k' })
    space_methods[name] = function(space, new, old)
        if type(space) ~= 'table' or rawget(space, 'id') == nil then
            error(('usage: space:%s(function | nil, [function | nil])'):format(name), 2)
        end
        local list = lists[space] or {}
        local result = internal.edit_triggers(list, new, old, true)
        if new ~= nil or old ~= nil then
            lists[space] = list
            internal.set_triggers(space.id, is_before, list)
        end
        if result ~= nil then
            return result
        end
    end
end

trigger_setter('on_replace', false)
trigger_setter('before_replace', true)

-- Index methods -----------------------------------------------------------------------------------------------------
-- get(key, {for_update = true, timeout = seconds}): the row is locked until the transaction ends.
local function get_with(index, key, options)
    if type(options) ~= 'table' then
        internal.illegal('options should be a table')
    end
    for name in pairs(options) do
        if name ~= 'for_update' and name ~= 'timeout' then
            internal.illegal(("unexpected option '%s'"):format(tostring(name)))
        end
    end
    local timeout = options.timeout
    if timeout ~= nil and (type(timeout) ~= 'number' or not (timeout >= 0)) then
        internal.illegal('timeout must be a number of seconds')
    end
    if not options.for_update then
        return internal.get(index.space_id, index.id, key)
    end
    return internal.get_for_update(index.space_id, index.id, key, timeout)
end

function index_methods.get(index, key, options)
    check_index(index, 'get')
    if options ~= nil then
        return get_with(index, key, options)
    end
    return internal.get(index.space_id, index.id, key)
end

function index_methods.select(index, key, opts)
    check_index(index, 'select')
    local offset, limit = 0, 4294967295
    local iterator = iterator_of(opts, index, key)
    if opts ~= nil then
        if opts.offset ~= nil then
            offset = opts.offset
        end
        if opts.limit ~= nil then
            limit = opts.limit
        end
        if type(offset) ~= 'number' and type(offset) ~= 'cdata' or type(limit) ~= 'number' and type(limit) ~= 'cdata' then
            error('select: offset and limit must be numbers', 2)
        end
        -- What is negative is meant as very large.
        offset = offset < 0 and 4294967295 or offset
        limit = limit < 0 and 4294967295 or limit
        if opts.after ~= nil or opts.fetch_pos ~= nil then
            if type(opts.fetch_pos) ~= 'boolean' and opts.fetch_pos ~= nil then
                error('select: fetch_pos must be a boolean', 2)
            end
            local rows, position =
                internal.select_page(index.space_id, index.id, iterator, key, offset, limit, opts.after)
            if opts.fetch_pos then
                return rows, position
            end
            return rows
        end
    end
    return internal.select(index.space_id, index.id, iterator, key, offset, limit)
end

-- Where a row stands in the index, for `after` of select.
function index_methods.tuple_pos(index, tuple)
    check_index(index, 'tuple_pos')
    if type(tuple) ~= 'table' and not box.tuple.is(tuple) then
        error('Usage: index:tuple_pos(tuple)', 2)
    end
    return internal.tuple_position(index.space_id, index.id, tuple)
end

local function scan_next(scan, state)
    local tuple = internal.iterator_next(scan.handle)
    if tuple == nil then
        return nil
    end
    return state, tuple
end

-- Rows that are asked for at once by who starts after a row.
local PAGE_ROWS = 100

local function page_next(scan, state)
    local row = scan.rows[scan.at]
    if row == nil and #scan.rows == PAGE_ROWS then
        scan.rows, scan.position = internal.select_page(scan.space_id, scan.index_id, scan.iterator, scan.key, 0, PAGE_ROWS,
            scan.position)
        scan.at = 1
        row = scan.rows[1]
    end
    if row == nil then
        return nil
    end
    scan.at = scan.at + 1
    return state, row
end

function index_methods.pairs(index, key, options)
    check_index(index, 'pairs')
    if type(options) == 'table' and options.after ~= nil then
        local scan = {
            space_id = index.space_id, index_id = index.id, iterator = iterator_of(options, index, key), key = key, at = 1,
        }
        scan.rows, scan.position = internal.select_page(scan.space_id, scan.index_id, scan.iterator, key, 0, PAGE_ROWS,
            options.after)
        return fun.wrap(page_next, scan, true)
    end
    local handle = internal.iterator(index.space_id, index.id, iterator_of(options, index, key), key)
    local guard = newproxy(true)
    getmetatable(guard).__gc = function() internal.iterator_close(handle) end
    return fun.wrap(scan_next, { handle = handle, guard = guard, key = key }, true)
end

function index_methods.count(index, key, options)
    check_index(index, 'count')
    return internal.count(index.space_id, index.id, iterator_of(options, index, key), key)
end

function index_methods.len(index)
    check_index(index, 'len')
    return (internal.size(index.space_id))
end

local function end_of(name, iterator, partial)
    index_methods[name] = function(index, key)
        check_index(index, name)
        if index.type == 'HASH' then
            if objects[index.space_id] == nil then
                internal.fail('NO_SUCH_SPACE', index.space_id)
            end
            internal.fail('UNSUPPORTED_INDEX_FEATURE', index.name, 'HASH', objects[index.space_id].name, 'memtx', name .. '()')
        end
        local kind = is_empty_key(key) and iterator or partial
        local found = internal.select(index.space_id, index.id, kind, key, 0, 1)[1]
        if found ~= nil then
            return found
        end
    end
end
end_of('min', iterators.GE, iterators.EQ)
end_of('max', iterators.LE, iterators.REQ)

function index_methods.random(index, seed)
    check_index(index, 'random')
    if seed ~= nil and type(seed) ~= 'number' then
        error('Usage index.random(space_id, index_id, rnd)', 2)
    end
    return internal.random(index.space_id, index.id, seed)
end

function index_methods.update(index, key, operations)
    check_index(index, 'update')
    if not is_list(operations) then
        error('Usage index:update(key, ops)', 2)
    end
    return internal.update(index.space_id, index.id, key == nil and {} or key, operations)
end

function index_methods.delete(index, key)
    check_index(index, 'delete')
    return internal.delete(index.space_id, index.id, key)
end

function index_methods.bsize(index)
    check_index(index, 'bsize')
    return internal.index_size(index.space_id, index.id)
end

function index_methods.drop(index)
    check_index(index, 'drop')
    box.schema.index.drop(index.space_id, index.id)
end

function index_methods.rename(index, name)
    check_index(index, 'rename')
    box.schema.index.rename(index.space_id, index.id, name)
end

function index_methods.alter(index, options)
    check_index(index, 'alter')
    box.schema.index.alter(index.space_id, index.id, options)
end

function index_methods.compact(index)
    check_index(index, 'compact')
    internal.compact_index(index.space_id, index.id)
end

function index_methods.stat(index)
    check_index(index, 'stat')
    return internal.nested(internal.index_statistics(index.space_id, index.id) or {})
end

-- Objects that follow the schema ------------------------------------------------------------------------------------
local function clear(object)
    for key in pairs(object) do
        object[key] = nil
    end
end

local function refresh_indexes(space, list)
    local old = space.index
    local fresh = {}
    for _, def in ipairs(list) do
        local index = old and rawget(old, def.id) or setmetatable({}, index_metatable)
        clear(index)
        for key, value in pairs(def) do
            index[key] = value
        end
        index.space_id = space.id
        fresh[def.id] = index
        fresh[def.name] = index
    end
    if old then
        clear(old)
        for key, index in pairs(fresh) do
            old[key] = index
        end
    else
        space.index = fresh
    end
end

-- Takes a space out under the names that it had.
local function forget_space(id)
    local space = objects[id]
    if space == nil then
        return
    end
    for _, key in ipairs({ id, space.name }) do
        if rawget(root, key) == space then
            rawset(root, key, nil)
        end
    end
end

local function show_space(def)
    local id = def.id
    local space = objects[id] or setmetatable({}, space_metatable)
    objects[id] = space
    for _, key in ipairs({ 'id', 'name', 'engine', 'field_count', 'is_local', 'temporary', 'enabled', 'constraint', 'foreign_key' }) do
        space[key] = def[key]
    end
    space.is_sync = false
    space.ck_constraint = space.ck_constraint or {}
    refresh_indexes(space, def.indexes)
    rawset(root, id, space)
    rawset(root, def.name, space)
end

local function refresh_all_spaces()
    local alive = {}
    for _, def in ipairs(internal.spaces()) do
        alive[def.id] = def
    end
    for id in pairs(objects) do
        forget_space(id)
        if alive[id] == nil then
            objects[id] = nil
        end
    end
    for _, def in pairs(alive) do
        show_space(def)
    end
end

local function refresh_spaces(ids)
    -- All old names go before the first new one comes: two may have changed them.
    for _, id in ipairs(ids) do
        forget_space(id)
    end
    for _, id in ipairs(ids) do
        local def = internal.space_definition(id)
        if def == nil then
            objects[id] = nil
        else
            show_space(def)
        end
    end
end

-- `changes` has the numbers of what is not as it was: {space, sequence, func}; nil if everything may be.
function internal.values.refresh(changes)
    if changes == nil then
        refresh_all_spaces()
    else
        refresh_spaces(changes.space)
    end
    if internal.refresh_objects then
        internal.refresh_objects(changes)
    end
end
