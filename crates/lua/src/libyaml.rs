//! libyaml, with owned events: a parser over bytes and an emitter into a buffer.
//!
//! The crate under it is libyaml translated, with C's interface. A safe translation exists and was tried: it panics at some ends of text.
#![expect(unsafe_code, reason = "the interface of libyaml is C's")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
#[expect(clippy::unsafe_removed_from_name, reason = "its functions are called in unsafe blocks, which say so")]
use unsafe_libyaml as c;

/// A step of a document.
#[derive(Debug)]
pub(crate) enum Event {
    StreamStart,
    StreamEnd,
    /// With the handle and the prefix of its first `%TAG`.
    DocumentStart(Option<(Vec<u8>, Vec<u8>)>),
    DocumentEnd,
    Alias(Vec<u8>),
    Scalar {
        tag: Option<Vec<u8>>,
        text: Vec<u8>,
        style: Style,
    },
    /// With its anchor.
    SequenceStart {
        anchor: Option<Vec<u8>>,
        is_in_line: bool,
    },
    SequenceEnd,
    /// With its anchor.
    MappingStart {
        anchor: Option<Vec<u8>>,
        is_in_line: bool,
    },
    MappingEnd,
}

/// How a scalar stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// As the emitter likes; read: any that is not plain.
    Any,
    Plain,
    SingleQuoted,
    Literal,
}

/// What is wrong with a text.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) problem: String,
    /// Line and column from 0.
    pub(crate) place: (u64, u64),
    /// What was being read and where it began.
    pub(crate) context: Option<(String, u64, u64)>,
}

/// Copies a C string.
fn text_of(text: *const c_char) -> Option<String> {
    // SAFETY: libyaml's messages are static C strings, or null.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy().into_owned())
}

fn bytes_of(text: *const u8) -> Option<Vec<u8>> {
    // SAFETY: names in events are C strings of the event, or null.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text.cast()) }.to_bytes().to_vec())
}

/// Reads events of a text.
pub(crate) struct Parser<'a> {
    raw: Box<MaybeUninit<c::yaml_parser_t>>,
    /// The parser points into it.
    _text: &'a [u8],
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Option<Self> {
        let mut parser = Parser { raw: Box::new(MaybeUninit::uninit()), _text: text };
        // SAFETY: the parser is boxed, so it does not move; the text outlives it.
        unsafe {
            if c::yaml_parser_initialize(parser.raw.as_mut_ptr()).fail {
                std::mem::forget(parser);
                return None;
            }
            c::yaml_parser_set_input_string(parser.raw.as_mut_ptr(), text.as_ptr(), text.len() as u64);
        }
        Some(parser)
    }

    pub(crate) fn next(&mut self) -> Result<Event, Wrong> {
        let mut event = MaybeUninit::<c::yaml_event_t>::uninit();
        // SAFETY: the parser was initialised by `new`; an event that was parsed is read by its type and deleted once.
        unsafe {
            if c::yaml_parser_parse(self.raw.as_mut_ptr(), event.as_mut_ptr()).fail {
                let parser = &*self.raw.as_ptr();
                let (problem, context) = (parser.problem, parser.context);
                let (mark, begun) = (parser.problem_mark, parser.context_mark);
                return Err(Wrong {
                    problem: text_of(problem.cast()).unwrap_or_else(|| "A problem".to_string()),
                    place: (mark.line, mark.column),
                    context: text_of(context.cast()).map(|context| (context, begun.line, begun.column)),
                });
            }
            let mut event = event.assume_init();
            let result = owned(&event);
            c::yaml_event_delete(&raw mut event);
            Ok(result)
        }
    }
}

/// Copies what an event says.
///
/// # Safety
/// The event was filled by the parser and not deleted.
unsafe fn owned(event: &c::yaml_event_t) -> Event {
    // SAFETY: the fields read are those of the event's type.
    unsafe {
        match event.type_ {
            c::YAML_STREAM_START_EVENT => Event::StreamStart,
            c::YAML_DOCUMENT_START_EVENT => {
                let directives = event.data.document_start.tag_directives;
                let is_there = !directives.start.is_null() && directives.start != directives.end;
                Event::DocumentStart(is_there.then(|| {
                    let first = &*directives.start;
                    (bytes_of(first.handle).unwrap_or_default(), bytes_of(first.prefix).unwrap_or_default())
                }))
            }
            c::YAML_DOCUMENT_END_EVENT => Event::DocumentEnd,
            c::YAML_ALIAS_EVENT => Event::Alias(bytes_of(event.data.alias.anchor).unwrap_or_default()),
            c::YAML_SCALAR_EVENT => {
                let scalar = event.data.scalar;
                Event::Scalar {
                    tag: bytes_of(scalar.tag),
                    text: std::slice::from_raw_parts(scalar.value, scalar.length as usize).to_vec(),
                    style: if scalar.style == c::YAML_PLAIN_SCALAR_STYLE { Style::Plain } else { Style::Any },
                }
            }
            c::YAML_SEQUENCE_START_EVENT => Event::SequenceStart {
                anchor: bytes_of(event.data.sequence_start.anchor),
                is_in_line: event.data.sequence_start.style == c::YAML_FLOW_SEQUENCE_STYLE,
            },
            c::YAML_SEQUENCE_END_EVENT => Event::SequenceEnd,
            c::YAML_MAPPING_START_EVENT => Event::MappingStart {
                anchor: bytes_of(event.data.mapping_start.anchor),
                is_in_line: event.data.mapping_start.style == c::YAML_FLOW_MAPPING_STYLE,
            },
            c::YAML_MAPPING_END_EVENT => Event::MappingEnd,
            _ => Event::StreamEnd,
        }
    }
}

impl Drop for Parser<'_> {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, deleted once.
        unsafe { c::yaml_parser_delete(self.raw.as_mut_ptr()) };
    }
}

/// Writes events as text.
pub(crate) struct Emitter {
    raw: Box<MaybeUninit<c::yaml_emitter_t>>,
    /// Boxed, since the emitter points at it.
    #[expect(clippy::box_collection, reason = "the emitter holds the address of the vector itself")]
    out: Box<Vec<u8>>,
}

/// # Safety
/// `data` is the buffer that the emitter was made with; `bytes` and `size` describe what it writes.
unsafe fn write(data: *mut c_void, bytes: *mut u8, size: u64) -> c_int {
    // SAFETY: by the contract above; nobody else holds the buffer while the emitter runs.
    unsafe { (*data.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(bytes, size as usize)) };
    1
}

impl Emitter {
    /// Lines of 80 characters, two blanks of indent, characters of all kinds as they are.
    pub(crate) fn new() -> Option<Self> {
        let mut emitter = Emitter { raw: Box::new(MaybeUninit::uninit()), out: Box::default() };
        // SAFETY: emitter and buffer are boxed, so neither moves.
        unsafe {
            if c::yaml_emitter_initialize(emitter.raw.as_mut_ptr()).fail {
                std::mem::forget(emitter);
                return None;
            }
            let raw = emitter.raw.as_mut_ptr();
            c::yaml_emitter_set_output(raw, write, (&raw mut *emitter.out).cast());
            c::yaml_emitter_set_unicode(raw, true);
            c::yaml_emitter_set_indent(raw, 2);
            c::yaml_emitter_set_width(raw, 80);
            c::yaml_emitter_set_break(raw, c::YAML_LN_BREAK);
        }
        Some(emitter)
    }

    /// Writes one event. Errors: libyaml's words, if events come in an order that makes no document.
    pub(crate) fn emit(&mut self, event: &Event) -> Result<(), String> {
        let mut made = MaybeUninit::<c::yaml_event_t>::uninit();
        let made = made.as_mut_ptr();
        let name = |name: &Option<Vec<u8>>| name.as_ref().map(|name| CString::new(name.clone()).unwrap_or_default());
        let pointer = |name: &Option<CString>| name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr().cast());
        let null = std::ptr::null_mut();
        // SAFETY: the event is made by the function for its kind, which copies names and texts; the emitter deletes it.
        unsafe {
            let success = match event {
                Event::StreamStart => c::yaml_stream_start_event_initialize(made, c::YAML_UTF8_ENCODING),
                Event::StreamEnd => c::yaml_stream_end_event_initialize(made),
                Event::DocumentStart(_) => c::yaml_document_start_event_initialize(
                    made,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    null,
                    false,
                ),
                Event::DocumentEnd => c::yaml_document_end_event_initialize(made, false),
                Event::Alias(anchor) => {
                    let anchor = name(&Some(anchor.clone()));
                    c::yaml_alias_event_initialize(made, pointer(&anchor))
                }
                Event::Scalar { tag, text, style } => {
                    let tag = name(tag);
                    let style = match style {
                        Style::Any => c::YAML_ANY_SCALAR_STYLE,
                        Style::Plain => c::YAML_PLAIN_SCALAR_STYLE,
                        Style::SingleQuoted => c::YAML_SINGLE_QUOTED_SCALAR_STYLE,
                        Style::Literal => c::YAML_LITERAL_SCALAR_STYLE,
                    };
                    let Ok(length) = c_int::try_from(text.len()) else { return Err("text is too long".to_string()) };
                    let is_implicit = tag.is_none();
                    let text = text.as_ptr();
                    c::yaml_scalar_event_initialize(
                        made,
                        std::ptr::null(),
                        pointer(&tag),
                        text,
                        length,
                        is_implicit,
                        is_implicit,
                        style,
                    )
                }
                Event::SequenceStart { anchor, is_in_line } => {
                    let anchor = name(anchor);
                    let style = if *is_in_line { c::YAML_FLOW_SEQUENCE_STYLE } else { c::YAML_BLOCK_SEQUENCE_STYLE };
                    c::yaml_sequence_start_event_initialize(made, pointer(&anchor), std::ptr::null(), true, style)
                }
                Event::SequenceEnd => c::yaml_sequence_end_event_initialize(made),
                Event::MappingStart { anchor, is_in_line } => {
                    let anchor = name(anchor);
                    let style = if *is_in_line { c::YAML_FLOW_MAPPING_STYLE } else { c::YAML_BLOCK_MAPPING_STYLE };
                    c::yaml_mapping_start_event_initialize(made, pointer(&anchor), std::ptr::null(), true, style)
                }
                Event::MappingEnd => c::yaml_mapping_end_event_initialize(made),
            };
            if success.fail {
                return Err("text is no UTF-8".to_string());
            }
            if c::yaml_emitter_emit(self.raw.as_mut_ptr(), made).fail {
                let emitter = &*self.raw.as_ptr();
                return Err(text_of(emitter.problem.cast()).unwrap_or_else(|| "A problem".to_string()));
            }
        }
        Ok(())
    }

    /// All that was written.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        // SAFETY: initialised by `new`.
        unsafe {
            let _ = c::yaml_emitter_flush(self.raw.as_mut_ptr()).ok;
        }
        std::mem::take(&mut *self.out)
    }
}

impl Drop for Emitter {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, deleted once.
        unsafe { c::yaml_emitter_delete(self.raw.as_mut_ptr()) };
    }
}
