import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.Arrays;
import java.util.Properties;
import java.util.TimeZone;
import java.util.UUID;
import org.postgresql.PGConnection;

/**
 * pgjdbc, MySQL Connector/J and MariaDB Connector/J against a server that speaks both protocols: HOST POSTGRES_PORT MYSQL_PORT. The same passes against
 * PostgreSQL 15 and MariaDB 10.11.
 */
public class SqlDrivers {
    static void check(boolean holds, String words) {
        if (!holds) {
            throw new AssertionError(words);
        }
    }

    static void run(Connection db, String... statements) throws SQLException {
        try (Statement statement = db.createStatement()) {
            for (String text : statements) {
                statement.execute(text);
            }
        }
    }

    static String refused(Connection db, String text) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute(text);
            return "nothing";
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    static void transactions(Connection db, String dialect, String table) throws SQLException {
        run(db, "DROP TABLE IF EXISTS " + table, "CREATE TABLE " + table + " (id INT PRIMARY KEY, amount INT NOT NULL)");
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO " + table + " VALUES (?, ?)")) {
            for (int id = 0; id < 1000; id++) {
                insert.setInt(1, id);
                insert.setInt(2, 100);
                insert.addBatch();
            }
            check(insert.executeBatch().length == 1000, "a batch");
            insert.setInt(1, 1);
            insert.setInt(2, 1);
            insert.addBatch();
            insert.executeBatch();
            throw new AssertionError("the key is there");
        } catch (BatchUpdateException error) {
            check(error.getSQLState().startsWith("23"), dialect + " " + error);
        }
        db.setAutoCommit(false);
        run(db, "UPDATE " + table + " SET amount = 0");
        Savepoint point = db.setSavepoint();
        run(db, "DELETE FROM " + table);
        db.rollback(point);
        try (ResultSet rows = db.createStatement().executeQuery("SELECT count(*), sum(amount) FROM " + table)) {
            check(rows.next() && rows.getInt(1) == 1000 && rows.getInt(2) == 0, "the savepoint");
        }
        db.rollback();
        // Rows in parts.
        try (PreparedStatement all = db.prepareStatement("SELECT id, amount FROM " + table + " WHERE id >= ? ORDER BY id")) {
            all.setFetchSize(70);
            all.setInt(1, 10);
            int next = 10;
            try (ResultSet rows = all.executeQuery()) {
                while (rows.next()) {
                    check(rows.getInt(1) == next++ && rows.getInt(2) == 100, "row " + next);
                }
            }
            check(next == 1000, "all rows");
        }
        db.commit();
        for (int isolation : new int[] {Connection.TRANSACTION_SERIALIZABLE, Connection.TRANSACTION_READ_COMMITTED}) {
            db.setTransactionIsolation(isolation);
            check(db.getTransactionIsolation() == isolation, "isolation " + isolation);
            db.commit();
        }
        db.setReadOnly(true);
        // MariaDB's says nothing of it to the server.
        check(dialect.startsWith("MariaDB") || !refused(db, "UPDATE " + table + " SET amount = 1").equals("nothing"), "read only");
        db.rollback();
        db.setReadOnly(false);
        db.setAutoCommit(true);
        check(db.isValid(5), "is valid");
        try (Statement slow = db.createStatement()) {
            slow.setQueryTimeout(1);
            slow.execute(dialect.equals("pgjdbc") ? "SELECT pg_sleep(20)" : "SELECT SLEEP(20)");
            throw new AssertionError("nobody has ended it");
        } catch (SQLException error) {
            check(error.getMessage() != null, "cancelled");
        }
        check(db.isValid(5), "is valid behind it");
    }

    static void metadata(Connection db, String schema, String table) throws SQLException {
        StringBuilder seen = new StringBuilder();
        try (ResultSet tables = db.getMetaData().getTables(null, schema, table, schema == null ? null : new String[] {"TABLE"})) {
            while (tables.next()) {
                seen.append(tables.getString("TABLE_NAME")).append(';');
            }
        }
        // pgjdbc asks for columns and keys by window functions and parts of composite values.
        if (schema == null) {
            try (ResultSet columns = db.getMetaData().getColumns(null, null, table, "w%")) {
                while (columns.next()) {
                    seen.append(columns.getString("COLUMN_NAME")).append(' ').append(columns.getInt("DATA_TYPE")).append(';');
                }
            }
            try (ResultSet keys = db.getMetaData().getPrimaryKeys(null, null, table)) {
                while (keys.next()) {
                    seen.append(keys.getString("COLUMN_NAME")).append(';');
                }
            }
        }
        check(seen.toString().equals(table + ";" + (schema == null ? "words " + Types.VARCHAR + ";id;" : "")), "metadata: " + seen);
    }

    static void postgres(String host, String port, String more) throws Exception {
        String url = "jdbc:postgresql://" + host + ":" + port + "/postgres?user=postgres&sslmode=disable" + more;
        try (Connection db = DriverManager.getConnection(url)) {
            run(db, "DROP TABLE IF EXISTS kinds",
                "CREATE TABLE kinds (id SERIAL PRIMARY KEY, small SMALLINT, big BIGINT, dbl DOUBLE PRECISION, exact NUMERIC(20, 4), words VARCHAR(30), bytes BYTEA,"
                    + " day DATE, moment TIMESTAMP, ok BOOLEAN, own UUID)");
            try (PreparedStatement insert = db.prepareStatement(
                "INSERT INTO kinds (small, big, dbl, exact, words, bytes, day, moment, ok, own) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", Statement.RETURN_GENERATED_KEYS)) {
                insert.setShort(1, (short) -32768);
                insert.setLong(2, Long.MAX_VALUE);
                insert.setDouble(3, 0.1);
                insert.setBigDecimal(4, new BigDecimal("12345.6789"));
                insert.setString(5, "wörds");
                insert.setBytes(6, new byte[] {0, -1});
                insert.setDate(7, Date.valueOf("1999-12-31"));
                insert.setTimestamp(8, Timestamp.valueOf("2024-02-29 23:59:59.123456"));
                insert.setBoolean(9, true);
                insert.setObject(10, new UUID(0, 7));
                check(insert.executeUpdate() == 1, "one row");
                try (ResultSet keys = insert.getGeneratedKeys()) {
                    check(keys.next() && keys.getInt(1) == 1, "the first number");
                }
                int[] types = {Types.SMALLINT, Types.BIGINT, Types.DOUBLE, Types.NUMERIC, Types.VARCHAR, Types.BINARY, Types.DATE, Types.TIMESTAMP, Types.BOOLEAN, Types.OTHER};
                for (int number = 1; number <= 10; number++) {
                    insert.setNull(number, types[number - 1]);
                }
                insert.executeUpdate();
            }
            try (PreparedStatement select = db.prepareStatement("SELECT * FROM kinds WHERE id = ?")) {
                // Often enough that the driver prepares it by name, and asks for binary.
                for (int round = 0; round < 12; round++) {
                    select.setInt(1, 1);
                    try (ResultSet row = select.executeQuery()) {
                        check(row.next(), "the row");
                        check(row.getShort("small") == -32768 && row.getLong("big") == Long.MAX_VALUE && row.getDouble("dbl") == 0.1, "numbers");
                        check(row.getBigDecimal("exact").equals(new BigDecimal("12345.6789")) && row.getString("words").equals("wörds"), "numeric and text");
                        check(Arrays.equals(row.getBytes("bytes"), new byte[] {0, -1}) && row.getDate("day").toString().equals("1999-12-31"), "bytes and date");
                        check(row.getTimestamp("moment").equals(Timestamp.valueOf("2024-02-29 23:59:59.123456")), "moment");
                        check(row.getBoolean("ok") && row.getObject("own").equals(new UUID(0, 7)), "boolean and uuid");
                    }
                    select.setInt(1, 2);
                    try (ResultSet row = select.executeQuery()) {
                        check(row.next() && row.getString("words") == null && row.getObject("own") == null, "nulls");
                    }
                }
            }
            try (PreparedStatement any = db.prepareStatement("SELECT count(*) FROM kinds WHERE id = ANY(?)")) {
                any.setArray(1, db.createArrayOf("int4", new Integer[] {1, 2, 3}));
                try (ResultSet rows = any.executeQuery()) {
                    check(rows.next() && rows.getInt(1) == 2, "an array");
                }
            }
            check(refused(db, "SELECT * FROM nothing").equals("42P01"), "an unknown table");
            check(refused(db, "INSERT INTO kinds (id) VALUES (1)").equals("23505"), "a key that is there");
            check(refused(db, "SELECT 1 / 0").equals("22012"), "a division by zero");
            run(db, "DROP TABLE IF EXISTS copied", "CREATE TABLE copied (id INT PRIMARY KEY, name TEXT)");
            long count = db.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY copied FROM STDIN", new StringReader("1\ta\n2\t\\N\n"));
            check(count == 2, "copied");
            transactions(db, "pgjdbc", "accounts");
            if (more.isEmpty()) {
                metadata(db, "public", "kinds");
            }
        }
    }

    static void mysql(String url, String name) throws Exception {
        try (Connection db = DriverManager.getConnection(url)) {
            run(db, "DROP TABLE IF EXISTS my_kinds",
                "CREATE TABLE my_kinds (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, tiny TINYINT, big BIGINT, vast BIGINT UNSIGNED, dbl DOUBLE, exact DECIMAL(20, 4),"
                    + " words VARCHAR(30), bytes VARBINARY(30), day DATE, moment DATETIME(6)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4");
            String places = "(tiny, big, vast, dbl, exact, words, bytes, day, moment) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
            try (PreparedStatement insert = db.prepareStatement("INSERT INTO my_kinds " + places, Statement.RETURN_GENERATED_KEYS)) {
                insert.setInt(1, -128);
                insert.setLong(2, Long.MAX_VALUE);
                insert.setBigDecimal(3, new BigDecimal("18446744073709551615"));
                insert.setDouble(4, 0.1);
                insert.setBigDecimal(5, new BigDecimal("12345.6789"));
                insert.setString(6, "wörds");
                insert.setBinaryStream(7, new ByteArrayInputStream(new byte[] {0, -1, '\''}));
                insert.setDate(8, Date.valueOf("1999-12-31"));
                insert.setTimestamp(9, Timestamp.valueOf("2024-02-29 23:59:59.123456"));
                check(insert.executeUpdate() == 1, "one row");
                try (ResultSet keys = insert.getGeneratedKeys()) {
                    check(keys.next() && keys.getInt(1) == 1, "the first number");
                }
                for (int number = 1; number <= 9; number++) {
                    insert.setNull(number, Types.VARCHAR);
                }
                insert.executeUpdate();
            }
            try (PreparedStatement select = db.prepareStatement("SELECT * FROM my_kinds WHERE id = ?")) {
                for (int round = 0; round < 3; round++) {
                    select.setInt(1, 1);
                    try (ResultSet row = select.executeQuery()) {
                        check(row.next(), "the row");
                        check(row.getInt("tiny") == -128 && row.getLong("big") == Long.MAX_VALUE && row.getDouble("dbl") == 0.1, name + ": numbers");
                        check(row.getBigDecimal("vast").toString().equals("18446744073709551615"), name + ": an unsigned number");
                        check(row.getBigDecimal("exact").equals(new BigDecimal("12345.6789")) && row.getString("words").equals("wörds"), name + ": decimal and text");
                        check(Arrays.equals(row.getBytes("bytes"), new byte[] {0, -1, '\''}) && row.getDate("day").toString().equals("1999-12-31"), name + ": bytes and date");
                        // Connector/J sends no fractions to MariaDB.
                        check(row.getTimestamp("moment").toString().startsWith("2024-02-29 23:59:59"), name + ": moment " + row.getTimestamp("moment"));
                    }
                    select.setInt(1, 2);
                    try (ResultSet row = select.executeQuery()) {
                        check(row.next() && row.getString("words") == null && row.getObject("vast") == null, name + ": nulls");
                    }
                }
            }
            check(refused(db, "SELECT * FROM nothing").equals("42S02"), "an unknown table");
            check(refused(db, "INSERT INTO my_kinds (id) VALUES (1)").equals("23000"), "a key that is there");
            transactions(db, name, "my_accounts");
            metadata(db, null, "my_kinds");
        }
    }

    public static void main(String[] arguments) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        String host = arguments[0];
        for (String more : new String[] {"", "&preferQueryMode=simple", "&preferQueryMode=extendedCacheEverything&binaryTransfer=true&prepareThreshold=1"}) {
            postgres(host, arguments[1], more);
        }
        System.out.println("  pgjdbc: types, batches, errors, COPY, savepoints, rows in parts, isolation, time-outs, metadata");
        String place = host + ":" + arguments[2] + "/test?user=root&";
        for (String more : new String[] {"sslMode=DISABLED&connectionTimeZone=UTC", "sslMode=DISABLED&connectionTimeZone=UTC&useServerPrepStmts=true&cachePrepStmts=true&rewriteBatchedStatements=true"}) {
            mysql("jdbc:mysql://" + place + more, "Connector/J");
        }
        System.out.println("  MySQL Connector/J: types, batches, errors, savepoints, isolation, time-outs, metadata");
        for (String more : new String[] {"sslMode=disable&timezone=UTC", "sslMode=disable&timezone=UTC&useServerPrepStmts=true&useCompression=true"}) {
            mysql("jdbc:mariadb://" + place + more, "MariaDB Connector/J");
        }
        System.out.println("  MariaDB Connector/J: the same");
    }
}
