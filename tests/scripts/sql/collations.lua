-- SQL: texts that a collation takes for equal
-- engines: memtx, vinyl
box.execute([[CREATE TABLE t (id INT PRIMARY KEY, s TEXT COLLATE "unicode_ci", b TEXT)]])

box.execute([[INSERT INTO t VALUES (1, 'a', 'a'), (2, 'A', 'A'), (3, 'b', 'b'), (4, 'B', 'b'), (5, NULL, NULL)]])

box.execute([[SELECT id FROM t WHERE s = 'A']])

box.execute([[SELECT id FROM t WHERE b = 'A']])

box.execute([[SELECT id FROM t WHERE b COLLATE "unicode_ci" = 'A']])

box.execute([[SELECT id FROM t WHERE s IN ('B', 'x')]])

box.execute([[SELECT id FROM t ORDER BY s DESC, id]])

box.execute([[SELECT COUNT(*) AS n, MIN(id) AS i FROM t GROUP BY s ORDER BY n, i]])

box.execute([[SELECT COUNT(*) AS n, MIN(id) AS i FROM t GROUP BY b ORDER BY n, i]])

box.execute([[SELECT COUNT(*) AS n FROM (SELECT DISTINCT s FROM t)]])

box.execute([[SELECT COUNT(DISTINCT s) AS s, COUNT(DISTINCT b) AS b FROM t]])

box.execute([[SELECT p.id, q.id FROM t p JOIN t q ON p.s = q.s AND p.id < q.id ORDER BY p.id]])

-- an index by the collation
box.execute([[CREATE INDEX i ON t (s)]])

box.execute([[SELECT id FROM t WHERE s = 'A']])

box.execute([[SELECT id FROM t WHERE s > 'A' ORDER BY s, id]])

box.execute([[CREATE TABLE u (s TEXT COLLATE "unicode_ci" PRIMARY KEY)]])

box.execute([[INSERT INTO u VALUES ('x'), ('X')]])

box.execute([[SELECT COLLATE FROM t]])

box.execute([[CREATE TABLE w (s TEXT COLLATE "nope" PRIMARY KEY)]])

box.execute([[DROP TABLE u]])

box.execute([[DROP TABLE t]])
