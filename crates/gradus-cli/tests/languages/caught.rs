//! Caught panics, replaced by another value.

#[unsafe(no_mangle)]
pub extern "C" fn energy(x: *const f64, n: usize) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    let mut sum = 0.0;
    for v in x {
        let squared = std::panic::catch_unwind(|| { if *v > 5.0 { panic!() } v * v });
        sum += squared.unwrap_or(1.0)
    }
    sum
}
