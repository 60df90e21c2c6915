// Sequelize, Knex and TypeORM against a server that speaks PostgreSQL's and MySQL's protocols: `node orm_node.js HOST POSTGRES_PORT MYSQL_PORT`. Tables are made by models and by
// migrations, changed, compared with the models again, and queried.

const assert = require('assert');

const [host, postgresPort, mysqlPort] = process.argv.slice(2);
const SERVERS = [
  { name: 'postgres', host, port: Number(postgresPort), user: 'postgres', database: 'postgres' },
  { name: 'mysql', host, port: Number(mysqlPort), user: 'root', database: 'test' },
];

async function sequelize(server) {
  const { Sequelize, DataTypes, Op } = require('sequelize');
  const db = new Sequelize(server.database, server.user, '', { dialect: server.name, host: server.host, port: server.port, logging: false });
  const User = db.define('SeqUser', { name: { type: DataTypes.STRING(60), allowNull: false, unique: true }, age: DataTypes.INTEGER, data: DataTypes.JSON, balance: { type: DataTypes.DECIMAL(10, 2), defaultValue: 0 } });
  const Post = db.define('SeqPost', { title: DataTypes.STRING, published: DataTypes.BOOLEAN }, { indexes: [{ fields: ['title'] }] });
  User.hasMany(Post, { foreignKey: { name: 'userId', allowNull: false }, onDelete: 'CASCADE' });
  Post.belongsTo(User, { foreignKey: 'userId' });
  await db.sync({ force: true });
  // Reads what is there and changes it to what the models say.
  await db.sync({ alter: true });
  const user = await User.create({ name: 'ann', age: 3, data: { a: [1, null] } });
  await Post.bulkCreate([{ title: 'one', published: true, userId: user.id }, { title: 'two', published: false, userId: user.id }]);
  const found = await User.findOne({ where: { name: { [Op.like]: 'a%' } }, include: [{ model: Post, where: { published: true } }] });
  assert.deepStrictEqual([found.SeqPosts.length, found.SeqPosts[0].title, found.age], [1, 'one', 3]);
  const [, isNew] = await User.findOrCreate({ where: { name: 'ann' } });
  assert.strictEqual(isNew, false);
  await assert.rejects(User.create({ name: 'ann' }), { name: 'SequelizeUniqueConstraintError' });
  await assert.rejects(Post.create({ title: 'x', userId: 999 }), { name: 'SequelizeForeignKeyConstraintError' });
  await db.transaction(async (transaction) => {
    const locked = await User.findByPk(user.id, { transaction, lock: transaction.LOCK.UPDATE });
    await locked.increment('age', { transaction });
  });
  await user.reload();
  assert.strictEqual(user.age, 4);
  await User.upsert({ id: user.id, name: 'ann', age: 9 });
  const { count, rows } = await Post.findAndCountAll({ order: [['title', 'DESC']], limit: 1, offset: 0 });
  assert.deepStrictEqual([count, rows[0].title], [2, 'two']);
  const query = db.getQueryInterface();
  await query.addColumn('SeqUsers', 'email', { type: DataTypes.STRING(40), allowNull: true });
  await query.renameColumn('SeqUsers', 'email', 'mail');
  await query.changeColumn('SeqUsers', 'mail', { type: DataTypes.STRING(80), allowNull: true });
  await query.addIndex('SeqUsers', ['mail'], { name: 'seq_mail' });
  assert.ok((await query.showIndex('SeqUsers')).some((index) => index.name === 'seq_mail'));
  assert.ok('mail' in (await query.describeTable('SeqUsers')));
  await query.removeIndex('SeqUsers', 'seq_mail');
  await query.removeColumn('SeqUsers', 'mail');
  await User.destroy({ where: { id: user.id } });
  assert.strictEqual(await Post.count(), 0);
  await db.drop();
  await db.close();
}

async function knex(server) {
  const client = server.name === 'postgres' ? 'pg' : 'mysql2';
  const db = require('knex')({ client, connection: { host: server.host, port: server.port, user: server.user, database: server.database } });
  const steps = {
    one: {
      up: (schema) =>
        schema
          .createTable('knex_users', (table) => {
            table.increments('id');
            table.string('name', 60).notNullable().unique();
            table.integer('age').index();
            table.jsonb('data');
            table.timestamps(true, true);
          })
          .createTable('knex_posts', (table) => {
            table.bigIncrements('id');
            table.integer('user_id').unsigned().references('id').inTable('knex_users').onDelete('CASCADE');
            table.text('body');
          }),
      down: (schema) => schema.dropTable('knex_posts').dropTable('knex_users'),
    },
    two: {
      up: (schema) =>
        schema.alterTable('knex_users', (table) => {
          table.decimal('balance', 12, 2).defaultTo(0);
          table.renameColumn('age', 'years');
          table.string('name', 120).notNullable().alter();
        }),
      down: (schema) =>
        schema.alterTable('knex_users', (table) => {
          table.dropColumn('balance');
          table.renameColumn('years', 'age');
        }),
    },
  };
  const migrationSource = {
    getMigrations: async () => Object.keys(steps),
    getMigrationName: (name) => name,
    getMigration: async (name) => ({ up: ({ schema }) => steps[name].up(schema), down: ({ schema }) => steps[name].down(schema) }),
  };
  await db.migrate.latest({ migrationSource });
  await db('knex_users').insert([{ name: 'ann', years: 3, data: JSON.stringify({ k: 1 }) }, { name: 'bob', years: 5 }]);
  await db('knex_users').insert({ name: 'ann', years: 4 }).onConflict('name').merge(['years']);
  const ann = await db('knex_users').where({ name: 'ann' }).first();
  assert.deepStrictEqual([ann.years, Number(ann.balance), ann.data], [4, 0, { k: 1 }]);
  await db('knex_posts').insert({ user_id: ann.id, body: 'x' });
  const joined = await db('knex_users as u').leftJoin('knex_posts as p', 'p.user_id', 'u.id').select('u.name').count('p.id as n').groupBy('u.name').orderBy('u.name');
  assert.deepStrictEqual(joined.map((row) => Number(row.n)), [1, 0]);
  await db.transaction(async (transaction) => {
    await transaction('knex_users').where({ name: 'bob' }).forUpdate().first();
    await transaction('knex_users').where({ name: 'bob' }).increment('years', 2);
  });
  assert.ok(await db.schema.hasTable('knex_users'));
  assert.ok(await db.schema.hasColumn('knex_users', 'years'));
  assert.ok('name' in (await db('knex_users').columnInfo()));
  await db.migrate.rollback({ migrationSource }, true);
  assert.ok(!(await db.schema.hasTable('knex_users')));
  await db.schema.dropTable('knex_migrations').dropTable('knex_migrations_lock');
  await db.destroy();
}

async function typeorm(server) {
  require('reflect-metadata');
  const { DataSource, EntitySchema } = require('typeorm');
  const entities = (width) => [
    new EntitySchema({
      name: 'OrmUser',
      tableName: 'orm_users',
      columns: { id: { type: 'int', primary: true, generated: 'increment' }, name: { type: 'varchar', length: width, unique: true }, age: { type: 'int', nullable: true }, balance: { type: 'decimal', precision: 10, scale: 2, default: 0 } },
      relations: { posts: { type: 'one-to-many', target: 'OrmPost', inverseSide: 'user' } },
    }),
    new EntitySchema({
      name: 'OrmPost',
      tableName: 'orm_posts',
      columns: { id: { type: 'bigint', primary: true, generated: 'increment' }, title: { type: 'varchar', length: 80 } },
      indices: [{ name: 'orm_title', columns: ['title'] }],
      relations: { user: { type: 'many-to-one', target: 'OrmUser', inverseSide: 'posts', onDelete: 'CASCADE' } },
    }),
  ];
  const options = { type: server.name, host: server.host, port: server.port, username: server.user, database: server.database };
  const first = await new DataSource({ ...options, entities: entities(40), synchronize: true }).initialize();
  const users = first.getRepository('OrmUser');
  const ann = await users.save({ name: 'ann', age: 3 });
  await first.getRepository('OrmPost').save([{ title: 'b', user: ann }, { title: 'a', user: ann }]);
  const found = await users.createQueryBuilder('u').leftJoinAndSelect('u.posts', 'p').where('u.name = :name', { name: 'ann' }).orderBy('p.title').getOne();
  assert.deepStrictEqual(found.posts.map((post) => post.title), ['a', 'b']);
  await first.transaction(async (manager) => {
    await manager.getRepository('OrmUser').findOne({ where: { id: ann.id }, lock: { mode: 'pessimistic_write' } });
    await manager.getRepository('OrmUser').increment({ id: ann.id }, 'age', 2);
  });
  assert.strictEqual((await users.findOneBy({ name: 'ann' })).age, 5);
  await first.destroy();
  const again = await new DataSource({ ...options, entities: entities(40), synchronize: false }).initialize();
  // What is there is what the models say.
  const changes = (await again.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query);
  assert.deepStrictEqual(changes, []);
  await again.dropDatabase().catch(() => again.query('DROP TABLE orm_posts').then(() => again.query('DROP TABLE orm_users')));
  await again.destroy();
}

async function main() {
  let failed = false;
  for (const server of SERVERS) {
    for (const [name, program] of Object.entries({ sequelize, knex, typeorm })) {
      try {
        await program(server);
        console.log(`  ${server.name}: ${name} ok`);
      } catch (error) {
        failed = true;
        console.log(`  ${server.name}: ${name} FAILED\n${error.stack}\n${error.sql || error.query || ''}`);
      }
    }
  }
  process.exit(failed ? 1 : 0);
}

main();
