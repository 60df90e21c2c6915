-- an index can be renamed, rebuilt over other parts, and made (non-)unique
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

i = s:create_index('second', {parts = {2, 'unsigned'}})

for n = 1, 4 do s:insert{n, 10 - n, 'v' .. (n % 2)} end

i:rename('renamed')

s.index.second

s.index.renamed == i

s.index.renamed.name

i:rename('primary')

i:rename()

i:select()

i:alter{parts = {3, 'string'}}

i:alter{parts = {3, 'string'}, unique = false}

s.index.renamed.parts

s.index.renamed.unique

s.index.renamed:select('v1')

s.index.renamed:alter{unique = true}

s.index.renamed:alter{parts = {1, 'unsigned', 3, 'string'}, unique = true}

s.index.renamed:select{2}

s.index.primary:alter{type = 'HASH'}

s.index.primary.type

s:get(3)

s.index.primary:alter{parts = {2, 'unsigned'}}

s:get(9)

s.index.primary:alter{type = 'tree', parts = {3, 'string'}}

s.index.primary:alter{unique = false}

s.index.primary:alter{colour = 'red'}

s.index.primary:alter()

s.index.primary:alter{name = 'first'}

s.index.first.parts

i.alter{}

i.rename('x')
