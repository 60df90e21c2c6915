//! What a door keeps in the database: made by a script of the administrator, in the words in which anybody would make it.

use database::{Database, Error, Result};
use runtime::fiber;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use tuple::msgpack;

/// Runs a script with the rights of the administrator. It gets `arguments` as `...`. May wait; must be called in a fiber. Errors: those of the script;
/// the caller is in no fiber.
pub(crate) fn set_up(database: &Rc<Database>, source: &str, arguments: &[&str]) -> Result<()> {
    if fiber::current().is_none() {
        return Err(Error::illegal("the spaces of a door are made in a fiber"));
    }
    let mut encoded = Vec::new();
    msgpack::encode_array(&mut encoded, arguments.len() as u32);
    arguments.iter().for_each(|argument| msgpack::encode_str(&mut encoded, argument.as_bytes()));
    // In a fiber of its own: scripts act as whom their fiber belongs to.
    let outcome = Rc::new(RefCell::new(None));
    let (for_fiber, database, source) = (Rc::clone(&outcome), Rc::clone(database), source.to_string());
    let id = fiber::spawn("door", move || {
        let context = Rc::new(database.admin_context());
        fiber::set_local(Rc::clone(&context) as Rc<dyn Any>);
        *for_fiber.borrow_mut() = Some(database.eval(&context, &source, &encoded, &mut Vec::new()));
    });
    fiber::join(id);
    match outcome.take() {
        Some(outcome) => outcome.map(drop),
        None => Err(Error::system("the server is shutting down")),
    }
}
