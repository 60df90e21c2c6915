//! The loop: one thread, all connections of all flows.
//!
//! One thread serves everything, because the client shares few cores with the server and every switch between threads is taken from what is
//! measured. Whatever arrived is read at once. In a closed loop requests leave in batches of at least a quarter of the window, which costs a
//! request no more than it would wait behind the others anyway.
//!
//! In an open loop request i is due at `i / rate`, and that moment is what its latency counts from, whether or not the server was able to take
//! it then. Otherwise a server that stands still would be asked nothing meanwhile, and its pause would count as one slow request (the error is
//! known as coordinated omission). The kernel's wait is in whole milliseconds; the last one before a request is due is spent looking.

use crate::client::{Client, Link};
use crate::door::{Door, Expect};
use crate::keys::Keys;
use crate::lane::{Input, Lane};
use crate::outcome::{FlowOutcome, Latencies, Second, histogram};
use crate::random::Random;
use crate::template::Share;
use crate::window::Slot;
use hdrhistogram::Histogram;
use runtime::net::{Poll, Stream, Token};
use runtime::tls::{Connector, Session};
use runtime::{Clock, SystemClock, yield_thread};
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wire::ClientError;

/// Longest time without any answer although some are due.
const SILENCE_NS_MAX: u64 = 60 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
/// What falls due within such a time is sent together: system calls for single requests would take the processors from the server. Latency counts
/// from when each was due.
const TOGETHER_NS: u64 = 250_000;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As soon as there is room for them.
    Closed {
        /// Requests in flight on each connection.
        depth: u32,
    },
    /// So many a second in all, evenly; those of a quarter of a millisecond together.
    Open {
        /// Requests a second.
        rate: f64,
        /// Requests in flight on each connection, at most; what is due beyond it waits, and its latency counts.
        depth_max: u32,
    },
}

/// When a flow ends. With neither it ends when all those that have an end of their own have ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct End {
    /// After so many requests.
    pub requests: Option<u64>,
    /// After this time; answers to what was sent are waited for.
    pub time: Option<Duration>,
}

/// Requests of one kind or mix, over connections of their own.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The protocol.
    pub door: Door,
    /// Address and port of the server.
    pub address: String,
    /// User and password, where the protocol knows them; nobody logs in if `None`.
    pub login: Option<(String, String)>,
    /// Connections.
    pub connections: usize,
    /// When requests are sent.
    pub pace: Pace,
    /// What is asked; one kind, or several with their weights.
    pub shares: Vec<Share>,
    /// Of which keys.
    pub keys: Keys,
    /// How long.
    pub end: End,
    /// A broken connection ends the flow without an error; what was in flight counts as lost.
    pub may_break: bool,
}

/// Called with each second of each flow, and the flow's number.
pub type OnSecond<'a> = &'a mut dyn FnMut(usize, &Second);

/// Optional parts of a run; none by default.
#[derive(Default)]
pub struct Drive<'a> {
    /// Connections are by TLS.
    pub connector: Option<Connector>,
    /// Ends all flows as soon as it is set.
    pub stop: Option<&'a AtomicBool>,
    /// Answers of all flows so far, for whoever watches.
    pub done: Option<&'a AtomicU64>,
    /// Called after each second.
    pub on_second: Option<OnSecond<'a>>,
}

/// A flow that is under way.
struct Running {
    pace: Pace,
    shares: Vec<Share>,
    expects: Vec<Expect>,
    weights: u32,
    /// Chooses among the shares.
    dice: Random,
    keys: Keys,
    end: End,
    may_break: bool,
    lanes: Vec<Lane>,
    /// Where an open loop tries next.
    next_lane: usize,
    /// When an open loop sent something last.
    sent_ns: u64,
    sent: u64,
    answered: u64,
    /// No more requests.
    is_over: bool,
    lost: u64,
    last_answer_ns: u64,
    /// Of this second, and of all before.
    latencies: Histogram<u64>,
    total: Histogram<u64>,
    /// `sent` and `answered` at the last full second.
    marks: (u64, u64),
    series: Vec<Second>,
}

impl Running {
    fn new(flow: &Flow, streams: Vec<(Stream, Option<Session>)>) -> Self {
        assert!(!flow.shares.is_empty(), "a flow asks something");
        let depth = match flow.pace {
            Pace::Closed { depth } => depth,
            Pace::Open { depth_max, .. } => depth_max,
        };
        Running {
            pace: flow.pace,
            shares: flow.shares.clone(),
            expects: flow.shares.iter().map(|share| share.template.expect).collect(),
            weights: flow.shares.iter().map(|share| share.weight).sum(),
            dice: Random::new(1),
            keys: flow.keys.clone(),
            end: flow.end,
            may_break: flow.may_break,
            lanes: streams.into_iter().map(|stream| Lane::new(stream, flow.door, depth)).collect(),
            next_lane: 0,
            sent_ns: 0,
            sent: 0,
            answered: 0,
            is_over: false,
            lost: 0,
            last_answer_ns: 0,
            latencies: histogram(),
            total: histogram(),
            marks: (0, 0),
            series: Vec::new(),
        }
    }

    fn in_flight(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.window.in_flight() as u64).sum()
    }

    fn is_done(&self) -> bool {
        self.is_over && self.lanes.iter().all(|lane| lane.window.in_flight() == 0)
    }

    /// Requests that may still be sent.
    fn left(&self) -> u64 {
        if self.is_over { 0 } else { self.end.requests.map_or(u64::MAX, |requests| requests - self.sent) }
    }

    fn choose(&mut self) -> u32 {
        if self.shares.len() == 1 {
            return 0;
        }
        let mut dice = self.dice.below(u64::from(self.weights)) as u32;
        let chosen = self.shares.iter().position(|share| match dice.checked_sub(share.weight) {
            None => true,
            Some(left) => {
                dice = left;
                false
            }
        });
        chosen.expect("the dice is below the sum of the weights") as u32
    }

    /// Makes a request on a lane. False: its window is full.
    #[inline]
    fn put(&mut self, lane: usize, begun_ns: u64) -> bool {
        if self.lanes[lane].window.in_flight() == self.lanes[lane].window.depth() {
            return false;
        }
        let share = self.choose();
        let key = self.keys.draw();
        let lane = &mut self.lanes[lane];
        let Some(slot) = lane.window.begin(Slot { begun_ns, key, share }) else { return false };
        self.shares[share as usize].template.put(&mut lane.out, slot, key);
        self.sent += 1;
        if self.end.requests == Some(self.sent) {
            self.is_over = true;
        }
        true
    }

    /// Closed loop: fills the window of a lane if enough of it is free, and sends.
    fn refill(&mut self, at: usize, now_ns: u64) -> io::Result<()> {
        let window = &self.lanes[at].window;
        let free = window.depth() - window.in_flight();
        if matches!(self.pace, Pace::Closed { .. }) && free * 4 >= window.depth() && self.lanes[at].is_sent() {
            while self.left() > 0 && self.put(at, now_ns) {}
        }
        self.lanes[at].send()
    }

    /// Open loop: sends what is due, as far as windows have room. Returns when the next request is due.
    fn send_due(&mut self, begun_ns: u64, now_ns: u64) -> io::Result<Option<u64>> {
        let Pace::Open { rate, .. } = self.pace else { return Ok(None) };
        let due_ns = |number: u64| begun_ns + (number as f64 * 1e9 / rate) as u64;
        let may_send_ns = self.sent_ns + TOGETHER_NS;
        if now_ns < may_send_ns {
            return Ok((self.left() > 0).then(|| due_ns(self.sent).max(may_send_ns)));
        }
        let lanes = self.lanes.len();
        while self.left() > 0 && due_ns(self.sent) <= now_ns {
            let first = self.next_lane;
            let due_ns = due_ns(self.sent);
            let Some(lane) = (0..lanes).map(|step| (first + step) % lanes).find(|lane| self.put(*lane, due_ns)) else {
                break;
            };
            self.next_lane = (lane + 1) % lanes;
            self.sent_ns = now_ns;
        }
        for lane in self.lanes.iter_mut().filter(|lane| !lane.is_sent()) {
            lane.send()?;
        }
        Ok((self.left() > 0).then(|| due_ns(self.sent).max(self.sent_ns + TOGETHER_NS)))
    }

    /// Requests that should have been sent and could not be.
    fn overdue(&self, elapsed_ns: u64) -> u64 {
        match self.pace {
            Pace::Open { rate, .. } if !self.is_over => {
                ((elapsed_ns as f64 * rate / 1e9) as u64 + 1).saturating_sub(self.sent)
            }
            _ => 0,
        }
    }

    /// Closes a second, or the last part of one.
    fn close_second(&mut self, at: u32, elapsed_ns: u64) -> Second {
        let second = Second {
            at,
            requests: self.sent - self.marks.0,
            responses: self.answered - self.marks.1,
            pending: self.in_flight() + self.overdue(elapsed_ns),
            latencies: Latencies::of(&self.latencies),
        };
        self.marks = (self.sent, self.answered);
        self.total.add(&self.latencies).expect("both histograms have the same bounds");
        self.latencies.reset();
        self.series.push(second);
        second
    }

    /// What a broken connection means for the flow.
    fn broken(&mut self, error: ClientError) -> Result<(), ClientError> {
        if !self.may_break || !matches!(error, ClientError::Broken(_)) {
            return Err(error);
        }
        self.is_over = true;
        self.lost += self.in_flight();
        self.lanes.clear();
        Ok(())
    }
}

/// Connects as the protocol wants it; the stream is past any greeting.
fn connect(flow: &Flow, connector: Option<&Connector>) -> Result<(Stream, Option<Session>), ClientError> {
    let link = if flow.door.has_greeting() {
        let login = flow.login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
        Client::connect_by(&flow.address, connector, login)?.into_link()
    } else {
        Link::dial(&flow.address, connector)?
    };
    Ok(link.into_nonblocking()?)
}

/// Sends all requests of all flows and waits for all answers. What came of each flow, in their order.
///
/// Errors: a connection that breaks, an answer that is wrong, a minute of silence.
pub fn drive(flows: &[Flow], extras: Drive<'_>) -> Result<Vec<FlowOutcome>, ClientError> {
    let running = flows.iter().map(|flow| {
        let streams =
            (0..flow.connections).map(|_| connect(flow, extras.connector.as_ref())).collect::<Result<Vec<_>, _>>()?;
        Ok(Running::new(flow, streams))
    });
    run(running.collect::<Result<_, ClientError>>()?, &SystemClock::default(), extras)
}

fn run(mut flows: Vec<Running>, clock: &dyn Clock, mut extras: Drive<'_>) -> Result<Vec<FlowOutcome>, ClientError> {
    assert!(
        extras.stop.is_some() || flows.iter().any(|flow| flow.end.requests.is_some() || flow.end.time.is_some()),
        "something ends the run"
    );
    let mut poll = Poll::new()?;
    let registry = poll.registry()?;
    // The flow and lane of each token.
    let mut places = Vec::new();
    for (at, flow) in flows.iter_mut().enumerate() {
        for (lane_at, lane) in flow.lanes.iter_mut().enumerate() {
            registry.register_stream(lane.stream(), Token(places.len()))?;
            places.push((at, lane_at));
        }
    }
    let mut input = Input::new();
    let mut events = Vec::new();
    let begun_ns = clock.monotonic_ns();
    let (mut heard_ns, mut seconds) = (begun_ns, 0);
    for flow in &mut flows {
        for lane in 0..flow.lanes.len() {
            let result = flow.refill(lane, begun_ns);
            result.or_else(|error| flow.broken(error.into()))?;
        }
    }
    loop {
        let now_ns = clock.monotonic_ns();
        let mut next_ns = begun_ns + u64::from(seconds + 1) * SECOND_NS;
        let is_stopped = extras.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let has_end = |flow: &Running| flow.end.requests.is_some() || flow.end.time.is_some();
        let are_others_over = flows.iter().any(has_end) && flows.iter().all(|flow| !has_end(flow) || flow.is_done());
        for flow in &mut flows {
            if let Some(time) = flow.end.time {
                let end_ns = begun_ns + time.as_nanos() as u64;
                flow.is_over |= now_ns >= end_ns;
                next_ns = next_ns.min(end_ns.max(now_ns));
            }
            flow.is_over |= is_stopped || are_others_over && !has_end(flow);
            match flow.send_due(begun_ns, now_ns) {
                Ok(due_ns) => next_ns = next_ns.min(due_ns.unwrap_or(u64::MAX).max(now_ns)),
                Err(error) => flow.broken(error.into())?,
            }
        }
        if now_ns >= begun_ns + u64::from(seconds + 1) * SECOND_NS {
            for (at, flow) in flows.iter_mut().enumerate() {
                let second = flow.close_second(seconds, now_ns - begun_ns);
                if let Some(on_second) = &mut extras.on_second {
                    on_second(at, &second);
                }
            }
            seconds += 1;
            continue;
        }
        if flows.iter().all(Running::is_done) {
            break;
        }
        // Whole milliseconds: the rest of the time is spent looking. A flow with an end by time alone is late by one at most.
        let wait_ns = (next_ns - now_ns) / MILLISECOND_NS * MILLISECOND_NS;
        if wait_ns == 0 {
            yield_thread();
        }
        events.clear();
        poll.poll(Duration::from_nanos(wait_ns), &mut events)?;
        let mut answers = 0;
        for event in &events {
            let (at, lane) = places[event.token.0];
            let flow = &mut flows[at];
            if lane >= flow.lanes.len() {
                continue;
            }
            let mut result = Ok(0);
            if event.is_readable || event.is_read_closed {
                let now_ns = || clock.monotonic_ns();
                result = flow.lanes[lane].read(&mut input, &flow.expects, now_ns, &mut flow.latencies);
            }
            match result {
                Ok(0) => {}
                Ok(count) => {
                    answers += count;
                    flow.answered += count;
                    flow.last_answer_ns = clock.monotonic_ns();
                }
                Err(error) => {
                    flow.answered = flow.lanes.iter().map(|lane| lane.answered).sum();
                    flow.broken(error)?;
                    continue;
                }
            }
            let now_ns = if answers > 0 { flow.last_answer_ns } else { clock.monotonic_ns() };
            flow.refill(lane, now_ns).or_else(|error| flow.broken(error.into()))?;
        }
        let in_flight = || flows.iter().map(Running::in_flight).sum::<u64>();
        if answers > 0 || in_flight() == 0 {
            heard_ns = clock.monotonic_ns();
            if let Some(done) = extras.done {
                done.fetch_add(answers, Ordering::Relaxed);
            }
        } else if clock.monotonic_ns() - heard_ns >= SILENCE_NS_MAX {
            let text = format!("no answer for {} s, {} requests in flight", SILENCE_NS_MAX / SECOND_NS, in_flight());
            return Err(io::Error::new(ErrorKind::TimedOut, text).into());
        }
    }
    Ok(flows.into_iter().map(|flow| finish(flow, seconds, begun_ns)).collect())
}

fn finish(mut flow: Running, seconds: u32, begun_ns: u64) -> FlowOutcome {
    let elapsed_ns = flow.last_answer_ns.saturating_sub(begun_ns);
    let of_connections = flow.lanes.iter().map(|lane| lane.answered).collect();
    if flow.sent > flow.marks.0 || flow.answered > flow.marks.1 {
        flow.close_second(seconds, elapsed_ns);
    }
    FlowOutcome {
        responses: flow.answered,
        seconds: (elapsed_ns as f64 / 1e9).max(1e-9),
        latencies: flow.total,
        series: flow.series,
        of_connections,
        lost: flow.lost,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::template::{Row, Template};
    use runtime::net::{Listener, SimulatedStream};
    use runtime::{MachineConfig, Simulation};
    use std::io::{Read, Write};
    use std::net::SocketAddr;
    use std::rc::Rc;
    use std::sync::Arc;

    const ADDRESS: &str = "127.0.0.1:6379";

    /// A flow of `GET`s.
    fn flow(pace: Pace, end: End) -> Flow {
        Flow {
            door: Door::Resp,
            address: ADDRESS.to_string(),
            login: None,
            connections: 1,
            pace,
            shares: vec![Share { weight: 1, template: Template::get(Door::Resp) }],
            keys: Keys::Sequential { next: 0, count: u32::MAX },
            end,
            may_break: false,
        }
    }

    /// What the server does with the n-th request.
    type Mood = fn(u64) -> Reaction;

    enum Reaction {
        Answer,
        /// Stands still for so long, then answers.
        Pause(u64),
        /// Answers with another key's value.
        Lie,
        Close,
    }

    /// A server for one connection: one request after the other, by its mood.
    fn serve(listener: &Listener, mood: Mood) -> io::Result<()> {
        let stream = loop {
            match listener.accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => yield_thread(),
                other => break other?.0,
            }
        };
        let length = Template::get(Door::Resp).len();
        let (mut input, mut count) = (Vec::new(), 0);
        loop {
            let mut bytes = [0; 4096];
            match (&stream).read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(got) => input.extend_from_slice(&bytes[..got]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => yield_thread(),
                Err(error) => return Err(error),
            }
            while input.len() >= length {
                let mut key: Vec<u8> = input[length - 13..length - 2].to_vec();
                match mood(count) {
                    Reaction::Answer => {}
                    Reaction::Pause(ns) => runtime::pause(ns),
                    Reaction::Lie => key[10] ^= 1,
                    Reaction::Close => return stream.close(),
                }
                count += 1;
                let answer = [b"$11\r\n".as_slice(), &key, b"\r\n"].concat();
                (&stream).write_all(&answer)?;
                input.drain(..length);
            }
        }
    }

    /// Drives flows against a server on a simulated machine. The connection takes no time.
    fn simulated(flow: Flow, mood: Mood) -> Result<FlowOutcome, ClientError> {
        let config = MachineConfig { net_delay_ns: (1_000, 1_000), ..MachineConfig::default() };
        let simulation = Simulation::new(1, config);
        simulation.enter(|| {
            let address: SocketAddr = ADDRESS.parse().unwrap();
            let listener = Listener::bind(&address.into())?;
            Rc::clone(&simulation).spawn_thread("server", move || {
                // A connection that the client closed is the end of the test.
                let _ = serve(&listener, mood);
            });
            let stream = Stream::Simulated(SimulatedStream::connect(address)?);
            let clock = simulation.clock(Arc::default());
            let running = vec![Running::new(&flow, vec![(stream, None)])];
            run(running, &*clock, Drive::default()).map(|mut outcomes| outcomes.remove(0))
        })
    }

    #[test]
    fn a_closed_loop_asks_as_often_as_it_should_and_checks_all() {
        let end = End { requests: Some(1000), time: None };
        let outcome = simulated(flow(Pace::Closed { depth: 16 }, end), |_| Reaction::Answer).unwrap();
        assert_eq!((outcome.responses, outcome.latencies.len(), outcome.of_connections), (1000, 1000, vec![1000]));
        assert_eq!(outcome.series.iter().map(|second| second.responses).sum::<u64>(), 1000);
    }

    #[test]
    fn an_open_loop_keeps_its_rate_and_counts_from_when_requests_were_due() {
        // 1,000 a second for three seconds. The 500th is answered after a second: what is due meanwhile waits too.
        let pace = Pace::Open { rate: 1000.0, depth_max: 10 };
        let end = End { requests: None, time: Some(Duration::from_secs(3)) };
        let mood = |count| if count == 500 { Reaction::Pause(SECOND_NS) } else { Reaction::Answer };
        let outcome = simulated(flow(pace, end), mood).unwrap();
        assert!((2990..=3001).contains(&outcome.responses), "{}", outcome.responses);
        let slow = outcome.latencies.count_between(500_000, 2_000_000);
        assert!((450..=550).contains(&slow), "half of a second's requests waited for half of it: {slow}");
        assert!(outcome.latencies.max() >= 995_000);
        assert!(outcome.latencies.value_at_quantile(0.5) < 20_000);
        assert!(outcome.series[0].pending > 400, "{}", outcome.series[0]);
    }

    #[test]
    fn a_closed_loop_would_have_seen_one_slow_request() {
        let end = End { requests: Some(2000), time: None };
        let mood = |count| if count == 500 { Reaction::Pause(SECOND_NS) } else { Reaction::Answer };
        let outcome = simulated(flow(Pace::Closed { depth: 1 }, end), mood).unwrap();
        assert_eq!(outcome.latencies.count_between(500_000, 2_000_000), 1);
    }

    #[test]
    fn a_wrong_answer_ends_the_run() {
        let end = End { requests: Some(1000), time: None };
        let mood = |count| if count == 700 { Reaction::Lie } else { Reaction::Answer };
        let error = simulated(flow(Pace::Closed { depth: 4 }, end), mood).map(|_| ()).unwrap_err();
        assert!(matches!(&error, ClientError::Absurd(text) if text.contains("key 700")), "{error}");
    }

    #[test]
    fn a_flow_that_may_break_tells_what_is_lost() {
        let end = End { requests: Some(1000), time: None };
        let mood = |count| if count == 100 { Reaction::Close } else { Reaction::Answer };
        let pace = Pace::Closed { depth: 4 };
        assert!(simulated(flow(pace, end), mood).is_err());
        let outcome = simulated(Flow { may_break: true, ..flow(pace, end) }, mood).unwrap();
        // What was on its way when the connection broke is lost as well.
        assert!((96..=100).contains(&outcome.responses), "{}", outcome.responses);
        assert!((1..=4).contains(&outcome.lost), "{}", outcome.lost);
    }

    #[test]
    fn shares_are_asked_by_their_weights() {
        let template = Template::replace(512, Row::text(1));
        let mut flow = flow(Pace::Closed { depth: 1 }, End::default());
        flow.shares = vec![Share { weight: 3, template: template.clone() }, Share { weight: 1, template }];
        let mut running = Running::new(&flow, Vec::new());
        let first = (0..10_000).filter(|_| running.choose() == 0).count();
        assert!((7_300..7_700).contains(&first), "{first}");
    }
}
