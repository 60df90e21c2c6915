-- Commits one after the other, each of which takes pages of its own in a synced log: on Lycosa a clean stop gives them back.
box.cfg{ log_level = 2, log = os.getenv('SERVER_LOG') }

local single = box.schema.space.create('single')
single:create_index('pk')
local several = box.schema.space.create('several')
several:create_index('pk')
for i = 1, 500 do
    single:replace({ i, 'row ' .. i })
    if i % 10 == 0 then
        box.begin()
        for part = 1, 5 do
            several:replace({ i * 10 + part, ('long '):rep(i) })
        end
        single:delete({ i })
        box.commit()
    end
end
os.exit(0)
