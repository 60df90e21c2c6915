-- SQL: transactions, and rows that Lua and SQL both change
box.execute([[CREATE TABLE t (id INT PRIMARY KEY, a INT)]])

box.execute([[START TRANSACTION]])

box.is_in_txn()

box.execute([[INSERT INTO t VALUES (1, 1)]])

box.space.T:insert({2, 2})

box.execute([[ROLLBACK]])

box.space.T:len()

box.execute([[START TRANSACTION]])

box.execute([[INSERT INTO t VALUES (1, 1)]])

box.execute([[SAVEPOINT here]])

box.execute([[INSERT INTO t VALUES (2, 2)]])

box.execute([[ROLLBACK TO SAVEPOINT here]])

box.execute([[ROLLBACK TO SAVEPOINT there]])

box.execute([[INSERT INTO t VALUES (1, 5)]])

box.execute([[COMMIT]])

box.space.T:select()

box.execute([[COMMIT]])

box.execute([[ROLLBACK]])

-- by Lua
box.begin() box.execute([[INSERT INTO t VALUES (3, 3)]]) box.rollback()

box.atomic(function() box.execute([[INSERT INTO t VALUES (4, 4)]]) end)

box.execute([[SELECT * FROM t]])

-- rows that Lua has put in
box.space.T:replace({5, 50, 'more'})

box.execute([[SELECT * FROM t WHERE id = 5]])

-- a user without rights
box.schema.user.create('u')

box.session.su('u', function() return box.execute([[SELECT * FROM t]]) end)

box.session.su('u', function() return box.execute([[INSERT INTO t VALUES (9, 9)]]) end)

box.session.su('u', function() return box.execute([[DROP TABLE t]]) end)

box.schema.user.grant('u', 'read', 'space', 'T')

box.session.su('u', function() return box.execute([[SELECT COUNT(*) AS n FROM t]]) end)

box.session.su('u', function() return box.execute([[UPDATE t SET a = 0]]) end)

box.schema.user.drop('u')

box.execute([[DROP TABLE t]])
