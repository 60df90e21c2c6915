-- Makes the user that clients of a listener act as who need not say who they are, unless it is there.
local user = ...
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
