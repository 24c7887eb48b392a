//! Scratch memory for an iteration of a loop body, if too large for the stack. A thread caches freed blocks
//! for later iterations.

use std::cell::RefCell;
use std::ffi::c_void;

/// A cache line; lowered code accesses the memory in whole vectors.
const ALIGNMENT: usize = 64;
/// Limit of cached free blocks per thread.
const MAX_CACHED_BLOCKS: usize = 16;

/// Blocks with sizes in bytes.
struct Blocks(Vec<(usize, *mut c_void)>);

impl Drop for Blocks {
    fn drop(&mut self) {
        for (_, block) in self.0.drain(..) {
            // SAFETY: the block came from `aligned_alloc` and is unused.
            unsafe { libc::free(block) };
        }
    }
}

thread_local! {
    static FREE: RefCell<Blocks> = const { RefCell::new(Blocks(Vec::new())) };
}

/// Allocates memory for the calling thread, until [`gr_scratch_end`]; the contents are undefined. Aborts if
/// no memory is left.
#[unsafe(no_mangle)]
pub extern "C" fn gr_scratch(bytes: i64) -> *mut c_void {
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
        let text = c"gradus: cannot allocate the per-thread memory of a CUDA block\n".to_bytes();
        // SAFETY: the text is valid; the program ends.
        unsafe {
            libc::write(2, text.as_ptr().cast(), text.len());
            libc::abort()
        }
    }
    block
}

/// Frees a block of `bytes` bytes from [`gr_scratch`].
///
/// # Safety
/// `block` came from [`gr_scratch`] with an equal size on the calling thread, and is no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_scratch_end(block: *mut c_void, bytes: i64) {
    let bytes = usize::try_from(bytes).unwrap_or(0).max(1);
    let kept = FREE.try_with(|free| {
        let blocks = &mut free.borrow_mut().0;
        let fits = blocks.len() < MAX_CACHED_BLOCKS;
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
    fn freed_blocks_are_reused() {
        let (a, b) = (gr_scratch(100_000), gr_scratch(100_000));
        assert!(a != b && a as usize % ALIGNMENT == 0);
        // SAFETY: both blocks belong to the calling thread.
        unsafe {
            std::slice::from_raw_parts_mut(a.cast::<u8>(), 100_000).fill(1);
            gr_scratch_end(a, 100_000);
            assert_eq!(gr_scratch(100_000), a);
            assert_ne!(gr_scratch(100), b);
            gr_scratch_end(b, 100_000);
        }
    }
}
