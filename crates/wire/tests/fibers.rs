//! The client in fibers, over sockets of the reactor: what would block lets others run. On real sockets and on simulated ones.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::net::{Address, Event, Listener, Poll, SocketAddr, Stream, Token, Waker};
use runtime::reactor::{self, Readiness, Socket};
use runtime::{Clock, MachineConfig, Notifier, Simulation, SystemClock, fiber};
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::{Client, ClientError, Header, Packet, begin_answer, end_packet, key, next_packet, request_type};

const MS: u64 = 1_000_000;
/// A test that takes longer has failed.
const TEST_NS_MAX: u64 = 20_000 * MS;

/// A poll with fibers, and a server in the same thread. It echoes the body of calls, and keeps silent about pings.
struct Rig {
    poll: Poll,
    clock: Arc<dyn Clock>,
    listener: Listener,
    peers: Vec<Peer>,
    address: Address,
}

/// The server's end of a connection.
struct Peer {
    stream: Stream,
    input: Vec<u8>,
    output: Vec<u8>,
}

thread_local! {
    /// Fibers that were made and those that came to their end: a panic stays in its fiber.
    static FIBERS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

fn spawn(name: &str, work: impl FnOnce() + 'static) -> fiber::FiberId {
    FIBERS.set((FIBERS.get().0 + 1, FIBERS.get().1));
    fiber::spawn(name, move || {
        work();
        FIBERS.set((FIBERS.get().0, FIBERS.get().1 + 1));
    })
}

impl Rig {
    fn new(clock: Arc<dyn Clock>, address: &Address) -> Self {
        let poll = Poll::new().unwrap();
        let registry = poll.registry().unwrap();
        let waker = Arc::new(Waker::new(&registry, Token(0)).unwrap());
        let mut listener = Listener::bind(address).unwrap();
        registry.register_listener(&mut listener, Token(1)).unwrap();
        let address = listener.local_address().unwrap();
        reactor::install(poll.registry().unwrap(), waker);
        let for_fibers = Arc::clone(&clock);
        fiber::set_clock(Rc::new(move || for_fibers.monotonic_ns()));
        Rig { poll, clock, listener, peers: Vec::new(), address }
    }

    /// Runs until the fibers that were made have ended.
    fn run(mut self) {
        let until = self.clock.monotonic_ns() + TEST_NS_MAX;
        let mut events: Vec<Event> = Vec::new();
        while !fiber::list().is_empty() {
            assert!(self.clock.monotonic_ns() < until, "fibers wait for ever: {:?}", fiber::list());
            while fiber::run_ready(100) {}
            let wait_ns = fiber::next_deadline().map_or(10 * MS, |due| due.saturating_sub(self.clock.monotonic_ns()));
            self.poll.poll(Duration::from_nanos(wait_ns.min(10 * MS)), &mut events).unwrap();
            for event in events.drain(..) {
                match event.token {
                    Token(0) => reactor::note_wake(),
                    Token(token) if token >= reactor::FIRST_TOKEN => reactor::note(&event),
                    Token(_) => {}
                }
            }
            self.serve();
        }
        reactor::uninstall();
        let (made, ended) = FIBERS.take();
        assert_eq!(made, ended, "a fiber panicked");
    }

    fn serve(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let output = wire::greeting("uuid", &[7; 32]).to_vec();
            self.peers.push(Peer { stream, input: Vec::new(), output });
        }
        for Peer { stream, input, output } in &mut self.peers {
            let mut buffer = [0; 64];
            while let Ok(count) = (&*stream).read(&mut buffer)
                && count > 0
            {
                input.extend_from_slice(&buffer[..count]);
            }
            while let Ok(Packet::Complete(packet, length)) = next_packet(input) {
                let (header, body) = Header::decode(packet).unwrap();
                if header.request_type != request_type::PING {
                    let start = begin_answer(output, 0, header.sync, 1);
                    output.extend_from_slice(&[0x81, key::DATA as u8, 0x91]);
                    output.extend_from_slice(body);
                    end_packet(output, start);
                }
                input.drain(..length);
            }
            // What a client does not take any more goes nowhere.
            while let Ok(count) = (&*stream).write(output)
                && count > 0
            {
                output.drain(..count);
            }
        }
    }
}

/// Runs a test on the real machine over TCP and a unix socket, and on simulated ones.
fn everywhere(test: impl Fn(&Rig)) {
    let any = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
    let dir = tempfile::tempdir().unwrap();
    for address in [any.clone(), Address::Unix(dir.path().join("a.sock"))] {
        let rig = Rig::new(Arc::new(SystemClock::default()), &address);
        test(&rig);
        rig.run();
    }
    for seed in 0..8 {
        let simulation = Simulation::new(seed, MachineConfig::default());
        simulation.enter(|| {
            let rig = Rig::new(simulation.clock(Arc::default()), &any);
            test(&rig);
            rig.run();
            fiber::abandon();
        });
    }
}

fn client(address: &Address) -> Client<Socket> {
    let socket = Socket::connect(address, 5_000 * MS).unwrap();
    socket.set_timeout_ns(Some(5_000 * MS));
    Client::greet(socket).unwrap()
}

#[test]
fn two_fibers_ask_one_server_at_the_same_time() {
    everywhere(|rig| {
        let log = Rc::new(RefCell::new(Vec::new()));
        let done = Rc::new(Cell::new(0));
        for name in [1u8, 2] {
            let (address, log, done) = (rig.address.clone(), Rc::clone(&log), Rc::clone(&done));
            spawn("client", move || {
                let mut client = client(&address);
                client.log_in("alice", "secret").unwrap();
                for round in 0..20 {
                    log.borrow_mut().push(name);
                    let data = client.call("f", |out| out.extend_from_slice(&[0x92, name, round])).unwrap();
                    assert!(data.ends_with(&[0x92, name, round]));
                }
                done.set(done.get() + 1);
                if done.get() == 2 {
                    let log = log.borrow();
                    let turns = log.windows(2).filter(|pair| pair[0] != pair[1]).count();
                    assert!(turns > 5, "they took turns: {log:?}");
                }
            });
        }
    });
}

#[test]
fn large_requests_wait_for_room() {
    everywhere(|rig| {
        let address = rig.address.clone();
        spawn("client", move || {
            let mut client = client(&address);
            let large = vec![b'x'; 200_000];
            let answer = client.exchange(99, |out| tuple::msgpack::encode_str(out, &large)).unwrap();
            assert!(answer.body.len() > large.len());
        });
    });
}

#[test]
fn a_wait_ends_by_its_time_and_by_a_cancellation() {
    everywhere(|rig| {
        let address = rig.address.clone();
        spawn("late", move || {
            let mut client = client(&address);
            client.stream().set_timeout_ns(Some(20 * MS));
            let begun = fiber::now_ns();
            let late = client.ping().unwrap_err();
            assert!(matches!(late, ClientError::Broken(error) if error.kind() == ErrorKind::TimedOut));
            assert!(fiber::now_ns() - begun >= 20 * MS);
        });
        let address = rig.address.clone();
        let waiter = spawn("cancelled", move || {
            let mut client = client(&address);
            client.stream().set_timeout_ns(None);
            let given_up = client.ping().unwrap_err();
            assert!(given_up.to_string().contains("cancelled"), "{given_up}");
        });
        spawn("canceller", move || {
            fiber::sleep(50 * MS);
            fiber::cancel(waiter);
        });
    });
}

#[test]
fn nobody_to_connect_to_is_an_error_and_so_is_a_wait_outside_of_fibers() {
    everywhere(|rig| {
        let nobody = Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap().local_address().unwrap();
        spawn("lonely", move || {
            let error = Socket::connect(&nobody, 1_000 * MS).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        });
        assert!(Socket::connect(&rig.address, MS).is_err());
        assert!(reactor::resolve("localhost:1", None).is_err());
    });
}

#[test]
fn names_are_resolved_while_others_run() {
    everywhere(|_| {
        for _ in 0..40 {
            spawn("named", || {
                let found = reactor::resolve("localhost:3301", None).unwrap();
                assert!(found.iter().all(|address| address.is_local() && address.port() == Some(3301)), "{found:?}");
                assert!(reactor::resolve("127.0.0.1:5", None).is_ok() && reactor::resolve("unix/:/a", None).is_ok());
                assert!(reactor::resolve("no port at all", None).is_err());
            });
        }
        let waiter = spawn("cancelled", || {
            // Cancelled before it has waited: nothing of its thread comes back.
            assert!(reactor::resolve("localhost:3301", None).is_err());
        });
        fiber::cancel(waiter);
    });
}

#[test]
fn a_notifier_and_a_descriptor_are_waited_for() {
    everywhere(|_| {
        let notifier = Rc::new(Notifier::new().unwrap());
        let waited = Rc::clone(&notifier);
        spawn("waiter", move || {
            let late = reactor::wait_notified(&waited, Some(fiber::now_ns() + 5 * MS)).unwrap_err();
            assert_eq!(late.kind(), ErrorKind::TimedOut);
            reactor::wait_notified(&waited, None).unwrap();
            if let Some(fd) = waited.raw_fd() {
                let wanted = Readiness { is_readable: false, is_writable: true };
                reactor::wait_descriptor(fd, wanted, None).unwrap();
            }
        });
        spawn("notifier", move || {
            fiber::sleep(20 * MS);
            notifier.notify();
        });
    });
}
