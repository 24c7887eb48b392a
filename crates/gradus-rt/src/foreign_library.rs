//! The process's OpenMP library, if any: lookup of the functions that [`crate::omp::queries`] and
//! [`crate::omp::worksharing`] wrap.
//!
//! The linker wraps each name (`--wrap`): the program calls `__wrap_…`, defined here, and the OpenMP
//! library's function is `__real_…`. Shared libraries bind to the plain name, which this library also
//! defines; the OpenMP library's function is then the next definition (`RTLD_NEXT`). Without an OpenMP
//! library, queries return the values of a single-threaded program.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// Defines the functions: for each, the address found by the linker and the address of the wrapper.
macro_rules! functions {
    ($($id:ident $name:literal,)*) => {
        /// A function of the OpenMP library.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Function { $($id,)* }

        const NAMES: &[&CStr] = &[$(
            // SAFETY: the literal ends with its only zero byte.
            unsafe { CStr::from_bytes_with_nul_unchecked(concat!($name, "\0").as_bytes()) },
        )*];

        const COUNT: usize = NAMES.len();

        std::arch::global_asm!(
            $(concat!(".weak __real_", $name),)*
            ".pushsection .data.rel.ro.gr_foreign,\"aw\"",
            ".p2align 3",
            ".local gr_foreign_entries",
            "gr_foreign_entries:",
            $(
                concat!(".8byte __real_", $name),
                concat!(".8byte __wrap_", $name),
            )*
            ".popsection",
        );
    };
}

functions! {
    ThreadNum "omp_get_thread_num",
    NumThreads "omp_get_num_threads",
    MaxThreads "omp_get_max_threads",
    SetNumThreads "omp_set_num_threads",
    SetSchedule "omp_set_schedule",
    InParallel "omp_in_parallel",
    Level "omp_get_level",
    ActiveLevel "omp_get_active_level",
    MostLevels "omp_get_max_active_levels",
    InFinal "omp_in_final",
    SetLevels "omp_set_max_active_levels",
    SetNested "omp_set_nested",
    TeamSize "omp_get_team_size",
    NumTeams "omp_get_num_teams",
    Ancestor "omp_get_ancestor_thread_num",
    ThreadNumF "omp_get_thread_num_",
    NumThreadsF "omp_get_num_threads_",
    MaxThreadsF "omp_get_max_threads_",
    InParallelF "omp_in_parallel_",
    LevelF "omp_get_level_",
    Static4 "__kmpc_for_static_init_4",
    Static4u "__kmpc_for_static_init_4u",
    Static8 "__kmpc_for_static_init_8",
    Static8u "__kmpc_for_static_init_8u",
    StaticEnd "__kmpc_for_static_fini",
    Dispatch4 "__kmpc_dispatch_init_4",
    Dispatch4u "__kmpc_dispatch_init_4u",
    Dispatch8 "__kmpc_dispatch_init_8",
    Dispatch8u "__kmpc_dispatch_init_8u",
    Next4 "__kmpc_dispatch_next_4",
    Next4u "__kmpc_dispatch_next_4u",
    Next8 "__kmpc_dispatch_next_8",
    Next8u "__kmpc_dispatch_next_8u",
    DispatchEnd "__kmpc_dispatch_deinit",
    DispatchFini4 "__kmpc_dispatch_fini_4",
    DispatchFini4u "__kmpc_dispatch_fini_4u",
    DispatchFini8 "__kmpc_dispatch_fini_8",
    DispatchFini8u "__kmpc_dispatch_fini_8u",
    Ordered "__kmpc_ordered",
    EndOrdered "__kmpc_end_ordered",
    Barrier "__kmpc_barrier",
    CancelBarrier "__kmpc_cancel_barrier",
    Single "__kmpc_single",
    EndSingle "__kmpc_end_single",
    Master "__kmpc_master",
    EndMaster "__kmpc_end_master",
    Masked "__kmpc_masked",
    EndMasked "__kmpc_end_masked",
    Reduce "__kmpc_reduce",
    ReduceNowait "__kmpc_reduce_nowait",
    EndReduce "__kmpc_end_reduce",
    EndReduceNowait "__kmpc_end_reduce_nowait",
    CopyPrivate "__kmpc_copyprivate",
    Serial "__kmpc_serialized_parallel",
    Fork "__kmpc_fork_call",
    ForkIf "__kmpc_fork_call_if",
    ForkTeams "__kmpc_fork_teams",
}

unsafe extern "C" {
    static gr_foreign_entries: [[*mut c_void; 2]; COUNT];
}

/// Cached addresses; the address of the cache itself marks a missing function.
static ADDRESSES: [AtomicPtr<c_void>; COUNT] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; COUNT];

/// Set once the OpenMP library may have begun a region: by a call of this library, or by a program from
/// another compiler that loads this library. Before, the OpenMP nesting level is 0.
#[unsafe(no_mangle)]
static gr_foreign_regions: AtomicU8 = AtomicU8::new(0);

impl Function {
    /// The function's address; `None` if no library defines the function.
    pub(crate) fn find(self) -> Option<*mut c_void> {
        let slot = &ADDRESSES[self as usize];
        let nothing = ADDRESSES.as_ptr().cast_mut().cast();
        let mut found = slot.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: the linker fills the table, and nothing writes to it.
            let [real, own] = unsafe { gr_foreign_entries[self as usize] };
            found = real;
            if found.is_null() || found == own {
                // SAFETY: a C string.
                found = unsafe { libc::dlsym(libc::RTLD_NEXT, NAMES[self as usize].as_ptr()) };
            }
            if found.is_null() || found == own {
                found = nothing;
            }
            slot.store(found, Ordering::Relaxed);
        }
        (found != nothing).then_some(found)
    }

    /// The function's address; aborts if missing, because the program cannot continue correctly.
    pub(crate) fn find_or_abort(self) -> *mut c_void {
        self.find().unwrap_or_else(|| {
            let name = NAMES[self as usize].to_string_lossy();
            let text =
                format!("gradus: the OpenMP library is not loaded, and the program calls {name}\n");
            // SAFETY: the text has the stated length. Nothing unwinds through this library.
            unsafe {
                libc::write(2, text.as_ptr().cast(), text.len());
                libc::abort()
            }
        })
    }
}

/// Calls a function of the OpenMP library with the given types and arguments.
macro_rules! call {
    ($function:expr, ($($ty:ty),* $(,)?) $(-> $result:ty)?, $($arg:expr),* $(,)?) => {{
        // SAFETY: the library's function has the given type.
        unsafe {
            let function: unsafe extern "C" fn($($ty),*) $(-> $result)? =
                std::mem::transmute($function);
            function($($arg),*)
        }
    }};
}
pub(crate) use call;

/// Records that the OpenMP library is about to begin a region.
pub(crate) fn mark_region_begun() {
    gr_foreign_regions.store(1, Ordering::Relaxed);
}

/// Returns whether this library is linked into the executable, not into a shared library.
#[cfg(target_os = "linux")]
fn is_in_executable() -> bool {
    /// The executable is reported first.
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> i32 {
        let here = (&raw const gr_foreign_regions).addr();
        // SAFETY: `info` is the loader's description of a loaded object; the other pointer refers to a local
        // variable.
        unsafe {
            let info = &*info;
            let parts = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            *found.cast::<bool>() = parts.iter().any(|part| {
                let start = info.dlpi_addr.wrapping_add(part.p_vaddr) as usize;
                part.p_type == libc::PT_LOAD && here.wrapping_sub(start) < part.p_memsz as usize
            });
        }
        1
    }
    let mut found = false;
    // SAFETY: the callback accepts the given arguments.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut found).cast()) };
    found
}

#[cfg(not(target_os = "linux"))]
fn is_in_program() -> bool {
    true
}

extern "C" fn detect_shared_library() {
    if !is_in_executable() {
        mark_region_begun();
    }
}

/// Run by the loader.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static DETECT_LIBRARY: extern "C" fn() = detect_shared_library;

/// Number of OpenMP-library regions around the calling thread.
pub(crate) fn level() -> i32 {
    if gr_foreign_regions.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    Function::Level.find().map_or(0, |f| call!(f, () -> i32,))
}

/// Returns whether the thread is in an OpenMP-library region with several threads.
pub(crate) fn has_threads() -> bool {
    let threads = || {
        Function::NumThreads
            .find()
            .map_or(1, |f| call!(f, () -> i32,))
    };
    level() > 0 && threads() > 1 || is_one_of_teams()
}

/// Returns whether the thread belongs to one of several teams (`#pragma omp teams`) of the OpenMP library.
/// Queries answered by this library would report a different region.
pub(crate) fn is_one_of_teams() -> bool {
    let teams = || {
        Function::NumTeams
            .find()
            .map_or(1, |f| call!(f, () -> i32,))
    };
    gr_foreign_regions.load(Ordering::Relaxed) != 0 && teams() > 1
}

/// # Safety
/// The contract of the OpenMP library's function applies.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap___kmpc_serialized_parallel(place: *mut c_void, thread: i32) {
    mark_region_begun();
    call!(
        Function::Serial.find_or_abort(),
        (*mut c_void, i32),
        place,
        thread
    );
}

/// # Safety
/// The contract of the OpenMP library's function applies.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap___kmpc_fork_call_if(
    place: *mut c_void,
    count: i32,
    function: *mut c_void,
    condition: i32,
    block: *mut c_void,
) {
    mark_region_begun();
    call!(
        Function::ForkIf.find_or_abort(),
        (*mut c_void, i32, *mut c_void, i32, *mut c_void),
        place,
        count,
        function,
        condition,
        block,
    );
}

/// Target of a fork: the next definition after this executable or library, not after another library with
/// its own copy of this run time.
extern "C" fn fork_target() -> *mut c_void {
    mark_region_begun();
    Function::Fork.find_or_abort()
}

extern "C" fn teams_target() -> *mut c_void {
    mark_region_begun();
    Function::ForkTeams.find_or_abort()
}

// A fork is variadic: all argument registers are preserved.
#[cfg(target_arch = "x86_64")]
macro_rules! fork {
    ($name:literal, $target:ident) => {
        std::arch::global_asm!(
            ".pushsection .text.gr_fork,\"ax\",@progbits",
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "push rax",
            "call {target}",
            "mov r11, rax",
            "pop rax",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp r11",
            ".popsection",
            target = sym $target,
        );
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! fork {
    ($name:literal, $target:ident) => {
        std::arch::global_asm!(
            ".pushsection .text.gr_fork,\"ax\",@progbits",
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            "stp x29, x30, [sp, #-80]!",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "bl {target}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x4, x5, [sp, #48]",
            "ldp x6, x7, [sp, #64]",
            "ldp x29, x30, [sp], #80",
            "br x16",
            ".popsection",
            target = sym $target,
        );
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fork!("__wrap___kmpc_fork_call", fork_target);
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fork!("__wrap___kmpc_fork_teams", teams_target);
