//! The log in `write` mode: a group counts when the operating system has it.
//!
//! The caller writes each group itself, as a plain block through the page cache, so none is ever in flight. Only a change of files lets groups
//! wait: the new file's groups count when its name is durable, and its name comes after the old file was synced.

use super::{Journal, WalMode};
use crate::block::{self, encode_plain};
use crate::error::WalError;

impl Journal {
    /// Writes the open group. Blocks if the system's page cache does.
    pub(super) fn write_plain(&mut self) {
        assert!(self.config.mode == WalMode::Write && self.in_flight.is_empty(), "`write` mode has nothing in flight");
        let wanted = self.group.len() as u64;
        let is_over = self.files.is_full(wanted);
        // With the next file at hand this group is the last one of the present file.
        let is_last_group = is_over && self.files.can_change();
        if is_over
            && !is_last_group
            && !self.files.is_next_coming()
            && let Err(error) = self.rotate_plain()
        {
            self.files.write_on(wanted, &error);
        }
        if self.failure.is_some() || !self.check_removed() {
            return;
        }
        let Some(segment) = &mut self.files.segment else { return };
        let mut block = Vec::with_capacity(self.group.len() + block::FIXHEADER_BYTES);
        encode_plain(&self.group, &mut block);
        match segment.file.write_all_at(&block, segment.offset) {
            Ok(()) => {
                segment.offset += block.len() as u64;
                segment.groups += 1;
                segment.flush_ahead(&self.config);
                self.bytes_since_checkpoint += block.len() as u64;
                self.end_group();
                self.written = self.appended;
                if self.files.holds_back().is_none() {
                    self.set_durable(self.written);
                }
                if is_last_group && let Err(error) = self.begin_rotation() {
                    self.files.write_on(0, &error);
                }
            }
            Err(source) => {
                let what = format!("writing {}", segment.path.display());
                self.fail(WalError::Io { what, source });
            }
        }
    }

    /// As [`Journal::rotate`].
    pub(super) fn rotate_written(&mut self) -> Result<(), WalError> {
        self.submit();
        self.check_failed()?;
        if self.files.has_rows() && self.begin_rotation()? {
            return self.check_failed();
        }
        self.rotate_plain()
    }
}
