//! Doubts that packets of the binary protocol are cut from a stream the same way however it arrives, and that whatever decoding accepts
//! is well-formed.
use protocol::iproto::{Request, read_begin, read_event_key, read_page};
use tuple::msgpack;
use wire::{Header, Packet, next_answer, next_packet};

fn check_value(value: Option<&[u8]>) {
    if let Some(value) = value {
        assert_eq!(msgpack::check(value), Ok(value.len()), "an accepted part of a body is one value");
    }
}

/// One case.
pub fn run(input: &[u8]) {
    let mut rest = input;
    while let Ok(Packet::Complete(packet, length)) = next_packet(rest) {
        assert!(length > 0 && length <= rest.len() && packet.len() < length);
        // Any part of it is not complete, and no other packet either.
        for cut in [0, 1, length / 2, length - 1] {
            if cut < length {
                assert!(matches!(next_packet(&rest[..cut]), Ok(Packet::Incomplete)));
            }
        }
        if let Ok((header, body)) = Header::decode(packet) {
            assert!(body.len() < packet.len());
            let again = Header::decode(packet).map(|(header, _)| header);
            assert_eq!(again, Ok(header));
            if let Ok(request) = Request::decode(header.request_type, body) {
                check_value(request.key);
                check_value(request.tuple);
                check_value(request.ops);
                if request.has_page {
                    let _ = read_page(body);
                }
            }
        }
        rest = &rest[length..];
    }
    // What a client would make of them.
    if let Ok(Some((answer, length))) = next_answer(input) {
        assert!(length <= input.len());
        check_value(answer.data().ok().filter(|data| !data.is_empty()));
        let _ = (answer.data_count(), answer.error_text(), answer.error_stack());
    }
    // Bodies and headers that no packet brought.
    let _ = Header::decode(input);
    let _ = Request::decode(1, input);
    let _ = (read_begin(input), read_page(input), read_event_key(input));
}
