"""Random changes of tables beside those of the real servers: definitions, ALTER TABLE, foreign keys with actions, transactions with savepoints and failures in them.

A scenario is made of a seed and of what the real server said: a table that it refused to make is not used. Whatever differed ends its scenario, so that one difference is
reported once.
"""

import random

LENGTH = 70
TYPES = {
    "mysql": ["INT", "BIGINT", "SMALLINT", "TINYINT UNSIGNED", "DECIMAL(8,2)", "VARCHAR(6)", "TEXT", "DATE", "DATETIME", "DOUBLE", "FLOAT", "BOOLEAN", "ENUM('a','b','ab')", "CHAR(3)", "TIME", "DATETIME(3)"],
    "postgresql": ["int", "bigint", "smallint", "numeric(8,2)", "varchar(6)", "text", "date", "timestamp", "double precision", "real", "boolean", "uuid", "jsonb", "int[]", "time", "timetz", "timestamptz", "timestamp(0)", "interval"],
}


class Shapes:
    def __init__(self, seed, dialect):
        self.random = random.Random(seed)
        self.dialect = dialect
        self.is_mysql = dialect == "mysql"
        self.tables = {}
        self.in_transaction = False
        self.points = []

    def choice(self, *items):
        return self.random.choice(items)

    def all(self, count):
        """Statements, about `count` of them: each is answered by (what the real server said, whether the other one said otherwise)."""
        asked = 0
        while asked < count:
            for statement, done in self.scenario():
                answer, differs = yield statement
                asked += 1
                is_refused = isinstance(answer, dict)
                if done and not is_refused:
                    done()
                if differs:
                    yield "ROLLBACK"
                    break

    def scenario(self):
        self.tables, self.in_transaction, self.points = {}, False, []
        if self.is_mysql:
            yield "SET foreign_key_checks = 0", None
        for number in (4, 3, 2, 1):
            for name in (f"s{number}", f"s{number}_x", f"s{number}_y"):
                yield f"DROP TABLE IF EXISTS {name}{'' if self.is_mysql else ' CASCADE'}", None
        if self.is_mysql:
            yield "SET foreign_key_checks = 1", None
        yield self.create("s1")
        yield self.create("s2")
        for _ in range(LENGTH):
            if not self.tables:
                yield self.create("s1")
                continue
            yield self.step()
            if self.tables and self.random.random() < 0.25:
                table = self.table()
                yield f"SELECT * FROM {table} ORDER BY id", None
        if self.in_transaction:
            yield self.choice("COMMIT", "ROLLBACK"), None
        for table in list(self.tables):
            yield f"SELECT * FROM {table} ORDER BY id", None
            yield self.described(table), None

    def described(self, table):
        of = f"WHERE table_name = '{table}' ORDER BY ordinal_position"
        if self.is_mysql:
            return f"SELECT column_name, is_nullable, data_type FROM information_schema.columns {of.replace('ORDER', 'AND table_schema = DATABASE() ORDER')}"
        return f"SELECT column_name, is_nullable, data_type, character_maximum_length, numeric_scale FROM information_schema.columns {of}"

    def table(self):
        return self.random.choice(list(self.tables))

    def column(self, table):
        columns = self.tables[table]
        return self.random.choice(list(columns)) if columns else "id"

    def literal(self, kind):
        draw = self.random
        if draw.random() < 0.1:
            return "NULL"
        base = kind.lower().split("(")[0].split(" ")[0]
        wrong = draw.random() < 0.06
        if base in ("int", "bigint", "smallint", "tinyint", "decimal", "numeric", "double", "float", "real"):
            if wrong:
                return draw.choice(["'x'", "99999999999", "-1", "70000", "''"])
            return draw.choice([str(draw.randint(0, 9)), str(draw.randint(0, 250)), "1.5", "'7'"] if base not in ("int", "bigint", "smallint", "tinyint") else [str(draw.randint(0, 9)), str(draw.randint(0, 120))])
        if base in ("varchar", "text", "char"):
            return draw.choice(["'a'", "'ab'", "'B'", "'xyz'", "''", "'äö'"] + (["'longer than six'"] if wrong else []))
        if base == "enum":
            return "'zz'" if wrong else draw.choice(["'a'", "'b'", "'ab'"])
        if base == "date":
            return draw.choice(["'2024-02-30'", "'nonsense'"]) if wrong else f"'2024-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}'"
        if base in ("time", "timetz"):
            return "'12:61:00'" if wrong else f"'1{draw.randint(0, 9)}:1{draw.randint(0, 9)}:07'"
        if base == "interval":
            return "'nonsense'" if wrong else draw.choice(["'1 day'", "'2 hours'", "'1 month -3 days'"])
        if base in ("datetime", "timestamp", "timestamptz"):
            return "'2024-13-01 00:00:00'" if wrong else f"'2024-0{draw.randint(1, 9)}-1{draw.randint(0, 9)} 10:1{draw.randint(0, 9)}:07'"
        if base == "boolean":
            return draw.choice(["true", "false"])
        if base == "uuid":
            return "'nothing'" if wrong else f"'0000000{draw.randint(0, 9)}-0000-0000-0000-000000000001'"
        if base == "jsonb":
            return "'{'" if wrong else draw.choice(["'{\"a\": 1}'", "'[1, 2]'", "'3'"])
        return "'{1,2'" if wrong else draw.choice(["'{1,2}'", "'{}'", "'{3,NULL}'"])

    def type(self):
        return self.random.choice(TYPES[self.dialect])

    def definition(self, name, kind):
        parts = [name, kind]
        can_default = not (self.is_mysql and kind == "TEXT")
        if can_default and self.random.random() < 0.3:
            parts.append(f"DEFAULT {self.literal(kind)}")
        if self.random.random() < 0.2:
            parts.append("NOT NULL")
        if self.random.random() < 0.1 and kind not in ("TEXT", "jsonb", "int[]", "interval"):
            parts.append("UNIQUE")
        # Of columns of MySQL's tables they belong to the table, of MariaDB's to the column, with which they go.
        if not self.is_mysql and self.random.random() < 0.1 and kind.lower() in ("int", "bigint", "smallint"):
            parts.append(f"CHECK ({name} {self.choice('>', '<', '<>')} {self.random.randint(0, 9)})")
        return " ".join(parts)

    def actions(self):
        on = ["CASCADE", "SET NULL", "NO ACTION", "RESTRICT"] + ([] if self.is_mysql else ["SET DEFAULT"])
        return f"{self.choice('', f' ON DELETE {self.random.choice(on)}')}{self.choice('', f' ON UPDATE {self.random.choice(on)}')}"

    def create(self, name):
        columns = {f"c{number}": self.type() for number in range(1, self.random.randint(2, 5))}
        parts = [f"id {'INT' if self.is_mysql else 'int'} PRIMARY KEY"] + [self.definition(column, kind) for column, kind in columns.items()]
        if self.is_mysql:
            numbers = [column for column, kind in columns.items() if kind in ("INT", "BIGINT", "SMALLINT") and self.random.random() < 0.1]
            parts += [f"CONSTRAINT {name}_{column}_c CHECK ({column} {self.choice('>', '<', '<>')} {self.random.randint(0, 9)})" for column in numbers]
        others = [other for other in self.tables if other != name]
        if others and self.random.random() < 0.6:
            parent = self.random.choice(others)
            columns["p"] = "INT" if self.is_mysql else "int"
            parts.append(f"p {columns['p']}{self.choice('', ' DEFAULT 1')}")
            parts.append(f"{self.choice('', f'CONSTRAINT {name}_parent ')}FOREIGN KEY (p) REFERENCES {parent} (id){self.actions()}")
        if self.random.random() < 0.2 and len(columns) > 1:
            parts.append(f"UNIQUE (c1, {list(columns)[-1]})") if not any(kind in ("TEXT", "jsonb", "interval") for kind in columns.values()) else None
        return f"CREATE TABLE {name} ({', '.join(parts)})", lambda: self.tables.update({name: columns})

    def step(self):
        draw = self.random.random()
        if draw < 0.33:
            return self.insert()
        if draw < 0.45:
            return self.update()
        if draw < 0.52:
            return self.delete()
        if draw < 0.68:
            return self.transaction()
        if self.in_transaction:
            return self.insert()
        if draw < 0.74:
            name = self.choice("s1", "s2", "s3", "s4")
            return self.create(name)
        if draw < 0.76:
            table = self.table()
            return f"DROP TABLE {table}", lambda: self.tables.pop(table, None)
        return self.alter()

    def ignoring(self):
        """A word that lets rows pass over what would refuse them."""
        return " IGNORE" if self.is_mysql and self.random.random() < 0.15 else ""

    def insert(self):
        table = self.table()
        columns = self.tables[table]
        some = [column for column in columns if self.random.random() < 0.8]
        rows = []
        for _ in range(self.choice(1, 1, 2)):
            values = [str(self.random.randint(1, 12))] + [str(self.random.randint(1, 12)) if column == "p" else self.literal(columns[column]) for column in some]
            rows.append(f"({', '.join(values)})")
        return f"INSERT{self.ignoring()} INTO {table} ({', '.join(['id'] + some)}) VALUES {', '.join(rows)}", None

    def update(self):
        table = self.table()
        column = self.column(table)
        kind = self.tables[table].get(column, "int")
        value = self.choice(self.literal(kind), str(self.random.randint(1, 12)) if column in ("id", "p") else self.literal(kind), "DEFAULT")
        if self.random.random() < 0.25:
            column, value = "id", f"id + {self.choice(1, 20)}"
        return f"UPDATE{self.ignoring()} {table} SET {column} = {value} WHERE id {self.choice('=', '=', '>')} {self.random.randint(1, 12)}", None

    def delete(self):
        return f"DELETE{self.ignoring()} FROM {self.table()} WHERE id {self.choice('=', '=', '=', '>')} {self.random.randint(1, 12)}", None

    def transaction(self):
        def begun():
            self.in_transaction, self.points = True, []

        def ended():
            self.in_transaction, self.points = False, []
        if not self.in_transaction:
            return "BEGIN", begun
        name = self.choice("a", "b")
        if self.random.random() < 0.35:
            return self.choice("COMMIT", "ROLLBACK"), ended
        return self.choice(f"SAVEPOINT {name}", f"SAVEPOINT {name}", f"ROLLBACK TO SAVEPOINT {name}", f"ROLLBACK TO SAVEPOINT {name}", f"RELEASE SAVEPOINT {name}"), None

    def alter(self):
        table = self.table()
        columns = self.tables[table]
        column, new, kind = self.column(table), f"c{self.random.randint(1, 8)}", self.type()
        named = f"{table}_{self.choice('x', 'y')}"

        def added():
            columns[new] = kind

        def dropped():
            columns.pop(column, None)

        def renamed():
            columns[new] = columns.pop(column, kind)

        def retyped():
            columns[column] = kind

        def moved():
            self.tables[named] = self.tables.pop(table)
        others = [other for other in self.tables if other != table] or [table]
        forms = [
            (f"ADD COLUMN {self.definition(new, kind)}", added), (f"ADD COLUMN {self.definition(new, kind)}", added), (f"DROP COLUMN {column}", dropped), (f"RENAME COLUMN {column} TO {new}", renamed),
            (f"ALTER COLUMN {column} SET DEFAULT {self.literal(columns.get(column, 'int'))}", None), (f"ALTER COLUMN {column} DROP DEFAULT", None),
            (f"ADD CONSTRAINT {named}_f FOREIGN KEY ({self.choice('p', column)}) REFERENCES {self.random.choice(others)} (id){self.actions()}", None),
            (f"ADD CONSTRAINT {named}_u UNIQUE ({column})", None), (f"ADD CONSTRAINT {named}_k CHECK ({column} IS NOT NULL)", None), (f"DROP CONSTRAINT {named}_{self.choice('f', 'u', 'k')}", None),
        ]
        if self.is_mysql:
            forms += [
                (f"MODIFY COLUMN {self.definition(column, kind).replace(' UNIQUE', '')}", retyped), (f"CHANGE COLUMN {column} {self.definition(new, kind).replace(' UNIQUE', '')}", lambda: (dropped(), added())),
                (f"ADD INDEX {named}_i ({column})", None), (f"DROP INDEX {named}_i", None), (f"DROP FOREIGN KEY {named}_f", None), (f"ADD COLUMN {self.definition(new, kind)} {self.choice('FIRST', f'AFTER {column}')}", added),
            ]
        else:
            forms += [
                (f"ALTER COLUMN {column} TYPE {kind}{self.choice('', f' USING {column}::text::{kind}')}", retyped), (f"ALTER COLUMN {column} SET NOT NULL", None), (f"ALTER COLUMN {column} DROP NOT NULL", None),
                (f"DROP COLUMN {column} CASCADE", dropped), (f"ADD COLUMN IF NOT EXISTS {self.definition(new, kind)}", None),
            ]
        if self.random.random() < 0.12:
            kinds = (f"CREATE {self.choice('', 'UNIQUE ')}INDEX {named}_i ON {table} ({column}{self.choice('', ' DESC')})", f"DROP INDEX {named}_i{f' ON {table}' if self.is_mysql else ''}")
            return self.random.choice(kinds), None
        if self.random.random() < 0.06 and len(table) == 2:
            return f"ALTER TABLE {table} RENAME TO {named}", moved
        form, done = self.random.choice(forms)
        return f"ALTER TABLE {table} {form}", done
