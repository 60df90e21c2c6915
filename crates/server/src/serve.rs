//! `lycosa serve`: the server process.

use crate::logging;
use crate::options::Options;
use database::{Database, Environment, GUEST, Privileges, UserKind};
use protocol::{EventLoop, NetConfig};
use runtime::signals::{HANG_UP, INTERRUPT, TERMINATE, handle_signals, raise_open_files_limit};
use runtime::{SystemClock, SystemFiles, SystemRandomness, net};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the process runs besides the database.
pub(crate) struct Process {
    pub(crate) database: Rc<Database>,
    pub(crate) event_loop: EventLoop,
}

impl Process {
    /// Makes database and event loop; nothing is read or listened to yet.
    pub(crate) fn new(options: &Options) -> Result<(Self, Arc<std::sync::atomic::AtomicBool>), String> {
        let log = logging::start(options.log_level.as_deref().unwrap_or("info"), options.log.as_deref())?;
        let (poll, waker) = EventLoop::poll().map_err(|error| error.to_string())?;
        let for_database = Arc::clone(&waker);
        let environment = Environment {
            files: Arc::new(SystemFiles),
            clock: Arc::new(SystemClock::default()),
            randomness: Arc::new(SystemRandomness),
            wake: Arc::new(move || {
                let _ = for_database.wake();
            }),
        };
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (flag, for_signals) = (Arc::clone(&stop), Arc::clone(&waker));
        handle_signals(&[TERMINATE, INTERRUPT, HANG_UP], move |signal| {
            if signal == HANG_UP {
                if let Some(log) = &log {
                    log.rotate();
                }
                return;
            }
            flag.store(true, Ordering::Release);
            let _ = for_signals.wake();
        })
        .map_err(|error| error.to_string())?;
        raise_open_files_limit();
        let database = Database::new(options.database()?, environment).map_err(|error| error.to_string())?;
        database.open().map_err(|error| error.to_string())?;
        let net = NetConfig {
            requests_max: options.net_msg_max.unwrap_or(NetConfig::default().requests_max),
            ..NetConfig::default()
        };
        let event_loop = EventLoop::new(poll, waker, Rc::clone(&database), net).map_err(|error| error.to_string())?;
        Ok((Process { database, event_loop }, stop))
    }

    /// Listens at an address. Errors: it is taken; it is open to the world and nobody needs a password.
    pub(crate) fn listen(&mut self, address: &str) -> Result<String, String> {
        let addresses = net::resolve(address).map_err(|error| format!("listen {address}: {error}"))?;
        let address = *addresses.first().ok_or_else(|| format!("listen {address}: no such address"))?;
        if !address.ip().is_loopback() && !has_password(&self.database) {
            return Err(format!(
                "refusing to listen at {address}: no user has a password, so anybody could try. Start at 127.0.0.1 and run\n  \
                 box.schema.user.create('me', {{password = 'a secret'}})\n  \
                 box.schema.user.grant('me', 'read,write,execute', 'universe')"
            ));
        }
        let local = self.event_loop.listen(address).map_err(|error| format!("listen {address}: {error}"))?;
        Ok(local.to_string())
    }
}

fn has_password(database: &Database) -> bool {
    database
        .catalog
        .users()
        .iter()
        .any(|user| user.kind == UserKind::User && user.id != GUEST && user.password_hash.is_some())
}

/// Runs a server until it is asked to stop.
pub(crate) fn serve(options: &Options) -> Result<(), String> {
    let (mut process, stop) = Process::new(options)?;
    let address = process.listen(options.listen.as_deref().unwrap_or("127.0.0.1:3301"))?;
    let rights = process.database.catalog.rights_of(GUEST);
    let guest = if rights.universe & Privileges::READ == 0 { "; guest may do nothing until granted" } else { "" };
    tracing::info!("ready: connect to {address} with any Tarantool connector{guest}");
    process.event_loop.run(|| stop.load(Ordering::Acquire)).map_err(|error| error.to_string())?;
    process.database.close().map_err(|error| error.to_string())?;
    tracing::info!("stopped");
    Ok(())
}
