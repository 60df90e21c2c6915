//! Foreign keys that are looked at when the transaction ends: DEFERRABLE INITIALLY DEFERRED of SQL, and what SET CONSTRAINTS says of them.
//!
//! What a statement has put off to its end (`foreign_keys.rs`) and finds to be of such a key goes into the transaction, with the number of statements that
//! were made until then: whoever rolls these back takes the look away with them. A transaction that rows of missing parents are put into and that ends
//! without having them is rolled back.

use crate::catalog::{Deferral, ForeignKeyDef};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::foreign_keys::{PENDING_MAX, Pending};
use crate::session::Context;

/// What the end of a transaction has to look at.
#[derive(Default)]
pub(crate) struct Deferred {
    /// Each with the statements that there were.
    pending: Vec<(usize, Pending)>,
    /// What SET CONSTRAINTS has said, oldest first: of a name or of all, and whether they wait for the end.
    said: Vec<(Option<String>, bool)>,
}

impl Deferred {
    /// The statements behind the first `count` are taken back.
    pub(crate) fn undo_to(&mut self, count: usize) {
        self.pending.retain(|(statements, _)| *statements <= count);
    }

    fn waits(&self, pending: &Pending) -> bool {
        let def = &pending.link().def;
        let is_about = |name: &Option<String>| name.as_ref().is_none_or(|name| *name == def.name);
        let said = self.said.iter().rev().find(|(name, _)| is_about(name)).map(|(_, waits)| *waits);
        match def.deferral {
            Deferral::Never => false,
            Deferral::Immediate => said == Some(true),
            Deferral::Deferred => said != Some(false),
        }
    }
}

impl Database {
    /// Keeps a look for the end of the transaction. Returns it if it is to be taken now.
    pub(crate) fn defer(&self, context: &Context, pending: Pending) -> Option<Pending> {
        if pending.link().def.deferral == Deferral::Never || !self.is_in_explicit_txn(context) {
            return Some(pending);
        }
        let mut txn = context.txn.borrow_mut();
        let Some(txn) = txn.as_mut() else { return Some(pending) };
        let statements = txn.statements().len();
        let deferred = txn.deferred.get_or_insert_default();
        if deferred.pending.len() >= PENDING_MAX || !deferred.waits(&pending) {
            return Some(pending);
        }
        deferred.pending.push((statements, pending));
        None
    }

    /// Whether looks at foreign keys wait for the end of the open transaction: those of some names, or all that may. Those that do not wait any more are
    /// taken now. May wait. Errors: a key is broken; there are too many names.
    pub fn defer_foreign_keys(&self, context: &Context, names: Option<&[String]>, waits: bool) -> Result<()> {
        if !context.is_in_txn() {
            return Ok(());
        }
        self.enter(context)?;
        let taken = {
            let mut txn = context.txn.borrow_mut();
            let Some(txn) = txn.as_mut() else { return Ok(()) };
            let deferred = txn.deferred.get_or_insert_default();
            match names {
                None => deferred.said = vec![(None, waits)],
                Some(names) => {
                    if deferred.said.len() + names.len() > PENDING_MAX {
                        let what = "names of constraints in a transaction";
                        return Err(Error::new(ErrorCode::MemoryIssue, &[&PENDING_MAX, &"SET CONSTRAINTS", &what]));
                    }
                    deferred.said.extend(names.iter().map(|name| (Some(name.clone()), waits)));
                }
            }
            let taken = deferred.pending.iter().map(|(_, pending)| pending).filter(|pending| !deferred.waits(pending));
            taken.cloned().collect::<Vec<Pending>>()
        };
        // They stay: a savepoint may bring back what was wrong then.
        taken.iter().try_for_each(|pending| self.look_if_in_force(context, pending))
    }

    /// A look at a key that the transaction has not dropped since.
    fn look_if_in_force(&self, context: &Context, pending: &Pending) -> Result<()> {
        let link = pending.link();
        let child = self.catalog.space(link.child);
        let is_it = |key: &ForeignKeyDef| (key.space, &key.pairs) == (link.def.space, &link.def.pairs);
        let is_in_force = child.is_some_and(|child| child.def().foreign_keys.iter().any(is_it));
        if is_in_force { self.look_at_pending(context, pending) } else { Ok(()) }
    }

    /// The transaction ends: what waited for that is looked at. May wait. Errors: a key is broken, and the transaction is rolled back; there is no fiber that
    /// could wait.
    pub(crate) fn settle_deferred_keys(&self, context: &Context) -> Result<()> {
        let pending: Vec<Pending> = match context.txn.borrow().as_ref() {
            Some(txn) if !txn.is_aborted() => {
                txn.deferred.iter().flat_map(|deferred| &deferred.pending).map(|(_, pending)| pending.clone()).collect()
            }
            _ => return Ok(()),
        };
        for pending in &pending {
            match self.look_if_in_force(context, pending) {
                Err(error) if error.is_needs_fiber() => return Err(error),
                Err(error) => {
                    self.abandon(context);
                    return Err(error);
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }
}
