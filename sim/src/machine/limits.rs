//! What of a seed's own choices is left out, to find the smallest run that still fails.
//!
//! A choice that is left out is still made, so that the others stay what they are as long as possible.

use std::collections::BTreeSet;
use std::fmt;
use trial::Engines;

/// Something that a seed may do to the server and that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// A sync that fails.
    SyncFails,
    /// A write behind that fails.
    WriteBehindFails,
    /// A write that fails.
    WriteFails,
    /// A full disk.
    DiskFull,
    /// A wrong time of day.
    ClockJump,
    /// Connections that are cut.
    Cut,
    /// Sockets that take little.
    NarrowSocket,
    /// Files that take their time.
    SlowDisk,
    /// The end of the power; the process is killed instead.
    PowerLoss,
    /// The end of the power during a start.
    SpoiledStart,
    /// Connections that are half open after the end.
    SilentEnd,
    /// A bit that flips between two lives.
    BitFlip,
}

impl Hazard {
    /// All of them.
    pub const ALL: &[Hazard] = &[
        Hazard::SyncFails,
        Hazard::WriteBehindFails,
        Hazard::WriteFails,
        Hazard::DiskFull,
        Hazard::ClockJump,
        Hazard::Cut,
        Hazard::NarrowSocket,
        Hazard::SlowDisk,
        Hazard::PowerLoss,
        Hazard::SpoiledStart,
        Hazard::SilentEnd,
        Hazard::BitFlip,
    ];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Hazard::SyncFails => "sync-fails",
            Hazard::WriteBehindFails => "write-behind-fails",
            Hazard::WriteFails => "write-fails",
            Hazard::DiskFull => "disk-full",
            Hazard::ClockJump => "clock-jump",
            Hazard::Cut => "cut",
            Hazard::NarrowSocket => "narrow-socket",
            Hazard::SlowDisk => "slow-disk",
            Hazard::PowerLoss => "power-loss",
            Hazard::SpoiledStart => "spoiled-start",
            Hazard::SilentEnd => "silent-end",
            Hazard::BitFlip => "bit-flip",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Hazard::ALL.iter().copied().find(|hazard| hazard.name() == name)
    }
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where all rows of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// In memory.
    Memory,
    /// On disk.
    Disk,
    /// Some spaces of each.
    Mixed,
}

impl Engine {
    /// All of them.
    pub const ALL: &[Engine] = &[Engine::Memory, Engine::Disk, Engine::Mixed];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Memory => "memory",
            Engine::Disk => "disk",
            Engine::Mixed => "mixed",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Engine::ALL.iter().copied().find(|engine| engine.name() == name)
    }

    /// For the workloads of a seed.
    pub(super) fn engines(self, seed: u64) -> Engines {
        match self {
            Engine::Memory => Engines::Memory,
            Engine::Disk => Engines::Disk,
            Engine::Mixed => Engines::Mixed(seed),
        }
    }
}

/// Bounds of a run; by itself everything is the seed's own choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Most clients of a workload.
    pub clients_max: Option<usize>,
    /// Most lives of the server that are ended.
    pub lives_max: Option<u64>,
    /// Longest time that clients work in a life, in simulated microseconds.
    pub load_us_max: Option<u64>,
    /// Switched off.
    pub without: BTreeSet<Hazard>,
    /// Where rows are.
    pub engine: Option<Engine>,
}

impl Limits {
    /// True if the seed may choose it.
    pub fn allow(&self, hazard: Hazard) -> bool {
        !self.without.contains(&hazard)
    }
}
