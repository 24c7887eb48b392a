//! XORWOW (Marsaglia, *Xorshift RNGs*, J. Stat. Soft. 8(14), 2003): five words under a linear map over bits,
//! and a counter. A skip is a power of that linear map.

use crate::cuda::random::host_order::Sequence;
use std::sync::OnceLock;

/// Increment of the counter.
const STEP: u32 = 362_437;
/// Bits of the five words.
const BITS: usize = 160;
/// A subsequence has 2^67 numbers.
const SUBSEQUENCE: usize = 67;

/// A state: the counter, then the five words, as in kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Xorwow {
    counter: u32,
    words: Words,
}

type Words = [u32; 5];

/// A linear map: the image of each bit.
type Map = Vec<Words>;

impl Xorwow {
    /// The initial state of a seed, as in cuRAND.
    pub(super) fn new(seed: u64) -> Xorwow {
        let t0 = 1_099_087_573_u32.wrapping_mul(seed as u32 ^ 0xaad2_6b49);
        let t1 = 2_591_861_531_u32.wrapping_mul((seed >> 32) as u32 ^ 0xf7dc_efdd);
        Xorwow {
            counter: 6_615_241_u32.wrapping_add(t1).wrapping_add(t0),
            words: [
                123_456_789_u32.wrapping_add(t0),
                362_436_069 ^ t0,
                521_288_629_u32.wrapping_add(t1),
                88_675_123 ^ t1,
                5_783_321_u32.wrapping_add(t0),
            ],
        }
    }

    /// Skips subsequences and numbers.
    pub(super) fn skip(&mut self, subsequences: u64, numbers: u64) {
        let maps = powers();
        let places = (0..64).filter(|i| subsequences >> i & 1 == 1);
        let far = places.map(|i| i + SUBSEQUENCE);
        let near = (0..64).filter(|i| numbers >> i & 1 == 1);
        for power in far.chain(near) {
            self.words = image(&maps[power], self.words);
        }
        // A subsequence advances the counter by a multiple of 2^32.
        self.counter = self.counter.wrapping_add(STEP.wrapping_mul(numbers as u32));
    }
}

impl Sequence for Xorwow {
    type Far = ();

    fn far() {}

    fn next_subsequence(&mut self, (): &()) {
        self.skip(1, 0);
    }

    fn next(&mut self) -> u32 {
        self.words = step(self.words);
        self.counter = self.counter.wrapping_add(STEP);
        self.words[4].wrapping_add(self.counter)
    }
}

fn step([a, b, c, d, e]: Words) -> Words {
    let t = a ^ (a >> 2);
    [b, c, d, e, (e ^ (e << 4)) ^ (t ^ (t << 1))]
}

fn image(map: &Map, words: Words) -> Words {
    let mut result = [0; 5];
    for (bit, of) in map.iter().enumerate() {
        if words[bit / 32] >> (bit % 32) & 1 == 1 {
            for (to, from) in result.iter_mut().zip(of) {
                *to ^= from;
            }
        }
    }
    result
}

/// The maps of 2^i steps.
fn powers() -> &'static [Map] {
    static POWERS: OnceLock<Vec<Map>> = OnceLock::new();
    POWERS.get_or_init(|| {
        let unit = |bit: usize| {
            let mut words = [0; 5];
            words[bit / 32] = 1 << (bit % 32);
            words
        };
        let mut all: Vec<Map> = vec![(0..BITS).map(|bit| step(unit(bit))).collect()];
        for i in 0..SUBSEQUENCE + 63 {
            let squared = all[i].iter().map(|&of| image(&all[i], of)).collect();
            all.push(squared);
        }
        all
    })
}

/// Skips ahead in a kernel's state.
///
/// # Safety
/// `state` has the counter and the five words.
#[unsafe(no_mangle)]
unsafe extern "C" fn __gr_xorwow_skip(state: *mut [u32; 6], subsequences: u64, numbers: u64) {
    // SAFETY: promised by the caller.
    let state = unsafe { &mut *state };
    let [counter, words @ ..] = *state;
    let mut moved = Xorwow { counter, words };
    moved.skip(subsequences, numbers);
    state[0] = moved.counter;
    state[1..].copy_from_slice(&moved.words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_equals_steps() {
        let mut walked = Xorwow::new(77);
        for _ in 0..1000 {
            walked.next();
        }
        let mut jumped = Xorwow::new(77);
        jumped.skip(0, 1000);
        assert_eq!(walked, jumped);
        walked.skip(5, 0);
        jumped.skip(2, 0);
        jumped.skip(3, 0);
        assert_eq!(walked, jumped);
        // Twice 2^66 steps are one subsequence.
        let (mut twice, mut once) = (jumped, jumped);
        twice.skip(0, 1 << 63);
        for _ in 0..15 {
            twice.skip(0, 1 << 63);
        }
        once.skip(1, 0);
        assert_eq!(twice.words, once.words);
    }
}
