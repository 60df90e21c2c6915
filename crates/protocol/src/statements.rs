//! What the doors of SQL do alike.

use crate::connection::Connection;
use runtime::fiber;
use sql::Sql;
use std::rc::Rc;

/// What statements keep for the session is gone.
pub(crate) fn close_session(connection: &Rc<Connection>) {
    let sql = Sql::of(connection.database());
    sql.close_session(connection.session().id);
    if sql.has_left_tables() {
        let connection = Rc::clone(connection);
        // Without a fiber for it the end of the next session tries again.
        let _ = fiber::try_spawn("temporary tables", move || sql.drop_left_tables(connection.database()));
    }
}
