//! The inventory by statements over the network, without procedures: a capture is a transaction that locks the rows it looks at. The same programs
//! for MariaDB, PostgreSQL, and Lycosa by their protocols.

use super::Shop;
use super::mariadb::{self, failed as mysql_failed, is_to_be_tried_again};
use super::postgres::{connect as connect_postgres, failed as postgres_failed};
use crate::generator::{Group, Item, Place};
use mysql::prelude::Queryable;
use mysql::{Conn, Statement};
use postgres::Client;

const MYSQL_TABLE: &str = "CREATE TABLE stock (
    id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
    sku INT UNSIGNED NOT NULL, warehouse INT UNSIGNED NOT NULL, `condition` INT UNSIGNED NOT NULL, source INT UNSIGNED NOT NULL,
    price INT UNSIGNED NOT NULL, `count` INT NOT NULL,
    UNIQUE KEY place (sku, warehouse, `condition`, source), KEY item (sku, `condition`, source)) ENGINE=InnoDB";
const MYSQL_INSERT: &str =
    "INSERT INTO stock (sku, warehouse, `condition`, source, price, `count`) VALUES (?, ?, ?, ?, ?, ?)";
const MYSQL_FIND: &str = "SELECT id, warehouse, `count` FROM stock WHERE sku = ? AND `condition` = ? AND source = ? \
                          ORDER BY id FOR UPDATE";
const MYSQL_TAKE: &str = "UPDATE stock SET `count` = `count` - ? WHERE id = ?";
const MYSQL_RELEASE: &str =
    "UPDATE stock SET `count` = `count` + ? WHERE sku = ? AND warehouse = ? AND `condition` = ? AND source = ?";

const POSTGRES_TABLE: &str = "
DROP TABLE IF EXISTS stock;
CREATE TABLE stock (
    id bigserial PRIMARY KEY,
    sku integer NOT NULL, warehouse integer NOT NULL, condition integer NOT NULL, source integer NOT NULL,
    price integer NOT NULL, count integer NOT NULL,
    UNIQUE (sku, warehouse, condition, source));
CREATE INDEX item ON stock (sku, condition, source);";
const POSTGRES_INSERT: &str =
    "INSERT INTO stock (sku, warehouse, condition, source, price, count) VALUES ($1, $2, $3, $4, $5, $6)";
const POSTGRES_FIND: &str = "SELECT id, warehouse, count FROM stock WHERE sku = $1 AND condition = $2 AND source = $3 \
                             ORDER BY id FOR UPDATE";
const POSTGRES_TAKE: &str = "UPDATE stock SET count = count - $1 WHERE id = $2";
const POSTGRES_RELEASE: &str =
    "UPDATE stock SET count = count + $1 WHERE sku = $2 AND warehouse = $3 AND condition = $4 AND source = $5";

/// What is taken from which row and warehouse; `None`: all of them together have too little.
fn shares(rows: &[(i64, i64, i64)], wanted: u64) -> Option<Vec<(i64, u64, u64)>> {
    let mut missing = wanted;
    let mut shares = Vec::new();
    for (id, warehouse, here) in rows {
        let share = missing.min(u64::try_from(*here).unwrap_or(0));
        if share > 0 {
            shares.push((*id, *warehouse as u64, share));
            missing -= share;
        }
    }
    (missing == 0).then_some(shares)
}

/// What a capture answers.
fn taken(shares: &[(i64, u64, u64)]) -> Vec<(u64, u64)> {
    shares.iter().map(|(_, warehouse, share)| (*warehouse, *share)).collect()
}

/// A client that speaks MySQL's protocol.
pub(crate) struct MysqlStatements {
    connection: Conn,
    /// Prepared with the first use, when the table is there: find, take, release.
    prepared: Option<[Statement; 3]>,
}

impl MysqlStatements {
    pub(crate) fn connect(address: &str) -> Result<Self, String> {
        Ok(MysqlStatements { connection: mariadb::connect(address)?, prepared: None })
    }

    fn prepared(&mut self) -> Result<[Statement; 3], String> {
        if let Some(prepared) = &self.prepared {
            return Ok(prepared.clone());
        }
        let mut prepare = |text| self.connection.prep(text).map_err(mysql_failed);
        let prepared = [prepare(MYSQL_FIND)?, prepare(MYSQL_TAKE)?, prepare(MYSQL_RELEASE)?];
        Ok(self.prepared.insert(prepared).clone())
    }

    /// One try.
    fn take(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, mysql::Error> {
        let Some([find, take, _]) = self.prepared.clone() else { return Ok(None) };
        self.connection.query_drop("BEGIN")?;
        let rows: Vec<(i64, i64, i64)> = self.connection.exec(&find, (group.sku, group.condition, group.source))?;
        let Some(shares) = shares(&rows, count) else {
            self.connection.query_drop("ROLLBACK")?;
            return Ok(None);
        };
        for (id, _, share) in &shares {
            self.connection.exec_drop(&take, (share, id))?;
        }
        self.connection.query_drop("COMMIT")?;
        Ok(Some(taken(&shares)))
    }
}

impl Shop for MysqlStatements {
    fn prepare(&mut self, items: &[Item]) -> Result<(), String> {
        for statement in ["DROP TABLE IF EXISTS stock", MYSQL_TABLE, "START TRANSACTION"] {
            self.connection.query_drop(statement).map_err(mysql_failed)?;
        }
        let rows = items
            .iter()
            .map(|Item { place: p, price, count }| (p.sku, p.warehouse, p.condition, p.source, *price, *count));
        self.connection.exec_batch(MYSQL_INSERT, rows).map_err(mysql_failed)?;
        self.connection.query_drop("COMMIT").map_err(mysql_failed)
    }

    fn capture(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, String> {
        self.prepared()?;
        loop {
            match self.take(group, count) {
                Ok(taken) => return Ok(taken),
                // A deadlock has ended the transaction, a time-out has not.
                Err(error) if is_to_be_tried_again(&error) => {
                    self.connection.query_drop("ROLLBACK").map_err(mysql_failed)?;
                }
                Err(error) => return Err(mysql_failed(error)),
            }
        }
    }

    fn release(&mut self, place: Place, count: u64) -> Result<(), String> {
        let [.., release] = self.prepared()?;
        loop {
            let values = (count, place.sku, place.warehouse, place.condition, place.source);
            match self.connection.exec_drop(&release, values) {
                Ok(()) if self.connection.affected_rows() == 1 => return Ok(()),
                Ok(()) => return Err(format!("there is no row for {place:?}")),
                Err(error) if is_to_be_tried_again(&error) => {}
                Err(error) => return Err(mysql_failed(error)),
            }
        }
    }

    fn stock(&mut self) -> Result<Vec<(Place, i64)>, String> {
        mariadb::stock(&mut self.connection)
    }
}

/// A client that speaks PostgreSQL's protocol.
pub(crate) struct PostgresStatements {
    client: Client,
    /// Prepared with the first use, when the table is there: find, take, release.
    prepared: Option<[postgres::Statement; 3]>,
}

impl PostgresStatements {
    pub(crate) fn connect(address: &str) -> Result<Self, String> {
        Ok(PostgresStatements { client: connect_postgres(address)?, prepared: None })
    }

    fn prepared(&mut self) -> Result<[postgres::Statement; 3], String> {
        if let Some(prepared) = &self.prepared {
            return Ok(prepared.clone());
        }
        let mut prepare = |text| self.client.prepare(text).map_err(postgres_failed);
        let prepared = [prepare(POSTGRES_FIND)?, prepare(POSTGRES_TAKE)?, prepare(POSTGRES_RELEASE)?];
        Ok(self.prepared.insert(prepared).clone())
    }

    /// One try.
    fn take(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, postgres::Error> {
        let Some([find, take, _]) = self.prepared.clone() else { return Ok(None) };
        let [sku, condition, source] = [group.sku, group.condition, group.source].map(|value| value as i32);
        let mut transaction = self.client.transaction()?;
        let rows: Vec<(i64, i64, i64)> = transaction
            .query(&find, &[&sku, &condition, &source])?
            .iter()
            .map(|row| (row.get(0), i64::from(row.get::<_, i32>(1)), i64::from(row.get::<_, i32>(2))))
            .collect();
        let Some(shares) = shares(&rows, count) else {
            transaction.rollback()?;
            return Ok(None);
        };
        for (id, _, share) in &shares {
            transaction.execute(&take, &[&(*share as i32), id])?;
        }
        transaction.commit()?;
        Ok(Some(taken(&shares)))
    }
}

/// Two transactions met, or waited for each other.
fn has_met_another(error: &postgres::Error) -> bool {
    use postgres::error::SqlState;
    error
        .code()
        .is_some_and(|code| [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code))
}

impl Shop for PostgresStatements {
    fn prepare(&mut self, items: &[Item]) -> Result<(), String> {
        self.client.batch_execute(POSTGRES_TABLE).map_err(postgres_failed)?;
        super::postgres::insert(&mut self.client, POSTGRES_INSERT, items)
    }

    fn capture(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, String> {
        self.prepared()?;
        loop {
            match self.take(group, count) {
                Ok(taken) => return Ok(taken),
                Err(error) if has_met_another(&error) => {}
                Err(error) => return Err(postgres_failed(error)),
            }
        }
    }

    fn release(&mut self, place: Place, count: u64) -> Result<(), String> {
        let [.., release] = self.prepared()?;
        let [sku, warehouse, condition, source, count] =
            [place.sku, place.warehouse, place.condition, place.source, count].map(|value| value as i32);
        loop {
            match self.client.execute(&release, &[&count, &sku, &warehouse, &condition, &source]) {
                Ok(1) => return Ok(()),
                Ok(_) => return Err(format!("there is no row for {place:?}")),
                Err(error) if has_met_another(&error) => {}
                Err(error) => return Err(postgres_failed(error)),
            }
        }
    }

    fn stock(&mut self) -> Result<Vec<(Place, i64)>, String> {
        super::postgres::stock(&mut self.client)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn units_come_from_rows_that_have_some_or_from_none() {
        let rows = [(1, 7, 0), (2, 8, 2), (3, 9, 5)];
        assert_eq!(shares(&rows, 4).unwrap(), [(2, 8, 2), (3, 9, 2)]);
        assert_eq!(shares(&rows, 8), None);
        assert_eq!(taken(&shares(&rows, 7).unwrap()), [(8, 2), (9, 5)]);
    }
}
