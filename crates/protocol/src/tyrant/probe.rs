//! Requests without a connection: for those who feed the door with bytes of their own.

use super::records::{Kind, Work};
use super::{Base, Found, Iteration, Request, serve, split};
use database::{Context, Database};
use std::cell::RefCell;
use std::rc::Rc;

/// Does what the requests of some bytes ask for, as far as it is about one record each, on a space of keys and values. Returns the answers.
///
/// # Panics
///
/// If what is a request is none when it is looked at alone.
pub fn serve_bytes(database: &Rc<Database>, context: &Context, space: &str, input: &[u8]) -> Vec<u8> {
    let (bound, iteration) = (RefCell::default(), Iteration::default());
    let base = Base { space: space.to_string(), kind: Kind::Hash, remote_user: None, bound, iteration };
    let (mut out, mut rest) = (Vec::new(), input);
    while !rest.is_empty() {
        let (request, length) = match split(rest) {
            Found::Part(_) => break,
            Found::Whole(request, length) | Found::Last(request, length) => (request, length),
        };
        assert!(length > 0 && length <= rest.len(), "a request is somewhere");
        if matches!(request, Request::Leave(_)) {
            break;
        }
        if !serve::is_oversized(&request) {
            // It is the same, whatever is behind it, and its parts are not whole.
            let alone = split(&rest[..length]);
            assert!(matches!(alone, Found::Whole(_, again) | Found::Last(_, again) if again == length));
        }
        if let (true, Ok(bound)) = (serve::is_short(&request), base.bound(database)) {
            let work = Work { database, context, bound: &bound, kind: base.kind, is_in_fiber: false };
            let start = out.len();
            if serve::run(&base, &work, &request, &mut out).is_err() {
                out.truncate(start);
            }
        }
        rest = &rest[length..];
    }
    out
}
