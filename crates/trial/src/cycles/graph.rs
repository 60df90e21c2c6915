//! Edges between transactions, and the smallest cycles among them.

use super::transaction::Key;
use std::collections::VecDeque;

/// So many cycles are told, each of another component.
const CYCLES_TOLD: usize = 5;
/// So many edges are looked at in all the searches for a smallest cycle.
const SEARCH_EDGES: u64 = 100_000_000;

/// Why one comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    WriteWrite = 1,
    WriteRead = 2,
    ReadWrite = 4,
    /// It was answered before the other was asked.
    Time = 8,
}

/// A set of kinds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const WW: Kinds = Kinds(Kind::WriteWrite as u8);
    pub(super) const WW_WR: Kinds = Kinds(Kinds::WW.0 | Kind::WriteRead as u8);
    pub(super) const DATA: Kinds = Kinds(Kinds::WW_WR.0 | Kind::ReadWrite as u8);
    pub(super) const WW_WR_TIME: Kinds = Kinds(Kinds::WW_WR.0 | Kind::Time as u8);
    pub(super) const ALL: Kinds = Kinds(Kinds::DATA.0 | Kind::Time as u8);

    fn has(self, kind: Kind) -> bool {
        self.0 & kind as u8 != 0
    }

    fn without(self, kind: Kind) -> Self {
        Kinds(self.0 & !(kind as u8))
    }
}

/// `from` comes before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kind: Kind,
    /// The read was one of a range.
    pub(super) by_range: bool,
    pub(super) key: Key,
    /// The version that shows it: for `WriteRead` the one that was read, otherwise the one that `to` wrote.
    pub(super) value: u64,
}

/// Edges by where they begin.
pub(super) struct Graph {
    edges: Vec<Edge>,
    /// The edges of node n are those from `starts[n]` to `starts[n + 1]`.
    starts: Vec<usize>,
    /// Nodes from this number on are moments, not transactions.
    transaction_count: usize,
}

/// How a search came to a node.
#[derive(Clone, Copy, Default)]
struct Reached {
    /// Which search.
    stamp: u32,
    distance: u32,
    edge: usize,
}

/// Memory of a search, used again by the next one.
struct Search {
    /// How each node was reached last.
    reached: Vec<Reached>,
    stamp: u32,
    edges_left: u64,
}

impl Graph {
    pub(super) fn new(node_count: usize, transaction_count: usize, mut edges: Vec<Edge>) -> Self {
        edges.sort_unstable();
        edges.dedup_by_key(|edge| (edge.from, edge.to, edge.kind));
        let mut starts = vec![0; node_count + 1];
        for edge in &edges {
            starts[edge.from as usize + 1] += 1;
        }
        for node in 0..node_count {
            starts[node + 1] += starts[node];
        }
        Graph { edges, starts, transaction_count }
    }

    fn node_count(&self) -> usize {
        self.starts.len() - 1
    }

    fn is_transaction(&self, node: u32) -> bool {
        (node as usize) < self.transaction_count
    }

    /// Components of more than one node (Tarjan, 1972), the smallest first.
    fn components(&self, kinds: Kinds) -> Vec<Vec<u32>> {
        const UNSEEN: u32 = u32::MAX;
        let mut number = vec![UNSEEN; self.node_count()];
        let mut lowest = vec![0u32; self.node_count()];
        let mut is_open = vec![false; self.node_count()];
        let mut open: Vec<u32> = Vec::new();
        // Nodes on the way down, each with the edge to go on with.
        let mut way: Vec<(u32, usize)> = Vec::new();
        let mut next_number = 0;
        let mut found = Vec::new();
        for root in 0..self.node_count() as u32 {
            if number[root as usize] != UNSEEN {
                continue;
            }
            way.push((root, self.starts[root as usize]));
            while let Some((node, at)) = way.pop() {
                let here = node as usize;
                if number[here] == UNSEEN {
                    (number[here], lowest[here]) = (next_number, next_number);
                    next_number += 1;
                    open.push(node);
                    is_open[here] = true;
                } else if at > self.starts[here] {
                    // Back from below, by the edge before.
                    let below = self.edges[at - 1].to as usize;
                    if is_open[below] && kinds.has(self.edges[at - 1].kind) {
                        lowest[here] = lowest[here].min(lowest[below]);
                    }
                }
                let mut at = at;
                let mut is_over = true;
                while at < self.starts[here + 1] {
                    let edge = &self.edges[at];
                    at += 1;
                    if !kinds.has(edge.kind) {
                        continue;
                    }
                    let below = edge.to as usize;
                    if number[below] == UNSEEN {
                        way.push((node, at));
                        way.push((edge.to, self.starts[below]));
                        is_over = false;
                        break;
                    }
                    if is_open[below] {
                        lowest[here] = lowest[here].min(number[below]);
                    }
                }
                if is_over && lowest[here] == number[here] {
                    let from = open.iter().rposition(|other| *other == node).unwrap_or(0);
                    let component = open.split_off(from);
                    component.iter().for_each(|member| is_open[*member as usize] = false);
                    if component.len() > 1 {
                        found.push(component);
                    }
                }
            }
        }
        found.sort_by_key(Vec::len);
        found
    }

    /// The smallest cycle of each of the first few components, as far as the searches may go. A cycle with one `ReadWrite` is preferred to one with
    /// several: it breaks more promises.
    pub(super) fn smallest_cycles(&self, kinds: Kinds) -> Vec<Vec<Edge>> {
        let components = self.components(kinds);
        if components.is_empty() {
            return Vec::new();
        }
        let mut search =
            Search { reached: vec![Reached::default(); self.node_count()], stamp: 0, edges_left: SEARCH_EDGES };
        let mut component_of = vec![0u32; self.node_count()];
        for (at, component) in components.iter().enumerate() {
            component.iter().for_each(|node| component_of[*node as usize] = at as u32 + 1);
        }
        let mut cycles = Vec::new();
        for component in components.iter().take(CYCLES_TOLD) {
            let is_single = kinds.has(Kind::ReadWrite);
            let single = is_single.then(|| self.smallest_cycle(component, kinds, true, &component_of, &mut search));
            let cycle = single.flatten().or_else(|| {
                search.edges_left = search.edges_left.max(SEARCH_EDGES / 10);
                self.smallest_cycle(component, kinds, false, &component_of, &mut search)
            });
            cycles.extend(cycle);
        }
        cycles
    }

    /// The smallest cycle in a component; with exactly one `ReadWrite` if so wanted.
    fn smallest_cycle(
        &self,
        component: &[u32],
        kinds: Kinds,
        is_single: bool,
        component_of: &[u32],
        search: &mut Search,
    ) -> Option<Vec<Edge>> {
        let rest = if is_single { kinds.without(Kind::ReadWrite) } else { kinds };
        let mut best: Option<Vec<Edge>> = None;
        for &node in component.iter().filter(|node| self.is_transaction(**node)) {
            for at in self.starts[node as usize]..self.starts[node as usize + 1] {
                let first = self.edges[at];
                let is_start = if is_single { first.kind == Kind::ReadWrite } else { kinds.has(first.kind) };
                if !is_start || component_of[first.to as usize] != component_of[node as usize] {
                    continue;
                }
                let length = best.as_ref().map_or(usize::MAX, |cycle| self.weight(cycle));
                if length <= 2 || search.edges_left == 0 {
                    return best;
                }
                // The way back has to be shorter than the best cycle without its first edge.
                if let Some(back) = self.shortest_way(first.to, node, rest, length - 1, component_of, search) {
                    let mut cycle = vec![first];
                    cycle.extend(back);
                    if self.weight(&cycle) < length {
                        best = Some(cycle);
                    }
                }
            }
        }
        best
    }

    /// Transactions on a cycle.
    fn weight(&self, cycle: &[Edge]) -> usize {
        cycle.iter().filter(|edge| self.is_transaction(edge.from)).count()
    }

    /// A way with the fewest transactions on it, fewer than `below`.
    fn shortest_way(
        &self,
        from: u32,
        to: u32,
        kinds: Kinds,
        below: usize,
        component_of: &[u32],
        search: &mut Search,
    ) -> Option<Vec<Edge>> {
        search.stamp += 1;
        search.reached[from as usize] = Reached { stamp: search.stamp, distance: 0, edge: usize::MAX };
        // Leaving a moment costs nothing, so what it leads to goes to the front.
        let mut open = VecDeque::from([(from, 0)]);
        while let Some((node, distance)) = open.pop_front() {
            if search.reached[node as usize].distance < distance {
                continue;
            }
            if node == to {
                return Some(self.way_back(from, to, search));
            }
            let distance = distance + u32::from(self.is_transaction(node));
            if distance as usize >= below {
                continue;
            }
            let edges = self.starts[node as usize]..self.starts[node as usize + 1];
            search.edges_left = search.edges_left.saturating_sub(edges.len() as u64);
            for at in edges {
                let edge = &self.edges[at];
                let known = &mut search.reached[edge.to as usize];
                let is_inside = component_of[edge.to as usize] == component_of[from as usize];
                let is_known = known.stamp == search.stamp && known.distance <= distance;
                if !kinds.has(edge.kind) || !is_inside || is_known {
                    continue;
                }
                *known = Reached { stamp: search.stamp, distance, edge: at };
                if self.is_transaction(node) {
                    open.push_back((edge.to, distance));
                } else {
                    open.push_front((edge.to, distance));
                }
            }
        }
        None
    }

    fn way_back(&self, from: u32, to: u32, search: &Search) -> Vec<Edge> {
        let mut way = Vec::new();
        let mut here = to;
        while here != from {
            let edge = self.edges[search.reached[here as usize].edge];
            way.push(edge);
            here = edge.from;
        }
        way.reverse();
        way
    }
}
