//! Vectors that grow by pushes, and whose memory is reallocated.
#[unsafe(no_mangle)]
pub extern "C" fn energy(x: *const f64, n: usize) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    let mut grown = Vec::new();
    for (i, v) in x.iter().enumerate() {
        grown.push(v * v);
        if i % 3 == 0 { grown.push(v * grown[i / 2]) }
    }
    let last = grown.len() - 1;
    grown.shrink_to_fit();
    let sum: f64 = grown.iter().enumerate().map(|(i, v)| v * grown[last - i] * (1.0 + i as f64)).sum();
    sum * 0.1
}
