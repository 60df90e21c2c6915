//! Connections by TLS whose handshake is not done: they are no clients yet, and nothing but these bounds is spent on them.
//!
//! Where a protocol has a request for TLS, the first bytes of a client are looked at here, too: no more of them than tell what they are, so that
//! nothing that came in clear is ever taken for what came by TLS. A server that speaks first greets in clear before.
//!
//! A handshake is given some seconds. Of more than there may be at once the oldest ends. In one turn of the loop handshakes together have a few
//! milliseconds: what a signature costs would otherwise hold everybody up while very many come.

use crate::door::Opening;
use crate::event_loop::EventLoop;
use crate::listeners::{Begun, Entrance};
use runtime::fiber;
use runtime::net::{Address, Stream, Token};
use runtime::tls::Session;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::rc::Rc;

/// Longest time from a connection to the end of its handshake.
const HANDSHAKE_NS_MAX: u64 = 10_000_000_000;
/// Handshakes that may be under way.
const HANDSHAKES_MAX: usize = 1000;
/// Time for handshakes in one turn; one that has begun a step finishes it.
const HANDSHAKES_NS_MAX: u64 = 2_000_000;
/// Interval between lines about handshakes that have failed.
const WARNING_NS: u64 = 1_000_000_000;

/// Bytes of a client that are looked at before it has TLS.
const OPENING_BYTES_MAX: usize = 64;
/// Requests of a client that are declined before it says something else.
const DECLINED_MAX: u32 = 2;
/// Bytes of a client that has begun without TLS that are read so that it gets the error.
const DRAINED_BYTES_MAX: usize = 16 << 10;

/// How far one is.
enum Stage {
    /// First bytes are waited for. With them, how many requests were declined.
    Opening(Vec<u8>, u32),
    Sealed(Box<Session>),
}

struct Handshake {
    stream: Stream,
    stage: Stage,
    /// What the door keeps with a client that it has greeted.
    state: Option<Box<dyn Any>>,
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
    /// Begins a handshake with who has connected, or to look what the client wants.
    pub(crate) fn begin_handshake(&mut self, mut stream: Stream, peer: Address, entrance: Rc<Entrance>) {
        if self.handshakes.len() >= HANDSHAKES_MAX
            && let Some((_, oldest)) = self.handshakes.open.pop_first()
        {
            self.end_handshake(oldest, &"there are too many at once");
        }
        let mut state = None;
        let stage = if entrance.door.asks_for_tls() {
            let mut greeting = Vec::new();
            state = Some(entrance.door.open(&self.service.database, &mut greeting));
            // A fresh socket takes a greeting at once.
            if (&stream).write_all(&greeting).is_err() {
                return;
            }
            Stage::Opening(Vec::new(), 0)
        } else {
            match entrance.acceptor.as_ref().map(Session::accept) {
                Some(Ok(session)) => Stage::Sealed(Box::new(session)),
                Some(Err(error)) => {
                    tracing::warn!("connection from {peer} is refused: {error}");
                    return;
                }
                None => return,
            }
        };
        let token = self.next_token;
        self.next_token += 1;
        if self.listeners.registry.register_stream(&mut stream, Token(token)).is_err() {
            return;
        }
        let deadline_ns = fiber::now_ns().saturating_add(HANDSHAKE_NS_MAX);
        let handshake = Handshake { stream, stage, state, peer, entrance, deadline_ns, is_ready: false };
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
            match handshake.go_on() {
                Ok(false) => {}
                Ok(true) => {
                    let Some(done) = self.handshakes.open.remove(&token) else { continue };
                    let Handshake { stream, stage, state, peer, entrance, .. } = done;
                    let (session, input) = match stage {
                        Stage::Sealed(session) => (Some(*session), Vec::new()),
                        Stage::Opening(first, _) => (None, first),
                    };
                    self.admit(token, stream, session, &peer, &entrance, Begun { is_watched: true, state, input });
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

impl Handshake {
    /// Goes on as far as the socket allows. True when there is a client: by TLS, or with what it has begun with in clear. Errors: why it ends.
    fn go_on(&mut self) -> io::Result<bool> {
        loop {
            let (first, declined) = match &mut self.stage {
                Stage::Sealed(session) => return session.shake_hands(SocketOf(&self.stream)),
                Stage::Opening(first, declined) => (first, declined),
            };
            let (answer, begins_with): (&[u8], &[u8]) = match self.entrance.door.look(first) {
                Opening::Unknown(wanted) => {
                    let mut bytes = [0; OPENING_BYTES_MAX];
                    let room = wanted.min(OPENING_BYTES_MAX).saturating_sub(first.len());
                    match (&self.stream).read(&mut bytes[..room]) {
                        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                        Ok(count) => first.extend_from_slice(&bytes[..count]),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                    continue;
                }
                Opening::Exempt => return Ok(true),
                Opening::Plain if self.entrance.takes_plain => return Ok(true),
                Opening::Plain => {
                    let mut refusal = Vec::new();
                    self.entrance.door.refuse_unsealed(&mut refusal);
                    // One that does not take it need not be told.
                    let _ = (&self.stream).write_all(&refusal);
                    // Unread bytes in a socket that is closed would drop the error on its way.
                    let mut rest = vec![0; DRAINED_BYTES_MAX];
                    let _ = (&self.stream).read(&mut rest);
                    let _ = self.stream.close_write();
                    return Err(io::Error::other("the client has begun without TLS, which this listener wants"));
                }
                Opening::Declined(answer) => {
                    *declined += 1;
                    if *declined > DECLINED_MAX {
                        return Err(io::Error::other("the client asks again and again for what is not there"));
                    }
                    first.clear();
                    (&self.stream).write_all(answer)?;
                    continue;
                }
                Opening::Tls(answer) => (answer, &[]),
                Opening::Hello => (&[], first),
            };
            let Some(acceptor) = &self.entrance.acceptor else {
                return Err(io::Error::other("the listener has no certificate"));
            };
            let session = Session::accept_begun(acceptor, begins_with)?;
            (&self.stream).write_all(answer)?;
            self.stage = Stage::Sealed(Box::new(session));
        }
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
