-- the names of what the disk engine tells of itself
-- engines: vinyl

s = box.schema.space.create('t')

_ = s:create_index('primary')

for i = 1, 10 do s:replace{i, 'x'} end

s:get(1)

box.snapshot()

function names(t) if type(t) ~= 'table' then return type(t) end local found = {} for key, value in pairs(t) do found[key] = names(value) end return found end

s.index.primary:stat().rows

s.index.primary:stat().run_count

s.index.primary:stat().range_count

s.index.primary:stat().memory.rows

s.index.primary:stat().disk.rows

s.index.primary:stat().disk.statement

names(s.index.primary:stat())

names(s.index.primary:stat()).disk

names(s.index.primary:stat()).memory

names(s.index.primary:stat()).cache

names(s.index.primary:stat()).put

names(s.index.primary:stat()).get

names(s.index.primary:stat()).lookup

names(box.stat.vinyl())

names(box.stat.vinyl()).tx

names(box.stat.vinyl()).regulator

names(box.stat.vinyl()).scheduler

names(box.stat.vinyl()).disk

names(box.stat.vinyl()).memory

box.stat.vinyl().quota

s.index.primary:compact()

m = box.schema.space.create('m', {engine = 'memtx'})

m:create_index('primary'):stat()

m.index.primary:compact()

type(box.stat.vinyl)

type(box.info.vinyl)

names(box.info.vinyl())

box.info.memory().tx

box.cfg.vinyl_memory

box.cfg{vinyl_memory = 1}

box.cfg{vinyl_memory = 256 * 1024 * 1024}

box.cfg.vinyl_memory

box.cfg{vinyl_cache = 0}

box.cfg{vinyl_timeout = 1}

box.cfg{vinyl_dir = 'elsewhere'}

box.cfg{vinyl_page_size = 4096}

box.cfg{vinyl_read_threads = 3}
