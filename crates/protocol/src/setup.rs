//! What a door keeps in the database: made by a script of the administrator, in the words in which anybody would make it.

use database::{Database, Error, Result};
use runtime::fiber;
use std::rc::Rc;
use tuple::msgpack;

/// Runs a script with the rights of the administrator. It gets `arguments` as `...`. May wait; must be called in a fiber. Errors: those of the script;
/// the caller is in no fiber.
#[allow(dead_code, reason = "the doors that follow")]
pub(crate) fn set_up(database: &Rc<Database>, source: &str, arguments: &[&str]) -> Result<()> {
    if fiber::current().is_none() {
        return Err(Error::illegal("the spaces of a door are made in a fiber"));
    }
    let mut encoded = Vec::new();
    msgpack::encode_array(&mut encoded, arguments.len() as u32);
    arguments.iter().for_each(|argument| msgpack::encode_str(&mut encoded, argument.as_bytes()));
    let context = Rc::new(database.admin_context());
    database.eval(&context, source, &encoded, &mut Vec::new())?;
    Ok(())
}
