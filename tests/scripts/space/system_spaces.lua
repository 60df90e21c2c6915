-- the catalog is readable as spaces with known layouts
-- engines: memtx, vinyl

s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'v', 'string', is_nullable = true}}})

_ = s:create_index('primary', {parts = {'id'}})

_ = s:create_index('v', {parts = {{'v', is_nullable = true}}, unique = false})

box.space._space:get(s.id)

box.space._index:select{s.id}

box.space._vspace:get(s.id)

box.space._vindex:select{s.id}

box.space._vspace.index.name:get('t')

box.space._space.index.name:get('t')

box.space._vindex.index.name:get{s.id, 'v'}

box.space._vspace.index.primary.parts

box.space._space:format()

box.space._index:format()

box.space._user:format()

box.space._priv:format()

box.space._sequence:format()

box.space._func:format()

box.space._user:get(0)

box.space._user:select(1)

box.space._user.index.name:get('super')

box.space._collation:get(0)

box.space._collation.index.name:get('unicode_ci')

box.space._schema.id

box.space._collation.id

box.space._vcollation.id

box.space._space.id

box.space._vspace.id

box.space._sequence.id

box.space._index.id

box.space._vindex.id

box.space._func.id

box.space._user.id

box.space._priv.id

box.space._cluster.id

box.space._truncate.id

box.space._space_sequence.id

box.space._vspace:insert{1}

box.space._vspace:delete{512}

box.schema.SPACE_ID

box.schema.VSPACE_ID

box.schema.INDEX_ID

box.schema.SYSTEM_ID_MIN

box.schema.SYSTEM_ID_MAX

box.schema.FIELD_MAX

box.schema.INDEX_MAX

box.schema.NAME_MAX

box.schema.FORMAT_ID_MAX
