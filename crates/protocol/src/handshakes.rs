//! Connections by TLS whose handshake is not done: they are no clients yet, and nothing but these bounds is spent on them.
//!
//! A handshake is given some seconds. Of more than there may be at once the oldest ends. In one turn of the loop handshakes together have a few
//! milliseconds: what a signature costs would otherwise hold everybody up while very many come.

use crate::event_loop::EventLoop;
use crate::listeners::Entrance;
use runtime::fiber;
use runtime::net::{Address, Stream, Token};
use runtime::tls::Session;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;

/// Longest time from a connection to the end of its handshake.
const HANDSHAKE_NS_MAX: u64 = 10_000_000_000;
/// Handshakes that may be under way.
const HANDSHAKES_MAX: usize = 1000;
/// Time for handshakes in one turn; one that has begun a step finishes it.
const HANDSHAKES_NS_MAX: u64 = 2_000_000;
/// Interval between lines about handshakes that have failed.
const WARNING_NS: u64 = 1_000_000_000;

struct Handshake {
    stream: Stream,
    session: Session,
    peer: Address,
    entrance: Rc<Entrance>,
    deadline_ns: u64,
    is_ready: bool,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Handshakes {
    /// By their tokens, which grow: the first one is the oldest.
    open: BTreeMap<usize, Handshake>,
    /// Those whose sockets have changed.
    ready: VecDeque<usize>,
    /// When a failure was last logged, and those that were not since.
    warned_at_ns: Option<u64>,
    unlogged: u64,
}

impl Handshakes {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the oldest one is out of time.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.open.values().next().map(|handshake| handshake.deadline_ns)
    }

    /// Something happened at a socket that may be that of a handshake.
    pub(crate) fn note(&mut self, token: usize) {
        if let Some(handshake) = self.open.get_mut(&token)
            && !std::mem::replace(&mut handshake.is_ready, true)
        {
            self.ready.push_back(token);
        }
    }

    fn warn(&mut self, peer: &Address, why: &dyn std::fmt::Display) {
        let now = fiber::now_ns();
        if self.warned_at_ns.is_some_and(|warned| now.saturating_sub(warned) < WARNING_NS) {
            self.unlogged += 1;
            return;
        }
        let others = match std::mem::take(&mut self.unlogged) {
            0 => String::new(),
            count => format!("; {count} others since the last such line"),
        };
        self.warned_at_ns = Some(now);
        tracing::warn!("TLS handshake with {peer} has failed: {why}{others}");
    }
}

impl EventLoop {
    /// Begins a handshake with who has connected.
    pub(crate) fn begin_handshake(
        &mut self,
        mut stream: Stream,
        session: Session,
        peer: Address,
        entrance: Rc<Entrance>,
    ) {
        if self.handshakes.len() >= HANDSHAKES_MAX
            && let Some((_, oldest)) = self.handshakes.open.pop_first()
        {
            self.end_handshake(oldest, &"there are too many at once");
        }
        let token = self.next_token;
        self.next_token += 1;
        if self.listeners.registry.register_stream(&mut stream, Token(token)).is_err() {
            return;
        }
        let deadline_ns = fiber::now_ns().saturating_add(HANDSHAKE_NS_MAX);
        let handshake = Handshake { stream, session, peer, entrance, deadline_ns, is_ready: false };
        self.handshakes.open.insert(token, handshake);
        // What came before the socket was watched raises an event, too.
    }

    /// Goes on with handshakes, as far as their time in this turn allows.
    pub(crate) fn shake_hands(&mut self) {
        if self.handshakes.open.is_empty() {
            self.handshakes.ready.clear();
            return;
        }
        let began = fiber::now_ns();
        while let Some(entry) = self.handshakes.open.first_entry()
            && entry.get().deadline_ns <= began
        {
            let handshake = entry.remove();
            self.end_handshake(
                handshake,
                &format_args!("it was not done within {} s", HANDSHAKE_NS_MAX / 1_000_000_000),
            );
        }
        while let Some(token) = self.handshakes.ready.pop_front() {
            let Some(handshake) = self.handshakes.open.get_mut(&token) else { continue };
            handshake.is_ready = false;
            match handshake.session.shake_hands(SocketOf(&handshake.stream)) {
                Ok(false) => {}
                Ok(true) => {
                    if let Some(Handshake { stream, session, peer, entrance, .. }) = self.handshakes.open.remove(&token)
                    {
                        self.admit(token, stream, Some(session), &peer, &entrance);
                    }
                }
                Err(error) => {
                    if let Some(handshake) = self.handshakes.open.remove(&token) {
                        // Whoever looks whether somebody listens goes away at once.
                        let is_silent = error.kind() == io::ErrorKind::UnexpectedEof;
                        let why = if is_silent {
                            "the client has closed the connection".to_string()
                        } else {
                            error.to_string()
                        };
                        self.end_handshake(handshake, &why);
                    }
                }
            }
            if fiber::now_ns().saturating_sub(began) >= HANDSHAKES_NS_MAX {
                return;
            }
        }
    }

    fn end_handshake(&mut self, handshake: Handshake, why: &dyn std::fmt::Display) {
        self.handshakes.warn(&handshake.peer, why);
        // It is closed anyway when it is dropped.
        let _ = handshake.stream.close();
    }

    /// Gives up what is under way: the loop ends.
    pub(crate) fn drop_handshakes(&mut self) {
        self.handshakes.open.clear();
        self.handshakes.ready.clear();
    }
}

/// Both directions of a socket.
pub(crate) struct SocketOf<'a>(pub(crate) &'a Stream);

impl io::Read for SocketOf<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.0;
        stream.read(out)
    }
}

impl io::Write for SocketOf<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream = self.0;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
