//! Copies of bytes between memory classes: the words at both ends are alike.
//!
//! A copy of a constant number of bytes is followed word by word, so that a structure with one pointer
//! does not lend it to all its words. Where the number is not known, or very many words repeat, both
//! classes take the moduli of each other first.
//!
//! Copies may go round in a circle and come back shifted (`memmove(p, p + 1, …)`): then every word is
//! like the one so many bytes on. [`close_circles`] finds that from the copies alone, by a union-find
//! with offsets, and makes those classes count modulo the shift. So no offset is carried on without end.
//! A copy of few bytes carries nothing on without end: what goes through it lies in its range. So members of
//! a structure that are copied to one variable after another stay apart from the rest of the structure.

use crate::constraints::Copy;
use crate::unify::{Cell, Classes, Target, gcd};
use std::collections::HashMap;

/// The most repetitions of a class's words that are followed one by one.
const REPEATS_MAX: u64 = 64;

/// Copies of more bytes than these may carry offsets on for very long.
const CARRIED_MAX_BYTES: u64 = 256;

/// Says that after `copy` the words of both ends point to the same classes and are of the same kind.
pub(crate) fn join_words(classes: &mut Classes, copy: Copy) {
    align(classes, copy);
    let cells = words(classes, copy.from, copy.size_bytes);
    put(classes, copy.to, cells);
    let cells = words(classes, copy.to, copy.size_bytes);
    put(classes, copy.from, cells);
}

/// Gives both ends the same modulus where their words cannot be paired one by one.
fn align(classes: &mut Classes, copy: Copy) {
    let (to, from) = (
        classes.content(copy.to).modulus,
        classes.content(copy.from).modulus,
    );
    let few = |modulus: u64| match copy.size_bytes {
        Some(size) => modulus == 0 || size / modulus <= REPEATS_MAX,
        None => false,
    };
    if to != from && !(few(to) && few(from)) {
        classes.step(copy.to, from as i64);
        classes.step(copy.from, to as i64);
    }
}

/// The words of the copied range that starts at `start`, by their distance from it.
fn words(classes: &mut Classes, start: Target, size_bytes: Option<u64>) -> Vec<(i64, Cell)> {
    let start = classes.find(start);
    let content = classes.root_content(start.node);
    let size = size_bytes.map_or(i64::MAX, |s| i64::try_from(s).unwrap_or(i64::MAX));
    let mut list = Vec::new();
    if content.modulus == 0 {
        let end = start.offset.saturating_add(size);
        for (&offset, cell) in content.cells.range(start.offset..end) {
            list.push((offset - start.offset, cell.clone()));
        }
        return list;
    }
    let modulus = content.modulus as i64;
    for (&offset, cell) in &content.cells {
        let first = (offset - start.offset).rem_euclid(modulus);
        let repeats = match size_bytes {
            Some(_) if first >= size => 0,
            Some(_) => ((size - first - 1) / modulus + 1).min(REPEATS_MAX as i64 + 1),
            None => 1,
        };
        let grain = cell.seen.grain_bytes();
        let places = (0..repeats).map(|k| first + k * modulus);
        let aligned = places.filter(|at| repeats == 1 || at % grain == 0);
        list.extend(aligned.map(|at| (at, cell.clone())));
    }
    list
}

fn put(classes: &mut Classes, start: Target, cells: Vec<(i64, Cell)>) {
    for (distance, cell) in cells {
        let at = start.plus(distance);
        if let Some(points) = cell.points {
            let own = classes.pointee(at);
            classes.unify(own, points);
        }
        if !cell.seen.is_nothing() && classes.cell(at).seen.add(&cell.seen) {
            classes.changes += 1;
        }
    }
}

/// Classes that copies connect: where the words of one lie in another.
#[derive(Default)]
struct Circles {
    number: HashMap<u32, usize>,
    roots: Vec<u32>,
    parent: Vec<usize>,
    /// What is added to an offset to count as the parent does.
    shift: Vec<i64>,
    /// By representative: the shift after which words are alike, 0 where there is none.
    period: Vec<u64>,
}

impl Circles {
    fn of(&mut self, root: u32) -> usize {
        let next = self.parent.len();
        let number = *self.number.entry(root).or_insert(next);
        if number == next {
            self.roots.push(root);
            self.parent.push(next);
            self.shift.push(0);
            self.period.push(0);
        }
        number
    }
    /// The representative of a class, and what is added to its offsets to count as that does.
    fn find(&mut self, class: usize) -> (usize, i64) {
        let (mut at, mut shift) = (class, 0i64);
        while self.parent[at] != at {
            shift = shift.wrapping_add(self.shift[at]);
            at = self.parent[at];
        }
        let (root, mut left, mut on) = (at, shift, class);
        while self.parent[on] != on {
            let own = self.shift[on];
            let next = self.parent[on];
            (self.parent[on], self.shift[on]) = (root, left);
            left = left.wrapping_sub(own);
            on = next;
        }
        (root, shift)
    }
    /// Offset `a_at` of `a` and offset `b_at` of `b` are alike.
    fn join(&mut self, a: usize, a_at: i64, b: usize, b_at: i64) {
        let ((a, a_shift), (b, b_shift)) = (self.find(a), self.find(b));
        let distance = (a_at.wrapping_add(a_shift)).wrapping_sub(b_at.wrapping_add(b_shift));
        if a == b {
            self.period[a] = gcd(self.period[a], distance.unsigned_abs());
        } else {
            (self.parent[b], self.shift[b]) = (a, distance);
            self.period[a] = gcd(self.period[a], self.period[b]);
        }
    }
}

/// Makes classes count modulo the shift of the circles of copies that they lie in.
pub(crate) fn close_circles(classes: &mut Classes, copies: &[Copy]) {
    let mut circles = Circles::default();
    let far = |copy: &&Copy| copy.size_bytes.is_none_or(|size| size > CARRIED_MAX_BYTES);
    for copy in copies.iter().filter(far) {
        let (to, from) = (classes.find_raw(copy.to), classes.find_raw(copy.from));
        let (a, b) = (circles.of(to.node), circles.of(from.node));
        circles.join(a, to.offset, b, from.offset);
    }
    for class in 0..circles.roots.len() {
        let (root, _) = circles.find(class);
        let period = i64::try_from(circles.period[root]).unwrap_or(1);
        let start = Target {
            node: circles.roots[class],
            offset: 0,
        };
        classes.step(start, period);
    }
}
