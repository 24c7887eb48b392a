//! Expected results of candle's row kernels.

use super::{BF16, Condition, Expected, F16, F32, F64, I64, Type, U8, U32};

const ROWS: usize = 6;
const COLUMNS: usize = 45;

fn by_row(values: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    values.chunks(COLUMNS).map(f).collect()
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Expects the index of a minimum or maximum per row; any of several is accepted.
fn extremum_indices(ty: Type, name: &str, extreme: fn(&[f64]) -> f64) -> Expected {
    let x = ty.input(ROWS * COLUMNS, 1);
    let holds = move |places: &[f64]| {
        let mut rows = x.chunks(COLUMNS).zip(places);
        places.len() == ROWS && rows.all(|(row, &at)| row[at as usize] == extreme(row))
    };
    Expected {
        name: format!("{name}_{}", ty.suffix),
        is: Condition::Predicate(Box::new(holds)),
    }
}

/// Returns the expectations for `reduce.cu`.
pub fn reduce() -> Vec<Expected> {
    let mut expected = Vec::new();
    for ty in [F32, F64, F16, BF16, U8, U32, I64] {
        let x = ty.input(ROWS * COLUMNS, 1);
        expected.push(ty.expects("sum", by_row(&x, sum)));
        expected.push(ty.expects("min", by_row(&x, least)));
        expected.push(ty.expects("max", by_row(&x, greatest)));
        expected.push(extremum_indices(ty, "argmin", least));
        expected.push(extremum_indices(ty, "argmax", greatest));
        let column = |c: usize| (0..ROWS).map(|r| x[r * COLUMNS + c]).sum();
        let columns: Vec<f64> = (0..COLUMNS).map(column).collect();
        expected.push(ty.expects("column_sum", columns.clone()));
        expected.push(ty.expects("column_sum_small", columns));
    }
    for (ty, times) in [
        (F32, 1.0),
        (F64, 1.0),
        (U32, 1.0),
        (F16, 4.0),
        (BF16, 100.0),
    ] {
        // A sum is rounded at each addition.
        let x = ty.input(ROWS * COLUMNS, 1);
        expected.push(ty.within("atomic_sum", by_row(&x, sum), times));
    }
    for ty in [F32, F64, F16, BF16] {
        norms(ty, &mut expected);
        rotary_embeddings(ty, &mut expected);
    }
    expected
}

fn norms(ty: Type, expected: &mut Vec<Expected>) {
    let x = ty.input(ROWS * COLUMNS, 1);
    let (alpha, beta) = (ty.input(COLUMNS, 2), ty.input(COLUMNS, 3));
    // Computed in single precision for every type.
    let single = if ty.suffix == "f64" { 1e8 } else { 8.0 };
    let every = |f: &dyn Fn(&[f64], usize) -> f64| -> Vec<f64> {
        let rows = x.chunks(COLUMNS);
        rows.flat_map(|row| (0..COLUMNS).map(|c| f(row, c)).collect::<Vec<_>>())
            .collect()
    };
    let softmax = |row: &[f64], c: usize| {
        let top = greatest(row);
        let all: f64 = row.iter().map(|x| (x - top).exp()).sum();
        (row[c] - top).exp() / all
    };
    expected.push(ty.within("softmax", every(&softmax), 8.0));
    let count = COLUMNS as f64;
    let squares = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>() / count;
    let rms = |row: &[f64], c: usize| row[c] * alpha[c] / (squares(row) + 1e-5).sqrt();
    expected.push(ty.within("rmsnorm", every(&rms), single));
    let plain = |row: &[f64], c: usize| {
        let mean = sum(row) / count;
        (row[c] - mean) / (squares(row) - mean * mean + 1e-5).sqrt()
    };
    expected.push(ty.within("layernorm_plain", every(&plain), single));
    let layer = |row: &[f64], c: usize| plain(row, c) * alpha[c] + beta[c];
    expected.push(ty.within("layernorm", every(&layer), single));
}

/// Rotates pairs of elements by angles with given cosines and sines; `place` returns the indices of both
/// elements and of the angle.
fn rotated(x: &[f64], table: (&[f64], &[f64]), place: impl Fn(usize) -> [usize; 3]) -> Vec<f64> {
    let mut y = vec![0.0; 240];
    for pair in 0..120 {
        let [first, second, angle] = place(pair);
        let (c, s) = (table.0[angle], table.1[angle]);
        y[first] = x[first] * c - x[second] * s;
        y[second] = x[first] * s + x[second] * c;
    }
    y
}

fn rotary_embeddings(ty: Type, expected: &mut Vec<Expected>) {
    let x = ty.input(ROWS * COLUMNS, 1);
    let (cosine, sine) = (ty.input(20, 2), ty.input(20, 3));
    let table = (&cosine[..], &sine[..]);
    // Six heads, five time steps, eight elements: an element and the element four further.
    let halves = |pair: usize| {
        let (head, rest) = (pair / 20, pair % 20);
        let first = head * 40 + rest / 4 * 8 + rest % 4;
        [first, first + 4, rest]
    };
    expected.push(ty.within("rope", rotated(&x, table, halves), 8.0));
    let neighbours = |pair: usize| [2 * pair, 2 * pair + 1, pair % 20];
    expected.push(ty.within("rope_i", rotated(&x, table, neighbours), 8.0));
    // Two batches, five time steps, three heads, eight elements.
    let times = |pair: usize| {
        let (row, at) = (pair / 4, pair % 4);
        let first = row * 8 + at;
        [first, first + 4, row / 3 % 5 * 4 + at]
    };
    expected.push(ty.within("rope_thd", rotated(&x, table, times), 8.0));
}

/// Returns the expectations for `sort.cu`.
pub fn sort() -> Vec<Expected> {
    let mut expected = Vec::new();
    for ty in [F32, F64, F16, BF16, U8, U32, I64] {
        for (name, up) in [("ascending", true), ("descending", false)] {
            let x = ty.input(ROWS * COLUMNS, 1);
            let holds = move |places: &[f64]| {
                let mut rows = x.chunks(COLUMNS).zip(places.chunks(COLUMNS));
                places.len() == x.len() && rows.all(|(row, places)| sorted(row, places, up))
            };
            expected.push(Expected {
                name: format!("{name}_{}", ty.suffix),
                is: Condition::Predicate(Box::new(holds)),
            });
        }
    }
    expected
}

/// Returns true if `places` is a permutation of a row's indices, in the order of the elements.
fn sorted(row: &[f64], places: &[f64], up: bool) -> bool {
    let mut seen = vec![false; row.len()];
    for &place in places {
        seen[place as usize] = true;
    }
    let ordered = places.windows(2).all(|pair| {
        let (a, b) = (row[pair[0] as usize], row[pair[1] as usize]);
        if up { a <= b } else { a >= b }
    });
    ordered && seen.iter().all(|&seen| seen)
}
