//! Requests without a connection: for those who feed the door with bytes of their own.

use super::binary::REQUEST_MAGIC;
use super::layout::Names;
use super::store::Work;
use super::text::{Found, Request};
use super::{Cache, ITEM_BYTES, serve, text};
use database::{Context, Database};
use std::cell::Cell;
use std::rc::Rc;

/// Does what the requests of some bytes ask for, as far as it needs no connection, on a space with the fields `key` and `value`. Returns the answers.
///
/// # Panics
///
/// If what is a request is none when it is looked at alone.
pub fn serve_bytes(
    database: &Rc<Database>,
    context: &Context,
    space: &str,
    input: &[u8],
    must_log_in: bool,
) -> Vec<u8> {
    let names = Names { key: "key".to_string(), value: "value".to_string(), ..Names::default() };
    let cache = Cache::new(space.to_string(), names, must_log_in, ITEM_BYTES);
    let is_binary = input.first() == Some(&REQUEST_MAGIC);
    let must_log_in = Cell::new(must_log_in);
    let split = |bytes| match (is_binary, must_log_in.get()) {
        (true, _) => super::binary::split(bytes, ITEM_BYTES),
        (false, true) => text::split_login(bytes),
        (false, false) => text::split(bytes, ITEM_BYTES),
    };
    let (mut out, mut rest) = (Vec::new(), input);
    while !rest.is_empty() {
        let (request, length) = match split(rest) {
            Found::Part(_) => break,
            Found::Whole(request, length) | Found::Last(request, length) => (request, length),
        };
        assert!(length > 0 && length <= rest.len(), "a request is somewhere");
        if !matches!(request, Request::Oversized { .. } | Request::Leave(_)) {
            // It is the same, whatever is behind it, and its parts are not whole.
            assert!(
                matches!(split(&rest[..length]), Found::Whole(_, again) | Found::Last(_, again) if again == length)
            );
        }
        if matches!(request, Request::Leave(_) | Request::Quit) {
            break;
        }
        if let Request::Login(login) = &request {
            // Whoever could be somebody is let in: what follows is cut in another way.
            if serve::read_login(&[b"t", *login].concat()).is_some() {
                must_log_in.set(false);
            }
        } else if let Ok(bound) = cache.bound(database) {
            let work = Work { door: &cache, database, context, bound: &bound, is_in_fiber: false };
            let start = out.len();
            if serve::run(&work, &request, &mut out).is_err() {
                out.truncate(start);
            }
        }
        rest = &rest[length..];
    }
    out
}
