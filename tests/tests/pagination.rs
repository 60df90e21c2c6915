//! Reading page by page, over the binary protocol and in procedures, against one scan that reads everything.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Rig, packet, request};
use std::io::Read;
use tuple::msgpack::{self, Reader};
use wire::{Header, key, request_type};

const SCRIPT: &str = "
    box.cfg{}
    box.schema.user.grant('guest', 'read,write,execute,create,drop', 'universe', nil, {if_not_exists = true})
    for _, engine in ipairs{'memtx', 'vinyl'} do
        local s = box.schema.space.create(engine, {id = engine == 'memtx' and 600 or 601, engine = engine})
        s:create_index('pk')
        s:create_index('by', {unique = false, parts = {{3, 'string', collation = 'unicode_ci', is_nullable = true}, {2, 'integer'}}})
        for i = 1, 200 do s:replace{i, i % 7 - 3, i % 5 > 0 and ('abABc'):sub(i % 5, i % 5) or nil, ('x'):rep(i)} end
        s:create_index('hash', {type = engine == 'memtx' and 'hash' or 'tree'})
    end
    -- All pages of a scan, beside what one scan gives; what is behind is changed meanwhile if asked for.
    function check(space, index, key, iterator, limit, by_row, deletes)
        box.begin()
        local s = box.space[space]
        local whole = s.index[index]:select(key, {iterator = iterator})
        local at, after = 1, nil
        while true do
            local options = {iterator = iterator, limit = limit, after = after, fetch_pos = true}
            local rows, position = s.index[index]:select(key, options)
            for _, row in ipairs(rows) do
                assert(row[1] == whole[at][1], 'row ' .. at)
                at = at + 1
            end
            if #rows == 0 then
                assert(position == (type(after) == 'string' and after or position))
                break
            end
            assert(s.index[index]:tuple_pos(rows[#rows]) == position)
            after = by_row and rows[#rows] or position
            if deletes then s:delete(rows[#rows][1]) end
        end
        assert(at == #whole + 1, 'all')
        box.rollback()
        return #whole
    end
";

#[test]
fn pages_make_the_whole_whatever_the_order_and_the_place() {
    let mut rig = Rig::start(SCRIPT, &[]);
    let all = "local sum = 0
        for _, space in ipairs{'memtx', 'vinyl'} do
            for _, iterator in ipairs{'ALL', 'EQ', 'REQ', 'GE', 'GT', 'LE', 'LT'} do
                for _, case in ipairs{{'pk', {}}, {'pk', {50}}, {'by', {}}, {'by', {'a'}}, {'by', {'B', 2}}, {'by', {box.NULL}}} do
                    for _, limit in ipairs{1, 7, 1000} do
                        for by_row = 0, 1 do
                            sum = sum + check(space, case[1], case[2], iterator, limit, by_row == 1, limit == 7)
                        end
                    end
                end
            end
        end
        return sum";
    assert!(rig.number(all) > 10_000);
}

#[test]
fn places_that_are_none_are_refused() {
    let mut rig = Rig::start(SCRIPT, &[]);
    let mut refused = |source: &str| rig.eval(source).error.unwrap_or((0, String::new()));
    let invalid = (1, "Illegal parameters, Iterator position is invalid".to_string());
    for space in ["memtx", "vinyl"] {
        let pk = format!("box.space.{space}.index.pk");
        for after in ["'x'", "'AAAA'", "'kQE=='", "'kqEB'", "'3f////8='", "('A'):rep(4e6)"] {
            assert_eq!(refused(&format!("{pk}:select({{}}, {{after = {after}}})")).0, 1, "{after}");
        }
        assert_eq!(refused(&format!("{pk}:select({{5}}, {{after = {{6}}}})")), invalid);
        assert_eq!(refused(&format!("{pk}:select({{5}}, {{iterator = 'GE', after = {{4}}}})")), invalid);
        assert_eq!(refused(&format!("{pk}:select({{}}, {{after = {{'a'}}}})")).0, 18);
        assert_eq!(refused(&format!("{pk}:select({{}}, {{after = {{}}}})")).0, 18);
        assert_eq!(refused(&format!("{pk}:tuple_pos({{}})")).0, 18);
        assert_eq!(refused(&format!("{pk}:tuple_pos(5)")).0, 32);
        assert_eq!(refused(&format!("{pk}:select({{}}, {{fetch_pos = 5}})")).0, 32);
        // The position of another index.
        let other = format!("box.space.{space}.index.by:tuple_pos({{1, 2, 'a'}})");
        assert_eq!(refused(&format!("{pk}:select({{}}, {{after = {other}}})")), invalid);
        assert_eq!(refused(&format!("{pk}:select({{}}, {{after = '', limit = 1}})")).0, 0);
    }
    let hash = refused("box.space.memtx.index.hash:select({}, {fetch_pos = true})");
    assert_eq!(hash, (5, "Index 'hash' of space 'memtx' does not support pagination".to_string()));
    // Views of the schema are read page by page, too.
    let views = "local all, n, after = #box.space._vspace:select(), 0
        repeat
            local rows, position = box.space._vspace:select({}, {limit = 3, fetch_pos = true, after = after})
            n, after = n + #rows, position
        until #rows == 0
        return n - all";
    assert_eq!(rig.number(views), 0);
}

fn select(client: &mut Client, space: &[u8], more: &[(u64, &[u8])]) -> (u64, Vec<u64>, Option<Vec<u8>>) {
    let mut pairs: Vec<(u64, &[u8])> = vec![(key::SPACE_ID, space), (key::LIMIT, &[3]), (key::ITERATOR, &[2])];
    pairs.push((key::KEY, &[0x90]));
    pairs.extend_from_slice(more);
    client.send(&packet(request_type::SELECT, 1, &request(&pairs)));
    let mut length = [0; 5];
    let mut stream = client.stream();
    stream.read_exact(&mut length).unwrap();
    let mut packet = vec![0; u32::from_be_bytes(length[1..].try_into().unwrap()) as usize];
    stream.read_exact(&mut packet).unwrap();
    let (header, body) = Header::decode(&packet).unwrap();
    let (mut ids, mut position) = (Vec::new(), None);
    let mut reader = Reader::new(body);
    for _ in 0..reader.read_map().unwrap() {
        match reader.read_uint().unwrap() {
            key::DATA => {
                for _ in 0..reader.read_array().unwrap() {
                    let mut row = Reader::new(reader.read_value().unwrap());
                    row.read_array().unwrap();
                    ids.push(row.read_uint().unwrap());
                }
            }
            key::POSITION => position = Some(reader.read_str().unwrap().to_vec()),
            _ => _ = reader.read_value().unwrap(),
        }
    }
    (header.request_type & 0x7fff, ids, position)
}

#[test]
fn positions_go_over_the_wire() {
    let mut rig = Rig::start(SCRIPT, &[]);
    let client = &mut rig.client;
    for space in [&[0xcd, 2, 88][..], &[0xcd, 2, 89]] {
        let (code, ids, position) = select(client, space, &[(key::FETCH_POSITION, &[0xc3])]);
        assert_eq!((code, ids), (0, vec![1, 2, 3]));
        let mut after = Vec::new();
        msgpack::encode_str(&mut after, &position.unwrap());
        let (_, ids, position) = select(client, space, &[(key::AFTER_POSITION, &after)]);
        assert_eq!((ids, position), (vec![4, 5, 6], None));
        let more: [(u64, &[u8]); 2] = [(key::AFTER_TUPLE, &[0x91, 0xcc, 199]), (key::FETCH_POSITION, &[0xc3])];
        let (_, ids, position) = select(client, space, &more);
        assert_eq!((ids, position.is_some()), (vec![200], true));
        for (name, wrong) in [
            (key::FETCH_POSITION, &[5][..]),
            (key::AFTER_POSITION, &[5]),
            (key::AFTER_TUPLE, &[5]),
            (key::AFTER_TUPLE, &[0x80]),
        ] {
            assert_eq!(select(client, space, &[(name, wrong)]).0, 20, "{name} {wrong:?}");
        }
        assert_eq!(select(client, space, &[(key::AFTER_POSITION, &[0xa3, 0xff, 0xff, 0xff])]).0, 1);
        assert_eq!(select(client, space, &[(key::AFTER_TUPLE, &[0x91, 0xa0])]).0, 18);
    }
}
