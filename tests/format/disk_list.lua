-- Prints the rows of all spaces, by each of their indexes, the same on either server.
box.cfg{ log_level = 2, log = os.getenv('SERVER_LOG'), checkpoint_interval = 0, checkpoint_count = 1 }
local json = require('json')
for _, space in box.space._space:pairs({ 512 }, { iterator = 'GE' }) do
    for _, index in ipairs(box.space._index:select({ space[1] })) do
        local rows = 0
        for _, row in box.space[space[1]].index[index[2]]:pairs() do
            print(space[3] .. '.' .. index[3] .. ' ' .. json.encode(row))
            rows = rows + 1
        end
        print(space[3] .. '.' .. index[3] .. ': ' .. rows .. ' rows')
    end
end
if os.getenv('CHECKPOINT') then box.snapshot() end
os.exit(0)
