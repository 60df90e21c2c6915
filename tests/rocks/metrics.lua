-- metrics: counters, gauges, histograms and quantiles, what the server says of itself, all of it as Prometheus reads it
local fio, tap = require('fio'), require('tap')
box.cfg({ log_level = 2, wal_mode = 'write', listen = 'unix/:' .. fio.pathjoin(fio.cwd(), 'metrics.sock') })
local metrics = require('metrics')
local prometheus = require('metrics.plugins.prometheus')

local test = tap.test('metrics')
test:plan(15)
box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })
for _, engine in ipairs({ 'memtx', 'vinyl' }) do
    local s = box.schema.space.create('rows_' .. engine, { engine = engine })
    s:create_index('pk')
    for id = 1, 100 do
        s:insert({ id, ('x'):rep(100) })
    end
end
box.snapshot()
require('net.box').connect(box.cfg.listen):ping()

local counter = metrics.counter('requests', 'how many')
counter:inc(2, { kind = 'read' })
counter:inc(3, { kind = 'read' })
test:ok(not pcall(counter.inc, counter, -1), 'a counter counts upwards')
metrics.gauge('temperature', 'now'):set(-1.5)
local histogram = metrics.histogram('latency', 'seconds', { 0.1, 1 })
histogram:observe(0.05)
histogram:observe(0.5)
histogram:observe(5)
-- Quantiles are kept in arrays of C.
local quantile = require('metrics.quantile')
local stream = quantile.NewTargeted({ [0.5] = 0.01, [0.99] = 0.001 }, 1000)
for i = 1, 10000 do
    quantile.Insert(stream, (i * 7919) % 10007)
end
test:ok(math.abs(quantile.Query(stream, 0.5) - 5003) < 300, 'the middle')
test:ok(math.abs(quantile.Query(stream, 0.99) - 9907) < 100, 'the upper end')

metrics.set_global_labels({ alias = 'here' })
metrics.enable_default_metrics()
local answer = prometheus.collect_http()
test:is(answer.status, 200, 'an answer')

-- name{labels} -> value
local values, wrong = {}, nil
for line in answer.body:gmatch('[^\n]+') do
    if not line:find('^# %u+ [%w_]+ ?') then
        local name, labels, value = line:match('^([%w_]+)(%b{}) ([-+%w.]+)$')
        if not name then
            wrong = line
        else
            values[name] = values[name] or {}
            values[name][#values[name] + 1] = { labels = labels, value = tonumber(value) }
        end
    end
end
local function value_of(name, label)
    for _, each in ipairs(values[name] or {}) do
        if not label or each.labels:find(label, 1, true) then
            return each.value
        end
    end
end
test:is(wrong, nil, 'every line is one that Prometheus reads')
test:is(value_of('requests', 'kind="read"'), 5, 'a counter')
test:ok(value_of('requests', 'alias="here"'), 'labels of all')
test:is(value_of('temperature'), -1.5, 'a gauge')
test:is(value_of('latency_bucket', 'le="1"'), 2, 'a bucket')
test:is(value_of('latency_bucket', 'le="+Inf"'), 3, 'the last bucket')
test:is(value_of('tnt_space_len', 'name="rows_memtx"'), 100, 'the length of a space')
test:ok(value_of('tnt_vinyl_scheduler_dump_count') >= 1, 'a dump')
test:ok(value_of('tnt_stats_op_total', 'operation="insert"') >= 200, 'operations')
test:ok(value_of('tnt_net_received_total') > 0, 'the network')
-- What there is a collector for, and it said something.
local silent = {}
for _, name in ipairs({
    'tnt_net_sent_total', 'tnt_net_connections_current', 'tnt_net_requests_total', 'tnt_stats_op_rps',
    'tnt_cfg_current_time', 'tnt_info_lsn', 'tnt_info_uptime', 'tnt_info_vclock', 'tnt_read_only',
    'tnt_slab_quota_size', 'tnt_slab_arena_used_ratio',
    'tnt_runtime_lua', 'tnt_runtime_used', 'tnt_info_memory_lua', 'tnt_info_memory_data', 'tnt_space_bsize',
    'tnt_space_index_bsize', 'tnt_space_total_bsize', 'tnt_fiber_amount', 'tnt_fiber_csw', 'tnt_fiber_memused',
    'tnt_cpu_user_time', 'tnt_cpu_system_time', 'tnt_vinyl_disk_data_size', 'tnt_vinyl_regulator_rate_limit',
    'tnt_vinyl_tx_commit', 'tnt_vinyl_memory_level0', 'tnt_vinyl_scheduler_tasks', 'tnt_ev_loop_time',
}) do
    if value_of(name) == nil then
        silent[#silent + 1] = name
    end
end
test:is(table.concat(silent, ' '), '', 'every collector says something')
os.exit(test:check() and 0 or 1)
