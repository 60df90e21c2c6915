// TPC-C against a server that speaks PostgreSQL's or MySQL's protocol: `tpcc postgres|mysql HOST:PORT [options]`, as bench/tpcc.py runs it.
//
// The five transactions of the specification in its mix, without think times, a connection for each terminal and prepared statements throughout. Then the
// consistency conditions 3.3.2.1 to 3.3.2.4. One line of JSON says what was done.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const districts = 10
const triesMax = 1000

var tables = []string{
	"CREATE TABLE warehouse (w_id INT PRIMARY KEY, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4, 4), w_ytd DECIMAL(12, 2))",
	"CREATE TABLE district (d_w_id INT NOT NULL, d_id INT NOT NULL, d_name VARCHAR(10), d_tax DECIMAL(4, 4), d_ytd DECIMAL(12, 2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id))",
	"CREATE TABLE customer (c_w_id INT NOT NULL, c_d_id INT NOT NULL, c_id INT NOT NULL, c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16), c_credit CHAR(2), c_credit_lim DECIMAL(12, 2), c_discount DECIMAL(4, 4), c_balance DECIMAL(12, 2), c_ytd_payment DECIMAL(12, 2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), PRIMARY KEY (c_w_id, c_d_id, c_id))",
	"CREATE INDEX customer_last ON customer (c_w_id, c_d_id, c_last, c_first)",
	"CREATE TABLE history (h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date TIMESTAMP, h_amount DECIMAL(6, 2), h_data VARCHAR(24))",
	"CREATE TABLE orders (o_w_id INT NOT NULL, o_d_id INT NOT NULL, o_id INT NOT NULL, o_c_id INT, o_entry_d TIMESTAMP, o_carrier_id INT, o_ol_cnt INT, o_all_local INT, PRIMARY KEY (o_w_id, o_d_id, o_id))",
	"CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
	"CREATE TABLE new_order (no_w_id INT NOT NULL, no_d_id INT NOT NULL, no_o_id INT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
	"CREATE TABLE item (i_id INT PRIMARY KEY, i_name VARCHAR(24), i_price DECIMAL(5, 2), i_data VARCHAR(50))",
	"CREATE TABLE stock (s_w_id INT NOT NULL, s_i_id INT NOT NULL, s_quantity INT, s_dist CHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id))",
	"CREATE TABLE order_line (ol_w_id INT NOT NULL, ol_d_id INT NOT NULL, ol_o_id INT NOT NULL, ol_number INT NOT NULL, ol_i_id INT, ol_supply_w_id INT, ol_delivery_d TIMESTAMP NULL, ol_quantity INT, ol_amount DECIMAL(6, 2), ol_dist_info CHAR(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
}

var foreignKeys = []string{
	"ALTER TABLE district ADD CONSTRAINT district_w FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)",
	"ALTER TABLE customer ADD CONSTRAINT customer_d FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)",
	"ALTER TABLE new_order ADD CONSTRAINT new_order_o FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
}

var names = []string{"warehouse", "district", "customer", "history", "orders", "new_order", "item", "stock", "order_line"}

var conditions = map[string]string{
	"3.3.2.1": "SELECT count(*) FROM (SELECT w_id FROM warehouse JOIN district ON d_w_id = w_id GROUP BY w_id, w_ytd HAVING w_ytd <> SUM(d_ytd)) AS wrong",
	"3.3.2.2": "SELECT count(*) FROM district WHERE d_next_o_id - 1 <> (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) OR d_next_o_id - 1 <> (SELECT MAX(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id)",
	"3.3.2.3": "SELECT count(*) FROM (SELECT no_w_id FROM new_order GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)) AS wrong",
	"3.3.2.4": "SELECT (SELECT SUM(o_ol_cnt) FROM orders) - (SELECT COUNT(*) FROM order_line)",
}

var ctx = context.Background()

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A connection: statements have `?` for values.
type session interface {
	exec(text string, values ...any) error
	// Scans the rows that come; `found` is called for each.
	query(text string, values []any, into []any, found func()) error
	isConflict(err error) bool
	bulk(table string, columns int, rows [][]any)
	close()
}

type postgres struct {
	conn  *pgx.Conn
	texts map[string]string
}

func (p *postgres) text(text string) string {
	known, ok := p.texts[text]
	if !ok {
		var out strings.Builder
		number := 0
		for _, letter := range text {
			if letter == '?' {
				number++
				fmt.Fprintf(&out, "$%d", number)
			} else {
				out.WriteRune(letter)
			}
		}
		known = out.String()
		p.texts[text] = known
	}
	return known
}

func (p *postgres) exec(text string, values ...any) error {
	_, err := p.conn.Exec(ctx, p.text(text), values...)
	return err
}

func (p *postgres) query(text string, values []any, into []any, found func()) error {
	rows, err := p.conn.Query(ctx, p.text(text), values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		found()
	}
	return rows.Err()
}

func (p *postgres) isConflict(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01")
}

func (p *postgres) bulk(table string, columns int, rows [][]any) { bulk(p, table, columns, rows) }
func (p *postgres) close()                                       { p.conn.Close(ctx) }

type mariadb struct {
	db         *sql.DB
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

func (m *mariadb) prepared(text string) (*sql.Stmt, error) {
	if known, ok := m.statements[text]; ok {
		return known, nil
	}
	statement, err := m.conn.PrepareContext(ctx, text)
	if err == nil {
		m.statements[text] = statement
	}
	return statement, err
}

func (m *mariadb) exec(text string, values ...any) error {
	if len(values) == 0 {
		_, err := m.conn.ExecContext(ctx, text)
		return err
	}
	statement, err := m.prepared(text)
	if err != nil {
		return err
	}
	_, err = statement.ExecContext(ctx, values...)
	return err
}

func (m *mariadb) query(text string, values []any, into []any, found func()) error {
	statement, err := m.prepared(text)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(ctx, values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		found()
	}
	return rows.Err()
}

func (m *mariadb) isConflict(err error) bool {
	var refused *mysql.MySQLError
	return errors.As(err, &refused) && (refused.Number == 1205 || refused.Number == 1213 || refused.Number == 1020)
}

func (m *mariadb) bulk(table string, columns int, rows [][]any) { bulk(m, table, columns, rows) }
func (m *mariadb) close()                                       { m.conn.Close(); m.db.Close() }

func bulk(s session, table string, columns int, rows [][]any) {
	const atOnce = 200
	line := "(" + strings.TrimSuffix(strings.Repeat("?, ", columns), ", ") + ")"
	for start := 0; start < len(rows); start += atOnce {
		part := rows[start:min(start+atOnce, len(rows))]
		values := make([]any, 0, len(part)*columns)
		for _, row := range part {
			values = append(values, row...)
		}
		must(s.exec("INSERT INTO "+table+" VALUES "+strings.TrimSuffix(strings.Repeat(line+", ", len(part)), ", "), values...))
	}
}

func connect(kind, address, user, database string) session {
	if kind == "postgres" {
		for tries := 0; ; tries++ {
			conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", user, address, database))
			if err == nil {
				return &postgres{conn, map[string]string{}}
			}
			// It listens before it has started.
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.Code != "57P03" || tries == 600 {
				panic(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	db, err := sql.Open("mysql", fmt.Sprintf("%s@tcp(%s)/%s?parseTime=true", user, address, database))
	must(err)
	conn, err := db.Conn(ctx)
	must(err)
	_, err = conn.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL "+*isolation)
	must(err)
	return &mariadb{db, conn, map[string]*sql.Stmt{}}
}

var (
	user       = flag.String("user", "postgres", "")
	database   = flag.String("database", "postgres", "")
	warehouses = flag.Int("warehouses", 10, "")
	terminals  = flag.Int("terminals", 32, "")
	seconds    = flag.Float64("seconds", 10, "")
	items      = flag.Int("items", 100000, "")
	customers  = flag.Int("customers", 3000, "of a district")
	isolation  = flag.String("isolation", "READ COMMITTED", "of MySQL's protocol")
	loads      = flag.Bool("load", false, "make the tables and fill them, and end")
)

var syllables = []string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

func lastName(number int) string {
	number %= 1000
	return syllables[number/100] + syllables[number/10%10] + syllables[number%10]
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

func load(s session) {
	for at := len(names) - 1; at >= 0; at-- {
		must(s.exec("DROP TABLE IF EXISTS " + names[at]))
	}
	for _, text := range tables {
		must(s.exec(text))
	}
	chance := rand.New(rand.NewSource(1))
	between := func(low, high int) int { return low + chance.Intn(high-low+1) }
	var rows [][]any
	for n := 1; n <= *items; n++ {
		rows = append(rows, []any{n, fmt.Sprint("item ", n), float64(between(100, 10000)) / 100, "data"})
	}
	s.bulk("item", 4, rows)
	orders := *customers
	for w := 1; w <= *warehouses; w++ {
		s.bulk("warehouse", 8, [][]any{{w, fmt.Sprint("w", w), "street", "city", "st", "123411111", float64(between(0, 2000)) / 10000, 300000.0}})
		rows = nil
		for n := 1; n <= *items; n++ {
			rows = append(rows, []any{w, n, between(10, 100), strings.Repeat("d", 24), 0, 0, 0, "data"})
		}
		s.bulk("stock", 8, rows)
		for d := 1; d <= districts; d++ {
			s.bulk("district", 6, [][]any{{w, d, fmt.Sprint("d", d), float64(between(0, 2000)) / 10000, 30000.0, orders + 1}})
			rows = nil
			for c := 1; c <= *customers; c++ {
				credit := "GC"
				if c%10 == 0 {
					credit = "BC"
				}
				rows = append(rows, []any{w, d, c, fmt.Sprint("first", c), "OE", lastName(c - 1), credit, 50000.0, float64(between(0, 5000)) / 10000, -10.0, 10.0, 1, 0, strings.Repeat("x", 300)})
			}
			s.bulk("customer", 14, rows)
			delivered := orders * 7 / 10
			var placed, open, lines [][]any
			for at, c := range chance.Perm(orders) {
				o, count := at+1, between(5, 15)
				var carrier, when any
				amount := float64(between(1, 999999)) / 100
				if o <= delivered {
					carrier, when, amount = between(1, 10), now(), 0
				} else {
					open = append(open, []any{w, d, o})
				}
				placed = append(placed, []any{w, d, o, c + 1, now(), carrier, count, 1})
				for number := 1; number <= count; number++ {
					lines = append(lines, []any{w, d, o, number, between(1, *items), w, when, 5, amount, strings.Repeat("d", 24)})
				}
			}
			s.bulk("orders", 8, placed)
			s.bulk("new_order", 3, open)
			s.bulk("order_line", 10, lines)
		}
	}
	for _, text := range foreignKeys {
		must(s.exec(text))
	}
}

// A terminal of a warehouse.
type terminal struct {
	session
	chance *rand.Rand
	home   int
	done   map[string]int
	times  []time.Duration
}

var errRolledBack = errors.New("there is no such item")

func (t *terminal) between(low, high int) int { return low + t.chance.Intn(high-low+1) }
func (t *terminal) nurand(a, most int) int {
	return ((t.between(0, a)|t.between(1, most))+123)%most + 1
}

// One row into places.
func (t *terminal) one(text string, values []any, into ...any) (bool, error) {
	isFound := false
	err := t.query(text, values, into, func() { isFound = true })
	return isFound, err
}

func all(values ...any) []any { return values }

func (t *terminal) customer(w, d int) (int, error) {
	if t.chance.Float64() < 0.6 {
		var id int
		var found []int
		last := lastName(t.nurand(255, min(*customers, 1000)) - 1)
		err := t.query("SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first", all(w, d, last), all(&id), func() { found = append(found, id) })
		if err != nil || len(found) > 0 {
			if err != nil {
				return 0, err
			}
			return found[len(found)/2], nil
		}
	}
	return t.nurand(1023, *customers), nil
}

type line struct{ item, supply, quantity int }

func (t *terminal) newOrder() error {
	w, d, c := t.home, t.between(1, districts), t.nurand(1023, *customers)
	lines, local := make([]line, t.between(5, 15)), 1
	for at := range lines {
		lines[at] = line{t.nurand(8191, *items), w, t.between(1, 10)}
		if t.chance.Float64() < 0.01 {
			lines[at].supply = t.between(1, *warehouses)
		}
		if lines[at].supply != w {
			local = 0
		}
	}
	sort.Slice(lines, func(a, b int) bool {
		return lines[a].item < lines[b].item || lines[a].item == lines[b].item && lines[a].supply < lines[b].supply
	})
	isWrong := t.chance.Float64() < 0.01
	var discount, wTax, dTax, price float64
	var number, left int
	var name, data, dist string
	if _, err := t.one("SELECT c_discount, w_tax FROM customer, warehouse WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?", all(w, d, c), &discount, &wTax); err != nil {
		return err
	}
	if _, err := t.one("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE", all(w, d), &number, &dTax); err != nil {
		return err
	}
	if err := t.exec("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?", w, d); err != nil {
		return err
	}
	if err := t.exec("INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, ?, ?, ?)", w, d, number, c, now(), len(lines), local); err != nil {
		return err
	}
	if err := t.exec("INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)", w, d, number); err != nil {
		return err
	}
	for at, line := range lines {
		item := line.item
		if isWrong && at == len(lines)-1 {
			item = -1
		}
		isFound, err := t.one("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", all(item), &price, &name, &data)
		if err != nil {
			return err
		}
		if !isFound {
			return errRolledBack
		}
		if _, err := t.one("SELECT s_quantity, s_dist FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE", all(line.supply, item), &left, &dist); err != nil {
			return err
		}
		left -= line.quantity
		if left < 10 {
			left += 91
		}
		remote := 0
		if line.supply != w {
			remote = 1
		}
		if err := t.exec("UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?", left, line.quantity, remote, line.supply, item); err != nil {
			return err
		}
		amount := float64(int(price*float64(line.quantity)*(1+wTax+dTax)*(1-discount)*100+0.5)) / 100
		if err := t.exec("INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", w, d, number, at+1, item, line.supply, line.quantity, amount, dist); err != nil {
			return err
		}
	}
	return nil
}

func (t *terminal) payment() error {
	w, d, amount := t.home, t.between(1, districts), float64(t.between(100, 500000))/100
	if err := t.exec("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", amount, w); err != nil {
		return err
	}
	if err := t.exec("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", amount, w, d); err != nil {
		return err
	}
	ofW, ofD := w, d
	if t.chance.Float64() < 0.15 {
		ofW, ofD = t.between(1, *warehouses), t.between(1, districts)
	}
	c, err := t.customer(ofW, ofD)
	if err != nil {
		return err
	}
	var credit, data string
	if _, err := t.one("SELECT c_credit, c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE", all(ofW, ofD, c), &credit, &data); err != nil {
		return err
	}
	if credit == "BC" {
		data = fmt.Sprintf("%d %d %d %.2f|%s", c, ofD, ofW, amount, data)
		data = data[:min(500, len(data))]
	}
	if err := t.exec("UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", amount, amount, data, ofW, ofD, c); err != nil {
		return err
	}
	return t.exec("INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", c, ofD, ofW, d, w, now(), amount, "paid")
}

func (t *terminal) orderStatus() error {
	w, d := t.home, t.between(1, districts)
	c, err := t.customer(w, d)
	if err != nil {
		return err
	}
	var balance float64
	var first, middle, last string
	if _, err := t.one("SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", all(w, d, c), &balance, &first, &middle, &last); err != nil {
		return err
	}
	var order int
	var carrier *int
	var entry time.Time
	isFound, err := t.one("SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1", all(w, d, c), &order, &carrier, &entry)
	if err != nil || !isFound {
		return err
	}
	var item, supply, quantity int
	var amount float64
	var when *time.Time
	return t.query("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", all(w, d, order), all(&item, &supply, &quantity, &amount, &when), func() {})
}

func (t *terminal) delivery() error {
	w, carrier := t.home, t.between(1, 10)
	for d := 1; d <= districts; d++ {
		var order, c int
		var total float64
		isFound, err := t.one("SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE", all(w, d), &order)
		if err != nil {
			return err
		}
		if !isFound {
			continue
		}
		if err := t.exec("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", w, d, order); err != nil {
			return err
		}
		if _, err := t.one("SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", all(w, d, order), &c); err != nil {
			return err
		}
		if err := t.exec("UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", carrier, w, d, order); err != nil {
			return err
		}
		if err := t.exec("UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", now(), w, d, order); err != nil {
			return err
		}
		if _, err := t.one("SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", all(w, d, order), &total); err != nil {
			return err
		}
		if err := t.exec("UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", total, w, d, c); err != nil {
			return err
		}
	}
	return nil
}

func (t *terminal) stockLevel() error {
	w, d, threshold := t.home, t.between(1, districts), t.between(10, 20)
	var number, low int
	if _, err := t.one("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", all(w, d), &number); err != nil {
		return err
	}
	_, err := t.one("SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?", all(w, d, number, number-20, w, threshold), &low)
	return err
}

func (t *terminal) work(until time.Time) {
	for time.Now().Before(until) {
		name, kind := "new_order", t.newOrder
		switch choice := t.chance.Intn(100); {
		case choice >= 96:
			name, kind = "stock_level", t.stockLevel
		case choice >= 92:
			name, kind = "delivery", t.delivery
		case choice >= 88:
			name, kind = "order_status", t.orderStatus
		case choice >= 45:
			name, kind = "payment", t.payment
		}
		begun, tries := time.Now(), 0
		for ; tries < triesMax; tries++ {
			must(t.exec("BEGIN"))
			err := kind()
			if err == nil {
				err = t.exec("COMMIT")
			}
			if err == nil {
				t.done[name]++
				if name == "new_order" {
					t.times = append(t.times, time.Since(begun))
				}
				break
			}
			must(t.exec("ROLLBACK"))
			if err == errRolledBack {
				t.done["rolled_back"]++
				break
			}
			if !t.isConflict(err) {
				panic(fmt.Sprint(name, ": ", err))
			}
			t.done["tried_again"]++
		}
		if tries == triesMax {
			panic(name + " came to no end")
		}
	}
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "tpcc postgres|mysql HOST:PORT [options]")
		os.Exit(2)
	}
	kind, address := os.Args[1], os.Args[2]
	must(flag.CommandLine.Parse(os.Args[3:]))
	if *loads {
		s := connect(kind, address, *user, *database)
		load(s)
		s.close()
		return
	}
	all := make([]*terminal, *terminals)
	for at := range all {
		s := connect(kind, address, *user, *database)
		all[at] = &terminal{session: s, chance: rand.New(rand.NewSource(int64(at) + time.Now().UnixNano())), home: at%*warehouses + 1, done: map[string]int{}}
	}
	begun := time.Now()
	until := begun.Add(time.Duration(*seconds * float64(time.Second)))
	var running sync.WaitGroup
	for _, one := range all {
		running.Add(1)
		go func() { defer running.Done(); one.work(until) }()
	}
	running.Wait()
	took := time.Since(begun).Seconds()
	done, times := map[string]int{}, []time.Duration{}
	for _, one := range all {
		for name, count := range one.done {
			done[name] += count
		}
		times = append(times, one.times...)
		one.close()
	}
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	at := func(share float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return times[int(share*float64(len(times)-1))].Seconds() * 1000
	}
	s := connect(kind, address, *user, *database)
	wrong := []string{}
	for name, text := range conditions {
		var count int
		must(s.query(text, nil, []any{&count}, func() {}))
		if count != 0 {
			wrong = append(wrong, name)
		}
	}
	s.close()
	out, err := json.Marshal(map[string]any{
		"new_orders_a_minute": float64(done["new_order"]) / took * 60, "done": done, "wrong": wrong,
		"new_order_ms": map[string]float64{"median": at(0.5), "p99": at(0.99), "most": at(1)},
	})
	must(err)
	fmt.Println(string(out))
	if len(wrong) > 0 {
		os.Exit(1)
	}
}
