//! The frame of memcached's datagrams: eight bytes in front of each.
//!
//! ```text
//! | request, 2 bytes | number of the datagram, 2 | datagrams in all, 2 | 0, 2 |
//! ```
//!
//! As in the real one, a request is one datagram, and an answer as many as it needs, of 1,400 bytes at most.

use crate::datagrams::Framing;

const HEAD_BYTES: usize = 8;
/// Bytes of an answer's datagram: what passes every network in one piece.
const ANSWER_DATAGRAM_BYTES_MAX: usize = 1400;
const PART_BYTES: usize = ANSWER_DATAGRAM_BYTES_MAX - HEAD_BYTES;

/// See the head of this file.
pub(super) struct Frames;

impl Framing for Frames {
    fn open<'a>(&self, datagram: &'a [u8]) -> Option<(u16, &'a [u8])> {
        let (head, request) = datagram.split_first_chunk::<HEAD_BYTES>()?;
        // A part of a longer request is passed over, whatever its number.
        let is_whole = head[4..6] == [0, 1];
        (is_whole && !request.is_empty()).then_some((u16::from_be_bytes([head[0], head[1]]), request))
    }

    fn seal(&self, request: u16, answer: &[u8], send: &mut dyn FnMut(&[u8]) -> bool) {
        let Ok(total) = u16::try_from(answer.len().div_ceil(PART_BYTES)) else { return };
        let mut datagram = Vec::with_capacity(ANSWER_DATAGRAM_BYTES_MAX);
        for (number, part) in (0u16..).zip(answer.chunks(PART_BYTES)) {
            datagram.clear();
            [request, number, total, 0].iter().for_each(|field| datagram.extend_from_slice(&field.to_be_bytes()));
            datagram.extend_from_slice(part);
            if !send(&datagram) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_answer_is_put_together_from_its_datagrams(request: u16, length in 0usize..10_000) {
            let answer: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut datagrams = Vec::new();
            Frames.seal(request, &answer, &mut |datagram| { datagrams.push(datagram.to_vec()); true });
            prop_assert_eq!(datagrams.len(), length.div_ceil(1392));
            for (number, datagram) in datagrams.iter().enumerate() {
                prop_assert!(datagram.len() <= 1400 && datagram.len() > 8);
                let head = [request, number as u16, datagrams.len() as u16, 0].map(u16::to_be_bytes).concat();
                prop_assert_eq!(&datagram[..8], &head[..]);
            }
            prop_assert_eq!(datagrams.iter().flat_map(|datagram| &datagram[8..]).copied().collect::<Vec<u8>>(), answer);
        }

        #[test]
        fn any_bytes_are_a_request_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            match Frames.open(&bytes) {
                Some((number, request)) => {
                    prop_assert_eq!((&bytes[4..6], &bytes[8..]), (&[0, 1][..], request));
                    prop_assert_eq!(&number.to_be_bytes()[..], &bytes[..2]);
                }
                None => prop_assert!(bytes.len() <= 8 || bytes[4..6] != [0, 1]),
            }
        }
    }

    #[test]
    fn an_answer_that_nobody_takes_ends_early_and_one_too_long_is_none() {
        let mut sent = 0;
        Frames.seal(1, &[0; 5000], &mut |_| {
            sent += 1;
            sent < 2
        });
        assert_eq!(sent, 2);
        Frames.seal(1, &vec![0; 65_536 * 1392], &mut |_| panic!("its number of datagrams has no room"));
    }
}
