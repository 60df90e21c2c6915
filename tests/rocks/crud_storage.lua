-- What a storage of crud.lua has: spaces in memory and on disk.
box.once('rows', function()
    for _, engine in ipairs({ 'memtx', 'vinyl' }) do
        local rows = box.schema.space.create('rows_' .. engine, {
            engine = engine, format = {
                { 'id', 'unsigned' }, { 'bucket_id', 'unsigned' }, { 'name', 'string' },
                { 'age', 'number' }, { 'city', 'string', is_nullable = true },
            },
        })
        rows:create_index('pk')
        rows:create_index('bucket_id', { parts = { 'bucket_id' }, unique = false })
        rows:create_index('age', { parts = { 'age' }, unique = false })
        rows:create_index('name', { parts = { { 'name', collation = 'unicode_ci' } }, unique = false })
    end
    -- Its functions are called by their names.
    box.schema.user.grant('storage', 'super')
end)
require('crud').init_storage()
