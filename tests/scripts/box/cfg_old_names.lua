-- box.cfg takes the names that options had in old versions

box.cfg{slab_alloc_arena = 0.125, memtx_memory = 5}

box.cfg{slab_alloc_arena = 0.25}

box.cfg.memtx_memory

box.cfg.slab_alloc_arena

box.cfg{snapshot_count = 'many'}

box.cfg{snapshot_count = 3, snapshot_period = 100}

box.cfg.checkpoint_count

box.cfg.checkpoint_interval

box.cfg.snapshot_count

box.cfg{snapshot_count = 3, checkpoint_count = 3}

box.cfg{snapshot_count = 4, checkpoint_count = 3}

box.cfg.checkpoint_count

box.cfg{panic_on_wal_error = true}

box.cfg.force_recovery

box.cfg{panic_on_wal_error = false}

box.cfg{snap_dir = '/nowhere'}

box.cfg{slab_alloc_maximal = 2 * 1024 * 1024}

box.cfg.memtx_max_tuple_size

box.cfg{slab_alloc_minimal = 64}

box.cfg{replication_source = {}}

box.cfg{rows_per_wal = 1000}

box.cfg{none_at_all = 1, snapshot_count = 5}

box.cfg.checkpoint_count
