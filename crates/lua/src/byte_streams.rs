//! What takes bytes piece by piece and gives others: ciphers and digests (`crypto`), packed bodies of answers (`inflate`). Lua holds them by number.

use crate::registry::registry;
use crate::state::{Function, Raise, State};
use std::ffi::c_int;

type Outcome = Result<c_int, Raise>;

/// Streams that Lua holds at once.
const BYTE_STREAMS_MAX: usize = 1 << 16;

/// Something that takes bytes piece by piece.
pub(crate) trait ByteStream {
    /// Takes a piece; gives what is known after it. Errors: what is wrong with the bytes.
    fn update(&mut self, input: &[u8]) -> Result<Vec<u8>, String>;

    /// The rest. A stream that gave it is begun anew before it is used again. Errors: what is wrong with the bytes.
    fn finish(&mut self) -> Result<Vec<u8>, String>;
}

/// Keeps a stream under the number that its place in Lua had, or under a new one.
pub(crate) fn keep(state: State, number: f64, stream: Box<dyn ByteStream>) -> Outcome {
    let registry = registry();
    if number == 0.0 && registry.byte_streams.borrow().len() >= BYTE_STREAMS_MAX {
        state.collect_garbage();
    }
    let mut streams = registry.byte_streams.borrow_mut();
    let number = if number == 0.0 {
        if streams.len() >= BYTE_STREAMS_MAX {
            return Err(format!("more than {BYTE_STREAMS_MAX} ciphers, digests and unpackings at once").into());
        }
        registry.byte_streams_made.set(registry.byte_streams_made.get() + 1);
        registry.byte_streams_made.get()
    } else {
        number as u64
    };
    streams.insert(number, stream);
    drop(streams);
    state.push_number(number as f64);
    Ok(1)
}

/// Pushes nil and what is wrong.
pub(crate) fn refuse(state: State, text: &str) -> Outcome {
    state.push_nil();
    state.push_str(text);
    Ok(2)
}

/// Does something with the stream whose number comes first: gives its bytes; or nil and what is wrong.
fn with_stream(state: State, work: impl FnOnce(&mut dyn ByteStream) -> Result<Vec<u8>, String>) -> Outcome {
    let number = state.check_number(1, "number")? as u64;
    let mut streams = registry().byte_streams.borrow_mut();
    let outcome = work(streams.get_mut(&number).ok_or("this stream is freed")?.as_mut());
    drop(streams);
    match outcome {
        Ok(output) => {
            state.push_bytes(&output);
            Ok(1)
        }
        Err(text) => refuse(state, &text),
    }
}

/// stream_update(number, text) -> text; or nil and what is wrong
fn stream_update(state: State) -> Outcome {
    let input = state.bytes(2).ok_or("a string is expected")?;
    with_stream(state, |stream| stream.update(input))
}

/// stream_result(number) -> text; or nil and what is wrong
fn stream_result(state: State) -> Outcome {
    with_stream(state, |stream| stream.finish())
}

/// stream_free(number)
fn stream_free(state: State) -> Outcome {
    let number = state.check_number(1, "number")? as u64;
    registry().byte_streams.borrow_mut().remove(&number);
    Ok(0)
}

/// Functions of `box.internal` for streams of bytes.
pub(crate) const FUNCTIONS: &[(&str, Function)] =
    &[("stream_update", stream_update), ("stream_result", stream_result), ("stream_free", stream_free)];
