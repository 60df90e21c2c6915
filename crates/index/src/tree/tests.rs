//! The tree and its views against a sorted set.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Items are the keys themselves; hints are deliberately coarse so that ties are common.
fn hint(key: u64) -> u64 {
    key / 8
}

fn insert(tree: &mut Tree, key: u64) -> bool {
    if tree.append(Entry { hint: hint(key), item: key }, |item| item < key) {
        return true;
    }
    let slot = tree.locate(hint(key), |item| item.cmp(&key));
    if slot.found.is_some() {
        tree.replace_at(slot, Entry { hint: hint(key), item: key });
        return false;
    }
    tree.insert_at(slot, Entry { hint: hint(key), item: key });
    true
}

fn remove(tree: &mut Tree, key: u64) -> bool {
    let slot = tree.locate(hint(key), |item| item.cmp(&key));
    let found = slot.found.is_some();
    if found {
        tree.remove_at(slot);
    }
    found
}

fn ascending(mut cursor: Cursor) -> Vec<u64> {
    let mut all = Vec::new();
    while let Some(entry) = cursor.get() {
        all.push(entry.item);
        cursor.next();
    }
    all
}

fn check_separators(tree: &Tree) {
    fn walk(node: *mut u8, height: usize) -> Entry {
        if height == 0 {
            // SAFETY: a leaf of a live tree.
            let leaf = unsafe { &*node.cast::<Leaf>() };
            assert!(leaf.len > 0);
            return Entry { hint: leaf.hints[0], item: leaf.items[0] };
        }
        // SAFETY: an inner node of a live tree.
        let inner = unsafe { &*node.cast::<Inner>() };
        assert!(inner.len > 0);
        let mut first = None;
        for i in 0..inner.len {
            let smallest = walk(inner.children[i], height - 1);
            if i == 0 {
                first = Some(smallest);
            } else {
                assert_eq!(smallest, Entry { hint: inner.hints[i], item: inner.items[i] });
            }
        }
        first.expect("at least one child")
    }
    if !tree.root.node.is_null() {
        walk(tree.root.node, tree.root.height);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    /// So many keys in order, from one on.
    Ascend(u64, u64),
    Remove(u64),
    OpenView,
    CloseView(usize),
    Collect,
    Drain(usize),
    Fork,
    ShowBase(bool),
    EndFork(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..2000u64).prop_map(Step::Insert),
        1 => (0..2000u64, 1..200u64).prop_map(|(from, count)| Step::Ascend(from, count)),
        14 => (0..2000u64).prop_map(Step::Remove),
        1 => Just(Step::OpenView),
        1 => (0..4usize).prop_map(Step::CloseView),
        1 => Just(Step::Collect),
        1 => (1..100usize).prop_map(Step::Drain),
        1 => Just(Step::Fork),
        3 => any::<bool>().prop_map(Step::ShowBase),
        1 => any::<bool>().prop_map(Step::EndFork),
    ]
}

/// Number of nodes that can be reached.
fn count_nodes(node: *mut u8, height: usize) -> usize {
    if node.is_null() || height == 0 {
        return usize::from(!node.is_null());
    }
    // SAFETY: an inner node of a live tree.
    let inner = unsafe { &*node.cast::<Inner>() };
    1 + inner.children[..inner.len].iter().map(|child| count_nodes(*child, height - 1)).sum::<usize>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn tree_and_its_views_agree_with_a_sorted_set(steps in proptest::collection::vec(step(), 1..3000)) {
        let mut tree = Tree::new();
        let mut model = BTreeSet::new();
        let mut views: Vec<(TreeView, BTreeSet<u64>)> = Vec::new();
        // The state that is not in place, and whether the base is.
        let mut other: Option<(BTreeSet<u64>, bool)> = None;
        for step in steps {
            match step {
                // It takes a tree apart that nobody looks at, and leaves nodes of other states to the end of the tree.
                Step::Drain(_) if tree.own_views() > 0 => {}
                // Only what is in place is looked at by others.
                Step::OpenView if other.as_ref().is_some_and(|(_, is_base)| !is_base) => {}
                Step::Fork if other.is_none() => {
                    tree.fork();
                    other = Some((model.clone(), true));
                }
                Step::Fork => {}
                Step::ShowBase(shown) => {
                    tree.show_base(shown);
                    if let Some((other, is_base)) = other.as_mut().filter(|(_, is_base)| *is_base != shown) {
                        *is_base = shown;
                        std::mem::swap(&mut model, other);
                    }
                }
                Step::EndFork(keeps_base) => {
                    tree.end_fork(if keeps_base { Kept::Base } else { Kept::Changed });
                    if let Some((other, is_base)) = other.take()
                        && is_base != keeps_base
                    {
                        model = other;
                    }
                }
                Step::Insert(key) => prop_assert_eq!(insert(&mut tree, key), model.insert(key)),
                Step::Ascend(from, count) => {
                    for key in from..from + count {
                        prop_assert_eq!(insert(&mut tree, key), model.insert(key));
                    }
                }
                Step::Remove(key) => prop_assert_eq!(remove(&mut tree, key), model.remove(&key)),
                Step::OpenView => views.push((tree.open_view(), model.clone())),
                Step::CloseView(at) if at < views.len() => {
                    let (view, _) = views.swap_remove(at);
                    tree.close_view(view);
                }
                Step::CloseView(_) => {}
                Step::Collect => { tree.collect(3); }
                Step::Drain(max) => {
                    tree.drain_some(max, |item| assert!(model.remove(&item)));
                }
            }
            prop_assert_eq!(tree.len(), model.len());
        }
        check_separators(&tree);
        prop_assert_eq!(ascending(tree.first()), model.iter().copied().collect::<Vec<_>>());
        for probe in (0..2010).step_by(7) {
            let cmp = |item: u64| item.cmp(&probe);
            let of = |cursor: Cursor| cursor.get().map(|e| e.item);
            prop_assert_eq!(of(tree.lower_bound(hint(probe), cmp)), model.range(probe..).next().copied());
            prop_assert_eq!(of(tree.upper_bound(hint(probe), cmp)), model.range(probe + 1..).next().copied());
            prop_assert_eq!(of(tree.last_before(hint(probe), cmp)), model.range(..probe).next_back().copied());
            prop_assert_eq!(of(tree.last_not_after(hint(probe), cmp)), model.range(..=probe).next_back().copied());
            prop_assert_eq!(tree.get(hint(probe), cmp), model.get(&probe).copied());
        }
        let mut backwards = Vec::new();
        let mut cursor = tree.last();
        while let Some(entry) = cursor.get() { backwards.push(entry.item); cursor.prev(); }
        prop_assert_eq!(backwards, model.iter().rev().copied().collect::<Vec<_>>());
        for (view, then) in views {
            prop_assert_eq!(ascending(view.first()), then.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(view.len(), then.len());
            tree.close_view(view);
        }
        if let Some((hidden, is_base)) = other {
            tree.show_base(!is_base);
            prop_assert_eq!(ascending(tree.first()), hidden.iter().copied().collect::<Vec<_>>());
            tree.end_fork(if is_base { Kept::Changed } else { Kept::Base });
            prop_assert_eq!(ascending(tree.first()), hidden.iter().copied().collect::<Vec<_>>());
        }
        prop_assert!(!tree.has_views());
        while tree.collect(10) {}
        prop_assert_eq!(tree.bytes() / NODE_BYTES, count_nodes(tree.root.node, tree.root.height));
    }
}

/// Both states change in turns; each shows what was done to it.
#[test]
fn a_tree_that_is_forked_is_two_until_one_of_them_stays() {
    for kept in [Kept::Base, Kept::Changed] {
        let mut tree = Tree::new();
        (0..20_000).for_each(|key| assert!(insert(&mut tree, key)));
        tree.fork();
        for key in (0..20_000).step_by(2) {
            tree.show_base(false);
            assert!(remove(&mut tree, key));
            tree.show_base(true);
            assert_eq!(tree.get(hint(key), |item| item.cmp(&key)), Some(key));
            assert!(insert(&mut tree, key + 100_000));
        }
        assert_eq!(tree.len(), 30_000);
        tree.end_fork(kept);
        assert_eq!(tree.len(), if kept == Kept::Base { 30_000 } else { 10_000 });
        insert(&mut tree, 50_000);
        let mut slices = 0;
        while tree.collect(10) {
            slices += 1;
        }
        assert!(slices > 5, "nodes are freed in slices");
        assert_eq!(tree.bytes() / NODE_BYTES, count_nodes(tree.root.node, tree.root.height));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_tree_built_in_order_is_as_one_that_grew(
        keys in proptest::collection::btree_set(0..100_000u64, 0..6000),
        steps in proptest::collection::vec(step(), 0..300),
    ) {
        let mut tree = Tree::from_sorted(keys.iter().map(|&key| Entry { hint: hint(key), item: key }));
        check_separators(&tree);
        prop_assert_eq!(ascending(tree.first()), keys.iter().copied().collect::<Vec<_>>());
        let full = keys.len().div_ceil(LEAF_CAPACITY);
        prop_assert!(tree.bytes() / NODE_BYTES <= full + full.div_ceil(INNER_CAPACITY - 1) + 3);
        let mut model = keys;
        for step in steps {
            match step {
                Step::Insert(key) => prop_assert_eq!(insert(&mut tree, key), model.insert(key)),
                Step::Remove(key) => prop_assert_eq!(remove(&mut tree, key), model.remove(&key)),
                _ => {}
            }
        }
        check_separators(&tree);
        prop_assert_eq!(ascending(tree.first()), model.iter().copied().collect::<Vec<_>>());
    }
}

#[test]
fn ascending_inserts_fill_nodes() {
    let mut tree = Tree::new();
    for key in 0..100_000 {
        insert(&mut tree, key);
    }
    assert!(tree.bytes() < 100_000 * 18, "{} bytes", tree.bytes());
    assert_eq!(ascending(tree.first()).len(), 100_000);
}

#[test]
fn descending_inserts_fill_nodes() {
    let mut tree = Tree::new();
    for key in (0..100_000).rev() {
        insert(&mut tree, key);
    }
    assert!(tree.bytes() < 100_000 * 18, "{} bytes", tree.bytes());
    assert_eq!(ascending(tree.first()), (0..100_000).collect::<Vec<_>>());
    for key in (0..100_000).step_by(3) {
        remove(&mut tree, key);
    }
    assert_eq!(ascending(tree.first()).len(), 66_666);
}

#[test]
fn a_released_tree_is_empty_and_can_be_filled_again() {
    let mut tree = Tree::new();
    for key in 0..50_000 {
        insert(&mut tree, key);
    }
    let mut bytes = tree.bytes();
    while tree.release_some() {
        assert!(tree.is_empty() && tree.bytes() <= bytes);
        bytes = tree.bytes();
    }
    assert_eq!(tree.bytes(), 0);
    assert!(insert(&mut tree, 7));
    assert_eq!(ascending(tree.first()), vec![7]);
}

#[test]
fn a_view_is_read_by_another_thread_while_the_tree_changes() {
    let mut tree = Tree::new();
    for key in 0..20_000 {
        insert(&mut tree, key);
    }
    let view = tree.open_view();
    let reader = std::thread::spawn(move || {
        let sum: u64 = ascending(view.first()).iter().sum();
        (view, sum)
    });
    for key in 0..20_000 {
        remove(&mut tree, key);
        insert(&mut tree, key + 100_000);
    }
    let (view, sum) = reader.join().expect("reader does not panic");
    assert_eq!(sum, (0..20_000).sum());
    tree.close_view(view);
    while tree.collect(1000) {}
}
