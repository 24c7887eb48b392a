//! Faults of CUDA kernels: an invalid memory access becomes a CUDA error, without terminating the program.
//!
//! The system reports an invalid access to the thread by a signal. If the thread runs a kernel, all later
//! calls return the error. The thread continues after the kernel, or after its part of the kernel, in a
//! state saved beforehand as by `setjmp`. All other faults go to the previous handler. Faults of cooperative
//! threads go to the previous handler, too.
//!
//! Two kinds of states are saved. A launch inlined in the program runs in place, after
//! `__gr_launch_begin` (`cuda/launch.rs`), which then returns a second time, with the error. [`run`] calls a
//! part of a grid. Work that does not belong to the kernel runs without a saved state ([`without_recovery`]).
//!
//! On other machines and systems a fault terminates the program.
//!
//! The loops and the pool, below [`crate::cuda`], run parts of kernels. The kernel failure therefore stands
//! here, as a number; `cuda/error.rs` has the table of errors.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null;
use std::sync::atomic::{AtomicI32, Ordering};

/// CUDA's number of the error of an invalid access (`cudaErrorIllegalAddress`).
pub(crate) const ILLEGAL_ADDRESS: c_int = 700;

/// A part of a kernel, with the signature that `gr_for` takes.
type Part = unsafe extern "C" fn(lo: i64, hi: i64, context: *mut c_void);

/// State of a caller: the stack pointer after the call, the return address, and the callee-saved registers
/// (rbx, rbp and r12 to r15).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SavedState {
    stack: u64,
    code: u64,
    callee_saved: [u64; 6],
}

thread_local! {
    /// State of the launch that the thread runs.
    static LAUNCH: Cell<SavedState> = const { Cell::new(SavedState { stack: 0, code: 0, callee_saved: [0; 6] }) };
    /// State at which the thread continues after a fault; null if the thread runs no kernel.
    static RECOVERY_STATE: Cell<*const SavedState> = const { Cell::new(null()) };
}

/// The error of a failed kernel; 0 if none failed.
static KERNEL_FAILURE: AtomicI32 = AtomicI32::new(0);

/// The error of a failed kernel; 0 if none failed.
pub(crate) fn kernel_failure() -> c_int {
    KERNEL_FAILURE.load(Ordering::Relaxed)
}

/// Records a kernel failure, which every later call returns.
#[cold]
pub(crate) fn set_kernel_failure(error: c_int) {
    // The first failure is reported.
    let _ = KERNEL_FAILURE.compare_exchange(0, error, Ordering::Relaxed, Ordering::Relaxed);
}

/// Returns true if a kernel failed.
pub(crate) fn has_kernel_failure() -> bool {
    KERNEL_FAILURE.load(Ordering::Relaxed) != 0
}

/// Clears the kernel failure.
pub(crate) fn clear_kernel_failure() {
    KERNEL_FAILURE.store(0, Ordering::Relaxed);
}

/// Returns true if the calling thread runs a kernel.
pub(crate) fn is_in_kernel() -> bool {
    !RECOVERY_STATE.get().is_null()
}

/// Begins a kernel on the calling thread, until [`end`]. After a fault the thread continues at `place`.
pub(crate) fn begin(place: SavedState) {
    machine::install_handlers();
    LAUNCH.set(place);
    RECOVERY_STATE.set(LAUNCH.with(|launch| launch.as_ptr().cast_const()));
}

/// Ends the kernel.
pub(crate) fn end() {
    RECOVERY_STATE.set(null());
}

/// Runs work that does not belong to the kernel.
pub(crate) fn without_recovery<R>(work: impl FnOnce() -> R) -> R {
    let before = RECOVERY_STATE.replace(null());
    let done = work();
    RECOVERY_STATE.set(before);
    done
}

/// Runs a part of a kernel, or nothing if a kernel has failed.
///
/// # Safety
/// The caller may run the part with the given arguments.
pub(crate) unsafe fn run(part: Part, lo: i64, hi: i64, context: *mut c_void) {
    if has_kernel_failure() {
        return;
    }
    let mut place = SavedState::default();
    let before = RECOVERY_STATE.get();
    // SAFETY: promised by the caller; the place lives until the call has returned, once or twice.
    unsafe {
        machine::call(
            lo,
            hi,
            context,
            part,
            &raw mut place,
            RECOVERY_STATE.with(Cell::as_ptr),
        )
    };
    RECOVERY_STATE.set(before);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod machine {
    use super::{ILLEGAL_ADDRESS, Part, RECOVERY_STATE, SavedState, set_kernel_failure};
    use libc::{
        REG_EFL, REG_R12, REG_R13, REG_R14, REG_R15, REG_RAX, REG_RBP, REG_RBX, REG_RIP, REG_RSP,
        SA_SIGINFO, SIG_DFL, SIG_IGN, SIGBUS, SIGSEGV, c_int, sigaction, siginfo_t, ucontext_t,
    };
    use std::ffi::c_void;
    use std::mem::{transmute, zeroed};
    use std::ptr::{null, null_mut};
    use std::sync::OnceLock;

    /// Calls `part`, and saves in `place` the state to which the call returns; `guard` points to `place`
    /// meanwhile.
    ///
    /// # Safety
    /// The caller may run the part with the given arguments, and both places are writable.
    #[unsafe(naked)]
    pub(crate) unsafe extern "C" fn call(
        lo: i64,
        hi: i64,
        context: *mut c_void,
        part: Part,
        place: *mut SavedState,
        guard: *mut *const SavedState,
    ) {
        std::arch::naked_asm!(
            "lea rax, [rsp + 8]",
            "mov [r8], rax",
            "mov rax, [rsp]",
            "mov [r8 + 8], rax",
            "mov [r8 + 16], rbx",
            "mov [r8 + 24], rbp",
            "mov [r8 + 32], r12",
            "mov [r8 + 40], r13",
            "mov [r8 + 48], r14",
            "mov [r8 + 56], r15",
            "mov [r9], r8",
            // The part returns to the caller of this function.
            "jmp rcx",
        )
    }

    /// Previous handlers of `SIGSEGV` and `SIGBUS` (a mapped file that is too short).
    static PREVIOUS_HANDLERS: OnceLock<[sigaction; 2]> = OnceLock::new();
    const SIGNALS: [c_int; 2] = [SIGSEGV, SIGBUS];

    /// Installs the fault handlers.
    pub(crate) fn install_handlers() {
        PREVIOUS_HANDLERS.get_or_init(|| {
            SIGNALS.map(|signal| {
                // SAFETY: both structures are complete; the handler takes three arguments.
                unsafe {
                    let (mut own, mut before): (sigaction, sigaction) = (zeroed(), zeroed());
                    own.sa_sigaction = handle as *const () as usize;
                    own.sa_flags = SA_SIGINFO | libc::SA_ONSTACK;
                    libc::sigemptyset(&raw mut own.sa_mask);
                    libc::sigaction(signal, null(), &raw mut before);
                    libc::sigaction(signal, &raw const own, null_mut());
                    before
                }
            })
        });
    }

    extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let guard = RECOVERY_STATE.get();
        // SAFETY: the system passes the signal's own structures; a non-null guard points to a place whose
        // call has not returned.
        unsafe {
            // A signal sent by a process is no fault.
            if guard.is_null() || (*info).si_code <= 0 {
                return forward_to_previous_handler(signal, info, context);
            }
            RECOVERY_STATE.set(null());
            set_kernel_failure(ILLEGAL_ADDRESS);
            let place = *guard;
            let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
            let mut set = |register: c_int, value: u64| registers[register as usize] = value as i64;
            set(REG_RSP, place.stack);
            set(REG_RIP, place.code);
            set(REG_RAX, ILLEGAL_ADDRESS as u64);
            for (register, value) in [REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15]
                .into_iter()
                .zip(place.callee_saved)
            {
                set(register, value);
            }
            // A function starts with a clear direction flag.
            registers[REG_EFL as usize] &= !0x400;
        }
    }

    /// Passes a fault to the previous handler.
    ///
    /// # Safety
    /// The arguments are those of a handler.
    unsafe fn forward_to_previous_handler(
        signal: c_int,
        info: *mut siginfo_t,
        context: *mut c_void,
    ) {
        let at = SIGNALS.iter().position(|own| *own == signal);
        let before = PREVIOUS_HANDLERS.get().zip(at).map(|(all, at)| all[at]);
        // SAFETY: the system returned the previous handler, which takes the arguments stated by its flags.
        unsafe {
            match before {
                Some(before)
                    if before.sa_sigaction != SIG_DFL && before.sa_sigaction != SIG_IGN =>
                {
                    match before.sa_flags & SA_SIGINFO {
                        0 => transmute::<usize, extern "C" fn(c_int)>(before.sa_sigaction)(signal),
                        _ => transmute::<usize, extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(
                            before.sa_sigaction,
                        )(signal, info, context),
                    }
                }
                _ => {
                    // The access runs again, and terminates the program.
                    let mut own: sigaction = zeroed();
                    own.sa_sigaction = SIG_DFL;
                    libc::sigaction(signal, &raw const own, null_mut());
                    if (*info).si_code <= 0 {
                        libc::raise(signal);
                    }
                }
            }
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) mod machine {
    use super::{Part, SavedState};
    use std::ffi::c_void;

    /// Calls `part`.
    ///
    /// # Safety
    /// The caller may run the part with the given arguments.
    pub(crate) unsafe fn call(
        lo: i64,
        hi: i64,
        context: *mut c_void,
        part: Part,
        _place: *mut SavedState,
        _guard: *mut *const SavedState,
    ) {
        // SAFETY: promised by the caller.
        unsafe { part(lo, hi, context) }
    }
}
