-- What a storage of vshard.lua has: rows in memory and on disk.
box.once('rows', function()
    for _, engine in ipairs({ 'memtx', 'vinyl' }) do
        local rows = box.schema.space.create('rows_' .. engine, {
            engine = engine, format = { { 'id', 'unsigned' }, { 'bucket_id', 'unsigned' }, { 'value', 'string' } },
        })
        rows:create_index('pk')
        rows:create_index('bucket_id', { parts = { 'bucket_id' }, unique = false })
    end
    box.schema.func.create('row_ids', { setuid = true })
    box.schema.user.grant('storage', 'execute', 'function', 'row_ids')
end)

function put(engine, id, bucket_id, value)
    return box.space['rows_' .. engine]:insert({ id, bucket_id, value })
end

function get(engine, id)
    return box.space['rows_' .. engine]:get(id)
end

-- The rows of the buckets that are active here.
function row_ids(engine)
    local ids = setmetatable({}, { __serialize = 'seq' })
    for _, row in box.space['rows_' .. engine]:pairs() do
        local bucket = box.space._bucket:get(row.bucket_id)
        if bucket and bucket.status == 'active' then
            ids[#ids + 1] = row.id
        end
    end
    return ids
end
