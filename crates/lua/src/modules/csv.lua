-- csv: rows of texts, as Tarantool reads and writes them.
local internal = ...

local DELIMITER, QUOTE, CHUNK_BYTES = ',', '"', 4096

local function option(options, name, default)
    local value = options and options[name]
    if value == nil then
        return default
    end
    return value
end

-- Pieces of what is read from: the text itself, or what its `read` gives.
local function pieces_of(readable, chunk_bytes)
    if type(readable) == 'string' then
        local rest = readable
        return function()
            local piece = rest
            rest = ''
            return piece
        end
    end
    -- What is no object raises here, and not when the first row is wanted.
    local _ = readable.read
    return function() return readable:read(chunk_bytes) or '' end
end

-- A machine that takes pieces and calls `emit` for each row. A quote may begin anywhere in a field; spaces around a field are left out.
local function new_machine(delimiter, quote, emit)
    local delimiter_byte, quote_byte = delimiter:byte(), quote:byte()
    local row, field, kept = {}, {}, 0
    local is_quoted, was_quote, after_return, is_begun = false, false, false, false

    local function end_field()
        row[#row + 1] = table.concat(field, '', 1, kept)
        field, kept = {}, 0
    end
    local function end_row()
        end_field()
        emit(row)
        row, is_begun = {}, false
    end
    -- Bytes that belong to the field; `is_solid`: spaces before them do, too.
    local function add(text, is_solid)
        if is_solid or kept > 0 or text ~= ' ' then
            field[#field + 1] = text
            if is_solid or text ~= ' ' then
                kept = #field
            end
        end
    end
    local machine = {}
    function machine.take(piece)
        for at = 1, #piece do
            local byte = piece:byte(at)
            if byte == quote_byte then
                -- Each one opens or closes; the second of two that stand together is one of the field, too.
                if was_quote then
                    add(quote, true)
                end
                is_quoted, was_quote, is_begun, after_return = not is_quoted, not was_quote, true, false
            else
                was_quote = false
                if is_quoted then
                    add(string.char(byte), true)
                elseif byte == 10 and after_return then
                    after_return = false
                elseif byte == 10 or byte == 13 then
                    end_row()
                    after_return = byte == 13
                else
                    after_return, is_begun = false, true
                    if byte == delimiter_byte then
                        end_field()
                    else
                        add(string.char(byte), false)
                    end
                end
            end
        end
    end
    -- The end of everything. False if a quote is open.
    function machine.finish()
        if is_quoted then
            return false
        elseif is_begun then
            end_row()
        end
        return true
    end
    return machine
end

-- What separates values, and what stands around them.
local function marks(options)
    local delimiter, quote = option(options, 'delimiter', DELIMITER), option(options, 'quote_char', QUOTE)
    if #delimiter ~= 1 then
        error('Invalid delimiter length', 3)
    elseif #quote ~= 1 then
        error('Invalid quote_char length', 3)
    end
    return delimiter, quote
end

local function iterate(readable, options)
    local delimiter, quote = marks(options)
    local next_piece = pieces_of(readable, option(options, 'chunk_size', CHUNK_BYTES))
    local rows, first, last = {}, 1, 0
    local machine = new_machine(delimiter, quote, function(row)
        last = last + 1
        rows[last] = row
    end)
    local is_over, skipped, number = false, option(options, 'skip_head_lines', 0), 0
    return function()
        while true do
            while first > last do
                if is_over then
                    return nil
                end
                local piece = next_piece()
                if #piece > 0 then
                    machine.take(piece)
                else
                    is_over = true
                    if not machine.finish() then
                        internal.log('warn', 'CSV file has errors')
                    end
                end
            end
            local row = rows[first]
            rows[first], first = nil, first + 1
            if skipped > 0 then
                skipped = skipped - 1
            else
                number = number + 1
                return number, row
            end
        end
    end
end

local function load(readable, options)
    local result = {}
    for _, row in iterate(readable, options) do
        result[#result + 1] = row
    end
    return result
end

local function dump(data, options, writable)
    if type(data) ~= 'table' then
        error('Usage: dump(table[, opts, writable])')
    end
    local delimiter, quote = marks(options)
    local function escaped(text)
        local doubled = text:gsub(quote:gsub('%p', '%%%0'), quote .. quote)
        if text:find('[\r\n]') or text:find(delimiter, 1, true) then
            return quote .. doubled .. quote
        end
        return doubled
    end
    local lines = {}
    local function write(row)
        local fields = {}
        for _, value in pairs(row) do
            fields[#fields + 1] = escaped(tostring(value))
        end
        local line = table.concat(fields, delimiter) .. '\n'
        if writable then
            writable:write(line)
        else
            lines[#lines + 1] = line
        end
    end
    if type(data[1]) ~= 'table' then
        write(data)
    else
        for _, row in ipairs(data) do
            write(row)
        end
    end
    if writable == nil then
        return table.concat(lines)
    end
end

package.loaded.csv = { load = load, iterate = iterate, dump = dump }
