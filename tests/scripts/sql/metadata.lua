-- SQL: what is told of the columns of a result
-- engines: memtx, vinyl
box.execute([[CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT COLLATE "unicode_ci", b TEXT NOT NULL, c INT UNIQUE, d TEXT COLLATE "binary", e DOUBLE DEFAULT 1.5, f SCALAR COLLATE "unicode", "low" BOOLEAN, v VARBINARY)]])

box.execute([[CREATE TABLE u (id INTEGER PRIMARY KEY, x TEXT)]])

box.execute([[CREATE VIEW w AS SELECT id, a AS q, b || 'x' AS z FROM t]])

box.execute([[INSERT INTO t (a, b, c) VALUES ('x', 'y', 1)]])

-- names and types
box.execute([[SELECT * FROM t]])

box.execute([[SELECT id, (a), ((b)), id + 1, (a || b), c n FROM t]])

-- and the rest
box.execute([[SET SESSION "sql_full_metadata" = true]])

box.execute([[SELECT * FROM t]])

box.execute([[SELECT t.* FROM t]])

box.execute([[SELECT u.*, t.a AS y, t.*, x FROM t, u]])

box.execute([[SELECT id, a AS id, b AS c, "low", "T"."B" FROM t]])

box.execute([[SELECT  id  +   1 , ( a ),(b)y, COUNT( * ) AS n, 'a, b' AS s FROM t]])

box.execute([[SELECT id -- a comment, of course
  + 1, a /* and another */ FROM t]])

box.execute([[SELECT NOT "low", id BETWEEN 1 AND 2, a = b, CASE WHEN a = b THEN a ELSE b END AS e FROM t]])

box.execute([[SELECT (SELECT a FROM t), EXISTS (SELECT 1, 2), CAST(a AS TEXT) FROM t]])

box.execute([[SELECT DISTINCT a, c FROM t]])

box.execute([[SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY a]])

-- collations
box.execute([[SELECT a COLLATE "unicode", a COLLATE "binary", 'x' COLLATE "unicode_ci", d, f FROM t]])

box.execute([[SELECT UPPER(a), LOWER(a), TRIM(a), REPLACE(a, 'x', 'y'), SUBSTR(a, 1, 1) FROM t]])

-- several tables
box.execute([[SELECT t.id, u.id, x FROM t LEFT JOIN u ON t.id = u.id]])

box.execute([[SELECT * FROM u LEFT JOIN t ON t.id = u.id]])

-- through other queries
box.execute([[SELECT * FROM w]])

box.execute([[SELECT id, q, z z1 FROM w]])

box.execute([[SELECT * FROM (SELECT id, a AS q, b || 'x' AS z FROM t)]])

box.execute([[SELECT q FROM (SELECT id, a AS q FROM t) s]])

box.execute([[WITH c AS (SELECT id, a FROM t) SELECT id, a FROM c]])

box.execute([[SELECT id, a FROM t UNION ALL SELECT id, x FROM u]])

box.execute([[SELECT id, x FROM u UNION SELECT id, a FROM t]])

-- without a table
box.execute([[VALUES (1, 'a')]])

box.execute([[SELECT 1, 'abc', ? AS q]], {5})

box.execute([[INSERT INTO t (b) VALUES ('x')]])

-- system spaces, and those of Lua
box.execute([[SELECT "name", "id" FROM "_space" LIMIT 0]])

box.execute([[SELECT * FROM "_vindex" LIMIT 0]])

s = box.schema.space.create('Lua', {format = {{'id', 'unsigned'}, {'n', 'string', is_nullable = true, collation = 'unicode'}, {'m', 'map'}, {'q', 'any'}}})

i = s:create_index('pk', {sequence = true})

box.execute([[SELECT * FROM "Lua"]])

box.execute([[SELECT "id", "n" AS "N", "m" FROM "Lua"]])

-- prepared
p = box.prepare([[SELECT id, a, b || ? AS y FROM t]])

p.metadata

p:execute({'z'}).metadata

p:unprepare()

-- names of tables
box.execute([[SET SESSION "sql_full_column_names" = true]])

box.execute([[SELECT id, a AS q, id + 1, (b) FROM t]])

box.execute([[SELECT t.id, q.id, q.* FROM t, t q LIMIT 0]])

box.execute([[SET SESSION "sql_full_metadata" = false]])

box.execute([[SELECT * FROM t q LIMIT 0]])
