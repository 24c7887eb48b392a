//! Memory allocated like in the standard library: a possibly empty vector, a copy of a slice, and floats at
//! a multiple of 64 bytes.
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

struct Lines { start: *mut f64, len: usize }
impl Lines {
    fn layout(len: usize) -> Layout { Layout::from_size_align(8 * len.max(1), 64).unwrap() }
    fn of(x: &[f64]) -> Lines {
        let layout = Lines::layout(x.len());
        let start = unsafe { alloc(layout) } as *mut f64;
        if start.is_null() { handle_alloc_error(layout) }
        unsafe { std::ptr::copy_nonoverlapping(x.as_ptr(), start, x.len()) };
        Lines { start, len: x.len() }
    }
    fn numbers(&mut self) -> &mut [f64] {
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}
impl Drop for Lines {
    fn drop(&mut self) { unsafe { dealloc(self.start as *mut u8, Lines::layout(self.len)) } }
}

#[unsafe(no_mangle)]
pub extern "C" fn energy(x: *const f64, n: usize) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    let own = if n > 2 { x.to_vec() } else { Vec::new() };
    let mut lines = Lines::of(&own);
    for (a, b) in lines.numbers().iter_mut().zip(&own) { *a = *a * *a + b.cos(); }
    let total: f64 = lines.numbers().iter().zip(&own).map(|(a, b)| a * b).sum();
    total + x.iter().map(|v| v.sin()).sum::<f64>()
}
