-- SQL: tables, indexes, and what stands of them in the system spaces
-- engines: memtx, vinyl
box.execute([[CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL, b DOUBLE DEFAULT 1.5, c BOOLEAN UNIQUE)]])

box.space.T.name, box.space.T.field_count

box.space.T:format()

box.space._index:select({box.space.T.id})

-- a table is there already
box.execute([[CREATE TABLE t (id INT PRIMARY KEY)]])

box.execute([[CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)]])

-- names are folded unless they are quoted
box.execute([[CREATE TABLE "quoted" ("id" INT PRIMARY KEY, "Mixed" INT)]])

box.space.quoted:format()

box.execute([[SELECT "id", "Mixed" FROM "quoted"]])

box.execute([[SELECT id FROM "quoted"]])

-- what is wrong with a table
box.execute([[CREATE TABLE u (id INT)]])

box.execute([[CREATE TABLE u (id INT PRIMARY KEY, id INT)]])

box.execute([[CREATE TABLE u (id INT PRIMARY KEY, PRIMARY KEY (id))]])

box.execute([[CREATE TABLE u (id WRONG PRIMARY KEY)]])

-- keys of several columns
box.execute([[CREATE TABLE w (a INT, b STRING, c UNSIGNED, PRIMARY KEY (b, a), UNIQUE (c, a))]])

box.space._index:select({box.space.W.id})

-- indexes
box.execute([[CREATE INDEX i ON w (c)]])

box.execute([[CREATE UNIQUE INDEX i ON w (a)]])

box.execute([[CREATE INDEX IF NOT EXISTS i ON w (a)]])

box.execute([[CREATE INDEX j ON w (nope)]])

box.execute([[CREATE INDEX j ON nope (a)]])

box.space.W.index.I.unique, #box.space.W.index.I.parts

box.execute([[DROP INDEX i ON w]])

box.execute([[DROP INDEX IF EXISTS i ON w]])

-- other names
box.execute([[ALTER TABLE w RENAME TO v]])

box.space.W, box.space.V.name

box.execute([[ALTER TABLE nope RENAME TO v]])

-- numbers that are given
box.execute([[CREATE TABLE s (id INTEGER PRIMARY KEY AUTOINCREMENT, a INT)]])

box.space._sequence:select({}, {limit = 1})[1]:totable(3)

box.execute([[CREATE TABLE s2 (id TEXT PRIMARY KEY AUTOINCREMENT)]])

-- emptied and dropped
box.execute([[INSERT INTO s (a) VALUES (1), (2)]])

box.execute([[TRUNCATE TABLE s]])

box.execute([[SELECT COUNT(*) AS n FROM s]])

box.execute([[DROP TABLE s]])

box.space.S, box.space._sequence:len()

box.execute([[DROP TABLE s]])

box.execute([[DROP TABLE IF EXISTS s]])

box.execute([[DROP TABLE t]])

box.execute([[DROP TABLE v]])

box.execute([[DROP TABLE "quoted"]])
