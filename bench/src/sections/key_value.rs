//! Values by key: what caches are for.

use super::Section;
use super::requests::{SHAPES, make_space, measure, run_flow, shape_name};
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use load::{Door, End, Flow, Keys, Pace, Row, Share, Template};

pub(crate) const SECTION: Section = Section {
    name: "key-value",
    title: "Plain set and get",
    about: "Values of 100 bytes under random keys out of those that are there: SET and GET on Redis, set and get on memcached, replace and select over the \
            binary protocol on Lycosa, and the rivals' protocols on Lycosa.",
    run,
};

const VALUE_BYTES: usize = 100;
const CONTENDERS: [Contender; 9] = [
    Contender::LycosaWrite,
    Contender::Lycosa,
    Contender::LycosaRedisWrite,
    Contender::LycosaRedis,
    Contender::LycosaMemcached,
    Contender::Redis,
    Contender::RedisAlways,
    Contender::Memcached,
    Contender::MemcachedOne,
];

fn turn(settings: &Settings, server: &mut Running, round: u64, turn: &mut Turn) -> Result<(), String> {
    let rows = settings.scale.rows;
    let (door, set, get) = match server.contender {
        other if other.is_redis() => (Door::Resp, Template::set(Door::Resp, VALUE_BYTES), Template::get(Door::Resp)),
        other if other.is_memcached() => {
            (Door::Memcached, Template::set(Door::Memcached, VALUE_BYTES), Template::get(Door::Memcached))
        }
        _ => {
            let space = make_space(&server.address, "values", 0)?;
            (Door::Iproto, Template::replace(space, Row::text(VALUE_BYTES)), Template::select(space))
        }
    };
    let flow = |template: &Template, (connections, depth): (usize, u32), keys, end| Flow {
        door,
        address: server.address.clone(),
        login: None,
        connections,
        pace: Pace::Closed { depth },
        shares: vec![Share { weight: 1, template: template.clone() }],
        keys,
        end,
        may_break: false,
    };
    let all = End { requests: Some(u64::from(rows)), time: None };
    run_flow(flow(&set, (2, 512), Keys::Sequential { next: 0, count: rows }, all))?;
    let timed = End { requests: None, time: Some(settings.scale.time) };
    for shape in SHAPES {
        if settings.is_quick && !matches!(shape, (1 | 16, 1) | (4, 256)) {
            continue;
        }
        for (name, template) in [("set", &set), ("get", &get)] {
            let case = format!("{name} {}", shape_name(shape));
            let outcome = measure(server, turn, &case, flow(template, shape, Keys::uniform(rows, round), timed))?;
            turn.latencies(&case, outcome.latencies);
        }
    }
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    by_turns(settings, recorder, &CONTENDERS, u64::MAX, &|server, round, found| turn(settings, server, round, found))
}
