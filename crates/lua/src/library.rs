//! The C functions under the modules clock, digest, log and fio; and the hand-over from the prelude.

use crate::convert::{self};
use crate::registry::{database, registry};
use crate::state::{Function, Raise, State, check_stopping, is_stack_low};
use runtime::{FileSystem, OpenMode, SystemFiles, open_any};
use std::ffi::c_int;
use std::path::Path;

type Outcome = Result<c_int, Raise>;

fn clock_monotonic(state: State) -> Outcome {
    state.push_number(database().environment().clock.monotonic_ns() as f64 / 1e9);
    Ok(1)
}

fn clock_wall(state: State) -> Outcome {
    state.push_number(database().environment().clock.wall_ns() as f64 / 1e9);
    Ok(1)
}

/// clock_ns(is_wall) -> uint64 nanoseconds
fn clock_ns(state: State) -> Outcome {
    let environment_database = database();
    let clock = &environment_database.environment().clock;
    convert::push_u64(state, if state.boolean(1) { clock.wall_ns() } else { clock.monotonic_ns() });
    Ok(1)
}

/// random_bytes(count)
fn random_bytes(state: State) -> Outcome {
    let count = state.check_number(1, "count")?.clamp(0.0, 1e7) as usize;
    let mut bytes = vec![0; count];
    database().environment().randomness.fill(&mut bytes);
    state.push_bytes(&bytes);
    Ok(1)
}

/// digest(name, text) -> binary
fn digest(state: State) -> Outcome {
    use sha1::Digest;
    let name = state.check_string(1, "name")?;
    let text = state.bytes(2).ok_or("a string is expected")?;
    let hash = match name.as_str() {
        "sha1" => sha1::Sha1::digest(text).to_vec(),
        "sha224" => sha2::Sha224::digest(text).to_vec(),
        "sha256" => sha2::Sha256::digest(text).to_vec(),
        "sha384" => sha2::Sha384::digest(text).to_vec(),
        "sha512" => sha2::Sha512::digest(text).to_vec(),
        "md5" => md5::Md5::digest(text).to_vec(),
        other => return Err(format!("unknown digest {other}").into()),
    };
    state.push_bytes(&hash);
    Ok(1)
}

fn base64_encode(state: State) -> Outcome {
    use base64::Engine;
    let text = state.bytes(1).ok_or("a string is expected")?;
    let is_urlsafe = state.boolean(2);
    let encoded = if is_urlsafe {
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    } else {
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    state.push_str(&encoded);
    Ok(1)
}

fn base64_decode(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("a string is expected")?;
    state.push_bytes(&decode_base64(text));
    Ok(1)
}

/// Base64 of both alphabets; what belongs to neither is passed over.
pub(crate) fn decode_base64(text: &[u8]) -> Vec<u8> {
    let (mut out, mut bits, mut count) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

/// log(level, text, place)
fn log(state: State) -> Outcome {
    let level = state.check_string(1, "level")?;
    let text = state.check_string(2, "text")?;
    let place = state.string(3).unwrap_or_else(|| "builtin:0".to_string());
    match level.as_str() {
        "error" | "crit" | "fatal" => tracing::error!(place = %place, "{text}"),
        "warn" => tracing::warn!(place = %place, "{text}"),
        "info" => tracing::info!(place = %place, "{text}"),
        "verbose" | "debug" => tracing::debug!(place = %place, "{text}"),
        _ => {}
    }
    Ok(0)
}

/// set_log(level, form): either may be nil
fn set_log(state: State) -> Outcome {
    let (level, form) = (state.string(1), state.string(2));
    if let Some(host) = registry().host.borrow().clone() {
        host.set_log(level.as_deref(), form.as_deref())?;
    }
    Ok(0)
}

/// print(text): standard output through Rust, so that lines keep their order
fn write_out(state: State) -> Outcome {
    use std::io::Write;
    let text = state.bytes(1).unwrap_or(b"");
    let mut out = std::io::stdout().lock();
    // A closed output is no reason to fail.
    let _ = out.write_all(text).and_then(|()| out.flush());
    Ok(0)
}

/// crc32(start, text): CRC-32C without inversions
fn crc32(state: State) -> Outcome {
    let start = state.check_number(1, "crc")? as u32;
    let text = state.bytes(2).ok_or("a string is expected")?;
    state.push_number(f64::from(!crc32c::crc32c_append(!start, text)));
    Ok(1)
}

/// pbkdf2(password, salt, iterations, bytes): with HMAC-SHA256
fn pbkdf2(state: State) -> Outcome {
    use sha2::Digest;
    let (password, salt) = match (state.bytes(1), state.bytes(2)) {
        (Some(password), Some(salt)) => (password, salt),
        _ => return Err("strings are expected".into()),
    };
    let iterations = state.check_number(3, "iterations")?.clamp(1.0, 1e7) as u32;
    let length = state.check_number(4, "digest length")?.clamp(0.0, 128.0) as usize;
    let mut block_key = [0u8; 64];
    if password.len() > 64 {
        block_key[..32].copy_from_slice(&sha2::Sha256::digest(password));
    } else {
        block_key[..password.len()].copy_from_slice(password);
    }
    let keyed = |byte: u8| block_key.map(|key| key ^ byte);
    let (inner, outer) = (keyed(0x36), keyed(0x5c));
    let hmac = |parts: &[&[u8]]| -> [u8; 32] {
        let mut hash = sha2::Sha256::new_with_prefix(inner);
        parts.iter().for_each(|part| hash.update(part));
        sha2::Sha256::new_with_prefix(outer).chain_update(hash.finalize()).finalize().into()
    };
    let mut out = Vec::new();
    for number in 1u32.. {
        let mut last = hmac(&[salt, &number.to_be_bytes()]);
        let mut block = last;
        for round in 1..iterations {
            if round % 1024 == 0 {
                check_stopping()?;
            }
            last = hmac(&[&last]);
            block.iter_mut().zip(last).for_each(|(byte, other)| *byte ^= other);
        }
        out.extend_from_slice(&block);
        if out.len() >= length {
            break;
        }
    }
    out.truncate(length);
    state.push_bytes(&out);
    Ok(1)
}

/// version() -> this server's version
fn version(state: State) -> Outcome {
    state.push_str(env!("CARGO_PKG_VERSION"));
    Ok(1)
}

/// set_max_slice(seconds): how long code may run without waiting
fn set_max_slice(state: State) -> Outcome {
    let seconds = state.check_number(1, "slice")?.clamp(0.0, 1e6);
    if let Some(main) = registry().main.get() {
        crate::watchdog::set_slice_max_ms(main, (seconds * 1000.0) as u64)
            .map_err(|error| Raise::Message(error.to_string()))?;
    }
    Ok(0)
}

/// file_kind(path, follows links) -> "file", "directory" or "link", bytes, time of change, mode, links; or nil
fn file_kind(state: State) -> Outcome {
    let path = state.check_string(1, "path")?;
    match runtime::describe(Path::new(&path), state.boolean(2)) {
        Ok(found) => {
            state.push_str(match found.kind {
                runtime::FileKind::Directory => "directory",
                runtime::FileKind::Link => "link",
                runtime::FileKind::Other => "file",
            });
            state.push_number(found.bytes as f64);
            state.push_number(found.modified_at);
            state.push_number(f64::from(found.mode));
            state.push_number(found.links as f64);
            Ok(5)
        }
        Err(_) => {
            state.push_nil();
            Ok(1)
        }
    }
}

/// set_decodes_varbinary(whether binary data become objects)
fn set_decodes_varbinary(state: State) -> Outcome {
    registry().decodes_varbinary.set(state.boolean(1));
    Ok(0)
}

/// check_stack(): raises when the C stack of the fiber is nearly used up
fn check_stack(_state: State) -> Outcome {
    if is_stack_low() { Err("C stack overflow".into()) } else { Ok(0) }
}

/// file_read(path) -> text, or nil and a message
fn file_read(state: State) -> Outcome {
    let path = state.check_string(1, "path")?;
    let read = || {
        let file = open_any(Path::new(&path), OpenMode::READ)?;
        let mut bytes = vec![0; file.len()? as usize];
        let got = file.read_full_at(&mut bytes, 0)?;
        bytes.truncate(got);
        Ok::<_, std::io::Error>(bytes)
    };
    match read() {
        Ok(bytes) => {
            state.push_bytes(&bytes);
            Ok(1)
        }
        Err(error) => {
            state.push_nil();
            state.push_str(&strip_errno(&error));
            Ok(2)
        }
    }
}

/// file_operation(name, path, other) -> true or a list, or nil and a message
fn file_operation(state: State) -> Outcome {
    let name = state.check_string(1, "operation")?;
    let path = state.check_string(2, "path")?;
    let path = Path::new(&path);
    let files = SystemFiles;
    let result = match name.as_str() {
        "exists" => {
            state.push_bool(files.exists(path));
            return Ok(1);
        }
        "list" => match files.list(path) {
            Ok(names) => {
                state.new_table(names.len(), 0);
                let table = state.top();
                for (at, name) in names.iter().enumerate() {
                    state.push_str(name);
                    state.raw_set_index(table, at as c_int + 1);
                }
                return Ok(1);
            }
            Err(error) => Err(error),
        },
        "mktree" => files.create_dir_all(path),
        "unlink" => files.remove(path),
        "rename" => files.rename(path, Path::new(&state.check_string(3, "new path")?)),
        "write" => {
            let text = state.bytes(3).ok_or("a string is expected")?;
            open_any(path, OpenMode::CREATE).and_then(|file| file.write_all_at(text, 0))
        }
        other => return Err(format!("unknown file operation {other}").into()),
    };
    match result {
        Ok(()) => {
            state.push_bool(true);
            Ok(1)
        }
        Err(error) => {
            state.push_nil();
            state.push_str(&strip_errno(&error));
            Ok(2)
        }
    }
}

/// The reason of an error alone: without the path and the number.
fn strip_errno(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit(": ").next().unwrap_or(&text);
    text.split(" (os error").next().unwrap_or(text).to_string()
}

/// setup(types, values): called once by the prelude with numbers of C types and Lua functions
fn setup(state: State) -> Outcome {
    let registry = registry();
    if registry.ids.get().tuple != 0 {
        return Err("setup is done once".into());
    }
    let id = |name: &str| {
        state.get_field(1, name);
        let id = state.cdata(state.top()).map(|(payload, _)| read_type_id(payload));
        state.pop(1);
        id.ok_or_else(|| Raise::Message(format!("the prelude gave no C type {name}")))
    };
    registry.ids.set(crate::registry::CtypeIds {
        int64: id("int64")?,
        uint64: id("uint64")?,
        null: id("null")?,
        float: id("float")?,
        double: id("double")?,
        tuple: id("tuple")?,
        uuid: id("uuid")?,
        decimal: id("decimal")?,
        datetime: id("datetime")?,
        interval: id("interval")?,
        varbinary: id("varbinary")?,
        error: id("error")?,
        bytes: id("bytes")?,
        const_bytes: id("const_bytes")?,
    });
    for (name, slot) in [
        ("null", &registry.null),
        ("make_varbinary", &registry.make_varbinary),
        ("array_metatable", &registry.array_metatable),
        ("map_metatable", &registry.map_metatable),
        ("tuple_methods", &registry.tuple_methods),
        ("to_plain", &registry.to_plain),
        ("error_stack", &registry.error_stack),
        ("error_of_stack", &registry.error_of_stack),
        ("make_error", &registry.make_error),
        ("error_parts", &registry.error_parts),
        ("call", &registry.call),
        ("call_persistent", &registry.call_persistent),
        ("compile_function", &registry.compile_function),
        ("search_library", &registry.search_library),
        ("refresh", &registry.refresh),
        ("console", &registry.console),
        ("opened", &registry.opened),
        ("shutdown", &registry.shutdown),
        ("session_event", &registry.session_event),
        ("manage_accounts", &registry.manage_accounts),
        ("fiber_ended", &registry.fiber_ended),
        ("to_text", &registry.to_text),
    ] {
        state.get_field(2, name);
        slot.set(state.make_ref());
    }
    crate::state::set_tuple_type(registry.ids.get().tuple);
    Ok(0)
}

#[expect(unsafe_code, reason = "the payload of a ctype is its number")]
fn read_type_id(payload: *mut std::ffi::c_void) -> u32 {
    // SAFETY: `ffi.typeof` gives a cdata whose payload is a 32-bit type id.
    unsafe { payload.cast::<u32>().read_unaligned() }
}

/// Functions of `box.internal` for the modules clock, digest, log and fio.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("setup", setup),
    ("clock_monotonic", clock_monotonic),
    ("clock_wall", clock_wall),
    ("clock_ns", clock_ns),
    ("random_bytes", random_bytes),
    ("digest", digest),
    ("base64_encode", base64_encode),
    ("base64_decode", base64_decode),
    ("log", log),
    ("set_log", set_log),
    ("write_out", write_out),
    ("crc32", crc32),
    ("pbkdf2", pbkdf2),
    ("version", version),
    ("set_max_slice", set_max_slice),
    ("file_kind", file_kind),
    ("check_stack", check_stack),
    ("set_decodes_varbinary", set_decodes_varbinary),
    ("file_read", file_read),
    ("file_operation", file_operation),
];
