// The connector of npm's `tarantool-driver`: arguments are host and port.
'use strict';

const assert = require('assert');
const Tarantool = require('tarantool-driver');

const [host, port] = [process.argv[2], Number(process.argv[3])];
const DUPLICATE_KEY = /Duplicate key exists in unique index/;
// A check that takes longer hangs.
const CHECK_MAX_MS = 20000;

const checks = [];
function check(name, run) {
    checks.push({ name, run });
}

function connect(options) {
    return new Tarantool(Object.assign({ host, port, username: 'tester', password: 'secret word', lazyConnect: true }, options));
}

// A connection on empty spaces, closed at the end.
async function connected(options, use) {
    const guest = new Tarantool({ host, port, lazyConnect: true });
    await guest.connect();
    await guest.call('clear');
    await guest.disconnect();
    const connection = connect(options);
    await connection.connect();
    try {
        await use(connection);
    } finally {
        await connection.disconnect();
    }
}

check('connects and pings', () => connected({}, async (connection) => {
    assert.strictEqual(await connection.ping(), true);
}));

check('a wrong password is refused', async () => {
    const connection = connect({ password: 'wrong', retryStrategy: () => null });
    connection.on('error', () => {});
    await assert.rejects(connection.connect());
    connection.disconnect();
});

check('all operations, spaces and indexes by name', () => connected({}, async (connection) => {
    assert.deepStrictEqual(await connection.insert('goods', [1, 'nut', 10]), [[1, 'nut', 10]]);
    await assert.rejects(connection.insert('goods', [1, 'bolt', 10]), DUPLICATE_KEY);
    assert.deepStrictEqual(await connection.replace('goods', [1, 'nut', 11]), [[1, 'nut', 11]]);
    assert.deepStrictEqual(await connection.select('goods', 'name', 1, 0, 'eq', ['nut']), [[1, 'nut', 11]]);
    assert.deepStrictEqual(await connection.update('goods', 'primary', [1], [['+', 2, 4]]), [[1, 'nut', 15]]);
    await connection.upsert('goods', [['+', 2, 100]], [1, 'other', 1]);
    await connection.upsert('goods', [['+', 2, 100]], [2, 'bolt', 7]);
    assert.deepStrictEqual(
        await connection.select('goods', 'primary', 10, 0, 'all', []), [[1, 'nut', 115], [2, 'bolt', 7]]);
    assert.deepStrictEqual(await connection.delete('goods', 'primary', [2]), [[2, 'bolt', 7]]);
    assert.deepStrictEqual(await connection.delete('goods', 'primary', [2]), []);
}));

check('iterators, limit and offset', () => connected({}, async (connection) => {
    for (let id = 1; id <= 10; id += 1) {
        await connection.insert('goods', [id, `name ${id}`, Math.floor(id / 3)]);
    }
    const ids = async (...request) => (await connection.select('goods', ...request)).map((row) => row[0]);
    assert.deepStrictEqual(await ids('primary', 100, 0, 'ge', [8]), [8, 9, 10]);
    assert.deepStrictEqual(await ids('primary', 100, 0, 'lt', [3]), [2, 1]);
    assert.deepStrictEqual(await ids('price', 100, 0, 'eq', [2]), [6, 7, 8]);
    assert.deepStrictEqual(await ids('primary', 2, 3, 'all', []), [4, 5]);
}));

check('names that are not there are errors', () => connected({}, async (connection) => {
    await assert.rejects(connection.select('no_such_space', 'primary', 1, 0, 'eq', [1]));
    await assert.rejects(connection.select('goods', 'no_such_index', 1, 0, 'eq', [1]));
}));

check('calls and eval', () => connected({}, async (connection) => {
    // This connector sends the old form of CALL: every value is a row.
    assert.deepStrictEqual(await connection.call('sum', 1, 2), [[3]]);
    assert.deepStrictEqual(await connection.call('echo', 1, 'two', [3, 4]), [[1], ['two'], [3, 4]]);
    await connection.insert('goods', [1, 'nut', 10]);
    assert.deepStrictEqual(await connection.call('find_goods', 1), [[1, 'nut', 10]]);
    assert.deepStrictEqual(await connection.eval('return ...', 1, 'two'), [1, 'two']);
    await assert.rejects(connection.call('fail', 'something is wrong'), /something is wrong/);
    await assert.rejects(connection.call('no_such_function'), /is not defined/);
    assert.deepStrictEqual(await connection.call('sum', 1, 2), [[3]]);
}));

check('a thousand requests at once', () => connected({}, async (connection) => {
    // Once, so that the names are known: without it the thousand never end, on Tarantool too.
    await connection.select('goods', 'primary', 1, 0, 'eq', [0]);
    const numbers = Array.from({ length: 1000 }, (_, number) => number);
    await Promise.all(numbers.map((number) => connection.insert('goods', [number, `name ${number}`, number])));
    const rows = await Promise.all(
        numbers.map((number) => connection.select('goods', 'primary', 1, 0, 'eq', [number])));
    assert.deepStrictEqual(rows.map((row) => row[0][0]), numbers);
}));

check('a changed schema is noticed', () => connected({}, async (connection) => {
    await connection.select('goods', 'primary', 1, 0, 'eq', [1]);
    await connection.call('add_space', 'added_node');
    assert.deepStrictEqual(await connection.insert('added_node', [1]), [[1]]);
}));

check('a lost connection is made again', () => connected({ retryStrategy: () => 10 }, async (connection) => {
    await connection.insert('goods', [1, 'nut', 1]);
    const again = new Promise((resolve) => connection.once('connect', resolve));
    connection.socket.destroy();
    await again;
    assert.deepStrictEqual(await connection.select('goods', 'primary', 1, 0, 'eq', [1]), [[1, 'nut', 1]]);
}));

function within(promise) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no end within ${CHECK_MAX_MS} ms`)), CHECK_MAX_MS);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function main() {
    let failures = 0;
    for (const { name, run } of checks) {
        try {
            await within(run());
            console.log(`  ok     ${name}`);
        } catch (error) {
            failures += 1;
            console.log(`  FAILED ${name}\n${error && error.stack ? error.stack : error}`);
        }
    }
    process.exit(failures ? 1 : 0);
}

main();
