//! CREATE and DROP SEQUENCE.

use crate::ddl::Ddl;
use crate::error::{Condition, Error, Result};
use database::{Privileges, SEQUENCE_DATA_ID, SEQUENCE_ID};
use sqlparser::ast::{self, SequenceOptions};

impl Ddl<'_> {
    /// CREATE SEQUENCE. Errors: it is there; numbers that are none.
    pub(crate) fn create_sequence(
        &self,
        name: &ast::ObjectName,
        if_not_exists: bool,
        options: &[SequenceOptions],
    ) -> Result<u64> {
        let name = self.dialect.object_name(name)?;
        let catalog = &self.database.catalog;
        if catalog.sequence_by_name(&name).is_some() || catalog.space_by_name(&name).is_some() {
            return match if_not_exists {
                true => Ok(0),
                false => Err(Error::new(
                    Condition::DuplicateTable,
                    format!("relation \"{}\" already exists", self.local(&name)),
                )),
            };
        }
        let mut def = self.sequence_def(&name, false);
        crate::ddl::change_sequence(&mut def, &crate::ddl::said_of(options), true)?;
        self.put_definition(&def, true)?;
        Ok(1)
    }

    /// DROP SEQUENCE. Errors: it is not there; a table needs it.
    pub(crate) fn drop_sequence(&self, name: &ast::ObjectName, if_exists: bool) -> Result<u64> {
        let name = self.dialect.object_name(name)?;
        let Some(sequence) = self.database.catalog.sequence_by_name(&name) else {
            return match if_exists {
                true => Ok(0),
                false => Err(Error::new(Condition::UndefinedTable, format!("sequence \"{name}\" does not exist"))),
            };
        };
        let id = u64::from(sequence.def().id);
        let spaces = self.database.catalog.spaces();
        let user = spaces
            .iter()
            .find(|space| space.sequence.borrow().as_ref().is_some_and(|link| u64::from(link.sequence.def().id) == id));
        if let Some(space) = user {
            let what = format!("cannot drop sequence {name} because other objects depend on it");
            return Err(Error::new(Condition::DependentObjects, what)
                .detail(format!("column of table {} depends on sequence {name}", space.name())));
        }
        if let Some((table, column)) = self.identity_filled_by(&name) {
            let what = format!("cannot drop sequence {name} because column {column} of table {table} requires it");
            let hint = format!("You can drop column {column} of table {table} instead.");
            return Err(Error::new(Condition::DependentObjects, what).hint(hint));
        }
        // Where it stands is nobody's row; whose the sequence is decides.
        self.database.check_sequence(self.context, &sequence, Privileges::DROP)?;
        self.as_admin(|| self.delete(SEQUENCE_DATA_ID, &[id]))?;
        self.delete(SEQUENCE_ID, &[id])?;
        Ok(1)
    }
}
