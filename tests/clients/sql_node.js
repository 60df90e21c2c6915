// node-postgres and mysql2 against a server that speaks both protocols: `node sql_node.js HOST POSTGRES_PORT MYSQL_PORT`. The same passes against PostgreSQL 15
// and MariaDB 10.11.
const assert = require('node:assert')
const { Client, Pool } = require('pg')
const mysql = require('mysql2/promise')

const [host, postgresPort, mysqlPort] = process.argv.slice(2)

async function refused(promise, key, code, words) {
  try {
    await promise
  } catch (error) {
    assert.strictEqual(error[key], code, `${words}: ${error.message}`)
    return
  }
  assert.fail(`${words} is not refused`)
}

async function postgres() {
  const options = { host, port: Number(postgresPort), user: 'postgres', database: 'postgres', ssl: false }
  const db = new Client(options)
  await db.connect()
  await db.query('DROP TABLE IF EXISTS kinds')
  await db.query(`CREATE TABLE kinds (id SERIAL PRIMARY KEY, small SMALLINT, big BIGINT, wide DOUBLE PRECISION, exact NUMERIC(20, 4), words VARCHAR(30),
    bytes BYTEA, moment TIMESTAMPTZ, ok BOOLEAN, own UUID, document JSONB)`)
  const moment = new Date('2024-02-29T23:59:59.123Z')
  const row = [-32768, '9223372036854775807', 0.1, '12345.6789', 'wörds', Buffer.from([0, 255]), moment, true, '00000000-0000-0000-0000-000000000007', { a: [1, null] }]
  const columns = 'small, big, wide, exact, words, bytes, moment, ok, own, document'
  const places = row.map((_, at) => `$${at + 1}`).join(', ')
  const made = await db.query(`INSERT INTO kinds (${columns}) VALUES (${places}) RETURNING id`, row)
  assert.deepStrictEqual([made.rowCount, made.command, made.rows], [1, 'INSERT', [{ id: 1 }]])
  for (const query of [
    { text: `SELECT ${columns} FROM kinds WHERE id = $1`, values: [1], rowMode: 'array' },
    { name: 'kept', text: `SELECT ${columns} FROM kinds WHERE id = $1`, values: [1], rowMode: 'array' },
    { name: 'kept', text: `SELECT ${columns} FROM kinds WHERE id = $1`, values: [1], rowMode: 'array' },
    { text: `SELECT ${columns} FROM kinds WHERE id = 1`, rowMode: 'array' },
  ]) {
    assert.deepStrictEqual((await db.query(query)).rows, [row])
  }
  await db.query(`INSERT INTO kinds (${columns}) VALUES (${places})`, row.map(() => null))
  assert.deepStrictEqual((await db.query({ text: `SELECT ${columns} FROM kinds WHERE words IS NULL`, rowMode: 'array' })).rows, [row.map(() => null)])
  assert.deepStrictEqual((await db.query('SELECT id FROM kinds WHERE id = ANY($1) ORDER BY id', [[1, 2, 3]])).rows, [{ id: 1 }, { id: 2 }])
  const both = await db.query('SELECT 1 AS a; SELECT 2 AS b')
  assert.deepStrictEqual(both.map((result) => result.rows), [[{ a: 1 }], [{ b: 2 }]])
  await refused(db.query('SELECT nothing FROM kinds'), 'code', '42703', 'an unknown column')
  await refused(db.query('INSERT INTO kinds (id) VALUES (1)'), 'constraint', 'kinds_pkey', 'a key that is there')
  await refused(db.query('SELECT $1::int', ['x']), 'code', '22P02', 'a word for a number')
  await db.end()
  // Transactions of a pool, and rows that are fetched in parts.
  const pool = new Pool({ ...options, max: 5 })
  await pool.query('DROP TABLE IF EXISTS accounts')
  await pool.query('CREATE TABLE accounts (id INT PRIMARY KEY, amount INT NOT NULL)')
  await pool.query('INSERT INTO accounts SELECT g, 100 FROM generate_series(0, 9) g')
  await Promise.all(
    [...Array(40).keys()].map(async (number) => {
      for (;;) {
        const own = await pool.connect()
        try {
          await own.query('BEGIN')
          await own.query('UPDATE accounts SET amount = amount - 1 WHERE id = $1', [number % 10])
          await own.query('UPDATE accounts SET amount = amount + 1 WHERE id = $1', [(number * 7) % 10])
          await own.query('COMMIT')
          return
        } catch (error) {
          await own.query('ROLLBACK')
          if (error.code !== '40P01') throw error
        } finally {
          own.release()
        }
      }
    }),
  )
  assert.deepStrictEqual((await pool.query('SELECT sum(amount)::int AS sum FROM accounts')).rows, [{ sum: 1000 }])
  await pool.end()
  console.log('  node-postgres: types, prepared and not, errors, transactions of a pool')
}

async function ofMysql(more) {
  const options = { host, port: Number(mysqlPort), user: 'root', database: 'test', timezone: 'Z', supportBigNumbers: true, ...more }
  const db = await mysql.createConnection({ ...options, multipleStatements: true })
  await db.query('DROP TABLE IF EXISTS my_kinds')
  await db.query(
    'CREATE TABLE my_kinds (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, tiny TINYINT, big BIGINT, vast BIGINT UNSIGNED, wide DOUBLE, exact DECIMAL(20, 4),' +
      ' words VARCHAR(30), bytes VARBINARY(30), day DATE, moment DATETIME(3)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4',
  )
  const row = [-128, '9223372036854775807', '18446744073709551615', 0.1, '12345.6789', 'wörds', Buffer.from('\0\xff', 'latin1'), new Date('1999-12-31T00:00:00Z'), new Date('2024-02-29T23:59:59.123Z')]
  const columns = 'tiny, big, vast, wide, exact, words, bytes, day, moment'
  const places = row.map(() => '?').join(', ')
  const [made] = await db.execute(`INSERT INTO my_kinds (${columns}) VALUES (${places})`, row)
  assert.deepStrictEqual([made.insertId, made.affectedRows], [1, 1])
  const [again] = await db.query(`INSERT INTO my_kinds (${columns}) VALUES (${places})`, row)
  assert.strictEqual(again.insertId, 2)
  for (const ask of [() => db.query({ sql: `SELECT ${columns} FROM my_kinds WHERE id = 1`, rowsAsArray: true }), () => db.execute({ sql: `SELECT ${columns} FROM my_kinds WHERE id = ?`, values: [2], rowsAsArray: true })]) {
    const [[found]] = await ask()
    assert.deepStrictEqual(found.map((value, at) => (at === 1 || at === 2 ? String(value) : value)), row)
  }
  await db.execute(`INSERT INTO my_kinds (${columns}) VALUES (${places})`, row.map(() => null))
  const [[nulls]] = await db.execute({ sql: `SELECT ${columns} FROM my_kinds WHERE id = ?`, values: [3], rowsAsArray: true })
  assert.deepStrictEqual(nulls, row.map(() => null))
  const [both] = await db.query('SELECT 1 AS a; SELECT 2 AS b')
  assert.deepStrictEqual(both.map((rows) => rows.map((one) => ({ ...one }))), [[{ a: 1 }], [{ b: 2 }]])
  const [[nested]] = await db.query({ sql: 'SELECT a.id, b.id FROM my_kinds a JOIN my_kinds b ON a.id = b.id ORDER BY a.id LIMIT 1', nestTables: true })
  assert.strictEqual(nested.a.id, nested.b.id)
  await refused(db.query('SELECT nothing FROM my_kinds'), 'errno', 1054, 'an unknown column')
  await refused(db.execute('INSERT INTO my_kinds (id) VALUES (?)', [1]), 'errno', 1062, 'a key that is there')
  const { Readable } = require('node:stream')
  const lines = [...Array(50).keys()].map((id) => `${id + 100}\tl${id}\n`).join('')
  const [loaded] = await db.query({ sql: "LOAD DATA LOCAL INFILE 'lines' INTO TABLE my_kinds (id, words)", infileStreamFactory: () => Readable.from([Buffer.from(lines)]) })
  assert.strictEqual(loaded.affectedRows, 50)
  await db.changeUser({ user: 'root', database: 'test' })
  assert.strictEqual((await db.query('SELECT count(*) AS n FROM my_kinds'))[0][0].n, 53)
  await db.end()
  const pool = mysql.createPool({ ...options, connectionLimit: 5 })
  await pool.query('DROP TABLE IF EXISTS my_accounts')
  await pool.query('CREATE TABLE my_accounts (id INT PRIMARY KEY, amount INT NOT NULL)')
  await pool.query('INSERT INTO my_accounts VALUES ?', [[...Array(10).keys()].map((id) => [id, 100])])
  await Promise.all(
    [...Array(40).keys()].map(async (number) => {
      for (;;) {
        const own = await pool.getConnection()
        try {
          await own.beginTransaction()
          await own.execute('UPDATE my_accounts SET amount = amount - 1 WHERE id = ?', [number % 10])
          await own.execute('UPDATE my_accounts SET amount = amount + 1 WHERE id = ?', [(number * 7) % 10])
          await own.commit()
          return
        } catch (error) {
          await own.rollback()
          if (error.errno !== 1213) throw error
        } finally {
          own.release()
        }
      }
    }),
  )
  const [[sum]] = await pool.query('SELECT CAST(sum(amount) AS SIGNED) AS sum FROM my_accounts')
  assert.strictEqual(sum.sum, 1000)
  await pool.end()
}

async function main() {
  await postgres()
  await ofMysql({})
  await ofMysql({ compress: true })
  console.log('  mysql2: types, prepared and not, errors, LOAD DATA, change of the user, transactions of a pool, compression')
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
