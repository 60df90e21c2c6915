//! A frozen picture of a space's rows, to be read by another thread (a checkpoint).

use super::index::row_of;
use index::{Cursor, HashCursor, HashView, TreeView, prefetch_bytes};

/// Rows that are fetched into the processor's caches together: neighbours in the tree lie far apart in memory.
const GROUP: usize = 16;
/// Of each.
const PREFETCHED_ROW_BYTES: usize = 128;

/// Rows as they were when the view was opened. Keeps no references: the arena keeps rows that a view may read.
pub struct MemoryView {
    content: Content,
}

enum Content {
    Tree(TreeView),
    Hash(HashView),
}

impl MemoryView {
    pub(crate) fn tree(view: TreeView) -> Self {
        MemoryView { content: Content::Tree(view) }
    }

    pub(crate) fn hash(view: HashView) -> Self {
        MemoryView { content: Content::Hash(view) }
    }

    pub(crate) fn into_tree(self) -> Option<TreeView> {
        match self.content {
            Content::Tree(view) => Some(view),
            Content::Hash(_) => None,
        }
    }

    pub(crate) fn as_tree(&self) -> Option<&TreeView> {
        match &self.content {
            Content::Tree(view) => Some(view),
            Content::Hash(_) => None,
        }
    }

    /// True if it must be given back to the space it came from (a hash view may simply be dropped).
    pub fn needs_closing(&self) -> bool {
        matches!(self.content, Content::Tree(_))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.content {
            Content::Tree(view) => view.len(),
            Content::Hash(view) => view.len(),
        }
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands every row to `visit`, in primary key order if the primary index is ordered, until it returns an error.
    pub fn for_each<E>(&self, mut visit: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match &self.content {
            Content::Tree(view) => {
                let mut cursor: Cursor = view.first();
                let mut group = Vec::with_capacity(GROUP);
                loop {
                    while group.len() < GROUP
                        && let Some(entry) = cursor.get()
                    {
                        prefetch_bytes(entry.item as *const u8, PREFETCHED_ROW_BYTES);
                        group.push(entry.item);
                        cursor.next();
                    }
                    if group.is_empty() {
                        return Ok(());
                    }
                    group.drain(..).try_for_each(|item| visit(row_of(item)))?;
                }
            }
            Content::Hash(view) => {
                let mut cursor = HashCursor::default();
                let mut result = Ok(());
                while result.is_ok()
                    && view.next_batch(&mut cursor, |item| {
                        if result.is_ok() {
                            result = visit(row_of(item));
                        }
                    })
                {}
                result
            }
        }
    }
}
