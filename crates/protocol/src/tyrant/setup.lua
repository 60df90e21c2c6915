-- Makes the space of a listener, and the user that may read and write it, unless they are there.
local name, engine, user, kind = ...
box.atomic(function()
    local has_user = box.schema.user.exists(user)
    if not has_user then
        -- Without a password: nobody can log in as it.
        box.schema.user.create(user)
    end
    local space = box.space[name]
    if space == nil then
        local is_fixed = kind == 'fixed'
        space = box.schema.space.create(name, {
            engine = engine ~= '' and engine or 'memtx',
            format = {
                {'key', is_fixed and 'unsigned' or 'string'},
                kind == 'table' and {'columns', 'map'} or {'value', 'string'},
            },
        })
        local is_hash = kind == 'hash' and engine ~= 'vinyl'
        space:create_index('primary', {
            type = is_hash and 'hash' or 'tree', parts = {{1, is_fixed and 'unsigned' or 'string'}},
        })
        has_user = false
    elseif engine ~= '' and space.engine ~= engine then
        error(("space '%s' is of engine %s, not %s"):format(name, space.engine, engine), 0)
    end
    if not has_user then
        box.schema.user.grant(user, 'read,write', 'space', name, nil, {if_not_exists = true})
    end
end)
