//! Fiber stacks, and the context switch between two stacks.
//!
//! Callee-saved registers of the C calling convention are saved on the stack being left; all other registers
//! are dead at a call. A guard page lies below each stack.

use std::ffi::c_void;
use std::ptr::null_mut;

/// Size of a stack, in bytes; only touched pages consume memory.
const STACK_BYTES: usize = 256 << 10;
/// Size of the guard page, at least a page on every machine.
const GUARD_BYTES: usize = 64 << 10;

/// A suspended stack.
pub(super) struct Stack {
    low: *mut c_void,
    /// Saved stack pointer: the target of [`switch`].
    pub stack_pointer: *mut c_void,
}

/// Unused stacks of a worker.
#[derive(Default)]
pub(super) struct Stacks(Vec<Stack>);

impl Stacks {
    /// A stack on which `begin` will run.
    pub fn prepare(&mut self, begin: extern "C" fn() -> !) -> Stack {
        let mut stack = self.0.pop().unwrap_or_else(map_stack);
        // SAFETY: the stack has the stated size, and is unused.
        stack.stack_pointer =
            unsafe { first_frame(stack.low.byte_add(GUARD_BYTES + STACK_BYTES), begin) };
        stack
    }

    /// Returns a stack for reuse.
    pub fn recycle(&mut self, stack: Option<Stack>) {
        self.0.extend(stack);
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        for stack in self.0.drain(..) {
            // SAFETY: `map_stack` mapped the stack, and the stack is unused.
            unsafe { libc::munmap(stack.low, GUARD_BYTES + STACK_BYTES) };
        }
    }
}

fn map_stack() -> Stack {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory, whose lowest part becomes the guard page.
    let low = unsafe {
        let low = libc::mmap(null_mut(), GUARD_BYTES + STACK_BYTES, access, flags, -1, 0);
        let made = low != libc::MAP_FAILED;
        if !made || libc::mprotect(low, GUARD_BYTES, libc::PROT_NONE) != 0 {
            abort_with("cannot allocate the stack of a cooperative CUDA thread");
        }
        low
    };
    Stack {
        low,
        stack_pointer: null_mut(),
    }
}

/// Aborts the program with a message.
pub(super) fn abort_with(why: &str) -> ! {
    let text = format!("gradus: {why}\n");
    // SAFETY: the text is valid; the program ends.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::abort()
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::ffi::c_void;

    /// Saves the current stack's state in `from`, and resumes the stack `to`.
    ///
    /// # Safety
    /// `to` was saved by a `switch` and has not run since, or comes from [`first_frame`].
    #[unsafe(naked)]
    pub unsafe extern "C" fn switch(from: *mut *mut c_void, to: *mut c_void) {
        std::arch::naked_asm!(
            "push rbp",
            "push rbx",
            "push r12",
            "push r13",
            "push r14",
            "push r15",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "pop r15",
            "pop r14",
            "pop r13",
            "pop r12",
            "pop rbx",
            "pop rbp",
            "ret",
        )
    }

    /// Prepares a stack to start with `begin`.
    ///
    /// # Safety
    /// The memory below `high`, which is a multiple of 16, is an unused stack.
    pub unsafe fn first_frame(high: *mut c_void, begin: extern "C" fn() -> !) -> *mut c_void {
        // Six registers and the return address; above, the stack is 8 bytes off a multiple of 16, as after a
        // call.
        let words = high.cast::<usize>();
        // SAFETY: promised by the caller.
        unsafe {
            words.sub(1).write(0);
            words.sub(2).write(begin as usize);
            for register in 3..=8 {
                words.sub(register).write(0);
            }
            words.sub(8).cast()
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use std::ffi::c_void;

    /// Saves the current stack's state in `from`, and resumes the stack `to`.
    ///
    /// # Safety
    /// `to` was saved by a `switch` and has not run since, or comes from [`first_frame`].
    #[unsafe(naked)]
    pub unsafe extern "C" fn switch(from: *mut *mut c_void, to: *mut c_void) {
        std::arch::naked_asm!(
            "sub sp, sp, #160",
            "stp x19, x20, [sp]",
            "stp x21, x22, [sp, #16]",
            "stp x23, x24, [sp, #32]",
            "stp x25, x26, [sp, #48]",
            "stp x27, x28, [sp, #64]",
            "stp x29, x30, [sp, #80]",
            "stp d8, d9, [sp, #96]",
            "stp d10, d11, [sp, #112]",
            "stp d12, d13, [sp, #128]",
            "stp d14, d15, [sp, #144]",
            "mov x9, sp",
            "str x9, [x0]",
            "mov sp, x1",
            "ldp x19, x20, [sp]",
            "ldp x21, x22, [sp, #16]",
            "ldp x23, x24, [sp, #32]",
            "ldp x25, x26, [sp, #48]",
            "ldp x27, x28, [sp, #64]",
            "ldp x29, x30, [sp, #80]",
            "ldp d8, d9, [sp, #96]",
            "ldp d10, d11, [sp, #112]",
            "ldp d12, d13, [sp, #128]",
            "ldp d14, d15, [sp, #144]",
            "add sp, sp, #160",
            "ret",
        )
    }

    /// Prepares a stack to start with `begin`.
    ///
    /// # Safety
    /// The memory below `high`, which is a multiple of 16, is an unused stack.
    pub unsafe fn first_frame(high: *mut c_void, begin: extern "C" fn() -> !) -> *mut c_void {
        // Twenty registers; the twelfth is the return address.
        let words = high.cast::<usize>();
        // SAFETY: promised by the caller.
        unsafe {
            for register in 1..=20 {
                words.sub(register).write(0);
            }
            words.sub(9).write(begin as usize);
            words.sub(20).cast()
        }
    }
}

use machine::first_frame;
pub(super) use machine::switch;
