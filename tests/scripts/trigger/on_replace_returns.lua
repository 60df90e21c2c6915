-- what on_replace returns is nobody's business
-- engines: memtx, vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

seen = {}

_ = s:on_replace(function(old, new) table.insert(seen, new) return 'text', 5 end)

s:insert{1}

s:replace{1, 2}

_ = s:on_replace(function() return {} end)

s:insert{2}

_ = s:on_replace(function() return nil end)

s:insert{3}

s:select()

#seen
