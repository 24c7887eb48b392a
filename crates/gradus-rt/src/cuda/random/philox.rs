//! Philox4x32-10 (Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, SC'11): a counter, scrambled
//! in ten rounds with a key.

/// The four numbers of a counter and a key.
pub(super) fn philox(counter: u128, seed: u64) -> [u32; 4] {
    let word = |i: u32| (counter >> (32 * i)) as u32;
    let mut c = [word(0), word(1), word(2), word(3)];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let a = u64::from(c[0]) * 0xd251_1f53;
        let b = u64::from(c[2]) * 0xcd9e_8d57;
        let high = |x: u64| (x >> 32) as u32;
        c = [
            high(b) ^ c[1] ^ key[0],
            b as u32,
            high(a) ^ c[3] ^ key[1],
            a as u32,
        ];
        key = [
            key[0].wrapping_add(0x9e37_79b9),
            key[1].wrapping_add(0xbb67_ae85),
        ];
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the authors' test suite.
    #[test]
    fn known_answers() {
        assert_eq!(
            philox(0, 0),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        let ones = philox(u128::MAX, u64::MAX);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }
}
