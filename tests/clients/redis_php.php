<?php
// php-redis against a server that speaks Redis' protocol: `redis_php.php HOST PORT`. The same passes against Redis 7.

function equal($got, $wanted): void
{
    if ($got !== $wanted) {
        throw new Exception('got ' . var_export($got, true) . ', wanted ' . var_export($wanted, true));
    }
}

[, $host, $port] = $argv;
$r = new Redis();
$r->connect($host, (int) $port, 10);
$r->flushAll();
equal($r->set('a', 'b', ['nx', 'ex' => 100]), true);
equal($r->set('a', 'c', ['nx']), false);
equal($r->get('a'), 'b');
equal($r->get('none'), false);
equal($r->hMSet('h', ['x' => '1', 'y' => 'two']), true);
equal($r->hGetAll('h'), ['x' => '1', 'y' => 'two']);
equal($r->zAdd('z', 1.5, 'one', 2, 'two'), 2);
equal($r->zRange('z', 0, -1, true), ['one' => 1.5, 'two' => 2.0]);
equal($r->sAdd('s', 'a', 'b'), 2);
equal($r->lPush('l', 'a', 'b'), 2);
equal($r->lRange('l', 0, -1), ['b', 'a']);
equal($r->xAdd('x', '1-1', ['k' => 'v']), '1-1');
equal($r->xRange('x', '-', '+'), ['1-1' => ['k' => 'v']]);
echo "  php-redis: types\n";

equal($r->multi()->set('n', 1)->incr('n')->exec(), [true, 2]);
$other = new Redis();
$other->connect($host, (int) $port, 10);
$r->watch('n');
$other->set('n', 5);
equal($r->multi()->incr('n')->exec(), false);
$r->multi(Redis::PIPELINE);
for ($i = 0; $i < 2000; $i++) {
    $r->incr('n');
}
equal($r->exec()[1999], 2005);
equal($r->eval("return redis.call('incrby', KEYS[1], ARGV[1])", ['n', 5], 1), 2010);
$sha = $r->script('load', "return ARGV[1]");
equal($r->evalSha($sha, ['x'], 0), 'x');
$other->rPush('queue', 'job');
equal($r->blPop(['queue'], 5), ['queue', 'job']);
echo "  php-redis: transactions and scripts\n";

$cursor = null;
$found = [];
$r->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
while (($keys = $r->scan($cursor, '?', 3)) !== false) {
    $found = array_merge($found, $keys);
}
sort($found);
equal($found, ['a', 'h', 'l', 'n', 's', 'x', 'z']);
$r->setOption(Redis::OPT_SERIALIZER, Redis::SERIALIZER_PHP);
$r->set('object', ['x' => [1, null]]);
equal($r->get('object'), ['x' => [1, null]]);
$r->setOption(Redis::OPT_SERIALIZER, Redis::SERIALIZER_NONE);
$id = $r->rawCommand('CLIENT', 'ID');
$other->rawCommand('CLIENT', 'KILL', 'ID', (string) $id);
try {
    $r->get('a');
} catch (RedisException $gone) {
    // It may learn so late that it is gone; the next command connects again.
}
equal($r->get('a'), 'b');
echo "  php-redis: reconnects\n";
