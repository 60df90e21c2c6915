-- Makes the space of a listener, and the user that may read and write it, unless they are there.
local name, engine, user, memory, eviction = ...
local limit = tonumber(memory)
eviction = eviction ~= '' and eviction or 'clock'
box.atomic(function()
    local has_user = box.schema.user.exists(user)
    if not has_user then
        -- Without a password: nobody can log in as it.
        box.schema.user.create(user)
    end
    local space = box.space[name]
    if space == nil then
        space = box.schema.space.create(name, {
            engine = engine ~= '' and engine or 'memtx',
            ttl = {field = 'expires', walk_rows_per_second = 100000},
            memory_limit = limit, eviction = limit and eviction,
            format = {
                {'key', 'string'},
                {'value', 'string'},
                {'flags', 'unsigned', is_nullable = true},
                {'cas', 'unsigned', is_nullable = true},
                {'expires', 'unsigned', is_nullable = true},
                {'state', 'unsigned', is_nullable = true},
            },
        })
        space:create_index('primary', {type = engine == 'vinyl' and 'tree' or 'hash', parts = {{1, 'string'}}})
        has_user = false
    elseif engine ~= '' and space.engine ~= engine then
        error(("space '%s' is of engine %s, not %s"):format(name, space.engine, engine), 0)
    elseif limit then
        local own = box.space._space:get(space.id).flags.checks
        own = type(own) == 'table' and own or {}
        if own.memory_limit ~= limit or (own.eviction or 'clock') ~= eviction then
            space:alter({memory_limit = limit, eviction = eviction})
        end
    end
    if not has_user then
        box.schema.user.grant(user, 'read,write', 'space', name, nil, {if_not_exists = true})
    end
end)
