//! Expected results of candle's quantised kernels.

use super::{Expected, F16, F32};

/// The maximum absolute value of the inputs; any 32 consecutive inputs contain all values.
const GREATEST: f64 = 15.0 / 8.0;

/// Quantises a number in steps of 1/127 of the maximum.
fn quant(x: f64) -> f64 {
    (x * 127.0 / GREATEST).round()
}

/// Three rows of 512 in blocks of 128, the first blocks of all rows first, as signed bytes. Per block, the
/// three formats store four scales, four pairs of a scale and a sum, and two scales and six sums.
pub fn quantize() -> Vec<Expected> {
    let x = F32.input(3 * 512, 1);
    let blocks = || (0..4).flat_map(|c| (0..3).map(move |row| row * 512 + c * 128));
    let blocks: Vec<&[f64]> = blocks().map(|at| &x[at..at + 128]).collect();
    let scale = GREATEST / 127.0;
    let sum = |part: &[f64]| part.iter().sum::<f64>();
    let pairs = |block: &&[f64]| -> Vec<f64> {
        block
            .chunks(32)
            .flat_map(|part| [scale, sum(part)])
            .collect()
    };
    let sums = |block: &&[f64]| -> Vec<f64> {
        let sums = block[..96].chunks(16).map(sum);
        [scale, scale].into_iter().chain(sums).collect()
    };
    let quants: Vec<f64> = blocks
        .iter()
        .flat_map(|block| block.iter().map(|x| quant(*x)))
        .collect();
    vec![
        Expected::exact("d4_quants".to_string(), quants.clone()),
        F32.expects("d4_scales", vec![scale; 4 * blocks.len()]),
        Expected::exact("ds4_quants".to_string(), quants.clone()),
        F16.expects("ds4_scales", blocks.iter().flat_map(pairs).collect()),
        Expected::exact("d2s6_quants".to_string(), quants),
        F16.expects("d2s6_scales", blocks.iter().flat_map(sums).collect()),
    ]
}

/// Each token's quantised row, times its expert's byte matrix with a scale per 32 bytes, times the token's
/// own scale.
pub fn experts() -> Vec<Expected> {
    let (out, inputs) = (5, 96);
    let (x, scales) = (F32.input(4 * inputs, 1), F32.input(4, 3));
    let weight = |i: usize| {
        let scale = (1 + i / 32 % 4) as f64 / 8.0;
        scale * ((i * 37 % 31) as f64 - 15.0)
    };
    let mut y = vec![0.0; 4 * out];
    for m in 0..4 {
        let (token, expert) = ((m * 3 + 2) % 4, m / 2);
        for n in 0..out {
            let product = |k: usize| {
                let x = quant(x[token * inputs + k]) * GREATEST / 127.0;
                x * weight((expert * out + n) * inputs + k)
            };
            y[token * out + n] = scales[token] * (0..inputs).map(product).sum::<f64>();
        }
    }
    vec![F16.within("experts", y, 2.0)]
}
