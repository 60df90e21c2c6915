//! CREATE and DROP SEQUENCE.

use crate::ddl::Ddl;
use crate::error::{Condition, Error, Result};
use database::{Operation, Privileges, SEQUENCE_DATA_ID, SEQUENCE_ID};
use sqlparser::ast::{self, SequenceOptions};
use tuple::msgpack;

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
                false => Err(Error::new(Condition::DuplicateTable, format!("relation \"{name}\" already exists"))),
            };
        }
        let number = |expr: &ast::Expr| {
            let text = expr.to_string().replace(' ', "");
            text.parse::<i64>().map_err(|_| Error::new(Condition::InvalidArgument, format!("'{text}' is no number")))
        };
        let (mut step, mut least, mut most, mut start, mut cycles) = (1, None, None, None, false);
        for option in options {
            match option {
                SequenceOptions::IncrementBy(by, _) => step = number(by)?,
                SequenceOptions::MinValue(Some(value)) => least = Some(number(value)?),
                SequenceOptions::MaxValue(Some(value)) => most = Some(number(value)?),
                SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
                SequenceOptions::Cycle(is_no) => cycles = !is_no,
                _ => {}
            }
        }
        let rises = step > 0;
        let least = least.unwrap_or(if rises { 1 } else { i64::MIN });
        let most = most.unwrap_or(if rises { i64::MAX } else { -1 });
        let start = start.unwrap_or(if rises { least } else { most });
        let id = u64::from(self.database.next_sequence_id());
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, 9);
        msgpack::encode_uint(&mut row, id);
        msgpack::encode_uint(&mut row, u64::from(self.context.user(catalog)));
        msgpack::encode_str(&mut row, name.as_bytes());
        for value in [step, least, most, start, 0] {
            msgpack::encode_int(&mut row, value);
        }
        msgpack::encode_bool(&mut row, cycles);
        self.execute(SEQUENCE_ID, Operation::Insert { tuple: &row })?;
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
        // Where it stands is nobody's row; whose the sequence is decides.
        self.database.check_sequence(self.context, &sequence, Privileges::DROP)?;
        self.as_admin(|| self.delete(SEQUENCE_DATA_ID, &[id]))?;
        self.delete(SEQUENCE_ID, &[id])?;
        Ok(1)
    }
}
