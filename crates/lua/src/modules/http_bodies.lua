-- The bodies of answers to http.client: where they end, and what they are packed in. A body is a function that gives its pieces as they come.
local internal = ...

local errno = require('errno')
local fiber = require('fiber')

local LINE_BYTES = 1048576
local PIECE_BYTES = 65536
-- Packed bytes that are unpacked in one go: they may become a thousand times as many.
local PACKED_BYTES = 4096
-- Plain bytes after which others have their turn.
local TURN_BYTES = 1048576
-- Codings on top of one another.
local CODINGS = 5

local bodies = {}
internal.http_bodies = bodies

local function fail(text)
    error(internal.values.make_error(0, 'SystemError', 'curl: ' .. text))
end
bodies.fail = fail

-- Outcomes that are responses, told apart from errors by their type.
bodies.network_failure = {}

function bodies.give_up(status, reason)
    error(setmetatable({ status = status, reason = reason }, bodies.network_failure), 0)
end

local function left_until(deadline)
    local left = deadline - fiber.clock()
    if left <= 0 then
        bodies.give_up(408, 'Timeout was reached')
    end
    return left
end
bodies.left_until = left_until

function bodies.read_line(connection, deadline)
    local line = connection:read({ delimiter = '\n', chunk = LINE_BYTES }, left_until(deadline))
    if line == nil then
        left_until(deadline)
        fail('Failure when receiving data from the peer')
    elseif line:sub(-1) ~= '\n' then
        fail('Transferred a partial file')
    end
    return (line:gsub('\r?\n$', ''))
end

-- What has come, at most so many bytes; an empty text at the end.
local function read_some(connection, limit, deadline)
    if #connection.buffer__ > 0 then
        return connection:read(math.min(limit, #connection.buffer__))
    end
    while true do
        local piece = connection:sysread(limit)
        if piece ~= nil then
            return piece
        end
        local code = connection:errno()
        if code ~= errno.EAGAIN and code ~= errno.EWOULDBLOCK and code ~= errno.EINTR then
            fail('Failure when receiving data from the peer')
        end
        connection:readable(left_until(deadline))
        left_until(deadline)
    end
end

local function of_length(connection, left)
    return function(deadline)
        if left == 0 then
            return nil
        end
        local piece = read_some(connection, math.min(left, PIECE_BYTES), deadline)
        if piece == '' then
            fail('Transferred a partial file')
        end
        left = left - #piece
        return piece
    end
end

local function to_end(connection)
    return function(deadline)
        local piece = read_some(connection, PIECE_BYTES, deadline)
        return piece ~= '' and piece or nil
    end
end

local function in_chunks(connection)
    local chunk, is_first, is_over = of_length(connection, 0), true, false
    return function(deadline)
        if is_over then
            return nil
        end
        local piece = chunk(deadline)
        if piece then
            return piece
        end
        if not is_first then
            bodies.read_line(connection, deadline)
        end
        is_first = false
        local digits = bodies.read_line(connection, deadline):match('^%s*(%x+)')
        local size = digits and #digits <= 12 and tonumber(digits, 16)
        if not size then
            fail('Problem with chunked data')
        elseif size > 0 then
            chunk = of_length(connection, size)
            return chunk(deadline)
        end
        for _ = 1, 1000 do
            if bodies.read_line(connection, deadline) == '' then
                is_over = true
                return nil
            end
        end
        fail('Problem with chunked data')
    end
end

local function unpacked(source, coding, bad_coding)
    local stream = internal.byte_stream(nil, internal.inflate, coding)
    if stream == nil then
        bad_coding()
    end
    local number = tonumber(stream.slot__)
    local packed, at, has_begun, is_over = '', 1, false, false
    return function(deadline)
        while not is_over do
            local piece, _
            if at > #packed then
                packed, at = source(deadline), 1
            end
            if packed == nil then
                is_over = true
                -- Nothing at all is a body, too.
                piece = has_begun and (internal.stream_result(number) or bad_coding()) or ''
                internal.byte_stream_free(stream)
            else
                has_begun = true
                piece = internal.stream_update(number, packed:sub(at, at + PACKED_BYTES - 1)) or bad_coding()
                at = at + PACKED_BYTES
            end
            if piece ~= '' then
                return piece
            end
        end
        return nil
    end
end

-- The body that follows a head. `unpacks`: what it is packed in is taken off. `limit`: the longest that is announced.
function bodies.of(connection, headers, unpacks, limit)
    local source
    local length = headers['content-length']
    if (headers['transfer-encoding'] or ''):lower():find('chunked', 1, true) then
        source = in_chunks(connection)
    elseif length then
        length = length:match('^%d+$') and tonumber(length)
        if not length or length > limit then
            fail(('the body of an answer is larger than %d bytes'):format(limit))
        end
        source = of_length(connection, length)
    else
        source = to_end(connection)
    end
    local function bad_coding()
        local reason = 'Unrecognized or bad HTTP Content or Transfer-Encoding'
        error(setmetatable({ status = 595, reason = reason, headers = headers }, bodies.network_failure), 0)
    end
    if unpacks and headers['content-encoding'] then
        local codings = {}
        for coding in headers['content-encoding']:lower():gmatch('[^%s,]+') do
            if coding ~= 'identity' and coding ~= 'none' then
                table.insert(codings, 1, coding)
            end
        end
        if #codings > CODINGS then
            bad_coding()
        end
        for _, coding in ipairs(codings) do
            source = unpacked(source, coding, bad_coding)
        end
    end
    return source
end

-- All of a body.
function bodies.whole(source, limit, deadline)
    local pieces, total, in_turn = {}, 0, 0
    for piece in source, deadline do
        total, in_turn = total + #piece, in_turn + #piece
        if total > limit then
            fail(('the body of an answer is larger than %d bytes'):format(limit))
        elseif in_turn > TURN_BYTES then
            in_turn = 0
            fiber.yield()
            left_until(deadline)
        end
        pieces[#pieces + 1] = piece
    end
    return table.concat(pieces)
end
