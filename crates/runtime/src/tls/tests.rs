#![allow(clippy::unwrap_used, reason = "a test")]

use super::*;
use crate::{Randomness, SeededRandomness};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Makes an authority, members of it and of another one. False: openssl(1) is not there or has failed.
fn make_files(dir: &Path) -> bool {
    let openssl = |arguments: &[&str]| {
        let key = [
            "req",
            "-x509",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "3650",
        ];
        Command::new("openssl")
            .args(key)
            .args(arguments)
            .current_dir(dir)
            .output()
            .is_ok_and(|made| made.status.success())
    };
    [("ca", ["server", "client"]), ("other_ca", ["stranger", "another"])].iter().all(|(authority, members)| {
        let (key, certificate) = (format!("{authority}.key"), format!("{authority}.crt"));
        let subject = format!("/CN={authority}");
        openssl(&["-subj", &subject, "-keyout", &key, "-out", &certificate])
            && members.iter().all(|name| {
                let (own_key, own) = (format!("{name}.key"), format!("{name}.crt"));
                openssl(&[
                    "-subj",
                    &format!("/CN={name}"),
                    "-CA",
                    &certificate,
                    "-CAkey",
                    &key,
                    "-keyout",
                    &own_key,
                    "-out",
                    &own,
                    "-addext",
                    "basicConstraints=critical,CA:FALSE",
                ])
            })
    })
}

/// Files of an authority, a server, a client and a stranger.
struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        assert!(make_files(dir.path()), "openssl(1) is needed");
        Files { dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Parameters from `name=value`; a value of a file is its name here.
    fn parameters(&self, given: &[&str]) -> io::Result<Parameters> {
        let pairs: Vec<(String, String)> = given
            .iter()
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap();
                (name.to_string(), if name.ends_with("_file") { self.path(value) } else { value.to_string() })
            })
            .collect();
        let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Ok(Parameters::of([("transport", "ssl")].into_iter().chain(pairs))?.unwrap())
    }

    fn refused(&self, given: &[&str]) -> String {
        match self.parameters(given).and_then(|parameters| parameters.acceptor()) {
            Ok(_) => panic!("{given:?} are taken"),
            Err(error) => error.to_string(),
        }
    }
}

const SERVER: [&str; 2] = ["ssl_cert_file=server.crt", "ssl_key_file=server.key"];
const CLIENT: [&str; 2] = ["ssl_cert_file=client.crt", "ssl_key_file=client.key"];

/// Carries bytes between two sides until none has more to say. Errors: of the client, of the server.
fn meet(client: &mut Session, server: &mut Session) -> (io::Result<bool>, io::Result<bool>) {
    let (mut to_server, mut to_client) = (Pipe::default(), Pipe::default());
    let (mut at_client, mut at_server) = (Ok(false), Ok(false));
    for _ in 0..10 {
        if at_client.is_ok() {
            at_client = client.shake_hands(&mut to_client);
            to_server.come.extend(to_client.to_send.drain(..));
        }
        if at_server.is_ok() {
            at_server = server.shake_hands(&mut to_server);
            to_client.come.extend(to_server.to_send.drain(..));
        }
        if at_server.is_ok() && at_client.as_ref().is_ok_and(|done| *done) {
            // The alert about a certificate comes behind the client's last message.
            let mut none = [0; 1];
            if let Err(error) = client.read(&mut to_client, &mut none)
                && error.kind() != ErrorKind::WouldBlock
            {
                at_client = Err(error);
            }
        }
    }
    (at_client, at_server)
}

fn sides(files: &Files, server: &[&str], client: &[&str]) -> (io::Result<bool>, io::Result<bool>) {
    let acceptor = files.parameters(server).unwrap().acceptor().unwrap();
    let connector = files.parameters(client).unwrap().connector().unwrap();
    let (mut server, mut client) =
        (Session::accept(&acceptor).unwrap(), Session::connect(&connector, "server").unwrap());
    meet(&mut client, &mut server)
}

#[test]
fn two_sides_trust_whom_they_should() {
    let files = Files::new();
    let with = |first: &[&'static str], rest: &[&'static str]| [first, rest].concat();
    let met = |server: &[&str], client: &[&str]| {
        let (client, server) = sides(&files, server, client);
        client.unwrap_or(false) && server.unwrap_or(false)
    };
    assert!(met(&SERVER, &[]), "without an authority any certificate is good");
    assert!(met(&SERVER, &["ssl_ca_file=ca.crt"]));
    assert!(!met(&SERVER, &["ssl_ca_file=other_ca.crt"]));
    let asking = with(&SERVER, &["ssl_ca_file=ca.crt"]);
    assert!(met(&asking, &CLIENT));
    assert!(met(&asking, &with(&CLIENT, &["ssl_ca_file=ca.crt"])));
    assert!(!met(&asking, &[]), "a client without a certificate");
    assert!(!met(&asking, &["ssl_cert_file=stranger.crt", "ssl_key_file=stranger.key"]));
    assert!(met(&SERVER, &["ssl_ciphers=ECDHE-ECDSA-AES128-GCM-SHA256"]));
    assert!(met(&with(&SERVER, &["ssl_ciphers=TLS_AES_256_GCM_SHA384:unknown"]), &[]));
    let other = ["ssl_ciphers=TLS_AES_128_GCM_SHA256"];
    assert!(!met(&with(&SERVER, &["ssl_ciphers=TLS_AES_256_GCM_SHA384"]), &other));
}

#[test]
fn files_that_are_not_what_they_should_be_are_named() {
    let files = Files::new();
    let put = |name: &str, bytes: &[u8]| std::fs::write(files.dir.path().join(name), bytes).unwrap();
    let take = |name: &str| std::fs::read(files.dir.path().join(name)).unwrap();
    let certificate = take("server.crt");
    put("cut.crt", &certificate[..certificate.len() / 2]);
    // The last of its bytes are gone, but not its frame.
    let text = String::from_utf8(certificate).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    put("short.crt", [&lines[..2], &lines[lines.len() - 1..]].concat().join("\n").as_bytes());
    put("empty", b"");
    put("binary", &[0x30, 0x82, 1, 2, 3, 0xff]);
    put("huge", &vec![b'x'; 2 << 20]);
    let key = take("server.key");
    put("cut.key", &key[..key.len() / 2]);
    for (given, words) in [
        (&["ssl_cert_file=no", "ssl_key_file=server.key"][..], "no: No such file"),
        (&["ssl_cert_file=server.crt", "ssl_key_file=no"], "no: No such file"),
        (&["ssl_cert_file=cut.crt", "ssl_key_file=server.key"], "cut.crt: has"),
        (&["ssl_cert_file=short.crt", "ssl_key_file=server.key"], "short.crt: has a damaged certificate"),
        (&["ssl_cert_file=empty", "ssl_key_file=server.key"], "empty: has no certificate"),
        (&["ssl_cert_file=binary", "ssl_key_file=server.key"], "binary: has no certificate"),
        (&["ssl_cert_file=huge", "ssl_key_file=server.key"], "huge: has 2097152 bytes"),
        (&["ssl_cert_file=.", "ssl_key_file=server.key"], ": is no file"),
        (&["ssl_cert_file=server.key", "ssl_key_file=server.crt"], "server.key: has no certificate"),
        (&["ssl_cert_file=server.crt", "ssl_key_file=server.crt"], "server.crt: has no private key"),
        (&["ssl_cert_file=server.crt", "ssl_key_file=cut.key"], "cut.key: has no private key"),
        (&["ssl_cert_file=server.crt", "ssl_key_file=client.key"], "client.key: is not the key of the certificate in"),
        (&["ssl_cert_file=server.crt"], "ssl_cert_file is given without ssl_key_file"),
        (&["ssl_key_file=server.key"], "ssl_key_file is given without ssl_cert_file"),
        (&[], "ssl_cert_file is missing"),
        (&["ssl_cert_file=server.crt", "ssl_key_file=server.key", "ssl_ca_file=empty"], "empty: has no certificate"),
        (&["ssl_cert_file=server.crt", "ssl_key_file=server.key", "ssl_ca_file=none"], "none: No such file"),
        (
            &["ssl_cert_file=server.crt", "ssl_key_file=server.key", "ssl_ciphers=ROT13"],
            "'ROT13' has none of TLS_AES_256",
        ),
        (&["ssl_crt_file=server.crt"], "there is no parameter ssl_crt_file"),
    ] {
        let said = files.refused(given);
        assert!(said.contains(words), "{given:?}: {said}");
    }
    let fifo = files.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(files.refused(&["ssl_cert_file=fifo", "ssl_key_file=server.key"]).contains("is no file"));
    let of = |pairs: &[(&str, &str)]| Parameters::of(pairs.iter().copied());
    assert_eq!(of(&[("transport", "plain"), ("x", "y")]).unwrap(), None);
    assert!(of(&[("transport", "pigeon")]).is_err());
    let empty = of(&[("transport", "ssl"), ("ssl_ciphers", "")]).unwrap_err().to_string();
    assert!(empty.contains("ssl_ciphers is empty"), "{empty}");
    assert!(of(&[("ssl_key_file", "x")]).is_err(), "who thinks of TLS must not get none");
}

#[test]
fn an_encrypted_key_needs_its_password() {
    let files = Files::new();
    let path = |name: &str| files.path(name);
    let made = Command::new("openssl")
        .args([
            "pkcs8",
            "-topk8",
            "-v2",
            "aes256",
            "-passout",
            "pass:secret",
            "-in",
            &path("server.key"),
            "-out",
            &path("enc.key"),
        ])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("SKIPPED: there is no openssl(1)");
        return;
    }
    std::fs::write(Path::new(&path("words")), "one\ntwo\nsecret\n").unwrap();
    std::fs::write(Path::new(&path("others")), "one\ntwo\n").unwrap();
    let own = ["ssl_cert_file=server.crt", "ssl_key_file=enc.key"];
    let with = |rest: &[&'static str]| [&own[..], rest].concat();
    for good in
        [&["ssl_password=secret"][..], &["ssl_password_file=words"], &["ssl_password=x", "ssl_password_file=words"]]
    {
        assert!(files.parameters(&with(good)).unwrap().acceptor().is_ok(), "{good:?}");
    }
    assert!(files.refused(&own).contains("enc.key: is encrypted: give ssl_password"));
    assert!(files.refused(&with(&["ssl_password=wrong"])).contains("enc.key: cannot be decrypted with 1 password"));
    assert!(files.refused(&with(&["ssl_password_file=others"])).contains("cannot be decrypted with 2 password"));
    assert!(files.refused(&with(&["ssl_password_file=none"])).contains("none: No such file"));
}

#[test]
fn bytes_go_through_whole_whatever_the_pieces() {
    let files = Files::new();
    let acceptor = files.parameters(&SERVER).unwrap().acceptor().unwrap();
    let connector = files.parameters(&[]).unwrap().connector().unwrap();
    let random = SeededRandomness::new(7);
    let (mut server, mut client) = (Session::accept(&acceptor).unwrap(), Session::connect(&connector, "x").unwrap());
    let (mut to_server, mut to_client) = (Pipe::default(), Pipe::default());
    while server.is_handshaking() || client.is_handshaking() {
        client.shake_hands(&mut to_client).unwrap();
        to_server.come.extend(to_client.to_send.drain(..));
        server.shake_hands(&mut to_server).unwrap();
        to_client.come.extend(to_server.to_send.drain(..));
    }
    let sent: Vec<u8> = (0..300_000).map(|_| random.next_u64() as u8).collect();
    let (mut at, mut got, mut gone) = (0, Vec::new(), 0);
    let mut buffer = vec![0; 40_000];
    while got.len() < sent.len() {
        let end = (at + random.next_u64() as usize % 100_000).min(sent.len());
        let written = client.write(&mut to_client, &sent[at..end]).unwrap();
        at += written.accepted;
        gone += written.gone;
        assert!(gone <= at && at - gone == client.held());
        let some = (random.next_u64() as usize % 50_000).min(to_client.to_send.len());
        to_server.come.extend(to_client.to_send.drain(..some));
        let size = 1 + random.next_u64() as usize % buffer.len();
        match server.read(&mut to_server, &mut buffer[..size]) {
            Ok(count) => got.extend_from_slice(&buffer[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert_eq!(got, sent);
    client.say_goodbye(&mut to_client);
    to_server.come.extend(to_client.to_send.drain(..));
    assert_eq!(server.read(&mut to_server, &mut buffer).unwrap(), 0);
    assert!(server.is_over());
}

#[test]
fn garbage_ends_a_handshake_and_nothing_else() {
    let files = Files::new();
    let acceptor = files.parameters(&SERVER).unwrap().acceptor().unwrap();
    let connector = files.parameters(&[]).unwrap().connector().unwrap();
    let mut client = Session::connect(&connector, "x").unwrap();
    let mut hello = Pipe::default();
    client.shake_hands(&mut hello).unwrap();
    assert!(is_hello(&hello.to_send));
    let random = SeededRandomness::new(11);
    for _ in 0..3000 {
        let mut bytes = hello.to_send.clone();
        for _ in 0..1 + random.next_u64() % 4 {
            let at = random.next_u64() as usize % bytes.len();
            bytes[at] = random.next_u64() as u8;
        }
        bytes.truncate(random.next_u64() as usize % (bytes.len() + 1));
        bytes.extend((0..random.next_u64() % 3000).map(|_| random.next_u64() as u8));
        let mut server = Session::accept(&acceptor).unwrap();
        let mut pipe = Pipe { come: bytes.into(), is_ended: random.next_u64().is_multiple_of(2), to_send: Vec::new() };
        let outcome = server.shake_hands(&mut pipe);
        assert!(!matches!(outcome, Ok(true)));
    }
    let said = |bytes: &[u8]| {
        let mut server = Session::accept(&acceptor).unwrap();
        let mut pipe = Pipe { come: bytes.to_vec().into(), ..Pipe::default() };
        server.shake_hands(&mut pipe).unwrap_err().to_string()
    };
    assert!(said(b"\xce\x00\x00\x00\x1b\x82\x00\x08").contains("does not speak TLS"));
    assert!(said(b"GET / HTTP/1.0\r\n\r\n").contains("does not speak TLS"));
}
