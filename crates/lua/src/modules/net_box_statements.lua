-- Statements of SQL over a connection of net.box.
local internal = ...

local parts = internal.net_box
local KEY, REQUEST = parts.KEY, parts.REQUEST
local connection_methods, perform, finish_nothing = parts.connection_methods, parts.perform, parts.finish_nothing
local check_self, check_arguments, misused = parts.check_self, parts.check_arguments, parts.misused
local ffi = require('ffi')
local msgpack = require('msgpack')

-- Columns by their names.
local function named_columns(columns)
    local named = {}
    for i, column in ipairs(columns or {}) do
        named[i] = {
            name = column[0], type = column[1], collation = column[2], is_nullable = column[3], is_autoincrement = column[4],
            -- A null stands for the name.
            span = column[5] ~= nil and column[5] or column[5] == msgpack.NULL and column[0] or nil,
        }
    end
    return named
end

-- What a statement of SQL has come to, as box.execute shows it.
local function finish_statement(body, size)
    local answer = msgpack.decode(ffi.string(body, size))
    local info = answer[KEY.sql_info]
    if info ~= nil then
        return { row_count = info[0], autoincrement_ids = info[1] }
    end
    local rows = {}
    for i, row in ipairs(answer[KEY.data] or {}) do
        rows[i] = box.tuple.new(row)
    end
    return { metadata = named_columns(answer[KEY.metadata]), rows = rows }
end

local function finish_prepared(body, size)
    local answer = msgpack.decode(ffi.string(body, size))
    return {
        stmt_id = answer[KEY.statement_id], param_count = answer[KEY.bind_count],
        params = named_columns(answer[KEY.bind_metadata]),
        metadata = answer[KEY.metadata] and named_columns(answer[KEY.metadata]),
    }
end

local function check_statement_options(options)
    if options ~= nil and next(options) ~= nil then
        internal.illegal('options are not supported')
    end
end

function connection_methods.execute(self, source, params, statement_options, options)
    check_self(self, 'execute')
    check_statement_options(statement_options)
    local key = type(source) == 'number' and KEY.statement_id or KEY.sql_text
    params = check_arguments(params, 'execute')
    return perform(self, options, finish_statement, REQUEST.execute, key, source, KEY.sql_bind, params)
end

function connection_methods.prepare(self, text, _, statement_options, options)
    check_self(self, 'prepare')
    if type(text) ~= 'string' then
        misused('net.box: prepare takes the text of a statement')
    end
    check_statement_options(statement_options)
    return perform(self, options, finish_prepared, REQUEST.prepare, KEY.sql_text, text)
end

function connection_methods.unprepare(self, id, _, statement_options, options)
    check_self(self, 'unprepare')
    if type(id) ~= 'number' then
        misused('net.box: unprepare takes the number of a statement')
    end
    check_statement_options(statement_options)
    perform(self, options, finish_nothing, REQUEST.prepare, KEY.statement_id, id)
end
