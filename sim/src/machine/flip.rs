//! A bit of some file flips between two lives. It is found, or nobody needs it; no row is lost or wrong without an error that names the file.
//!
//! Logs and snapshots are read as a whole by a start, which refuses or does not need the bit. Files of the disk engine are read block by
//! block: `lycosa check` has to report every bit of them that is in force, and whatever reads the block later, for a client or for a merge, has to
//! say file and byte. So the server lives twice over such a bit, with everything checked, before and after all runs were to be merged.

use super::branch::Branch;
use super::client::view;
use super::process::Process;
use super::seed::{DISK_DIR, Run, all_files};
use super::watch;
use runtime::{Fault, FileSystem, OpenMode, Randomness, SimulatedFiles};
use std::path::Path;
use std::rc::Rc;
use storage::lsm::{FileReport, FileRole, check_directory};
use trial::Operation;

/// A file that is cut keeps fewer bytes: less than its header.
const CUT_BYTES_MAX: u64 = 60;

/// Dumps all levels and merges all runs, and waits for that. Where the damage lies it fails.
const MERGE_ALL: &str = "
    pcall(box.snapshot)
    for _, row in box.space._index:pairs() do
        local space = box.space[row[1]]
        if space.engine == 'vinyl' and space.index[row[2]] then
            pcall(space.index[row[2]].compact, space.index[row[2]])
        end
    end
    require('fiber').sleep(1)
";

impl Run<'_> {
    /// Starts from a copy of the disk on which a bit has flipped, in a file of the disk engine or in another, and throws the copy away. False
    /// if a promise was broken.
    pub(super) fn survives_flip(&mut self, is_of_disk: bool) -> bool {
        let copy = self.disk.fork();
        let mut found = all_files(&copy);
        found.retain(|(path, bytes)| path.starts_with(DISK_DIR) == is_of_disk && !bytes.is_empty());
        if found.is_empty() {
            return true;
        }
        let chosen = self.dice.next_u64() as usize % found.len();
        let (path, bytes) = found.swap_remove(chosen);
        let bit = self.dice.next_u64() % (bytes.len() as u64 * 8);
        copy.flip_bit(&path, bit);
        watch::count(Branch::BitFlip);
        self.simulation.note(7, || format!("bit {} of byte {} of {} flips", bit % 8, bit / 8, path.display()));
        let intact = self.disk.clone();
        let is_kept = if is_of_disk {
            watch::count(Branch::BitFlipOnDisk);
            self.is_reported(&copy, &path, bit / 8) && self.serves_over(copy, &path)
        } else {
            self.starts_or_refuses(copy, &path)
        };
        self.disk = intact;
        is_kept
    }

    /// Starts from a copy of the disk on which the newest log or the manifest is missing or cut to its beginning, and throws the copy away. The
    /// start refuses, or nothing that was promised was in the file. False if a promise was broken.
    pub(super) fn survives_missing_file(&mut self) -> bool {
        let copy = self.disk.fork();
        let is_of_disk = self.dice.next_u64().is_multiple_of(2);
        let is_wanted = |path: &Path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            match is_of_disk {
                true => name.starts_with("manifest-") && path.extension().is_none(),
                false => path.extension().is_some_and(|kind| kind == "xlog"),
            }
        };
        let newest = all_files(&copy).into_iter().map(|(path, _)| path).filter(|path| is_wanted(path)).max();
        let Some(path) = newest else { return true };
        let cut = self.dice.next_u64() % (2 * CUT_BYTES_MAX);
        let spoiled = match cut < CUT_BYTES_MAX {
            true => copy.open(&path, OpenMode::MODIFY).and_then(|file| file.set_len(file.len()?.min(cut))),
            false => copy.remove(&path),
        };
        if spoiled.is_err() {
            return true;
        }
        watch::count(Branch::FileMissing);
        self.simulation.note(8, || format!("{} is cut to {cut} bytes, or missing", path.display()));
        let intact = self.disk.clone();
        let is_kept = self.starts_or_refuses(copy, &path);
        self.disk = intact;
        is_kept
    }

    /// Over a log or a snapshot.
    fn starts_or_refuses(&mut self, copy: SimulatedFiles, path: &Path) -> bool {
        self.disk = copy;
        match Process::start(&self.simulation, self.files(), &self.settings) {
            Ok(mut process) => {
                watch::count(Branch::BitFlipUnread);
                self.check_over(&mut process, &format!("{}: damaged at byte ", path.display()));
                self.leave(process);
            }
            Err(error) => {
                watch::count(Branch::BitFlipRefused);
                self.simulation.kill();
                let name_of =
                    |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let files = all_files(&self.disk);
                // A log that was made ready gets its name from the start that finds rows in it.
                let is_renamed = files.iter().all(|(other, _)| other != path);
                let is_named = error.contains(&name_of(path))
                    || is_renamed && files.iter().any(|(other, _)| error.contains(&name_of(other)));
                if !is_named {
                    self.fail("start", format!("a flipped bit of {} is refused as {error:?}", path.display()));
                }
            }
        }
        self.simulation.revive(false);
        self.violation.is_none()
    }

    /// The process ends at once; what it has written is there.
    fn leave(&mut self, process: Process) {
        let left = self.disk.fork();
        self.simulation.kill();
        self.disk.set_fault(Fault { changes_until_off: Some(0), ..Fault::default() });
        process.end();
        self.disk = left;
    }

    /// True if `lycosa check` reports the byte, or the byte is in nothing that is in force.
    fn is_reported(&mut self, copy: &SimulatedFiles, path: &Path, byte: u64) -> bool {
        let look = |files: &SimulatedFiles| match check_directory(files, Path::new(DISK_DIR)) {
            Ok(reports) => reports.into_iter().find(|report| report.path == path).ok_or_else(|| "nothing".to_string()),
            Err(error) => Err(error.to_string()),
        };
        let Ok(intact) = look(&self.disk) else {
            // A file that is not the engine's.
            return true;
        };
        let is_torn = |report: &FileReport| report.torn.as_ref().is_some_and(|(torn_at, ..)| byte >= *torn_at);
        let is_needed = intact.role != FileRole::Orphan && !is_torn(&intact);
        let found = look(copy);
        let is_found = found.as_ref().is_ok_and(|report| {
            // Without the mark behind it the newest record of a manifest that was promised stands all the same: the mark looks torn. One record
            // behind it that no mark confirms goes with it, and was not promised.
            report.damage.iter().any(|damage| damage.offset <= byte)
                || is_torn(report) && report.items + 1 >= intact.items
        });
        if is_needed && !is_found {
            self.fail("check", format!("a flipped bit of byte {byte} of {} is reported as {found:?}", path.display()));
            return false;
        }
        true
    }

    /// Two lives over a file of the disk engine with a flipped bit.
    fn serves_over(&mut self, copy: SimulatedFiles, path: &Path) -> bool {
        // As the engine's errors begin, wherever they are told.
        let place = format!("{}: damaged at byte ", path.display());
        self.disk = copy;
        for life in 0..2 {
            match Process::start(&self.simulation, self.files(), &self.settings) {
                Ok(mut process) => {
                    watch::count(Branch::BitFlipUnread);
                    self.check_over(&mut process, &place);
                    if life == 0 && self.violation.is_none() {
                        self.beside(&mut process, |connection| connection.perform(&Operation::eval(MERGE_ALL)));
                        self.check_over(&mut process, &place);
                    }
                    self.leave(process);
                }
                Err(error) => {
                    watch::count(Branch::BitFlipRefused);
                    self.simulation.kill();
                    // Its locks end with the process, and what it has not let go of.
                    self.disk = self.disk.fork();
                    if !error.contains(&place) {
                        self.fail("start", format!("a flipped bit of {} is refused as {error:?}", path.display()));
                    }
                }
            }
            self.simulation.revive(false);
            if self.violation.is_some() {
                return false;
            }
        }
        true
    }

    /// Holds what is there against every history, as far as it can be read. Whatever cannot has to say the place.
    fn check_over(&mut self, process: &mut Process, place: &str) {
        let (shared, seed, place) = (Rc::clone(&self.shared), self.plan.seed, place.to_string());
        let found = self.beside(process, move |connection| {
            for trial in &shared.trials {
                let history = trial.history.borrow();
                let mut view = |operation| view(connection, &operation);
                match trial.workload.check(seed, &history, &mut view) {
                    Err(violation) if violation.to_string().contains(&place) => watch::count(Branch::DamageRead),
                    Err(violation) => return Err((trial.workload.name(), violation.to_string())),
                    Ok(()) => {}
                }
            }
            Ok(())
        });
        self.check_reads();
        match found {
            Some(Ok(())) => {}
            Some(Err((workload, what))) => self.fail(workload, format!("over a flipped bit: {what}")),
            None => self.fail("server", "the checker was not answered over a flipped bit".to_string()),
        }
    }
}
