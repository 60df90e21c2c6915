//! A few bytes that are replaced as a whole and durably, however often.
//!
//! Two copies lie in one file, each on a page of its own, with a number and a checksum. They are overwritten in turns: a crash tears the
//! one that is being written, and the other still holds what was there before. Nothing is allocated after the file was made, so a full
//! disk takes the write.
//!
//! ```text
//! page 0   "LYCOSLOT"  number u64  length u32  checksum u32  content
//! page 1   the same, written when page 0 was written last
//! ```
//!
//! Numbers are little-endian. The checksum is FNV-1a of number, length and content, folded to 32 bits.

use super::{File, FileSystem, OpenMode};
use crate::PAGE_BYTES;
use std::io;
use std::path::Path;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"LYCOSLOT";
const HEAD_BYTES: usize = 24;
const COPIES: u64 = 2;
/// Longest content.
const CONTENT_MAX: usize = PAGE_BYTES - HEAD_BYTES;

/// What a file of slots holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slots {
    /// There is no such file.
    Absent,
    /// There is one, and neither copy is good. No crash leaves it so.
    Damaged,
    /// The content that was written last.
    Content(Vec<u8>),
}

impl Slots {
    /// Reads a file. Errors: the system's.
    pub fn read(files: &dyn FileSystem, path: &Path) -> io::Result<Self> {
        if !files.exists(path) {
            return Ok(Slots::Absent);
        }
        let file = files.open(path, OpenMode::READ)?;
        Ok(newest(&*file)?.map_or(Slots::Damaged, |(_, content)| Slots::Content(content)))
    }
}

/// A file of slots that is open for writing.
pub struct SlotFile {
    file: Arc<dyn File>,
    /// The number of the newest copy.
    number: u64,
}

impl SlotFile {
    /// Opens a file, or makes one that holds `content`, durably, if there is none or neither of its copies is good. Errors: the system's.
    pub fn open(files: &dyn FileSystem, path: &Path, content: &[u8]) -> io::Result<Self> {
        if files.exists(path) {
            let file = files.open(path, OpenMode::MODIFY)?;
            if let Some((number, _)) = newest(&*file)? {
                return Ok(SlotFile { file, number });
            }
        }
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".inprogress");
        let file = files.open(Path::new(&unfinished), OpenMode::CREATE)?;
        for number in 1..=COPIES {
            file.write_all_at(&encode(number, content)?, place(number))?;
        }
        file.sync()?;
        files.rename(Path::new(&unfinished), path)?;
        path.parent().map_or(Ok(()), |dir| files.sync_dir(dir))?;
        Ok(SlotFile { file, number: COPIES })
    }

    /// Replaces the content, durably.
    ///
    /// Errors: the system's, or the content is too long. It is not known then which content a crash leaves.
    pub fn write(&mut self, content: &[u8]) -> io::Result<()> {
        // The copy before it stays whole whatever becomes of this one, also if it is tried again.
        let number = self.number + 1;
        self.file.write_all_at(&encode(number, content)?, place(number))?;
        self.file.sync()?;
        self.number = number;
        Ok(())
    }
}

fn place(number: u64) -> u64 {
    number % COPIES * PAGE_BYTES as u64
}

fn checksum(bytes: &[u8]) -> u32 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    (hash ^ (hash >> 32)) as u32
}

/// A copy, filled up to a page.
fn encode(number: u64, content: &[u8]) -> io::Result<Vec<u8>> {
    if content.len() > CONTENT_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too long for a slot"));
    }
    let mut page = Vec::with_capacity(PAGE_BYTES);
    page.extend_from_slice(MAGIC);
    page.extend_from_slice(&number.to_le_bytes());
    page.extend_from_slice(&(content.len() as u32).to_le_bytes());
    let checksum = checksum(&[&page[8..], content].concat());
    page.extend_from_slice(&checksum.to_le_bytes());
    page.extend_from_slice(content);
    page.resize(PAGE_BYTES, 0);
    Ok(page)
}

fn decode(page: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (head, rest) = page.split_first_chunk::<HEAD_BYTES>()?;
    let number = u64::from_le_bytes(*head[8..].first_chunk()?);
    let length = u32::from_le_bytes(*head[16..].first_chunk()?) as usize;
    let found = u32::from_le_bytes(*head[20..].first_chunk()?);
    let content = rest.get(..length)?;
    let is_good = head.starts_with(MAGIC) && checksum(&[&head[8..20], content].concat()) == found;
    is_good.then(|| (number, content.to_vec()))
}

/// The newest good copy and its number.
fn newest(file: &dyn File) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut best: Option<(u64, Vec<u8>)> = None;
    for copy in 0..COPIES {
        let mut page = vec![0; PAGE_BYTES];
        let got = file.read_full_at(&mut page, place(copy))?;
        let found = decode(&page[..got]).filter(|(number, _)| place(*number) == place(copy));
        if let Some(found) = found
            && best.as_ref().is_none_or(|best| found.0 > best.0)
        {
            best = Some(found);
        }
    }
    Ok(best)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::{Fault, Loss, SimulatedFiles};

    const PATH: &str = "/db/note";

    #[test]
    fn a_power_loss_leaves_the_content_before_or_the_content_behind() {
        let files = SimulatedFiles::default();
        files.create_dir_all(Path::new("/db")).unwrap();
        files.keep_points();
        let mut slots = SlotFile::open(&files, Path::new(PATH), b"0").unwrap();
        for number in 1..6 {
            slots.write(format!("{number}").as_bytes()).unwrap();
        }
        let mut newest = None;
        for (at, point) in files.take_points().iter().enumerate() {
            // What is durable by now; behind it comes at most what is being written.
            if let Slots::Content(content) = Slots::read(&point.crash(Loss::All), Path::new(PATH)).unwrap() {
                newest = Some(String::from_utf8(content).unwrap().parse().unwrap());
            }
            for loss in Loss::kinds(point.unsynced(), at as u64 * 5..at as u64 * 5 + 5) {
                let found = match Slots::read(&point.crash(loss), Path::new(PATH)).unwrap() {
                    Slots::Absent => None,
                    Slots::Damaged => panic!("{at}, {loss}: damaged"),
                    Slots::Content(content) => Some(String::from_utf8(content).unwrap().parse::<u32>().unwrap()),
                };
                assert!(
                    found == newest || found == Some(newest.map_or(0, |number| number + 1)),
                    "{at}, {loss}: {found:?}"
                );
            }
        }
        assert_eq!(newest, Some(4));
        assert_eq!(Slots::read(&files, Path::new(PATH)).unwrap(), Slots::Content(b"5".to_vec()));
    }

    #[test]
    fn a_copy_that_cannot_be_read_leaves_the_other_and_two_are_damage() {
        let files = SimulatedFiles::default();
        files.create_dir_all(Path::new("/db")).unwrap();
        let mut slots = SlotFile::open(&files, Path::new(PATH), b"first").unwrap();
        slots.write(b"second").unwrap();
        let newest = |files: &SimulatedFiles| Slots::read(files, Path::new(PATH)).unwrap();
        let len = (HEAD_BYTES + b"second".len()) as u64;
        for bit in 0..len * 8 {
            let damaged = files.fork();
            damaged.flip_bit(Path::new(PATH), place(3) * 8 + bit);
            assert_eq!(newest(&damaged), Slots::Content(b"first".to_vec()), "bit {bit}");
        }
        for cut in 0..PAGE_BYTES as u64 {
            let damaged = files.fork();
            damaged.open(Path::new(PATH), OpenMode::MODIFY).unwrap().set_len(cut).unwrap();
            let expected = if cut < HEAD_BYTES as u64 + 5 { Slots::Damaged } else { Slots::Content(b"first".to_vec()) };
            assert_eq!(newest(&damaged), expected, "cut at {cut}");
        }
        files.set_fault(Fault { changes_until_off: Some(0), ..Fault::default() });
        assert!(slots.write(b"third").is_err());
        assert!(slots.write(&vec![0; PAGE_BYTES]).is_err());
    }
}
