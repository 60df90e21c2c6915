-- SQL: rows are put in, changed and removed
-- engines: memtx, vinyl
box.execute([[CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT NOT NULL, b DOUBLE DEFAULT 1.5, c INT UNIQUE)]])

box.execute([[INSERT INTO t (a) VALUES ('x'), ('y')]])

box.execute([[INSERT INTO t VALUES (NULL, 'z', 2, 1)]])

box.execute([[INSERT INTO t VALUES (10, 'w', NULL, NULL)]])

box.execute([[SELECT * FROM t]])

-- what is refused
box.execute([[INSERT INTO t (id, a) VALUES (1, 'again')]])

box.execute([[INSERT INTO t (a, c) VALUES ('again', 1)]])

box.execute([[INSERT INTO t (a) VALUES (NULL)]])

box.execute([[INSERT INTO t (b) VALUES (1)]])

box.execute([[INSERT INTO t (a, b) VALUES ('x')]])

box.execute([[INSERT INTO t VALUES (1, 2)]])

box.execute([[INSERT INTO t (a, nope) VALUES ('x', 1)]])

box.execute([[INSERT INTO nope VALUES (1)]])

box.execute([[INSERT INTO t (a, b) VALUES (1, 2)]])

box.execute([[INSERT INTO t (a, b) VALUES ('x', 'y')]])

-- a statement that fails in the middle leaves nothing
box.execute([[INSERT INTO t (id, a) VALUES (20, 'p'), (21, 'q'), (1, 'r')]])

box.execute([[SELECT COUNT(*) AS n FROM t]])

-- rows of a query
box.execute([[INSERT INTO t (id, a, b) SELECT id + 100, a || '!', b * 2 FROM t WHERE id < 3]])

box.execute([[SELECT id, a, b FROM t WHERE id > 100]])

-- changed
box.execute([[UPDATE t SET b = b + 1, a = a || id WHERE id = 1]])

box.execute([[UPDATE t SET b = 0 WHERE id > 1000]])

box.execute([[SELECT id, a, b FROM t WHERE id = 1]])

box.execute([[UPDATE t SET a = NULL WHERE id = 1]])

box.execute([[UPDATE t SET id = id + 1000 WHERE id < 3]])

box.execute([[UPDATE t SET c = 7]])

box.execute([[UPDATE t SET nope = 1]])

box.execute([[SELECT id, a FROM t ORDER BY id]])

-- replaced, or left out
box.execute([[REPLACE INTO t (id, a) VALUES (10, 'new')]])

box.execute([[INSERT OR REPLACE INTO t (id, a, c) VALUES (11, 'takes c', 1)]])

box.execute([[INSERT OR IGNORE INTO t (id, a) VALUES (10, 'newer'), (12, 'comes')]])

box.execute([[SELECT id, a, c FROM t ORDER BY id]])

-- removed
box.execute([[DELETE FROM t WHERE a LIKE '%!']])

box.execute([[DELETE FROM t WHERE id = 1001]])

box.execute([[DELETE FROM t WHERE nope = 1]])

box.execute([[DELETE FROM t]])

box.execute([[SELECT * FROM t]])

box.execute([[DROP TABLE t]])
