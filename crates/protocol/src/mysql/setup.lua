-- Makes the space of what passwords are proved by (`box.schema.user.passwd` fills it), and the user that clients of a listener act as who need not say who they are, unless it is there.
local user = ...
if box.space._sha2 == nil then
    box.atomic(function()
        local digests = box.schema.space.create('_sha2', {
            format = {{'user', 'unsigned'}, {'password_hash', 'string'}, {'digest', 'string'}},
        })
        digests:create_index('primary')
    end)
elseif box.space._space:get(box.space._sha2.id)[2] ~= 1 then
    error("space '_sha2' is not the administrator's: rename it", 0)
end
if not box.schema.user.exists(user) then
    box.atomic(function()
        -- Without a password: nobody can log in as it. It has rights on what it makes itself, and on what others grant it.
        box.schema.user.create(user)
        box.schema.user.grant(user, 'create', 'space')
        box.schema.user.grant(user, 'create', 'sequence')
        for _, name in ipairs({ '_space', '_index', '_sequence', '_space_sequence', '_truncate' }) do
            box.schema.user.grant(user, 'read,write', 'space', name)
        end
    end)
end
