//! The inventory on PostgreSQL: a function with row locks for a capture, one statement for a release.

use super::{Shop, parts};
use crate::generator::{Group, Item, Place};
use postgres::{Client, NoTls, Statement};

const SCHEMA: &str = "
DROP TABLE IF EXISTS stock;
CREATE TABLE stock (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sku integer NOT NULL, warehouse integer NOT NULL, condition integer NOT NULL, source integer NOT NULL,
    price integer NOT NULL, count integer NOT NULL,
    UNIQUE (sku, warehouse, condition, source));
CREATE INDEX item ON stock (sku, condition, source);
CREATE OR REPLACE FUNCTION capture(wanted_sku integer, wanted_condition integer, wanted_source integer, wanted integer)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found record;
    missing integer := wanted;
    part integer;
    ids bigint[] := '{}';
    counts integer[] := '{}';
    taken text := '';
BEGIN
    FOR found IN SELECT id, warehouse, count FROM stock
        WHERE sku = wanted_sku AND condition = wanted_condition AND source = wanted_source ORDER BY id FOR UPDATE
    LOOP
        IF found.count > 0 THEN
            part := least(found.count, missing);
            ids := ids || found.id;
            counts := counts || part;
            taken := taken || found.warehouse || ':' || part || ' ';
            missing := missing - part;
            EXIT WHEN missing = 0;
        END IF;
    END LOOP;
    IF missing > 0 THEN
        RETURN NULL;
    END IF;
    FOR i IN 1 .. cardinality(ids) LOOP
        UPDATE stock SET count = count - counts[i] WHERE id = ids[i];
    END LOOP;
    RETURN taken;
END $$;";
const RELEASE: &str =
    "UPDATE stock SET count = count + $1 WHERE sku = $2 AND warehouse = $3 AND condition = $4 AND source = $5";
const INSERT: &str =
    "INSERT INTO stock (sku, warehouse, condition, source, price, count) VALUES ($1, $2, $3, $4, $5, $6)";

/// A client of the inventory.
pub(crate) struct PostgresShop {
    client: Client,
    /// Prepared with the first use, when the table is there.
    capture: Option<Statement>,
    release: Option<Statement>,
}

pub(super) fn failed(error: postgres::Error) -> String {
    format!("postgresql: {error}{}", error.as_db_error().map_or(String::new(), |error| format!(": {error}")))
}

/// A connection to the database that is always there.
pub(crate) fn connect(address: &str) -> Result<Client, String> {
    let (host, port) = address.rsplit_once(':').ok_or("an address has a port")?;
    Client::connect(&format!("host={host} port={port} user=bench dbname=postgres"), NoTls).map_err(failed)
}

impl PostgresShop {
    pub(crate) fn connect(address: &str) -> Result<Self, String> {
        Ok(PostgresShop { client: connect(address)?, capture: None, release: None })
    }

    /// The statement, prepared if it is not yet.
    fn prepared(client: &mut Client, kept: &mut Option<Statement>, text: &str) -> Result<Statement, String> {
        match kept {
            Some(statement) => Ok(statement.clone()),
            None => Ok(kept.insert(client.prepare(text).map_err(failed)?).clone()),
        }
    }
}

impl Shop for PostgresShop {
    fn prepare(&mut self, items: &[Item]) -> Result<(), String> {
        self.client.batch_execute(SCHEMA).map_err(failed)?;
        insert(&mut self.client, INSERT, items)
    }

    fn capture(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, String> {
        let statement = Self::prepared(&mut self.client, &mut self.capture, "SELECT capture($1, $2, $3, $4)")?;
        let [sku, condition, source, count] =
            [group.sku, group.condition, group.source, count].map(|value| value as i32);
        let row = self.client.query_one(&statement, &[&sku, &condition, &source, &count]).map_err(failed)?;
        row.get::<_, Option<String>>(0).map(|text| parts(&text)).transpose()
    }

    fn release(&mut self, place: Place, count: u64) -> Result<(), String> {
        let statement = Self::prepared(&mut self.client, &mut self.release, RELEASE)?;
        let [sku, warehouse, condition, source, count] =
            [place.sku, place.warehouse, place.condition, place.source, count].map(|value| value as i32);
        let changed = self.client.execute(&statement, &[&count, &sku, &warehouse, &condition, &source]);
        match changed.map_err(failed)? {
            1 => Ok(()),
            _ => Err(format!("postgresql has no row for {place:?}")),
        }
    }

    fn stock(&mut self) -> Result<Vec<(Place, i64)>, String> {
        stock(&mut self.client)
    }
}

/// Puts in the stock, in one transaction.
pub(super) fn insert(client: &mut Client, statement: &str, items: &[Item]) -> Result<(), String> {
    let mut transaction = client.transaction().map_err(failed)?;
    let insert = transaction.prepare(statement).map_err(failed)?;
    for Item { place: p, price, count } in items {
        let values = [p.sku, p.warehouse, p.condition, p.source, *price, *count].map(|value| value as i32);
        let values: Vec<_> = values.iter().map(|value| value as &(dyn postgres::types::ToSql + Sync)).collect();
        transaction.execute(&insert, &values).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// All rows and their units.
pub(super) fn stock(client: &mut Client) -> Result<Vec<(Place, i64)>, String> {
    let rows = client.query("SELECT sku, warehouse, condition, source, count FROM stock", &[]).map_err(failed)?;
    let number = |row: &postgres::Row, at: usize| row.get::<_, i32>(at);
    Ok(rows
        .iter()
        .map(|row| {
            let [sku, warehouse, condition, source] = [0, 1, 2, 3].map(|at| number(row, at) as u64);
            (Place { sku, warehouse, condition, source }, i64::from(number(row, 4)))
        })
        .collect())
}
