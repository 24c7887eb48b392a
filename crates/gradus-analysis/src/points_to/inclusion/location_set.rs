//! Sets of location numbers as sparse bit vectors: sorted blocks of 256 bits.
//!
//! A pointer that leads to thousands of locations holds long runs of neighbouring numbers. Union and difference then
//! cost one operation per 64 numbers. A set of one location has one block.

use std::cmp::Ordering;

/// Number of words of a block.
const WORDS: usize = 4;

/// Number of location numbers of a block.
const BITS: u32 = 64 * WORDS as u32;

type Words = [u64; WORDS];

/// A block with at least one number: the numbers from `index * BITS` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    index: u32,
    words: Words,
}

impl Block {
    fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }
    fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let first = self.index * BITS;
        let words = self.words.into_iter().zip((first..).step_by(64));
        words.flat_map(|(word, first)| Bits(word).map(move |bit| first + bit))
    }
}

/// The positions of the bits of a word, in ascending order.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;
    fn next(&mut self) -> Option<u32> {
        let bit = (self.0 != 0).then(|| self.0.trailing_zeros());
        self.0 &= self.0.wrapping_sub(1);
        bit
    }
}

fn combine(a: &Words, b: &Words, with: impl Fn(u64, u64) -> u64) -> Words {
    std::array::from_fn(|at| with(a[at], b[at]))
}

fn is_empty(words: &Words) -> bool {
    words.iter().all(|word| *word == 0)
}

/// A set of location numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocationSet {
    /// Blocks by ascending index; no block is empty.
    blocks: Vec<Block>,
    len: u32,
}

impl LocationSet {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
    /// Returns the number of members.
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Returns the members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().flat_map(Block::numbers)
    }
    /// Adds a number. Returns true if the number is new.
    pub fn insert(&mut self, number: u32) -> bool {
        let (index, bit) = (number / BITS, number % BITS);
        let at = match self.blocks.last() {
            Some(last) if last.index < index => Err(self.blocks.len()),
            _ => self
                .blocks
                .binary_search_by_key(&index, |block| block.index),
        };
        let at = at.unwrap_or_else(|at| {
            let words = [0; WORDS];
            self.blocks.insert(at, Block { index, words });
            at
        });
        let word = &mut self.blocks[at].words[bit as usize / 64];
        let mask = 1 << (bit % 64);
        let is_new = *word & mask == 0;
        *word |= mask;
        self.len += u32::from(is_new);
        is_new
    }
    /// Visits the blocks of `self`, each with the words of `other` at the same index.
    fn visit_pairs(&self, other: &LocationSet, mut visit: impl FnMut(&Block, &Words) -> bool) {
        let mut others = other.blocks.as_slice();
        for block in &self.blocks {
            // A short set in a long one: the search skips many blocks at once.
            if others
                .first()
                .is_some_and(|other| other.index < block.index)
            {
                let skipped = match others.get(1).is_some_and(|next| next.index < block.index) {
                    true => others.partition_point(|other| other.index < block.index),
                    false => 1,
                };
                others = &others[skipped..];
            }
            let words = match others.first() {
                Some(other) if other.index == block.index => &other.words,
                _ => &[0; WORDS],
            };
            if !visit(block, words) {
                return;
            }
        }
    }
    /// Returns the set of the blocks that `with` makes from the words of both sets; no number outside of `self`.
    fn mapped(&self, other: &LocationSet, with: impl Fn(u64, u64) -> u64) -> LocationSet {
        let mut found = LocationSet::default();
        self.visit_pairs(other, |block, others| {
            let words = combine(&block.words, others, &with);
            if !is_empty(&words) {
                let index = block.index;
                let block = Block { index, words };
                found.len += block.len();
                found.blocks.push(block);
            }
            true
        });
        found
    }
    /// Returns the members of `self` outside of `other`.
    pub fn minus(&self, other: &LocationSet) -> LocationSet {
        self.mapped(other, |own, other| own & !other)
    }
    /// Returns the common members.
    pub fn common(&self, other: &LocationSet) -> LocationSet {
        self.mapped(other, |own, other| own & other)
    }
    /// Returns the number of common members.
    pub fn common_len(&self, other: &LocationSet) -> u32 {
        let mut count = 0;
        self.visit_pairs(other, |block, others| {
            let words = combine(&block.words, others, |own, other| own & other);
            count += words.iter().map(|word| word.count_ones()).sum::<u32>();
            true
        });
        count
    }
    /// Returns true if the sets have no common member.
    pub fn is_disjoint(&self, other: &LocationSet) -> bool {
        let mut is_disjoint = true;
        if !self.is_empty() && !other.is_empty() {
            self.visit_pairs(other, |block, others| {
                is_disjoint = is_empty(&combine(&block.words, others, |own, other| own & other));
                is_disjoint
            });
        }
        is_disjoint
    }
    /// Adds the members of `other`.
    pub fn extend(&mut self, other: &LocationSet) {
        let is_known = |block: &Block| {
            let own = self
                .blocks
                .binary_search_by_key(&block.index, |own| own.index);
            own.is_ok()
        };
        match other.blocks.iter().all(is_known) {
            true => self.extend_blocks(other),
            false => *self = self.merged(other),
        }
    }
    /// Adds the members of `other`, whose blocks `self` has.
    fn extend_blocks(&mut self, other: &LocationSet) {
        let mut at = 0;
        for block in &other.blocks {
            at += self.blocks[at..].partition_point(|own| own.index < block.index);
            let own = &mut self.blocks[at];
            let before = own.len();
            own.words = combine(&own.words, &block.words, |own, other| own | other);
            self.len += own.len() - before;
        }
    }
    fn merged(&self, other: &LocationSet) -> LocationSet {
        let (mut left, mut right) = (self.blocks.as_slice(), other.blocks.as_slice());
        let mut blocks = Vec::with_capacity(left.len().max(right.len()) + 1);
        while let ([a, ..], [b, ..]) = (left, right) {
            let order = a.index.cmp(&b.index);
            blocks.push(match order {
                Ordering::Less => *a,
                Ordering::Greater => *b,
                Ordering::Equal => Block {
                    words: combine(&a.words, &b.words, |a, b| a | b),
                    ..*a
                },
            });
            left = &left[usize::from(order.is_le())..];
            right = &right[usize::from(order.is_ge())..];
        }
        blocks.extend_from_slice(left);
        blocks.extend_from_slice(right);
        let len = blocks.iter().map(Block::len).sum();
        LocationSet { blocks, len }
    }
}

#[cfg(test)]
mod tests {
    use super::LocationSet;
    use std::collections::BTreeSet;

    fn set(numbers: &BTreeSet<u32>) -> LocationSet {
        let mut set = LocationSet::default();
        for number in numbers {
            assert!(set.insert(*number));
            assert!(!set.insert(*number));
        }
        set
    }

    /// All operations have the results of the same operations on ordered sets.
    #[test]
    fn operations_agree_with_ordered_sets() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..500 {
            let mut draw = || -> BTreeSet<u32> {
                let (count, range) = (random(80), [70, 300, 3000, 100_000][random(4) as usize]);
                (0..count).map(|_| random(range) as u32).collect()
            };
            let (a, b) = (draw(), draw());
            let (left, right) = (set(&a), set(&b));
            assert!(left.iter().eq(a.iter().copied()));
            assert_eq!(left.len() as usize, a.len());
            assert_eq!(left.is_empty(), a.is_empty());
            assert_eq!(left.minus(&right), set(&(&a - &b)));
            assert_eq!(left.common(&right), set(&(&a & &b)));
            assert_eq!(left.common_len(&right) as usize, (&a & &b).len());
            assert_eq!(left.is_disjoint(&right), a.is_disjoint(&b));
            let mut union = left.clone();
            union.extend(&right);
            assert_eq!(union, set(&(&a | &b)));
        }
    }

    #[test]
    fn insertion_in_any_order_gives_equal_sets() {
        let numbers = [900, 3, 255, 256, 64, 511, 0, 100_000];
        let mut found = LocationSet::default();
        for number in numbers {
            assert!(found.insert(number));
        }
        assert_eq!(found, set(&numbers.into_iter().collect()));
    }
}
