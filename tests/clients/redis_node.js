// ioredis against a server that speaks Redis' protocol: `redis_node.js HOST PORT`. The same passes against Redis 7.
const assert = require('assert');
const Redis = require('ioredis');

async function main() {
  const [host, port] = [process.argv[2], Number(process.argv[3])];
  const r = new Redis(port, host);
  await r.flushall();
  assert.strictEqual(await r.set('a', 'ä', 'EX', 100), 'OK');
  assert.strictEqual(await r.get('a'), 'ä');
  assert.deepStrictEqual(await r.getBuffer('a'), Buffer.from('ä'));
  await r.hset('h', { x: 1, y: 'two' });
  assert.deepStrictEqual(await r.hgetall('h'), { x: '1', y: 'two' });
  await r.zadd('z', 1, 'one', 2.5, 'two');
  assert.deepStrictEqual(await r.zrange('z', 0, -1, 'WITHSCORES'), ['one', '1', 'two', '2.5']);
  await r.sadd('s', 'a', 'b');
  assert.strictEqual(await r.scard('s'), 2);
  console.log('  ioredis: types');

  const results = await r.multi().set('n', 1).incr('n').lpush('n', 1).exec();
  assert.deepStrictEqual(results.slice(0, 2), [[null, 'OK'], [null, 2]]);
  assert.match(results[2][0].message, /^WRONGTYPE/);
  await r.watch('n');
  const other = r.duplicate();
  await other.set('n', 9);
  assert.strictEqual(await r.multi().incr('n').exec(), null);
  const many = r.pipeline();
  for (let i = 0; i < 2000; i++) many.set(`k${i}`, i);
  assert.ok((await many.exec()).every(([error, answer]) => error === null && answer === 'OK'));
  console.log('  ioredis: transactions');

  r.defineCommand('addTwice', { numberOfKeys: 1, lua: "redis.call('incrby', KEYS[1], ARGV[1]) return redis.call('incrby', KEYS[1], ARGV[1])" });
  assert.strictEqual(await r.addTwice('n', 3), 15);
  await r.script('FLUSH');
  assert.strictEqual(await r.addTwice('n', 3), 21);
  console.log('  ioredis: scripts');

  const listener = r.duplicate();
  const heard = new Promise((resolve) => listener.on('message', (channel, text) => resolve([channel, text])));
  await listener.subscribe('news');
  assert.strictEqual(await r.publish('news', 'hello'), 1);
  assert.deepStrictEqual(await heard, ['news', 'hello']);
  const popped = other.blpop('queue', 10);
  await r.rpush('queue', 'job');
  assert.deepStrictEqual(await popped, ['queue', 'job']);
  console.log('  ioredis: messages and waiting');

  const keys = [];
  for await (const some of r.scanStream({ match: 'k1*', count: 100 })) keys.push(...some);
  assert.strictEqual(new Set(keys).size, 1111);
  await r.call('XADD', 'x', '*', 'f', 'v');
  assert.deepStrictEqual((await r.xread('COUNT', 1, 'STREAMS', 'x', '0'))[0][1][0][1], ['f', 'v']);
  const id = await listener.client('ID').catch(() => null);
  const victim = await other.client('ID');
  await r.client('KILL', 'ID', victim);
  assert.strictEqual(await other.get('a'), 'ä');
  assert.ok(id === null || id > 0);
  console.log('  ioredis: reconnects');
  [r, other, listener].forEach((client) => client.disconnect());
}

main().catch((error) => { console.error(error); process.exit(1); });
