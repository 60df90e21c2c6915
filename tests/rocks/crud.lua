-- crud over vshard: rows of two storages as those of one space, in memory and on disk; selections merge what both have
local fio, tap = require('fio'), require('tap')
local cluster = dofile(fio.pathjoin(fio.dirname(debug.getinfo(1, 'S').source:match('^@?(.*)$')), 'cluster.lua'))
local ROWS = 1000

for _, name in ipairs(cluster.names) do
    cluster.start(name, fio.pathjoin(cluster.here, 'crud_storage.lua'))
end
cluster.router()
local crud = require('crud')
crud.init_router()

local function column(result, number)
    local values = {}
    for _, row in ipairs(result.rows) do
        values[#values + 1] = row[number]
    end
    return values
end

-- The keys of what is selected.
local function keys(...)
    local result, err = crud.select(...)
    assert(result, tostring(err))
    return column(result, 1), result.rows
end

local function try(test, space)
    test:plan(33)
    local failures = 0
    for id = 1, ROWS do
        local name = ('%s%04d'):format(id % 2 == 0 and 'Name' or 'nAME', id)
        local result, err = crud.insert(space, { id, nil, name, id % 50, id % 3 == 0 and 'Moscow' or nil })
        if not result or result.rows[1][1] ~= id then
            failures = failures + 1
            test:diag('%s', tostring(err))
        end
    end
    test:is(failures, 0, 'rows are inserted')
    local result, err = crud.insert(space, { 1, nil, 'twice', 1 })
    test:ok(result == nil and tostring(err):find('Duplicate key exists', 1, true), 'not twice')
    result = crud.insert_object(space, { id = ROWS + 1, name = 'Object', age = 1000 })
    local object = { result.rows[1][1], result.rows[1][3], result.metadata[3].name }
    test:is_deeply(object, { ROWS + 1, 'Object', 'name' }, 'an object')
    result, err = crud.insert_object(space, { id = ROWS + 2, nobody = 'Object', age = 1000 })
    test:ok(result == nil and tostring(err):find('Unknown field', 1, true), 'a field that is not there')
    result = crud.get(space, 7)
    test:is_deeply({ result.rows[1][1], result.rows[1][3] }, { 7, 'nAME0007' }, 'one row')
    test:is(#crud.get(space, 100500).rows, 0, 'none')
    test:ok(crud.get('nobody', 1) == nil, 'no such space')
    result = crud.update(space, 7, { { '+', 'age', 0.5 }, { '=', 'city', 'Kazan' } })
    test:is_deeply({ result.rows[1][4], result.rows[1][5] }, { 7.5, 'Kazan' }, 'changed')
    result, err = crud.update(space, 7, { { '+', 'nobody', 1 } })
    test:ok(result == nil and tostring(err):find('nobody', 1, true), 'a field that is not there')
    result, err = crud.update(space, 7, { { '+', 'name', 1 } })
    test:ok(result == nil and err ~= nil, 'a field that cannot')
    result = crud.replace(space, { 7, nil, 'nAME0007', 7 })
    test:is(result.rows[1][4], 7, 'replaced')
    result = crud.replace_object(space, { id = 8, name = 'Name0008', age = 8 })
    test:is(result.rows[1][3], 'Name0008', 'replaced by an object')
    test:is(#crud.upsert(space, { 9, nil, 'never', 9 }, { { '+', 'age', 0 } }).rows, 0, 'updated')
    test:is(crud.get(space, 9).rows[1][3], 'nAME0009', 'it stays')
    test:ok(crud.upsert_object(space, { id = ROWS + 5, name = 'New', age = 2000 }, { { '+', 'age', 1 } }), 'inserted')
    test:is(crud.get(space, ROWS + 5).rows[1][4], 2000, 'it is there')
    -- On disk nobody reads the row for that.
    local deleted = crud.delete(space, ROWS + 5).rows[1]
    test:is(deleted and deleted[1] or space:find('vinyl') and ROWS + 5, ROWS + 5, 'deleted')
    test:is(#crud.get(space, ROWS + 5).rows, 0, 'it is gone')

    -- Selections: two storages, batches, each in order.
    local ids = keys(space, nil)
    local is_ordered = true
    for at, id in ipairs(ids) do
        is_ordered = is_ordered and id == at
    end
    test:is(#ids, ROWS + 1, 'all')
    test:ok(is_ordered, 'in order')
    test:is_deeply((keys(space, { { '==', 'id', 5 } })), { 5 }, 'by the key')
    test:is_deeply((keys(space, { { '<=', 'id', 5 } })), { 5, 4, 3, 2, 1 }, 'backwards')
    test:is(#keys(space, { { '==', 'age', 10 } }), ROWS / 50, 'by an index')
    test:is_deeply((keys(space, { { '==', 'age', 10 } }, { first = 3 })), { 10, 60, 110 }, 'the first ones')
    local from_one = { { '>=', 'id', 1 } }
    local page, rows = keys(space, from_one, { first = 10, batch_size = 3 })
    test:is_deeply(page, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, 'a page, in batches')
    page, rows = keys(space, from_one, { first = 3, after = rows[10]:totable() })
    test:is_deeply(page, { 11, 12, 13 }, 'the next')
    page = keys(space, from_one, { first = -3, after = rows[1]:totable(), batch_size = 3 })
    test:is_deeply(page, { 8, 9, 10 }, 'and back')
    test:is(#keys(space, { { '==', 'name', 'NAME0100' } }), 1, 'by a collation')
    test:is_deeply((keys(space, { { '>', 'age', 40 }, { '==', 'city', 'Moscow' }, { '<', 'id', 100 } })),
        { 42, 93, 45, 96, 48, 99 }, 'by several things')
    test:ok(crud.select(space, { { '==', 'nobody', 1 } }) == nil, 'a condition that is none')
    local count = 0
    local young = { { '<=', 'id', 100 }, { '<', 'age', 5 } }
    for _, each in crud.pairs(space, young, { use_tomap = true, batch_size = 3 }) do
        count = count + (each.age < 5 and 1 or 0)
    end
    test:is(count, 10, 'one by one')
    test:is(crud.truncate(space), true, 'truncated')
    test:is(#keys(space, nil), 0, 'nothing is left')
end

local test = tap.test('crud')
test:plan(2)
test:test('memtx', try, 'rows_memtx')
test:test('vinyl', try, 'rows_vinyl')
cluster.finish(test)
