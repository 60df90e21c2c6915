// pgx and go-sql-driver against a server that speaks both protocols: `program HOST POSTGRES_PORT MYSQL_PORT`. The same passes against PostgreSQL 15 and
// MariaDB 10.11.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, words string, seen ...any) {
	if !holds {
		panic(fmt.Sprint(words, ": ", fmt.Sprint(seen...)))
	}
}

var ctx = context.Background()

func pgTypes(db *pgx.Conn) {
	_, err := db.Exec(ctx, "DROP TABLE IF EXISTS kinds")
	must(err)
	_, err = db.Exec(ctx, `CREATE TABLE kinds (id SERIAL PRIMARY KEY, small SMALLINT, whole INT, big BIGINT, wide DOUBLE PRECISION, exact NUMERIC(20, 4),
		words VARCHAR(30), bytes BYTEA, day DATE, moment TIMESTAMP, zoned TIMESTAMPTZ, ok BOOLEAN, own UUID, document JSONB)`)
	must(err)
	day := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)
	moment := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	var exact pgtype.Numeric
	must(exact.Scan("12345.6789"))
	own := [16]byte{15: 7}
	row := []any{int16(-32768), int32(-2147483648), int64(1<<63 - 1), 0.1, exact, "wörds", []byte{0, 0xff}, day, moment, moment, true, own, map[string]any{"a": []any{1.0, nil}}}
	places := "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13"
	columns := "small, whole, big, wide, exact, words, bytes, day, moment, zoned, ok, own, document"
	var first int
	must(db.QueryRow(ctx, "INSERT INTO kinds ("+columns+") VALUES ("+places+") RETURNING id", row...).Scan(&first))
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		var small int16
		var whole int32
		var big int64
		var wide float64
		var words string
		var number pgtype.Numeric
		var bytes []byte
		var gotDay, gotMoment, gotZoned time.Time
		var ok bool
		var id [16]byte
		var document map[string]any
		must(db.QueryRow(ctx, "SELECT "+columns+" FROM kinds WHERE id = $1", mode, first).Scan(
			&small, &whole, &big, &wide, &number, &words, &bytes, &gotDay, &gotMoment, &gotZoned, &ok, &id, &document))
		check(small == -32768 && whole == -2147483648 && big == 1<<63-1 && wide == 0.1 && words == "wörds" && ok && id == own, "values", mode, small, whole, big, wide, words, ok, id)
		text, _ := number.MarshalJSON()
		check(string(text) == "12345.6789", "numeric", mode, string(text))
		check(string(bytes) == "\x00\xff" && gotDay.Equal(day) && gotMoment.Equal(moment) && gotZoned.Equal(moment), "bytes and moments", mode, bytes, gotDay, gotMoment, gotZoned)
		check(reflect.DeepEqual(document, row[12]), "json", mode, document)
	}
	var found int
	must(db.QueryRow(ctx, "SELECT count(*) FROM kinds WHERE id = ANY($1)", []int32{int32(first), 99}).Scan(&found))
	check(found == 1, "an array", found)
	nulls := make([]any, 13)
	_, err = db.Exec(ctx, "INSERT INTO kinds ("+columns+") VALUES ("+places+")", nulls...)
	must(err)
	var nothing *string
	must(db.QueryRow(ctx, "SELECT words FROM kinds WHERE words IS NULL").Scan(&nothing))
	check(nothing == nil, "null")
}

func pgErrors(db *pgx.Conn) {
	_, err := db.Exec(ctx, "DROP TABLE IF EXISTS codes")
	must(err)
	_, err = db.Exec(ctx, "CREATE TABLE codes (id INT PRIMARY KEY, name TEXT NOT NULL)")
	must(err)
	for statement, code := range map[string]string{
		"INSERT INTO codes VALUES (1, 'a'), (1, 'b')": "23505", "INSERT INTO codes (id) VALUES (1)": "23502", "SELECT * FROM nothing": "42P01",
		"SELECT nothing FROM codes": "42703", "SELEKT": "42601", "SELECT 1 / 0": "22012", "SELECT 'x'::int": "22P02", "SELECT 2147483647 + 1": "22003",
	} {
		_, err := db.Exec(ctx, statement)
		var refused *pgconn.PgError
		check(errors.As(err, &refused) && refused.Code == code, statement, err)
	}
}

func pgTransactions(db *pgx.Conn, connect func() *pgx.Conn) {
	_, err := db.Exec(ctx, "DROP TABLE IF EXISTS accounts")
	must(err)
	_, err = db.Exec(ctx, "CREATE TABLE accounts (id INT PRIMARY KEY, amount INT NOT NULL)")
	must(err)
	// COPY, in binary.
	rows := [][]any{}
	for id := range 20 {
		rows = append(rows, []any{int32(id), int32(100)})
	}
	count, err := db.CopyFrom(ctx, pgx.Identifier{"accounts"}, []string{"id", "amount"}, pgx.CopyFromRows(rows))
	must(err)
	check(count == 20, "copied", count)
	// A batch is one transaction.
	batch := &pgx.Batch{}
	batch.Queue("UPDATE accounts SET amount = 0 WHERE id = 1")
	batch.Queue("INSERT INTO accounts VALUES (1, 1)")
	check(db.SendBatch(ctx, batch).Close() != nil, "the batch is refused")
	var amount int
	must(db.QueryRow(ctx, "SELECT amount FROM accounts WHERE id = 1").Scan(&amount))
	check(amount == 100, "the batch was taken back", amount)
	must(pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		inner, err := tx.Begin(ctx)
		must(err)
		_, err = inner.Exec(ctx, "DELETE FROM accounts")
		must(err)
		must(inner.Rollback(ctx))
		return tx.QueryRow(ctx, "SELECT count(*) FROM accounts").Scan(&amount)
	}))
	check(amount == 20, "the savepoint was gone back to", amount)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			own, random := connect(), rand.New(rand.NewSource(int64(worker)))
			defer own.Close(ctx)
			for range 30 {
				from, to := random.Intn(20), random.Intn(20)
				for {
					err := pgx.BeginFunc(ctx, own, func(tx pgx.Tx) error {
						var left int
						if err := tx.QueryRow(ctx, "SELECT amount FROM accounts WHERE id = $1 FOR UPDATE", from).Scan(&left); err != nil {
							return err
						}
						if _, err := tx.Exec(ctx, "UPDATE accounts SET amount = amount - 1 WHERE id = $1", from); err != nil {
							return err
						}
						_, err := tx.Exec(ctx, "UPDATE accounts SET amount = amount + 1 WHERE id = $1", to)
						return err
					})
					var refused *pgconn.PgError
					if errors.As(err, &refused) && refused.Code == "40P01" {
						continue
					}
					must(err)
					break
				}
			}
		}()
	}
	all.Wait()
	must(db.QueryRow(ctx, "SELECT sum(amount) FROM accounts").Scan(&amount))
	check(amount == 2000, "the sum", amount)
	// Who is cancelled goes on.
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	own := connect()
	_, err = own.Exec(short, "SELECT pg_sleep(20)")
	check(err != nil && short.Err() != nil, "cancelled", err)
	own = connect()
	defer own.Close(ctx)
	_, err = own.Exec(ctx, "LISTEN news")
	must(err)
	_, err = db.Exec(ctx, "SELECT pg_notify('news', 'hello')")
	if err != nil {
		_, err = db.Exec(ctx, "NOTIFY news, 'hello'")
	}
	must(err)
	told, err := own.WaitForNotification(ctx)
	must(err)
	check(told.Channel == "news" && told.Payload == "hello", "notified", told)
}

func myTypes(db *sql.DB) {
	_, err := db.Exec("DROP TABLE IF EXISTS my_kinds")
	must(err)
	_, err = db.Exec("CREATE TABLE my_kinds (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, tiny TINYINT, small SMALLINT, big BIGINT, vast BIGINT UNSIGNED, wide DOUBLE," +
		" exact DECIMAL(20, 4), words VARCHAR(30), bytes VARBINARY(30), day DATE, moment DATETIME(6), ok TINYINT(1)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
	must(err)
	day, moment := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	row := []any{-128, -32768, int64(1<<63 - 1), uint64(1<<64 - 1), 0.1, "12345.6789", "wörds", []byte("\x00\xff'"), day, moment, true}
	columns := "tiny, small, big, vast, wide, exact, words, bytes, day, moment, ok"
	done, err := db.Exec("INSERT INTO my_kinds ("+columns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row...)
	must(err)
	id, err := done.LastInsertId()
	must(err)
	check(id == 1, "the first number", id)
	read := func(rows *sql.Row) {
		var tiny, small int
		var big int64
		var vast uint64
		var wide float64
		var exact, words string
		var bytes []byte
		var gotDay, gotMoment time.Time
		var ok bool
		must(rows.Scan(&tiny, &small, &big, &vast, &wide, &exact, &words, &bytes, &gotDay, &gotMoment, &ok))
		check(tiny == -128 && small == -32768 && big == 1<<63-1 && vast == 1<<64-1 && wide == 0.1 && exact == "12345.6789" && words == "wörds" && ok, "values", tiny, small, big, vast, wide, exact, words, ok)
		check(string(bytes) == "\x00\xff'" && gotDay.Equal(day) && gotMoment.Equal(moment), "bytes and moments", bytes, gotDay, gotMoment)
	}
	read(db.QueryRow("SELECT " + columns + " FROM my_kinds WHERE id = 1"))
	prepared, err := db.Prepare("SELECT " + columns + " FROM my_kinds WHERE id = ?")
	must(err)
	for range 3 {
		read(prepared.QueryRow(1))
	}
	must(prepared.Close())
	_, err = db.Exec("INSERT INTO my_kinds ("+columns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", make([]any, 11)...)
	must(err)
	var nothing sql.NullString
	must(db.QueryRow("SELECT words FROM my_kinds WHERE id = ?", 2).Scan(&nothing))
	check(!nothing.Valid, "null")
}

func myErrors(db *sql.DB) {
	_, err := db.Exec("DROP TABLE IF EXISTS my_codes")
	must(err)
	_, err = db.Exec("CREATE TABLE my_codes (id INT PRIMARY KEY, name VARCHAR(5) NOT NULL)")
	must(err)
	for statement, number := range map[string]uint16{
		"INSERT INTO my_codes VALUES (1, 'a'), (1, 'b')": 1062, "INSERT INTO my_codes VALUES (1, NULL)": 1048, "SELECT * FROM nothing": 1146,
		"SELECT nothing FROM my_codes": 1054, "SELEKT": 1064, "INSERT INTO my_codes VALUES (1, 'too long')": 1406,
	} {
		_, err := db.Exec(statement)
		var refused *mysql.MySQLError
		check(errors.As(err, &refused) && refused.Number == number, statement, err)
	}
}

func myTransactions(db *sql.DB) {
	_, err := db.Exec("DROP TABLE IF EXISTS my_accounts")
	must(err)
	_, err = db.Exec("CREATE TABLE my_accounts (id INT PRIMARY KEY, amount INT NOT NULL)")
	must(err)
	// A file that the program itself gives.
	lines := []string{"id,amount"}
	for id := range 20 {
		lines = append(lines, fmt.Sprintf("%d,100", id))
	}
	mysql.RegisterReaderHandler("accounts", func() io.Reader { return strings.NewReader(strings.Join(lines, "\n")) })
	done, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::accounts' INTO TABLE my_accounts FIELDS TERMINATED BY ',' IGNORE 1 LINES (id, amount)")
	must(err)
	count, _ := done.RowsAffected()
	check(count == 20, "loaded", count)
	tx, err := db.Begin()
	must(err)
	_, err = tx.Exec("UPDATE my_accounts SET amount = 0")
	must(err)
	must(tx.Rollback())
	var all sync.WaitGroup
	for worker := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewSource(int64(worker)))
			for range 30 {
				from, to := random.Intn(20), random.Intn(20)
				for {
					tx, err := db.Begin()
					must(err)
					var left int
					err = tx.QueryRow("SELECT amount FROM my_accounts WHERE id = ? FOR UPDATE", from).Scan(&left)
					if err == nil {
						_, err = tx.Exec("UPDATE my_accounts SET amount = amount - 1 WHERE id = ?", from)
					}
					if err == nil {
						_, err = tx.Exec("UPDATE my_accounts SET amount = amount + 1 WHERE id = ?", to)
					}
					if err == nil {
						err = tx.Commit()
					} else {
						_ = tx.Rollback()
					}
					var refused *mysql.MySQLError
					if errors.As(err, &refused) && refused.Number == 1213 {
						continue
					}
					must(err)
					break
				}
			}
		}()
	}
	all.Wait()
	var amount int
	must(db.QueryRow("SELECT sum(amount) FROM my_accounts").Scan(&amount))
	check(amount == 2000, "the sum", amount)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = db.ExecContext(short, "SELECT SLEEP(20)")
	check(err != nil, "cancelled")
	must(db.Ping())
}

func main() {
	host, ports := os.Args[1], os.Args[2:]
	connect := func() *pgx.Conn {
		db, err := pgx.Connect(ctx, fmt.Sprintf("postgres://postgres@%s:%s/postgres?sslmode=disable", host, ports[0]))
		must(err)
		return db
	}
	db := connect()
	pgTypes(db)
	pgErrors(db)
	pgTransactions(db, connect)
	db.Close(ctx)
	fmt.Println("  pgx: types in all modes, errors, COPY, batches, transactions, cancelling, notifications")
	for _, more := range []string{"", "&interpolateParams=true", "&compress=true"} {
		own, err := sql.Open("mysql", fmt.Sprintf("root@tcp(%s:%s)/test?parseTime=true%s", host, ports[1], more))
		must(err)
		myTypes(own)
		myErrors(own)
		myTransactions(own)
		must(own.Close())
	}
	fmt.Println("  go-sql-driver: types prepared and not, errors, LOAD DATA, transactions, cancelling, compression")
}
