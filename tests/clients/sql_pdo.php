<?php
// PDO of PostgreSQL and MySQL against a server that speaks both protocols: `php sql_pdo.php HOST POSTGRES_PORT MYSQL_PORT`. The same passes against PostgreSQL 15
// and MariaDB 10.11.
[, $host, $postgres, $mysql] = $argv;

function check(bool $holds, string $words): void
{
    if (!$holds) {
        fwrite(STDERR, "not so: $words\n");
        exit(1);
    }
}

function refused(PDO $db, string $statement): string
{
    try {
        $db->exec($statement);
        return 'nothing';
    } catch (PDOException $error) {
        return $error->errorInfo[0];
    }
}

function program(PDO $db, string $name, string $table, array $codes, string $bytes, string $key): void
{
    $db->exec("DROP TABLE IF EXISTS $table");
    $db->exec("CREATE TABLE $table (id $key, small SMALLINT, big BIGINT, exact DECIMAL(20, 4), words VARCHAR(30), bytes $bytes, day DATE)");
    $row = ['small' => -32768, 'big' => PHP_INT_MAX, 'exact' => '12345.6789', 'words' => 'wörds', 'bytes' => "\0\xff'", 'day' => '1999-12-31'];
    $columns = implode(', ', array_keys($row));
    $insert = $db->prepare("INSERT INTO $table ($columns) VALUES (:small, :big, :exact, :words, :bytes, :day)");
    foreach ($row as $column => $value) {
        $insert->bindValue($column, $value, $column === 'bytes' ? PDO::PARAM_LOB : (is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR));
    }
    $insert->execute();
    check($db->lastInsertId() === '1', "$name: the first number is {$db->lastInsertId()}");
    foreach (array_keys($row) as $column) {
        $insert->bindValue($column, null, PDO::PARAM_NULL);
    }
    $insert->execute();
    $select = $db->prepare("SELECT $columns FROM $table WHERE id = ?");
    for ($round = 0; $round < 3; $round++) {
        $select->execute([1]);
        $found = $select->fetch(PDO::FETCH_ASSOC);
        if (is_resource($found['bytes'])) {
            $found['bytes'] = stream_get_contents($found['bytes']);
        }
        check($found == $row && $found['words'] === 'wörds', "$name: values " . var_export($found, true));
        $select->execute([2]);
        check(array_filter($select->fetch(PDO::FETCH_NUM), fn ($value) => $value !== null) === [], "$name: nulls");
    }
    foreach ($codes as $statement => $code) {
        check(($seen = refused($db, $statement)) === $code, "$name: $statement: $seen");
    }
    $db->beginTransaction();
    $db->exec("DELETE FROM $table");
    $db->rollBack();
    $db->beginTransaction();
    check($db->exec("UPDATE $table SET words = 'other' WHERE id = 1") === 1, "$name: one row is changed");
    $db->commit();
    check($db->query("SELECT words FROM $table ORDER BY id")->fetchAll(PDO::FETCH_COLUMN) === ['other', null], "$name: what was committed");
    echo "  $name: types, prepared and not, errors, transactions\n";
}

$options = [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION];
$codes = ['SELECT * FROM nothing' => '42P01', 'INSERT INTO kinds (id) VALUES (1)' => '23505', 'SELEKT' => '42601'];
foreach ([false, true] as $emulates) {
    $own = $options + [PDO::ATTR_EMULATE_PREPARES => $emulates];
    $db = new PDO("pgsql:host=$host;port=$postgres;dbname=postgres;user=postgres;sslmode=disable", null, null, $own);
    program($db, 'PDO of PostgreSQL', 'kinds', $codes, 'BYTEA', 'SERIAL PRIMARY KEY');
    check($db->pgsqlCopyFromArray('kinds', ["7\t1\t2\t3\tx\t\\N\t2000-01-01"]), 'COPY');
    $db = new PDO("mysql:host=$host;port=$mysql;dbname=test;charset=utf8mb4", 'root', '', $own);
    $codes_of_mysql = ['SELECT * FROM nothing' => '42S02', 'INSERT INTO my_kinds (id) VALUES (1)' => '23000', 'SELEKT' => '42000'];
    program($db, 'PDO of MySQL', 'my_kinds', $codes_of_mysql, 'VARBINARY(30)', 'INT AUTO_INCREMENT PRIMARY KEY');
}
