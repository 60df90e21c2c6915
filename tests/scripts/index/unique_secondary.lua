-- update and delete by a unique secondary index
-- engines: memtx, vinyl

s = box.schema.space.create('stock', {format = {
    {'id', 'unsigned'}, {'sku', 'string'}, {'warehouse', 'unsigned'}, {'count', 'unsigned'},
}})

_ = s:create_index('primary', {parts = {'id'}})

i = s:create_index('place', {parts = {'sku', 'warehouse'}})

for n = 1, 4 do s:insert{n, 'sku' .. n % 2, n, 10 * n} end

i:get{'sku1', 3}

i:update({'sku1', 3}, {{'-', 'count', 5}})

i:update({'sku1', 3}, {{'-', 'count', 500}})

i:update({'sku1', 3}, {{'+', 4, 1}, {'=', 'warehouse', 33}})

i:get{'sku1', 3}

i:get{'sku1', 33}

i:update({'sku1', 33}, {{'=', 'id', 77}})

i:update({'sku1', 33}, {{'=', 'warehouse', 1}})

i:update({'sku1'}, {{'=', 'warehouse', 1}})

i:update({'none', 1}, {{'=', 'warehouse', 1}})

i:delete{'sku0', 2}

i:delete{'sku0', 2}

i:delete{'sku0'}

s:select()

s:update(1, {{'=', 1, 2}})

s:update(1, {{'=', 1, 1}})
