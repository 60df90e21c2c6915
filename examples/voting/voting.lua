-- The voting service: two stickers are shown to a visitor, who votes for one of them.
--
-- A session is one row: its secret, its end, and the last ballots that were handed out. A ballot is a pair of stickers with a token that only its
-- page knows; it counts once, however often it comes. No procedure waits before its transaction ends, so each is atomic.
-- Runs on Lycosa and on Tarantool.

local fiber = require('fiber')

local voting = {}

-- Ballots that a session has at the same time: pages in other tabs, pages that were loaded again. An older one ends when a newer one takes its place.
local BALLOTS = 8
-- Where the ballots begin in the row.
local FIRST_BALLOT = 5
-- Rows of `best` and `worst`, at most.
local LISTED = 100
-- Sessions that Tarantool's fiber removes in one transaction.
local EXPIRED_AT_ONCE = 200

local LEFT, RIGHT = 1, 2

local session_seconds = 24 * 3600
local sticker_count = 0

local function now()
    return math.floor(fiber.time())
end

-- Tarantool has no rows that expire: a fiber looks for them.
local function remove_expired()
    while true do
        fiber.sleep(1)
        local expired
        repeat
            expired = box.space.sessions.index.expires:select({ now() }, { iterator = 'LE', limit = EXPIRED_AT_ONCE })
            box.begin()
            for _, session in ipairs(expired) do
                box.space.sessions:delete(session.id)
            end
            box.commit()
        until #expired < EXPIRED_AT_ONCE
    end
end

-- Makes what is not there yet. `options`: `stickers`, how many; `session_seconds`, how long a session lives; `web_password`, of the user `web`.
function voting.start(options)
    session_seconds = options.session_seconds or session_seconds
    -- Which stickers are drawn need not be a secret, only another one after each start.
    math.randomseed(fiber.time() * 1000 % 2 ^ 31)
    -- Rows that expire by themselves, where the server has them (docs/expiry.md).
    local expires_itself = rawget(box.stat, 'expiry') ~= nil
    box.schema.sequence.create('session_id', { if_not_exists = true })
    local sessions = box.schema.space.create('sessions', {
        if_not_exists = true,
        format = {
            { name = 'id', type = 'unsigned' },
            { name = 'secret', type = 'string' },
            { name = 'expires', type = 'unsigned' },
            -- How many ballots were handed out. The last `BALLOTS` of them follow: {token, left, right, what was voted or 0}.
            { name = 'ballots', type = 'unsigned' },
        },
        ttl = expires_itself and { field = 'expires' } or nil,
    })
    sessions:create_index('primary', { sequence = 'session_id', parts = { 'id' }, if_not_exists = true })
    sessions:create_index('expires', { unique = false, parts = { 'expires' }, if_not_exists = true })

    local stickers = box.schema.space.create('stickers', {
        if_not_exists = true,
        format = {
            { name = 'id', type = 'unsigned' },
            { name = 'rating', type = 'integer' },
            { name = 'plus', type = 'unsigned' },
            { name = 'minus', type = 'unsigned' },
        },
    })
    stickers:create_index('primary', { parts = { 'id' }, if_not_exists = true })
    stickers:create_index('rating', { parts = { 'rating', 'id' }, if_not_exists = true })
    sticker_count = stickers:len()
    if sticker_count < options.stickers then
        box.begin()
        for id = sticker_count + 1, options.stickers do
            stickers:insert({ id, 0, 0, 0 })
        end
        box.commit()
        sticker_count = options.stickers
    end

    -- The web server's user may call these and nothing else: whoever has its password reads no session and sets no rating.
    box.schema.user.create('web', { password = options.web_password, if_not_exists = true })
    box.schema.user.passwd('web', options.web_password)
    for _, name in ipairs({ 'voting.page', 'voting.vote', 'voting.best', 'voting.worst', 'voting.about' }) do
        box.schema.func.create(name, { setuid = true, if_not_exists = true })
        box.schema.user.grant('web', 'execute', 'function', name, { if_not_exists = true })
    end
    if not expires_itself then
        fiber.create(remove_expired)
    end
end

-- The session that the visitor says is his, or nil: none has this number, it has ended, or the secret is another one. (Equal strings of LuaJIT are
-- the same object: the comparison tells nobody how far a guess was right.)
local function find_session(id, secret)
    local session = type(id) == 'number' and id >= 0 and box.space.sessions:get(id) or nil
    if session ~= nil and session[2] == secret and session[3] > now() then
        return session
    end
    return nil
end

-- Two different stickers and a ballot for them. Without a session a new one begins, with `fresh_secret`. The caller makes secrets and tokens, and
-- makes them so that nobody guesses them.
-- Returns the session's number, whether it is new, and the two stickers.
function voting.page(id, secret, fresh_secret, token)
    local left = math.random(sticker_count)
    local right = math.random(sticker_count - 1)
    if right >= left then
        right = right + 1
    end
    local ballot = { token, left, right, 0 }
    local session = find_session(id, secret)
    if session == nil then
        session = box.space.sessions:insert({ box.NULL, fresh_secret, now() + session_seconds, 1, ballot })
        return session[1], true, left, right
    end
    local handed_out = session[4]
    local changes = { { '=', FIRST_BALLOT + handed_out % BALLOTS, ballot }, { '+', 4, 1 } }
    -- Who comes again within the second half of a session's life has it from the start again: one row of the log in many pages.
    if session[3] - now() < session_seconds / 2 then
        changes[3] = { '=', 3, now() + session_seconds }
    end
    box.space.sessions:update(session[1], changes)
    return session[1], false, left, right
end

-- Counts the vote of the ballot with this token: `choice` is 1 for the left sticker, 2 for the right one.
-- Returns 'counted'; 'counted before' for a ballot that has voted, whatever it says now; 'no ballot' for a token that the session does not have (any
-- more); 'no session'.
function voting.vote(id, secret, token, choice)
    if choice ~= LEFT and choice ~= RIGHT then
        return 'no ballot'
    end
    local session = find_session(id, secret)
    if session == nil then
        return 'no session'
    end
    for field = FIRST_BALLOT, math.min(FIRST_BALLOT + BALLOTS, #session + 1) - 1 do
        local ballot = session[field]
        if ballot[1] == token then
            if ballot[4] ~= 0 then
                return 'counted before'
            end
            local winner, loser = ballot[2], ballot[3]
            if choice == RIGHT then
                winner, loser = loser, winner
            end
            box.begin()
            box.space.sessions:update(session[1], { { '=', field, { token, ballot[2], ballot[3], choice } } })
            box.space.stickers:update(winner, { { '+', 2, 1 }, { '+', 3, 1 } })
            box.space.stickers:update(loser, { { '-', 2, 1 }, { '+', 4, 1 } })
            box.commit()
            return 'counted'
        end
    end
    return 'no ballot'
end

local function listed(iterator, limit)
    limit = math.max(0, math.min(tonumber(limit) or LISTED, LISTED))
    return box.space.stickers.index.rating:select({}, { iterator = iterator, limit = limit })
end

-- The stickers of the highest rating, rows of {id, rating, plus, minus}.
function voting.best(limit)
    return listed('LE', limit)
end

-- Those of the lowest.
function voting.worst(limit)
    return listed('GE', limit)
end

local about, about_until = nil, 0

-- Figures: how many stickers, votes and sessions there are, and the version of the server. At most one second old: the votes are counted row by row.
function voting.about()
    if fiber.time() >= about_until then
        local votes = 0
        for _, sticker in box.space.stickers:pairs() do
            votes = votes + sticker.plus
        end
        about = {
            stickers = sticker_count,
            votes = votes,
            sessions = box.space.sessions:len(),
            server = box.info.version,
        }
        about_until = fiber.time() + 1
    end
    return about
end

-- Begins so many sessions of nobody: for measuring what many of them cost.
function voting.add_sessions(count)
    local digest = require('digest')
    local done = 0
    while done < count do
        box.begin()
        for _ = 1, math.min(1000, count - done) do
            local token = digest.base64_encode(digest.urandom(16), { nopad = true })
            box.space.sessions:insert({ box.NULL, token, now() + session_seconds, 1, { token, 1, 2, 0 } })
            done = done + 1
        end
        box.commit()
    end
end

return voting
