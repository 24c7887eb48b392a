//! Scratch memory of a run of a loop's body: what is too large for a stack. A thread keeps what it took for its
//! next run.

use std::cell::RefCell;
use std::ffi::c_void;

/// A cache line; code reads and writes such memory in whole vectors.
const ALIGNMENT: usize = 64;
/// A thread keeps at most so many blocks that are not in use.
const KEPT: usize = 16;

/// Blocks by size, in bytes.
struct Blocks(Vec<(usize, *mut c_void)>);

impl Drop for Blocks {
    fn drop(&mut self) {
        for (_, block) in self.0.drain(..) {
            // SAFETY: it came from `aligned_alloc`, and nobody uses it.
            unsafe { libc::free(block) };
        }
    }
}

thread_local! {
    static FREE: RefCell<Blocks> = const { RefCell::new(Blocks(Vec::new())) };
}

/// Memory for this thread, until [`gr_scratch_end`] is called for it; its contents are not defined.
#[unsafe(no_mangle)]
extern "C" fn gr_scratch(bytes: i64) -> *mut c_void {
    let bytes = usize::try_from(bytes).unwrap_or(0).max(1);
    let known = FREE.try_with(|free| {
        let blocks = &mut free.borrow_mut().0;
        let at = blocks.iter().position(|(size, _)| *size == bytes)?;
        Some(blocks.swap_remove(at).1)
    });
    if let Ok(Some(block)) = known {
        return block;
    }
    let rounded = bytes.next_multiple_of(ALIGNMENT);
    // SAFETY: the alignment is a power of two that divides the size.
    let block = unsafe { libc::aligned_alloc(ALIGNMENT, rounded) };
    if block.is_null() {
        let text = c"gradus: no memory for what a block keeps for its threads\n".to_bytes();
        // SAFETY: the text is there; the program ends.
        unsafe {
            libc::write(2, text.as_ptr().cast(), text.len());
            libc::abort()
        }
    }
    block
}

/// Gives back what [`gr_scratch`] gave for `bytes`.
///
/// # Safety
/// `block` is from this thread's [`gr_scratch`] of as many bytes, and is not used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn gr_scratch_end(block: *mut c_void, bytes: i64) {
    let bytes = usize::try_from(bytes).unwrap_or(0).max(1);
    let kept = FREE.try_with(|free| {
        let blocks = &mut free.borrow_mut().0;
        let fits = blocks.len() < KEPT;
        if fits {
            blocks.push((bytes, block));
        }
        fits
    });
    if kept != Ok(true) {
        // SAFETY: promised by the caller.
        unsafe { libc::free(block) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_is_given_again() {
        let (a, b) = (gr_scratch(100_000), gr_scratch(100_000));
        assert!(a != b && a as usize % ALIGNMENT == 0);
        // SAFETY: both are this thread's.
        unsafe {
            std::slice::from_raw_parts_mut(a.cast::<u8>(), 100_000).fill(1);
            gr_scratch_end(a, 100_000);
            assert_eq!(gr_scratch(100_000), a);
            assert_ne!(gr_scratch(100), b);
            gr_scratch_end(b, 100_000);
        }
    }
}
