//! Doubts that any text is understood as a statement of each dialect, or refused in words.
//!
//! The input: the dialect (a byte), then the text. There is a table `t` with the columns `id` and `name`.

use crate::memcached::open;
use sql::{Dialect, Sql};
use std::rc::Rc;

/// One case.
pub fn run(input: &[u8]) {
    let Some((dialect, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let dialect = [Dialect::Postgres, Dialect::Mysql, Dialect::Tarantool][usize::from(*dialect) % 3];
    let database = open();
    let admin = Rc::new(database.admin_context());
    let sql = Sql::of(&database);
    let create = "create table t (id int primary key, name text)";
    let table = sql.prepare(&database, &admin, dialect, create, &[]).expect("a table is made");
    sql.run(&database, &admin, &table, &[], &mut |_| Ok(())).expect("a table is made");
    match sql.prepare(&database, &admin, dialect, text, &[]) {
        Ok(prepared) => assert!(prepared.columns().len() <= 4000 && prepared.params().len() <= sql::PARAMETERS_MAX),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has words"),
    }
}
