-- Spaces and indexes of a connection of net.box: what can be asked of them.
local internal = ...

local parts = internal.net_box
internal.net_box = nil
local KEY, REQUEST = parts.KEY, parts.REQUEST
local space_methods, index_methods = parts.space_methods, parts.index_methods
local perform, decode_body = parts.perform, parts.decode_body
local finish_rows, finish_value, new_error = parts.finish_rows, parts.finish_value, parts.new_error
local codes = box.error

local ITERATORS = {
    EQ = 0, REQ = 1, ALL = 2, LT = 3, LE = 4, GE = 5, GT = 6, BITS_ALL_SET = 7, BITS_ANY_SET = 8, BITS_ALL_NOT_SET = 9,
    OVERLAPS = 10, NEIGHBOR = 11,
}

local function finish_row(body, size)
    local rows = internal.remote_data(body, size, 'rows')
    return rows and rows[1] or nil
end

local function finish_one(body, size)
    local rows = internal.remote_data(body, size, 'rows') or {}
    if rows[2] ~= nil then
        return nil, new_error(codes.MORE_THAN_ONE_TUPLE, internal.error_text(codes.MORE_THAN_ONE_TUPLE))
    end
    return rows[1]
end

-- What looks at the rows of the answer cannot leave them encoded.
local function refuse_buffer(options, name)
    if options and options.buffer then
        error(("index:%s() doesn't support `buffer` argument"):format(name), 3)
    end
end

local function check_space(space, name)
    if type(space) ~= 'table' or space.connection == nil then
        error(('Use space:%s(...) instead of space.%s(...)'):format(name, name), 3)
    end
    return space.connection
end

local function check_index(index, name)
    if type(index) ~= 'table' or type(index.space) ~= 'table' then
        error(('Use index:%s(...) instead of index.%s(...)'):format(name, name), 3)
    end
    return index.space.connection
end

local function iterator_of(options, key)
    local iterator = options and options.iterator
    if iterator == nil then
        local is_empty = key == nil or type(key) == 'table' and next(key) == nil
            or type(key) == 'cdata' and box.tuple.is(key) and #key == 0
        return is_empty and ITERATORS.ALL or ITERATORS.EQ
    elseif type(iterator) == 'string' then
        local number = ITERATORS[iterator:upper()]
        if number == nil then
            internal.fail('ITERATOR_TYPE', iterator)
        end
        return number
    end
    return iterator
end

local function finish_with_position(body, size)
    local map = decode_body(body, size)
    return { internal.remote_data(body, size, 'rows') or {}, map[KEY.position] }
end

local function select_from(connection, space_id, index_id, key, options)
    local parts = {
        KEY.space_id, space_id, KEY.index_id, index_id, KEY.iterator, iterator_of(options, key), KEY.offset,
        options and tonumber(options.offset) or 0, KEY.limit, options and tonumber(options.limit) or 0xffffffff, KEY.key,
        key == nil and {} or key,
    }
    local after = options and options.after
    if after ~= nil then
        parts[#parts + 1] = type(after) == 'string' and KEY.after_position or KEY.after_tuple
        parts[#parts + 1] = after
    end
    if options and options.fetch_pos then
        parts[#parts + 1] = KEY.fetch_position
        parts[#parts + 1] = true
        local result = perform(connection, options, finish_with_position, REQUEST.select, unpack(parts))
        if options.is_async then
            return result
        end
        return result[1], result[2]
    end
    return perform(connection, options, finish_rows, REQUEST.select, unpack(parts))
end

local function get_from(connection, space_id, index_id, key, options)
    return perform(connection, options, finish_one, REQUEST.select, KEY.space_id, space_id, KEY.index_id, index_id,
        KEY.iterator, ITERATORS.EQ, KEY.offset, 0, KEY.limit, 2, KEY.key, key == nil and {} or key)
end

local function update_in(connection, space_id, index_id, key, operations, options)
    return perform(connection, options, finish_row, REQUEST.update, KEY.space_id, space_id, KEY.index_id, index_id,
        KEY.index_base, 1, KEY.key, key == nil and {} or key, KEY.tuple, operations)
end

local function delete_in(connection, space_id, index_id, key, options)
    return perform(connection, options, finish_row, REQUEST.delete, KEY.space_id, space_id, KEY.index_id, index_id,
        KEY.key, key == nil and {} or key)
end

function space_methods.insert(self, row, options)
    local connection = check_space(self, 'insert')
    return perform(connection, options, finish_row, REQUEST.insert, KEY.space_id, self.id, KEY.tuple, row)
end

function space_methods.replace(self, row, options)
    local connection = check_space(self, 'replace')
    return perform(connection, options, finish_row, REQUEST.replace, KEY.space_id, self.id, KEY.tuple, row)
end

function space_methods.upsert(self, row, operations, options)
    local connection = check_space(self, 'upsert')
    local result = perform(connection, options, function() end, REQUEST.upsert, KEY.space_id, self.id, KEY.index_base, 1,
        KEY.tuple, row, KEY.ops, operations)
    return result
end

function space_methods.select(self, key, options)
    return select_from(check_space(self, 'select'), self.id, 0, key, options)
end

function space_methods.get(self, key, options)
    refuse_buffer(options, 'get')
    return get_from(check_space(self, 'get'), self.id, 0, key, options)
end

function space_methods.update(self, key, operations, options)
    return update_in(check_space(self, 'update'), self.id, 0, key, operations, options)
end

function space_methods.delete(self, key, options)
    return delete_in(check_space(self, 'delete'), self.id, 0, key, options)
end

function space_methods.format(self)
    check_space(self, 'format')
    return self._format
end

function index_methods.select(self, key, options)
    return select_from(check_index(self, 'select'), self.space.id, self.id, key, options)
end

function index_methods.get(self, key, options)
    refuse_buffer(options, 'get')
    return get_from(check_index(self, 'get'), self.space.id, self.id, key, options)
end

function index_methods.update(self, key, operations, options)
    return update_in(check_index(self, 'update'), self.space.id, self.id, key, operations, options)
end

function index_methods.delete(self, key, options)
    return delete_in(check_index(self, 'delete'), self.space.id, self.id, key, options)
end

for name, iterator in pairs({ min = 'GE', max = 'LE' }) do
    index_methods[name] = function(self, key, options)
        local connection = check_index(self, name)
        refuse_buffer(options, name)
        return perform(connection, options, finish_row, REQUEST.select, KEY.space_id, self.space.id, KEY.index_id, self.id,
            KEY.iterator, ITERATORS[iterator], KEY.offset, 0, KEY.limit, 1, KEY.key, key == nil and {} or key)
    end
end

function index_methods.count(self, key, options)
    local connection = check_index(self, 'count')
    refuse_buffer(options, 'count')
    local name = ('box.space.%s.index.%s:count'):format(self.space.name, self.name)
    local own = options and options.iterator ~= nil and { iterator = options.iterator } or nil
    return perform(connection, options, finish_value, REQUEST.call, KEY.name, name, KEY.tuple, { key == nil and box.NULL or key, own })
end

function space_methods.count(self, key, options)
    check_space(self, 'count')
    return self.index[0]:count(key, options)
end

function space_methods.pairs()
    internal.fail('UNSUPPORTED', 'net.box', 'pairs() of a space: use select with `after`')
end
