//! The inventory on MariaDB: a procedure with row locks for a capture, one statement for a release.

use super::{Shop, parts};
use crate::generator::{Group, Item, Place};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Statement};

const TABLE: &str = "CREATE TABLE stock (
    id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
    sku INT UNSIGNED NOT NULL, warehouse INT UNSIGNED NOT NULL, `condition` INT UNSIGNED NOT NULL, source INT UNSIGNED NOT NULL,
    price INT UNSIGNED NOT NULL, `count` INT NOT NULL,
    UNIQUE KEY place (sku, warehouse, `condition`, source), KEY item (sku, `condition`, source)) ENGINE=InnoDB";
/// A reader of `taken` learns warehouses and parts; NULL if there are too few.
const CAPTURE: &str = "CREATE PROCEDURE capture(wanted_sku INT, wanted_condition INT, wanted_source INT, wanted INT)
BEGIN
    DECLARE is_over INT DEFAULT 0;
    DECLARE row_id BIGINT;
    DECLARE row_warehouse, here, part INT;
    DECLARE missing INT DEFAULT wanted;
    DECLARE taken VARCHAR(255) DEFAULT '';
    DECLARE found CURSOR FOR SELECT id, warehouse, `count` FROM stock
        WHERE sku = wanted_sku AND `condition` = wanted_condition AND source = wanted_source ORDER BY id FOR UPDATE;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = 1;
    START TRANSACTION;
    OPEN found;
    taking: LOOP
        FETCH found INTO row_id, row_warehouse, here;
        IF is_over OR missing = 0 THEN LEAVE taking; END IF;
        IF here > 0 THEN
            SET part = LEAST(here, missing);
            UPDATE stock SET `count` = `count` - part WHERE id = row_id;
            SET taken = CONCAT(taken, row_warehouse, ':', part, ' ');
            SET missing = missing - part;
        END IF;
    END LOOP;
    CLOSE found;
    IF missing > 0 THEN
        ROLLBACK;
        SELECT NULL;
    ELSE
        COMMIT;
        SELECT taken;
    END IF;
END";
const RELEASE: &str =
    "UPDATE stock SET `count` = `count` + ? WHERE sku = ? AND warehouse = ? AND `condition` = ? AND source = ?";
/// Two transactions waited for each other, or one for too long: it is to be tried again.
const TRY_AGAIN: [u16; 2] = [1213, 1205];

/// A client of the inventory.
pub(crate) struct MariadbShop {
    connection: Conn,
    /// Prepared with the first use, when the table is there.
    capture: Option<Statement>,
    release: Option<Statement>,
}

pub(super) fn failed(error: mysql::Error) -> String {
    format!("mariadb: {error}")
}

pub(super) fn is_to_be_tried_again(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(error) if TRY_AGAIN.contains(&error.code))
}

/// A connection to the database `bench`, which is made.
pub(crate) fn connect(address: &str) -> Result<Conn, String> {
    let (host, port) = address.rsplit_once(':').ok_or("an address has a port")?;
    let options = OptsBuilder::new()
        .ip_or_hostname(Some(host))
        .tcp_port(port.parse().map_err(|_| "a port is a number")?)
        .user(Some("root"))
        .prefer_socket(false)
        .tcp_nodelay(true);
    let mut connection = Conn::new(options).map_err(failed)?;
    connection.query_drop("CREATE DATABASE IF NOT EXISTS bench").map_err(failed)?;
    connection.query_drop("USE bench").map_err(failed)?;
    Ok(connection)
}

impl MariadbShop {
    pub(crate) fn connect(address: &str) -> Result<Self, String> {
        Ok(MariadbShop { connection: connect(address)?, capture: None, release: None })
    }

    /// The statement, prepared if it is not yet.
    fn prepared(connection: &mut Conn, kept: &mut Option<Statement>, text: &str) -> Result<Statement, String> {
        match kept {
            Some(statement) => Ok(statement.clone()),
            None => Ok(kept.insert(connection.prep(text).map_err(failed)?).clone()),
        }
    }
}

impl Shop for MariadbShop {
    fn prepare(&mut self, items: &[Item]) -> Result<(), String> {
        for statement in ["DROP TABLE IF EXISTS stock", "DROP PROCEDURE IF EXISTS capture", TABLE, CAPTURE] {
            self.connection.query_drop(statement).map_err(failed)?;
        }
        let rows = items
            .iter()
            .map(|Item { place: p, price, count }| (p.sku, p.warehouse, p.condition, p.source, *price, *count));
        self.connection.query_drop("START TRANSACTION").map_err(failed)?;
        let insert =
            "INSERT INTO stock (sku, warehouse, `condition`, source, price, `count`) VALUES (?, ?, ?, ?, ?, ?)";
        self.connection.exec_batch(insert, rows).map_err(failed)?;
        self.connection.query_drop("COMMIT").map_err(failed)
    }

    fn capture(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, String> {
        let statement = Self::prepared(&mut self.connection, &mut self.capture, "CALL capture(?, ?, ?, ?)")?;
        loop {
            let values = (group.sku, group.condition, group.source, count);
            match self.connection.exec_first::<Option<String>, _, _>(&statement, values) {
                Ok(taken) => return taken.flatten().map(|text| parts(&text)).transpose(),
                Err(error) if is_to_be_tried_again(&error) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn release(&mut self, place: Place, count: u64) -> Result<(), String> {
        let statement = Self::prepared(&mut self.connection, &mut self.release, RELEASE)?;
        loop {
            let values = (count, place.sku, place.warehouse, place.condition, place.source);
            match self.connection.exec_drop(&statement, values) {
                Ok(()) if self.connection.affected_rows() == 1 => return Ok(()),
                Ok(()) => return Err(format!("mariadb has no row for {place:?}")),
                Err(error) if is_to_be_tried_again(&error) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn stock(&mut self) -> Result<Vec<(Place, i64)>, String> {
        stock(&mut self.connection)
    }
}

/// All rows and their units.
pub(super) fn stock(connection: &mut Conn) -> Result<Vec<(Place, i64)>, String> {
    connection
        .query_map(
            "SELECT sku, warehouse, `condition`, source, `count` FROM stock",
            |(sku, warehouse, condition, source, count)| (Place { sku, warehouse, condition, source }, count),
        )
        .map_err(failed)
}
