// memjs (the binary protocol) against a server that speaks memcached's: `memcached_node.js HOST PORT`. The same passes against memcached.
const assert = require('assert');
const memjs = require('memjs');

async function main() {
  const client = memjs.Client.create(`${process.argv[2]}:${process.argv[3]}`, { retries: 2, timeout: 5 });
  assert.ok(await client.flush());
  assert.ok(await client.set('a', 'öne', { expires: 100 }));
  assert.strictEqual((await client.get('a')).value.toString(), 'öne');
  assert.strictEqual((await client.get('none')).value, null);
  assert.strictEqual(await client.add('a', 'x', {}), false);
  assert.ok(await client.add('b', '1', {}));
  assert.ok(await client.replace('b', '10', {}));
  assert.strictEqual(await client.replace('none', 'x', {}), false);
  assert.strictEqual((await client.increment('n', 5, { initial: 7 })).value, 7);
  assert.strictEqual((await client.increment('n', 5, {})).value, 12);
  assert.strictEqual((await client.decrement('n', 2, {})).value, 10);
  assert.ok(await client.append('a', '!'));
  assert.strictEqual((await client.get('a')).value.toString(), 'öne!');
  assert.ok(await client.touch('a', 50));
  const big = Buffer.alloc(900000, 7);
  assert.ok(await client.set('big', big, {}));
  assert.ok((await client.get('big')).value.equals(big));
  assert.ok(await client.delete('a'));
  assert.strictEqual(await client.delete('a'), false);
  await Promise.all(Array.from({ length: 500 }, (_, i) => client.set(`k${i}`, `${i}`, {})));
  const values = await Promise.all(Array.from({ length: 500 }, (_, i) => client.get(`k${i}`)));
  assert.ok(values.every(({ value }, i) => value.toString() === `${i}`));
  const versions = await new Promise((resolve, reject) => client.stats((error, _, stats) => (error ? reject(error) : resolve(stats))));
  assert.strictEqual(versions.version, '1.6.18');
  client.close();
  console.log('  memjs: works');
}

main().catch((error) => { console.error(error); process.exit(1); });
