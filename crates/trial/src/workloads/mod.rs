//! All workloads. A new one is a file here and a line in [`all`].

mod bank;
mod checkpoints;
mod doors;
mod grants;
mod inventory;
mod large;
mod limit;
mod registers;
mod reindex;
mod ring;
mod secondary;
mod sequences;
#[cfg(test)]
mod tests;
mod transactions;
mod truncate;
mod unique;

pub use inventory::{CLIENTS, STOCK};
pub use registers::REGISTERS_SPACE;

use crate::doors::Doors;
use crate::workload::Workload;

/// Every workload.
pub fn all() -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(bank::Bank),
        Box::new(checkpoints::Checkpoints),
        Box::new(grants::Grants),
        Box::new(inventory::Inventory),
        Box::new(large::Large),
        Box::new(limit::Limit),
        Box::new(registers::Registers),
        Box::new(reindex::Reindex),
        Box::new(ring::Ring),
        Box::new(secondary::Secondary),
        Box::new(sequences::Sequences),
        Box::new(transactions::Transactions),
        Box::new(truncate::Truncate),
        Box::new(unique::UniqueKeys),
    ]
}

/// The workload of a name.
pub fn named(name: &str) -> Option<Box<dyn Workload>> {
    all().into_iter().find(|workload| workload.name() == name)
}

/// The workloads whose clients come through doors, all over the same rows.
pub fn through_doors(doors: &Doors) -> Vec<Box<dyn Workload>> {
    doors::all(doors)
}
