//! Merges the host and device halves of a CUDA translation unit into one module.
//!
//! ```text
//! let mut host = Host::parse(&host_half, "a.cu")?;
//! host.merge_device(&device_half_as_text, "a.cu")?;
//! ```
//!
//! Flow: the device's text is retargeted ([`retarget`]), its inline PTX translated ([`inline_ptx`]), and the
//! module linked. Device functions that query their thread index, or use shared memory, are marked for
//! inlining ([`inline_thread_queries`]). The calls that would register kernels and variables are read and replaced
//! ([`registration`]). A device variable and its host shadow become one, every kernel gets an entry
//! ([`kernel_entries`]), and launches of known kernels are connected ([`launches`]).
//!
//! Afterwards a kernel is an internal function `__gr_kernel.NAME` without callers. `__gr_launch.NAME` is a
//! declaration, which raising turns into a grid; the host's launches and `__gr_run.NAME` call it, and the
//! kernel's entry calls the latter. Host and device share one memory.

mod builtin_names;
mod inline_ptx;
mod inline_thread_queries;
mod kernel_entries;
mod launches;
mod lower_runtime_calls;
mod ptx;
mod registration;
mod retarget;
mod separate;
mod shift_semantics;

use crate::host::attributes::attribute_kind;
use crate::host::calls::calls_to;
use crate::host::ffi::*;
use crate::host::ffi::{functions_of, has_string_attribute};
use crate::host::module::Host;
use crate::host::symbols::source_location;
use gradus_ir::externals::{
    DEVICE_PREFIX, ExternalFn, GpuFn, KERNEL_PREFIX, LAUNCH_PREFIX, RUN_PREFIX,
    SHARED_DYNAMIC_PREFIX, SHARED_PREFIX, VARIABLE_PREFIX, differentiation_call, lookup,
};
use gradus_ir::{Code, Diagnostic};
use llvm_sys::comdat::LLVMSetComdat;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex, LLVMLinkage, LLVMVisibility};
use std::ptr::null_mut;

const FUNCTION: LLVMAttributeIndex = LLVMAttributeFunctionIndex;

/// The attribute that marks functions of the device.
const DEVICE_ATTRIBUTE: &str = "gradus-device";

impl Host {
    /// Merges the device half of the module's source, given as LLVM text for a GPU. With `separate`
    /// compilation, device functions and variables stay visible to other units.
    ///
    /// # Errors
    /// Text that LLVM cannot read, GPU instructions without a counterpart, and unsupported registrations.
    pub fn merge_device(
        &mut self,
        text: &[u8],
        name: &str,
        separate: bool,
    ) -> Result<(), Diagnostic> {
        let text = String::from_utf8_lossy(text);
        let device = retarget::retarget(&text, &self.triple(), &self.data_layout(), separate);
        if let Some(unknown) = device.unknown.first() {
            return Err(unsupported(unknown));
        }
        let module = self.read_text(device.text.as_bytes(), name)?;
        self.replace_assembly(module)?;
        if !separate {
            unsafe { check_bodies(module)? };
        }
        self.bound_shifts(module);
        self.internalize_device(module);
        unsafe { self.mark_short_alwaysinline(module) };
        self.link_module(module, name)?;
        self.internalize_kernels(separate);
        self.check_libdevice()?;
        self.mark_thread_functions();
        self.record_external_calls();
        self.mark_runtime_nounwind();
        let registered = self.registered_on_device()?;
        self.unify_variables(&registered, separate);
        self.emit_registration(&registered, device.architecture)
    }

    /// Makes the device's definitions internal and sets the host's target attributes.
    fn internalize_device(&self, module: LLVMModuleRef) {
        let target = self.target_attributes();
        unsafe {
            let (mark, length) = (
                DEVICE_ATTRIBUTE.as_ptr().cast(),
                DEVICE_ATTRIBUTE.len() as u32,
            );
            let of_device = LLVMCreateStringAttribute(self.ctx, mark, length, NO_NAME, 0);
            for f in functions_of(module) {
                if LLVMIsDeclaration(f) == 0 {
                    internalize(f);
                    LLVMAddAttributeAtIndex(f, FUNCTION, of_device);
                    preserve_null_accesses(self, f);
                    for &attribute in &target {
                        LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
                    }
                }
            }
            let mut v = LLVMGetFirstGlobal(module);
            let mut dynamic = None;
            while !v.is_null() {
                let next = LLVMGetNextGlobal(v);
                if LLVMIsDeclaration(v) == 0 {
                    internalize(v);
                } else if name_of(v).starts_with(SHARED_DYNAMIC_PREFIX) {
                    merge_declaration(*dynamic.get_or_insert(v), v);
                }
                v = next;
            }
        }
    }

    /// Returns the functions that the device half defined; threads of a kernel run them.
    pub fn device_functions(&self) -> Vec<String> {
        let is_marked = |f: &LLVMValueRef| has_string_attribute(*f, FUNCTION, DEVICE_ATTRIBUTE);
        let functions = self.functions().into_iter().filter(is_marked);
        functions.map(|f| unsafe { name_of(f) }).collect()
    }

    /// Adds `null_pointer_is_valid` to all functions. A kernel's access through null is an error that the
    /// program must observe, so LLVM must not remove the access.
    pub fn preserve_null_accesses(&mut self) {
        for f in self.functions() {
            unsafe { preserve_null_accesses(self, f) };
        }
        self.invalidate_units();
    }

    /// Adds `nounwind` to the CUDA runtime's functions, which never throw: control always continues between
    /// launches.
    fn mark_runtime_nounwind(&self) {
        for f in self.functions() {
            let name = unsafe { name_of(f) };
            let known = lookup(&name).filter(|_| unsafe { LLVMIsDeclaration(f) } != 0);
            if matches!(known, Some(ExternalFn::Kernel(GpuFn::Service))) {
                unsafe { add_attribute(self, f, "nounwind") };
            }
        }
    }

    /// Makes kernels and variables internal after the link, because the linker drops internal definitions
    /// without uses.
    fn internalize_kernels(&self, separate: bool) {
        for value in self.functions().into_iter().chain(self.variables()) {
            unsafe {
                let name = name_of(value);
                let is_own = name.starts_with(KERNEL_PREFIX)
                    || (name.starts_with(VARIABLE_PREFIX)
                        && !(separate && is_shared_by_units(&name)));
                if is_own && LLVMIsDeclaration(value) == 0 {
                    LLVMSetLinkage(value, LLVMLinkage::LLVMInternalLinkage);
                }
            }
        }
    }

    /// Returns the target attributes of the host's functions.
    fn target_attributes(&self) -> Vec<LLVMAttributeRef> {
        let defined = |f: &LLVMValueRef| unsafe { LLVMIsDeclaration(*f) } == 0;
        let Some(f) = self.functions().into_iter().find(defined) else {
            return Vec::new();
        };
        let attribute = |key: &&str| unsafe {
            LLVMGetStringAttributeAtIndex(f, FUNCTION, key.as_ptr().cast(), key.len() as u32)
        };
        let keys = ["target-cpu", "target-features", "tune-cpu", "frame-pointer"];
        keys.iter()
            .map(attribute)
            .filter(|a| !a.is_null())
            .collect()
    }

    /// Refuses functions of the device library that Gradus' header does not define.
    fn check_libdevice(&self) -> Result<(), Diagnostic> {
        let missing = self.functions().into_iter().find_map(|f| unsafe {
            let name = name_of(f);
            let used = LLVMIsDeclaration(f) != 0 && !LLVMGetFirstUse(f).is_null();
            (used && name.starts_with("__nv_")).then_some(name)
        });
        missing.map_or(Ok(()), |name| Err(unsupported(&name)))
    }

    /// Removes kernels after grids are built: remaining launches call the kernel's run function, and unused
    /// kernels are deleted.
    pub fn drop_kernels(&mut self) {
        for launch in self.functions() {
            let name = unsafe { name_of(launch) };
            let run = name
                .strip_prefix(LAUNCH_PREFIX)
                .map(|name| format!("{RUN_PREFIX}{name}"));
            if let Some(run) = run.and_then(|run| self.function(&run)) {
                unsafe { LLVMReplaceAllUsesWith(launch, run) };
            }
        }
        let is_kernel = |f: &LLVMValueRef| unsafe {
            name_of(*f).starts_with(KERNEL_PREFIX) && LLVMGetFirstUse(*f).is_null()
        };
        let kernels: Vec<LLVMValueRef> = self.functions().into_iter().filter(is_kernel).collect();
        for f in kernels {
            unsafe { LLVMDeleteFunction(f) };
        }
        let is_shared = |v: &LLVMValueRef| unsafe {
            let name = name_of(*v);
            (name.starts_with(SHARED_PREFIX) || name.starts_with(SHARED_DYNAMIC_PREFIX))
                && LLVMGetFirstUse(*v).is_null()
        };
        let shared: Vec<LLVMValueRef> = self.variables().into_iter().filter(is_shared).collect();
        for v in shared {
            unsafe { LLVMDeleteGlobal(v) };
        }
        self.invalidate_units();
    }
}

/// Replaces `other` by `one`: both declare dynamic shared memory, which starts at one address. Both stay
/// declarations, because a definition would have the source's size of zero, and LLVM assumes that an access
/// beyond a variable's size belongs to another variable.
///
/// # Safety
/// Both are live declarations of variables.
unsafe fn merge_declaration(one: LLVMValueRef, other: LLVMValueRef) {
    if one == other {
        return;
    }
    unsafe {
        let align_bytes = LLVMGetAlignment(one).max(LLVMGetAlignment(other));
        LLVMSetAlignment(one, align_bytes);
        LLVMReplaceAllUsesWith(other, one);
        LLVMDeleteGlobal(other);
    }
}

/// Makes a definition internal, unless later steps find it by name.
///
/// # Safety
/// `value` is a live function or variable with a definition.
unsafe fn internalize(value: LLVMValueRef) {
    unsafe {
        let name = name_of(value);
        if name.starts_with("llvm.") {
            return;
        }
        LLVMSetComdat(value, null_mut());
        LLVMSetVisibility(value, LLVMVisibility::LLVMDefaultVisibility);
        LLVMSetLinkage(
            value,
            match is_looked_up_by_name(&name) {
                true => LLVMLinkage::LLVMExternalLinkage,
                false => LLVMLinkage::LLVMInternalLinkage,
            },
        );
    }
}

/// Returns whether a device symbol is looked up by name after the link.
fn is_looked_up_by_name(name: &str) -> bool {
    [KERNEL_PREFIX, VARIABLE_PREFIX, DEVICE_PREFIX]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Returns whether other translation units may refer to a variable: C names, and C++ names without internal
/// linkage.
fn is_shared_by_units(name: &str) -> bool {
    let name = name.strip_prefix(VARIABLE_PREFIX).unwrap_or(name);
    !name.starts_with("_Z") || retarget::is_external(name)
}

/// Checks that all called device functions have a body; without separate compilation, no other unit can
/// define them.
///
/// # Safety
/// `module` is the device's, live.
unsafe fn check_bodies(module: LLVMModuleRef) -> Result<(), Diagnostic> {
    unsafe {
        for f in functions_of(module) {
            let name = name_of(f);
            // C++'s allocation operators are the host's.
            let elsewhere = ["_Znw", "_Zna", "_Zdl", "_Zda"];
            let of_program = name.starts_with("_Z")
                && differentiation_call(&name).is_none()
                && !elsewhere.iter().any(|o| name.starts_with(o));
            if LLVMIsDeclaration(f) != 0
                && of_program
                && let Some(call) = calls_to(f).first()
            {
                let message = format!("the device function `{name}` has no body in this source");
                return Err(Diagnostic::error(Code::KernelRefused, message)
                    .at(source_location(*call), "called here")
                    .help("define the function in this source, or compile all sources with `-rdc=true` if another source defines the function"));
            }
        }
    }
    Ok(())
}

/// Adds an attribute without a value.
///
/// # Safety
/// `f` is a live function of `host`.
unsafe fn add_attribute(host: &Host, f: LLVMValueRef, name: &str) {
    unsafe {
        let attribute = LLVMCreateEnumAttribute(host.ctx, attribute_kind(name), 0);
        LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
    }
}

/// See [`Host::preserve_null_accesses`].
///
/// # Safety
/// `f` is a live function of `host`.
unsafe fn preserve_null_accesses(host: &Host, f: LLVMValueRef) {
    unsafe {
        if LLVMIsDeclaration(f) == 0 {
            add_attribute(host, f, "null_pointer_is_valid");
        }
    }
}

fn unsupported(intrinsic: &str) -> Diagnostic {
    let message = format!("GPU instruction without a CPU translation: {intrinsic}");
    Diagnostic::error(Code::KernelRefused, message)
        .help("guard the code with `#if`, or rewrite the code without the instruction")
}
