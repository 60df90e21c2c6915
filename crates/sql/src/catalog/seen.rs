//! What a statement has been told by the catalog: the rows of its tables, and the numbers and names of objects. It is computed once for a statement, however
//! many rows ask for it, as long as the schema stays as it is.

use super::Virtual;
use crate::error::Result;
use crate::run::Run;
use crate::value::Value;
use hashbrown::HashMap;
use std::rc::Rc;

/// Answers that are kept; others are found anew.
const ANSWERS_MAX: usize = 10_000;

/// Rows of a table.
type Rows = Rc<Vec<Vec<Value>>>;

/// All of it, of one version of the schema.
#[derive(Default)]
pub(crate) struct Seen {
    version: u64,
    tables: Vec<(&'static Virtual, Rows)>,
    /// By what is asked for, a number or a name.
    numbers: HashMap<(&'static str, Rc<str>), Value>,
    names: HashMap<(&'static str, i64), Value>,
}

impl Virtual {
    /// Its rows as they were when the statement asked for them first. Errors: as of [`Run::take`].
    pub(crate) fn seen_rows(&'static self, run: &mut Run<'_>) -> Result<Rows> {
        run.forget_old();
        if let Some((_, rows)) = run.seen.tables.iter().find(|(table, _)| std::ptr::eq(*table, self)) {
            return Ok(Rc::clone(rows));
        }
        let rows = Rc::new(self.rows(run));
        for row in rows.iter() {
            run.take(row.iter().map(Value::weight).sum::<usize>() + 24)?;
        }
        run.seen.tables.push((self, Rc::clone(&rows)));
        Ok(rows)
    }
}

impl Run<'_> {
    fn forget_old(&mut self) {
        let version = self.database.catalog.schema_version();
        if self.seen.version != version {
            self.seen = Seen { version, ..Seen::default() };
        }
    }

    /// What a question after an object of the catalog comes to, which is a text or a number. Errors: those of finding it.
    pub(crate) fn once(
        &mut self,
        question: &'static str,
        about: &Value,
        find: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<Value> {
        self.forget_old();
        let known = match about {
            Value::Text(text) => self.seen.numbers.get(&(question, Rc::clone(text))),
            Value::Int(number) => self.seen.names.get(&(question, *number)),
            _ => None,
        };
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let found = find(self)?;
        if self.seen.numbers.len() + self.seen.names.len() < ANSWERS_MAX {
            match about {
                Value::Text(text) => drop(self.seen.numbers.insert((question, Rc::clone(text)), found.clone())),
                Value::Int(number) => drop(self.seen.names.insert((question, *number), found.clone())),
                _ => {}
            }
        }
        Ok(found)
    }
}
