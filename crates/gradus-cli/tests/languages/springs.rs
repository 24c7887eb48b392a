//! Energy of a chain of springs: slices with bounds checks, iterators, a vector, a struct, an enum, and a
//! panic that prints a number.
pub struct Spring { stiffness: f64, rest: f64 }
pub enum Law { Linear, Cubic(f64) }
fn force(s: &Spring, law: &Law, stretch: f64) -> f64 {
    match law {
        Law::Linear => s.stiffness * stretch,
        Law::Cubic(c) => s.stiffness * stretch + c * stretch.powi(3),
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn energy(x: *const f64, n: usize) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    assert!(x.iter().all(|v| v.is_finite()), "of {n} ends one is no number");
    let springs: Vec<Spring> = (0..n).map(|i| Spring { stiffness: 1.0 + i as f64, rest: 0.1 }).collect();
    let mut total = 0.0;
    for (i, pair) in x.windows(2).enumerate() {
        let law = if i % 2 == 0 { Law::Linear } else { Law::Cubic(x[i]) };
        let stretch = pair[1] - pair[0] - springs[i].rest;
        total += 0.5 * force(&springs[i], &law, stretch) * stretch;
    }
    total + x.iter().map(|v| v.sin()).sum::<f64>()
}
