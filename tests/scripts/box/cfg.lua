-- box.cfg is a table of options once it was called; wrong ones are named

box.cfg.memtx_memory

box.cfg.wal_mode

box.cfg.log_level

box.cfg.readahead

box.cfg.net_msg_max

box.cfg.checkpoint_interval

box.cfg.checkpoint_count

box.cfg.too_long_threshold

box.cfg.read_only

box.cfg.listen

box.cfg.work_dir

box.cfg.wal_dir

box.cfg.memtx_dir

box.cfg.memtx_max_tuple_size

box.cfg.slab_alloc_factor

box.cfg.replication

box.cfg.wal_max_size

box.cfg.none

box.cfg{}

box.cfg()

box.cfg{too_long_threshold = 2}

box.cfg.too_long_threshold

box.cfg{readahead = 32640}

box.cfg.readahead

box.cfg{none = 1}

box.cfg{read_only = 'yes'}

box.cfg{checkpoint_count = 'many'}

box.cfg{wal_mode = 'fsync'}

box.cfg{wal_mode = 'none'}

box.cfg{work_dir = '/'}

box.cfg{memtx_memory = 1}

box.cfg{memtx_memory = 128 * 1024 * 1024}

box.cfg.memtx_memory

box.cfg{checkpoint_count = 0}

box.cfg(5)

box.cfg{read_only = true}

box.info.ro

s = box.schema.space.create('t')

box.cfg{read_only = false}

box.info.ro

box.cfg.x
