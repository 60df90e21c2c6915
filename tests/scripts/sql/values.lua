-- SQL: values, their types and what operators make of them
box.execute([[SELECT 1, 1.5, 'a', true, x'4142']])

box.execute([[SELECT 1 + 2, 7 - 10, 3 * 4, 7 / 2, 7 % 3, -5, 7.0 / 2, 1e3]])

box.execute([[SELECT 9223372036854775807 + 1, 18446744073709551615, -9223372036854775808]])

box.execute([[SELECT 18446744073709551615 + 1]])

box.execute([[SELECT -9223372036854775808 - 1]])

box.execute([[SELECT 1 / 0]])

box.execute([[SELECT 'a' || 'b', 'it''s']])

box.execute([[SELECT 1 < 2, 1 = 1.0, 'a' < 'b', 'a' = 'A', true <> false]])

box.execute([[SELECT NULL = NULL, NULL IS NULL, NOT NULL, NULL AND false, NULL OR true, 1 + NULL]])

box.execute([[SELECT 1 IN (1, 2), 3 NOT IN (1, NULL), 2 BETWEEN 1 AND 3]])

box.execute([[SELECT CASE 1 WHEN 1 THEN 'one' ELSE 'other' END, CASE WHEN false THEN 1 END]])

-- conversions
box.execute([[SELECT CAST('12' AS INTEGER), CAST(1.9 AS INTEGER), CAST(12 AS STRING), CAST('1.5' AS DOUBLE)]])

box.execute([[SELECT CAST('abc' AS INTEGER)]])

box.execute([[SELECT CAST(-1 AS UNSIGNED)]])

box.execute([[SELECT CAST(true AS STRING), CAST('true' AS BOOLEAN), CAST(1 AS BOOLEAN)]])

box.execute([[SELECT '1' + 1]])

box.execute([[SELECT 'a' + 1]])

box.execute([[SELECT 1 = '1', 1 = 'a']])

box.execute([[SELECT typeof(1), typeof(1.5), typeof('a'), typeof(NULL), typeof(true), typeof(x'11')]])

-- functions
box.execute([[SELECT ABS(-1), LENGTH('héllo'), UPPER('é'), LOWER('ABC'), SUBSTR('hello', 2, 3), SUBSTR('hello', -3)]])

box.execute([[SELECT ROUND(2.567, 2), ROUND(2.5), COALESCE(NULL, 1), IFNULL(NULL, 2), NULLIF(1, 1), NULLIF(1, 2)]])

box.execute([[SELECT HEX('ab'), QUOTE('a''b'), POSITION('b', 'abc'), CHAR(65, 66), TRIM('  a '), REPLACE('aba', 'a', 'c')]])

box.execute([[SELECT TRIM(LEADING 'x' FROM 'xxa'), TRIM(TRAILING 'a' FROM 'baa'), GREATEST(1, 3, 2), LEAST(1, 3, 2)]])

box.execute([[SELECT UNICODE('a'), SOUNDEX('Robert'), VERSION() LIKE '2.%']])

box.execute([[SELECT NOPE(1)]])

box.execute([[SELECT ABS(1, 2)]])

-- patterns
box.execute([[SELECT 'abc' LIKE 'a%' AS a, 'abc' LIKE '_b_' AS b, 'abc' LIKE 'A%' AS c, 'a%c' LIKE 'a\%c' ESCAPE '\' AS d]])

-- parameters
box.execute([[SELECT ?, ? + 1]], { 'a', 2 })

box.execute([[SELECT :a, :b, :a]], { { [':a'] = 1 }, { [':b'] = 'x' } })

box.execute([[SELECT ?]], { {1, 2} })

box.execute([[SELECT :a]], { { [':c'] = 1 } })

-- prepared
statement = box.prepare([[SELECT ? + 1 AS n]])

statement.param_count, statement.params

statement:execute({ 4 })

statement:unprepare()

statement:execute({ 4 })

box.prepare([[SELEC 1]])

box.unprepare(1)
