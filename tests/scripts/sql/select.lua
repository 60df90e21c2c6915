-- SQL: queries
-- engines: memtx, vinyl
box.execute([[CREATE TABLE a (id INT PRIMARY KEY, x INT, s TEXT)]])

box.execute([[CREATE TABLE b (id INT PRIMARY KEY, a_id INT, y DOUBLE)]])

box.execute([[CREATE INDEX b_a ON b (a_id)]])

box.execute([[INSERT INTO a VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, 'three'), (4, 10, NULL)]])

box.execute([[INSERT INTO b VALUES (1, 1, 0.5), (2, 1, 1.5), (3, 2, 2.5), (4, NULL, 3.5), (5, 9, 4.5)]])

-- one table
box.execute([[SELECT id, x AS y, s FROM a WHERE x = 10]])

box.execute([[SELECT a.* FROM a WHERE s IS NULL OR id IN (2, 3)]])

box.execute([[SELECT id FROM a WHERE x BETWEEN 10 AND 15 AND NOT s = 'two']])

box.execute([[SELECT id FROM a ORDER BY x, id DESC]])

box.execute([[SELECT id FROM a ORDER BY x DESC, 1 LIMIT 2 OFFSET 1]])

box.execute([[SELECT DISTINCT x FROM a ORDER BY x]])

box.execute([[SELECT x + 1, s || '!' FROM a WHERE id = 1]])

box.execute([[SELECT nope FROM a]])

box.execute([[SELECT a.nope FROM a]])

box.execute([[SELECT * FROM nope]])

-- several tables
box.execute([[SELECT a.id, b.id, y FROM a JOIN b ON a.id = b.a_id ORDER BY b.id]])

box.execute([[SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id ORDER BY a.id, b.id]])

box.execute([[SELECT a.id, b.id FROM a, b WHERE a.id = b.a_id AND y > 1 ORDER BY b.id]])

box.execute([[SELECT p.id, q.id FROM a p, a q WHERE p.x = q.x AND p.id < q.id]])

box.execute([[SELECT COUNT(*) AS n FROM a CROSS JOIN b]])

box.execute([[SELECT id FROM a, b]])

-- groups
box.execute([[SELECT COUNT(*) AS n, COUNT(x) AS k, SUM(x) AS s, MIN(s) AS l, MAX(id) AS m FROM a]])

box.execute([[SELECT x, COUNT(*) AS n FROM a GROUP BY x ORDER BY x]])

box.execute([[SELECT x, COUNT(*) AS n FROM a GROUP BY x HAVING COUNT(*) > 1]])

box.execute([[SELECT SUM(x) AS s, AVG(y) AS v FROM a, b WHERE a.id = b.a_id]])

box.execute([[SELECT SUM(x) AS s, COUNT(x) AS n FROM a WHERE id > 100]])

box.execute([[SELECT COUNT(DISTINCT x) AS n, GROUP_CONCAT(id) AS g FROM a]])

box.execute([[SELECT id FROM a WHERE COUNT(*) > 1]])

-- queries in queries
box.execute([[SELECT id, (SELECT MAX(y) FROM b WHERE a_id = a.id) AS top FROM a ORDER BY id]])

box.execute([[SELECT id FROM a WHERE id IN (SELECT a_id FROM b)]])

box.execute([[SELECT id FROM a WHERE id NOT IN (SELECT a_id FROM b WHERE a_id IS NOT NULL)]])

box.execute([[SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a_id = a.id AND y > 2)]])

box.execute([[SELECT t.n FROM (SELECT x, COUNT(*) AS n FROM a GROUP BY x) AS t ORDER BY t.n DESC LIMIT 1]])

box.execute([[SELECT id FROM a WHERE x = (SELECT id FROM b)]])

-- sets
box.execute([[SELECT x AS v FROM a UNION SELECT id FROM b ORDER BY v]])

box.execute([[SELECT id AS v FROM a UNION ALL SELECT id FROM b ORDER BY v LIMIT 4]])

box.execute([[SELECT id AS v FROM b EXCEPT SELECT id FROM a]])

box.execute([[SELECT id AS v FROM b INTERSECT SELECT id FROM a ORDER BY v DESC]])

box.execute([[SELECT id, x FROM a UNION SELECT id FROM b]])

-- tables of a statement's own
box.execute([[WITH big AS (SELECT id FROM b WHERE y > 2) SELECT COUNT(*) AS n FROM big]])

box.execute([[WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n]])

-- what is no query
box.execute([[]])

box.execute([[   ]])

box.execute([[SELECT 1 FROM]])

box.execute([[SELECT id FROM a WHERE]])

box.execute([[DROP TABLE a]])

box.execute([[DROP TABLE b]])
