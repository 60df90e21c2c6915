//! Subcommands that need more than a few lines.

pub(crate) mod planted;
pub(crate) mod seeds;
