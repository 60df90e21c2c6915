//! Statements of SQL against the real binary: random queries beside SQLite, what a bad statement may cost, what is left of it.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Server, binary, printed};
use std::path::Path;
use std::process::Command;

fn compare(seed: u32, count: u32, engine: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/random_queries.py");
    let output = Command::new("python3")
        .arg(script)
        .arg("--server")
        .arg(binary())
        .args(["--seed", &seed.to_string(), "--count", &count.to_string(), "--engine", engine])
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn random_queries_are_answered_as_by_sqlite() {
    compare(1, 600, "memtx");
    compare(2, 300, "vinyl");
}

/// What a script prints that has the function `run`, which gives the rows of a statement or the text of its error.
fn answers(body: &str) -> String {
    printed(&format!(
        "box.cfg{{log = 'log', wal_mode = 'none'}}
        local json = require('json')
        function run(text, params)
            local result, reason = box.execute(text, params)
            if result == nil then
                return tostring(reason)
            end
            return json.encode(result.rows or result.row_count)
        end
        {body}
        os.exit()"
    ))
}

#[test]
fn statements_that_are_too_large_are_refused_and_nobody_is_hurt() {
    let found = answers(
        "run('CREATE TABLE t (id INT PRIMARY KEY, a INT)')
        run('INSERT INTO t VALUES (1, 1)')
        local long = ('1 + '):rep(1000)
        for _, text in ipairs({
            'SELECT ' .. ('('):rep(100000) .. '1', 'SELECT ' .. ('('):rep(200) .. '1' .. (')'):rep(200),
            'SELECT ' .. ('1 + '):rep(100000) .. '1', 'SELECT ' .. ('NOT '):rep(100000) .. 'true',
            'SELECT ' .. ('- '):rep(100000) .. '1', 'SELECT 1' .. (' IS NULL'):rep(100000),
            'SELECT 1' .. ('::int'):rep(100000), 'SELECT ' .. ('CASE WHEN true THEN '):rep(1000) .. '1',
            'SELECT ' .. (long .. '('):rep(40) .. '1' .. (')'):rep(40),
            'SELECT ' .. ('(SELECT '):rep(500) .. '1' .. (')'):rep(500), 'SELECT 1' .. (' UNION SELECT 1'):rep(50000),
            'SELECT 1 FROM t' .. (' JOIN t'):rep(1000), 'SELECT 1 FROM ' .. ('t, '):rep(1000) .. 't',
            'SELECT ' .. ('*, '):rep(3000) .. '* FROM t', ('x'):rep(20 * 1024 * 1024), 'SELECT ' .. ('\\'a\\' || '):rep(5000) .. '1',
        }) do
            local answer = run(text)
            assert(not answer:match('^%[') and #answer < 300, answer:sub(1, 300))
        end
        print(run('SELECT ' .. ('1 + '):rep(150) .. '1'))
        print(#run('SELECT a FROM t WHERE ' .. ('a = 1 OR '):rep(900) .. 'a = 2') > 0)
        print(#run('SELECT id FROM t WHERE id IN (' .. ('1, '):rep(20000) .. '2)') > 0)
        print(run('SELECT COUNT(*) AS n FROM t'))",
    );
    assert_eq!(found, "[[151]]\ntrue\ntrue\n[[1]]\n");
}

#[test]
fn what_a_statement_keeps_is_bounded() {
    let found = answers(
        "print(run([[WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n]]))
        print(run([[WITH RECURSIVE n(i) AS (SELECT 'a' UNION ALL SELECT i || i FROM n) SELECT COUNT(*) FROM n]]))
        print(run([[WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i % 5 + 1 FROM n) SELECT COUNT(*) FROM n]]))",
    );
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines[0].contains("more than"), "{found}");
    assert!(lines[1].contains("more than"), "{found}");
    assert_eq!(lines[2], "[[5]]");
}

#[test]
fn long_statements_give_others_a_turn_and_see_one_state() {
    let found = answers(
        "local fiber = require('fiber')
        run('CREATE TABLE t (id INT PRIMARY KEY, a INT)')
        box.begin() for i = 1, 3000 do box.space.T:insert({i, 1}) end box.commit()
        local sum, turns, done = nil, 0, false
        fiber.create(function()
            sum = run('SELECT SUM(p.a), COUNT(*) FROM t p JOIN t q ON p.a + q.a = 2 AND q.id < 300')
            done = true
        end)
        while not done do
            turns = turns + 1
            -- Two rows change at once: whoever sees one of them sees both.
            box.begin()
            box.space.T:update(1, {{'+', 'A', 1}})
            box.space.T:update(3000, {{'-', 'A', 1}})
            box.commit()
            fiber.yield()
        end
        print(turns > 3, sum)",
    );
    assert_eq!(found, "true\t[[897000,897000]]\n");
}

#[test]
fn a_failing_statement_leaves_nothing_and_its_transaction_goes_on() {
    let found = answers(
        "run('CREATE TABLE t (id INT PRIMARY KEY, a INT UNIQUE)')
        print(run('INSERT INTO t VALUES (1, 1), (2, 2), (3, 1)'))
        box.begin()
        run('INSERT INTO t VALUES (10, 10)')
        print(run('INSERT INTO t VALUES (11, 11), (12, 10)'))
        print(run('UPDATE t SET a = 5 WHERE id > 0'), run('SELECT id FROM t'))
        run('INSERT INTO t VALUES (13, 13)')
        print(run('UPDATE t SET a = 10'))
        box.commit()
        print(run('SELECT * FROM t'))
        print(run('UPDATE t SET id = 23 - id'))
        print(run('SELECT * FROM t'))",
    );
    let duplicate = "Duplicate key exists in unique index 'unique_unnamed_T_2' in space 'T'";
    assert_eq!(
        found,
        format!("{duplicate}\n{duplicate}\n1\t[[10]]\n{duplicate}\n[[10,5],[13,13]]\n2\n[[10,13],[13,5]]\n")
    );
}

#[test]
fn a_check_comes_before_a_key_that_is_there_also_if_others_had_a_turn() {
    let found = answers(
        "run('CREATE TABLE t (id INT PRIMARY KEY, a INT, CONSTRAINT positive CHECK (a > 0))')
        box.begin()
        run('INSERT INTO t VALUES (1, 1)')
        require('fiber').yield()
        print(run('INSERT INTO t VALUES (1, -1)'))
        print(run('INSERT INTO t VALUES (1, 5)'))
        box.rollback()",
    );
    let check = "Check constraint 'POSITIVE' failed for tuple";
    let duplicate = "Duplicate key exists in unique index 'pk_unnamed_T_1' in space 'T'";
    assert_eq!(found, format!("{check}\n{duplicate}\n"));
}

#[test]
fn requests_of_sql_with_wrong_fields_are_refused() {
    let server = Server::start();
    let mut client = server.connect();
    let body = |bytes: &[u8]| bytes.to_vec();
    // EXECUTE and PREPARE: no body, no map, no text, a text that is none, a number of nothing, parameters that are no array, text that is no UTF-8.
    let bodies: [&[u8]; 9] = [
        b"",
        b"\x90",
        b"\x80",
        b"\x81\x40\x01",
        b"\x81\x43\x07",
        b"\x82\x40\xa8SELECT 1\x41\xa1x",
        b"\x81\x40\xa1\xff",
        b"\x82\x40\xa8SELECT 1\x41\x91\x81\xa1x",
        b"\x81\x43\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for request_type in [11, 13] {
        for bytes in bodies {
            let reply = client.call(request_type, &body(bytes));
            assert!(reply.code() != 0 || bytes.starts_with(b"\x82\x40\xa8SELECT 1"), "{request_type} {bytes:?}");
        }
    }
    client.ping();
}

#[test]
fn parameters_by_name_and_by_place_have_one_count_and_settings_are_the_sessions() {
    let said = answers(
        "print(run('SELECT ?, :a, ?, :a', {1, {[':a'] = 2}, 3}))
         print(run('SELECT :a, ?', {{[':a'] = 1}, 2}))
         print(run(\"SELECT ':a', ? -- :b\", {1}))
         print(run('SET SESSION \"sql_default_engine\" = \\'vinyl\\''), box.session.settings.sql_default_engine)
         print(run('SET SESSION \"sql_full_metadata\" = true'), box.session.settings.sql_full_metadata)
         print(run('SET SESSION \"sql_full_metadata\" = 1'))
         print(run('SET SESSION \"none\" = true'))
         print(run('SET SESSION \"sql_full_metadata\" = 1 + 1'))
         run('CREATE TABLE d (id INT PRIMARY KEY)')
         run(\"CREATE TABLE m (id INT PRIMARY KEY) WITH (engine = 'memtx')\")
         print(box.space.D.engine, box.space.M.engine)
         print(run('SET SESSION \"sql_seq_scan\" = false'), run('SELECT m.id FROM SEQSCAN m JOIN SEQSCAN d ON m.id = d.id'))",
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..5], ["[[1,2,3,2]]", "[[1,2]]", "[[\":a\",1]]", "1\tvinyl", "1\ttrue"], "{said}");
    assert!(lines[5].contains("sql_full_metadata") && lines[6] == "Session setting none doesn't exist", "{said}");
    assert!(lines[7].contains("one literal"), "{said}");
    assert_eq!(lines[8..], ["vinyl\tmemtx", "1\t[]"], "{said}");
}

/// Over the wire a null says that the expression of a column is its name.
#[test]
fn full_metadata_is_read_by_net_box_as_box_execute_shows_it() {
    let said = answers(
        "box.cfg{listen = 'unix/:./listener'}
         box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
         run('CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT COLLATE \"unicode_ci\")')
         local other = require('net.box').connect('unix/:./listener')
         local function show(column)
             return table.concat({column.name, column.span, tostring(column.collation), tostring(column.is_nullable), tostring(column.is_autoincrement)}, ' ')
         end
         for _, execute in ipairs({box.execute, function(text) return other:execute(text) end}) do
             execute('SET SESSION \"sql_full_metadata\" = true')
             for _, column in ipairs(execute('SELECT *, id  +1 FROM t').metadata) do print(show(column)) end
         end",
    );
    let wanted = ["ID ID nil false true", "A A unicode_ci true nil", "COLUMN_1 id  +1 nil nil nil"];
    assert_eq!(said.lines().collect::<Vec<_>>(), [wanted, wanted].concat(), "{said}");
}
