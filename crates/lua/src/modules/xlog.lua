-- xlog: the rows of logs and snapshots.
local internal = ...

local function open(...)
    local path = ...
    if select('#', ...) ~= 1 or type(path) ~= 'string' and type(path) ~= 'number' then
        error('Usage: parser.open(log_filename)', 2)
    end
    local number, kind = internal.xlog_open(tostring(path))
    if number == nil then
        internal.raise_xlog(kind)
    elseif kind ~= 'XLOG' and kind ~= 'SNAP' then
        internal.xlog_close(number)
        internal.fail('UNSUPPORTED', 'xlog reader', ("'%s' file type"):format(kind))
    end
    -- The file is closed when nobody walks it any more.
    local guard = newproxy(true)
    getmetatable(guard).__gc = function() internal.xlog_close(number) end
    local rows, at = {}, 0
    local function step()
        at = at + 1
        while rows[at] == nil do
            local more = guard and internal.xlog_next(number, type(box.cfg) ~= 'function')
            if not more then
                guard = nil
                internal.xlog_close(number)
                return nil
            end
            rows, at = more, 1
        end
        local row = rows[at]
        return row.HEADER.lsn or 0, row
    end
    return step, nil, 0
end

-- What is wrong with a file, as an error object of the log.
function internal.raise_xlog(text)
    local kind = text:find("^failed to open") and 'SystemError' or 'XlogError'
    error(internal.values.make_error(0, kind, text))
end

package.loaded.xlog = { pairs = open }
