//! MRG32k3a (L'Ecuyer, *Good parameters and implementations for combined multiple recursive random number
//! generators*, Oper. Res. 47(1), 1999): two recurrences of order three. A skip is a power of the
//! recurrences' matrices.

use crate::cuda::random::host_order::Sequence;

const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;
/// A subsequence has 2^76 numbers.
const SUBSEQUENCE: usize = 76;

type Vector = [u64; 3];
type Matrix = [[u64; 3]; 3];

const A1: Matrix = [[0, 1, 0], [0, 0, 1], [M1 - 810_728, 1_403_580, 0]];
const A2: Matrix = [[0, 1, 0], [0, 0, 1], [M2 - 1_370_589, 0, 527_612]];

/// A state: the last three numbers of both recurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mrg32k3a {
    first: Vector,
    second: Vector,
}

fn mat_vec(matrix: &Matrix, vector: Vector, modulus: u64) -> Vector {
    matrix.map(|row| {
        let products = row.iter().zip(vector).map(|(a, b)| a * b % modulus);
        products.sum::<u64>() % modulus
    })
}

fn mat_mul(a: &Matrix, b: &Matrix, modulus: u64) -> Matrix {
    let column = |j: usize| mat_vec(a, [b[0][j], b[1][j], b[2][j]], modulus);
    let columns = [column(0), column(1), column(2)];
    [0, 1, 2].map(|i| [0, 1, 2].map(|j| columns[j][i]))
}

/// The matrix of 2^`shift` steps.
fn matrix_power(matrix: Matrix, modulus: u64, shift: usize) -> Matrix {
    (0..shift).fold(matrix, |power, _| mat_mul(&power, &power, modulus))
}

/// `vector` after `count` times 2^`shift` steps.
fn advanced(matrix: Matrix, vector: Vector, modulus: u64, count: u64, shift: usize) -> Vector {
    let (mut power, mut vector, mut left) = (matrix_power(matrix, modulus, shift), vector, count);
    while left > 0 {
        if left & 1 == 1 {
            vector = mat_vec(&power, vector, modulus);
        }
        power = mat_mul(&power, &power, modulus);
        left >>= 1;
    }
    vector
}

impl Mrg32k3a {
    /// The initial state of a seed.
    pub(super) fn new(seed: u64) -> Mrg32k3a {
        let low = u64::from(seed as u32 ^ 0x5555_5555);
        let high = u64::from((seed >> 32) as u32 ^ 0xaaaa_aaaa);
        let all = |by: [u64; 3], modulus| by.map(|x| 12_345 * x % modulus);
        match seed {
            0 => Mrg32k3a {
                first: [12_345; 3],
                second: [12_345; 3],
            },
            _ => Mrg32k3a {
                first: all([low, high, low], M1),
                second: all([high, low, high], M2),
            },
        }
    }

    /// Skips subsequences and numbers.
    pub(super) fn skip(&mut self, subsequences: u64, numbers: u64) {
        for (count, shift) in [(subsequences, SUBSEQUENCE), (numbers, 0)] {
            if count > 0 {
                self.first = advanced(A1, self.first, M1, count, shift);
                self.second = advanced(A2, self.second, M2, count, shift);
            }
        }
    }
}

impl Sequence for Mrg32k3a {
    type Far = [Matrix; 2];

    fn far() -> [Matrix; 2] {
        [(A1, M1), (A2, M2)].map(|(matrix, modulus)| matrix_power(matrix, modulus, SUBSEQUENCE))
    }

    fn next_subsequence(&mut self, [first, second]: &[Matrix; 2]) {
        self.first = mat_vec(first, self.first, M1);
        self.second = mat_vec(second, self.second, M2);
    }

    /// A number in [1, 2^32 - 209].
    fn next(&mut self) -> u32 {
        self.first = mat_vec(&A1, self.first, M1);
        self.second = mat_vec(&A2, self.second, M2);
        let (a, b) = (self.first[2], self.second[2]);
        let result = if a <= b { a + M1 - b } else { a - b };
        u32::try_from(result).unwrap_or(u32::MAX)
    }
}

/// Skips ahead in a kernel's state.
///
/// # Safety
/// `state` has six words.
#[unsafe(no_mangle)]
unsafe extern "C" fn __gr_mrg32k3a_skip(state: *mut [u32; 6], subsequences: u64, numbers: u64) {
    // SAFETY: promised by the caller.
    let state = unsafe { &mut *state };
    let [a, b, c, d, e, f] = state.map(u64::from);
    let mut ahead = Mrg32k3a {
        first: [a, b, c],
        second: [d, e, f],
    };
    ahead.skip(subsequences, numbers);
    for (to, from) in state
        .iter_mut()
        .zip(ahead.first.into_iter().chain(ahead.second))
    {
        *to = u32::try_from(from).unwrap_or(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state of six times 12345 is the default of L'Ecuyer's RngStreams.
    #[test]
    fn the_first_number_is_the_published_one() {
        let mut state = Mrg32k3a::new(0);
        let first = f64::from(state.next()) * 2.328_306_549_295_727_7e-10;
        assert!((first - 0.127_011_122_046_577_75).abs() < 1e-15, "{first}");
    }

    #[test]
    fn next_subsequence_equals_skip() {
        let (mut one, mut other) = (Mrg32k3a::new(8), Mrg32k3a::new(8));
        one.next_subsequence(&Mrg32k3a::far());
        other.skip(1, 0);
        assert_eq!(one, other);
    }

    #[test]
    fn skip_equals_steps() {
        let mut walked = Mrg32k3a::new(5);
        for _ in 0..777 {
            walked.next();
        }
        let mut jumped = Mrg32k3a::new(5);
        jumped.skip(0, 777);
        assert_eq!(walked, jumped);
        let far = advanced(A1, jumped.first, M1, 1, SUBSEQUENCE);
        let parts = advanced(A1, jumped.first, M1, 1 << 63, SUBSEQUENCE - 63);
        assert_eq!(far, parts);
    }
}
