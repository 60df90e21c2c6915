//! The module `datetime`: what Tarantool 2.11 answers, two calendars that agree, and rows with moments in both engines.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "rig/mod.rs"]
mod rig;

use rig::{open, run};
use runtime::ManualClock;
use std::sync::Arc;

fn check(source: &str) {
    let database = open(&Arc::new(ManualClock::default()));
    run(
        &database,
        &format!(
            "local d, i = require('datetime'), require('datetime').interval
             local function is(expected, ...)
                 local got = {{}}
                 for at = 1, select('#', ...) do got[at] = tostring((select(at, ...))) end
                 got = table.concat(got, ' | ')
                 if got ~= expected then error(('expected %s, got %s'):format(expected, got), 2) end
             end
             local function refused(words, ...)
                 local fine, why = pcall(...)
                 if fine or not tostring(why):find(words, 1, true) then error(('expected %s, got %s'):format(words, tostring(why)), 2) end
             end
             {source}"
        ),
    );
}

#[test]
fn moments_are_made_read_and_written() {
    check(
        "is('1970-01-01T00:00:00Z', d.new())
         is('2022-02-28T03:04:05.000000006+0300', d.new{year = 2022, month = 2, day = -1, hour = 3, min = 4, sec = 5, nsec = 6, tzoffset = '+0300'})
         is('1970-01-01T00:00:01.500Z | 1969-12-31T23:59:58.500Z', d.new{timestamp = 1.5}, d.new{timestamp = -1.5})
         is('2022-07-01T00:00:00 Europe/Berlin | 120', d.new{year = 2022, month = 7, tz = 'Europe/Berlin'}, d.new{year = 2022, month = 7, tz = 'Europe/Berlin'}.tzoffset)
         is('60 | false | true', d.new{year = 2022, tz = 'Europe/Berlin'}.tzoffset, d.new{year = 2022, tz = 'Europe/Berlin'}.isdst,
            d.new{year = 2022, month = 7, tz = 'Europe/Berlin'}.isdst)
         is('2022-03-04T05:06:07.123456+0300 | 32', d.parse('2022-03-04T05:06:07.123456+03:00'))
         is('2022-03-04T00:00:00Z | 8', d.parse('20220304'))
         is('2022-01-03T00:00:00Z | 10', d.parse('2022-W01-1'))
         is('2022-03-01T00:00:00Z | 8', d.parse('2022-060'))
         is('2022-03-04T05:06:00 Europe/Moscow | 30', d.parse('2022-03-04T05:06 Europe/Moscow'))
         is('2022-02-01T13:04:05Z | 19', d.parse('01/02/2022 13:04:05', {format = '%d/%m/%Y %H:%M:%S'}))
         is('1970-01-01T00:00:00+0300 | 10', d.parse('1970-01-01', {tzoffset = 180}))
         is('2021-01-05T23:00:00Z | 15', d.parse('Jan 5 2021 11PM', {format = '%b %d %Y %I%p'}))
         local a = d.new{year = 2022, month = 1, day = 31}
         is('2022 031 Mon January 000 +0000 05 % 2022-01-31 00:00:00', a:format('%Y %j %a %B %3f %z %V %% %F %T'))
         is('31 | 2 | 1643587200', a:totable().yday, a:totable().wday, a:totable().timestamp)
         is('2022-01-31T05:00:00+0100', a:set{hour = 5, tzoffset = 60})
         is('true | MSK', d.TZ[d.TZ['Europe/Berlin']] == 'Europe/Berlin', d.TZ[d.TZ.MSK])
         for words, given in pairs{
             ['value 32 of day is out of allowed range [-1, 1..31]'] = {day = 32},
             ['invalid number of days 29 in month 2 for 2021'] = {year = 2021, month = 2, day = 29},
             ['timestamp is not allowed if year/month/day provided'] = {timestamp = 1, year = 5},
             [\"could not parse 'AT' - ambiguous timezone\"] = {tz = 'AT'},
             [\"could not parse 'nosuch'\"] = {tz = 'nosuch'},
             ['value 5879612 of year is out of allowed range'] = {year = 5879612},
             ['value 900 of tzoffset is out of allowed range [-720, 840]'] = {tzoffset = 900},
             ['only one of nsec, usec or msecs'] = {nsec = 1, usec = 1},
             ['timestamp is out of the range'] = {timestamp = 1e300},
             ['out of the range of dates'] = {timestamp = 0/0},
             ['hour: integer value expected'] = {hour = 1.5},
         } do refused(words, d.new, given) end
         for _, text in ipairs{'', 'x', '2022', '2022-02-30', '2022-13-01', '2022-01-01T25:00', '2022-01-01Tx', '2022-W54-1'} do
             refused(('could not parse %q'):format(text):gsub('\"', \"'\"), d.parse, text)
         end
         refused('using', d.parse, '5', {format = '%Q'}) refused('using', d.parse, '2021-02-30', {format = '%F'})
         refused('expected table', d.new, 5) refused('expected string', d.parse, 5)",
    );
}

#[test]
fn intervals_move_moments_as_calendars_do() {
    check(
        "local a = d.new{year = 2022, month = 1, day = 31}
         is('2022-02-28T00:00:00Z | 2022-02-28T00:00:00Z | 2022-03-03T00:00:00Z', a + {month = 1}, a + i.new{month = 1, adjust = 'last'},
            a + i.new{month = 1, adjust = 'excess'})
         is('2022-05-31T00:00:00Z', d.new{year = 2022, month = 2, day = 28} + i.new{month = 3, adjust = 'last'})
         is('2021-12-31T00:00:00Z | +1 years, -11 months, -5 hours', a - {day = 31}, a - d.new{year = 2021, month = 12, day = 31, hour = 5})
         is('2022-01-31T00:00:01Z | 2022-01-31T00:00:00Z', tostring(a:add{sec = 1}), a:sub{sec = 1})
         is('2022-01-30T23:59:59.999999999Z', a - {nsec = 1})
         is('2022-03-27T12:00:00 Europe/Berlin | 120', d.new{year = 2022, month = 3, day = 26, hour = 12, tz = 'Europe/Berlin'} + {day = 1},
            (d.new{year = 2022, month = 3, day = 26, hour = 12, tz = 'Europe/Berlin'} + {day = 1}).tzoffset)
         is('+1 years, 3 days | -1 days | 0 seconds | +2 days', i.new{year = 1, day = 3}, i.new{day = -1}, i.new(), i.new{day = 1} + i.new{day = 1})
         is('true | true | false | true', a == a, a < a + {sec = 1}, a == 5, i.new{day = 1} < i.new{day = 2})
         is('true | true', d.new{hour = 3, tzoffset = 180} == d.new(), i.is_interval(a - a))
         is('-5 | last', i.new{sec = -5, adjust = 'last'}.sec, i.new{adjust = 'last'}:totable().adjust)
         refused('addition makes date greater than maximum allowed 5879611-07-11', function() return d.new{year = 5879611, month = 7, day = 1} + {year = 1} end)
         refused('subtraction makes date less than minimum allowed -5879610-06-22', function() return d.new() - {year = 5900000} end)
         refused('addition makes', function() return d.new() + {sec = 3.7e14} end)
         refused('out of allowed range', i.new, {year = 1e10}) refused('integer value expected', i.new, {day = 1.5})
         refused('numeric value expected', i.new, {day = 'x'}) refused('expected interval or table', function() return a + 5 end)
         refused('incompatible type of arguments', function() return i.new{day = 1} - a end)
         refused('incompatible types for datetime comparison', function() return a < 5 end)",
    );
}

#[test]
fn the_calendars_of_lua_and_rust_agree_and_texts_come_back() {
    check(
        "local at = -185604722784000 + 86400
         local step = 7919 * 86400 + 3607
         for n = 1, 40000 do
             -- Dense around 1970, and everywhere.
             local seconds = n <= 20000 and (n - 10000) * 86400 * 3 + n or at + (n - 20000) * step * 27
             local a = d.new{timestamp = seconds}
             local text = ('%04d-%02d-%02dT%02d:%02d:%02dZ'):format(a.year, a.month, a.day, a.hour, a.min, a.sec)
             if text ~= tostring(a) then error(text .. ' ' .. tostring(a)) end
             if a.year >= 1000 and a.year <= 9999 then
                 local back = d.parse(text)
                 if back ~= a then error(text) end
                 if d.parse(a:format('%j %Y %H:%M:%S'), {format = '%j %Y %T'}) ~= a then error(text) end
                 if (a + {day = n, sec = n}) - {day = n, sec = n} ~= a then error(text) end
                 if d.new{year = a.year, month = a.month, day = a.day, hour = a.hour, min = a.min, sec = a.sec} ~= a then error(text) end
             end
         end",
    );
}

#[test]
fn moments_are_fields_keys_and_msgpack() {
    check(
        "local msgpack, json, yaml = require('msgpack'), require('json'), require('yaml')
         is('d7048099cf6100000000', msgpack.encode(d.new{year = 2022, month = 1, day = 1}):hex())
         is('c7070603000106fb0802', msgpack.encode(i.new{year = 1, sec = -5, adjust = 'last'}):hex())
         local full = d.new{year = 2022, tz = 'Europe/Berlin', nsec = 5}
         is('18 | 2022-01-01T00:00:00.000000005 Europe/Berlin', #msgpack.encode(full), (msgpack.decode(msgpack.encode(full))))
         is('[\"1970-01-01T00:00:00Z\",\"+1 days\"]', json.encode{d.new(), i.new{day = 1}})
         for _, engine in ipairs{'memtx', 'vinyl'} do
             local s = box.schema.space.create('t_' .. engine, {engine = engine, format = {{'at', 'datetime'}, {'how', 'interval', is_nullable = true},
                 {'any', 'scalar', is_nullable = true}}})
             s:create_index('pk') s:create_index('any', {parts = {{'any', is_nullable = true}}, unique = false})
             for n = 1, 9 do s:insert{d.new{timestamp = n * 7 % 10 - 5}, i.new{day = n}, d.new{timestamp = n % 3}} end
             local order = {}
             for _, row in s:pairs() do order[#order + 1] = row.at.epoch end
             is('-4,-3,-2,-1,0,1,2,3,4', table.concat(order, ','))
             is('+1 days', s:get(d.new{timestamp = 2}).how)
             is('3 | 6', s.index.any:count(d.new{timestamp = 1}), s.index.any:count(d.new{timestamp = 1}, {iterator = 'ge'}))
             refused('Duplicate key', s.insert, s, {(d.parse('1970-01-01T01:00:02+0100'))})
             refused('expected datetime', s.insert, s, {5}) refused('expected interval', s.insert, s, {d.now(), d.now()})
             refused(\"field type 'interval' is not supported\", s.create_index, s, 'bad', {parts = {'how'}})
             s:update(d.new{timestamp = 2}, {{'=', 2, i.new{year = 1}}})
             is('+1 years', s:get(d.new{timestamp = 2}).how)
         end
         for _, bytes in ipairs{'\\xd7\\x04\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x7f', '\\xc7\\x03\\x04abc', '\\xc7\\x02\\x06\\x05\\x01', '\\xc7\\x03\\x06\\x01\\x63\\x01'} do
             refused('', msgpack.decode, bytes)
         end
         local broken = d.new() broken.nsec = -5
         refused('out of its range', msgpack.encode, broken)",
    );
}
