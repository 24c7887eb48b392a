//! Copies of bytes between memory classes: the words at both ends are alike.
//!
//! A copy of a constant number of bytes is followed word by word, so that a structure with one pointer
//! does not lend it to all its words. Where the number is not known, or very many words repeat, both
//! classes take the moduli of each other first.

use crate::constraints::Copy;
use crate::unify::{Cell, Classes, Target};

/// The most repetitions of a class's words that are followed one by one.
const REPEATS_MAX: u64 = 64;

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
        list.extend((0..repeats).map(|k| (first + k * modulus, cell.clone())));
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
