//! Lowers memory calls of the CUDA runtime (allocate, copy, fill) to plain instructions and a call that
//! returns CUDA's status.
//!
//! Runs before differentiation, which then sees a copy as `memcpy`. Programs without derivatives keep their
//! calls.

use crate::host::calls::{calls_to, set_callee};
use crate::host::ffi::*;
use crate::host::module::Host;
use gradus_ir::Diagnostic;
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;

/// Prefix of the names of the lowered functions, before the name of the runtime call.
const LOWERED_PREFIX: &str = "__gr_plain.";

impl Host {
    /// Lowers the calls of the CUDA runtime.
    ///
    /// # Errors
    /// An error of LLVM in the text of the lowered functions.
    pub fn lower_runtime_calls(&mut self) -> Result<(), Diagnostic> {
        let text = self.read_text(LOWERED_CALLS.as_bytes(), "parts")?;
        self.link_module(text, "parts")?;
        for part in self.functions() {
            let name = unsafe { name_of(part) };
            let Some(name) = name.strip_prefix(LOWERED_PREFIX) else {
                continue;
            };
            unsafe {
                let called = self.function(name).map(|f| (f, calls_to(f)));
                for call in called
                    .iter()
                    .flat_map(|(f, calls)| calls.iter().map(move |c| (f, c)))
                {
                    if LLVMGlobalGetValueType(*call.0) == LLVMGlobalGetValueType(part) {
                        set_callee(*call.1, part);
                    }
                }
                // The linker drops internal functions without uses, so the function becomes internal after
                // linking.
                LLVMSetLinkage(part, LLVMLinkage::LLVMInternalLinkage);
            }
        }
        self.invalidate_units();
        Ok(())
    }
}

/// The lowered functions. A refused copy or fill leaves the program's memory unchanged.
const LOWERED_CALLS: &str = r#"
declare noalias ptr @__gr_device_malloc(i64, i32) nounwind willreturn memory(inaccessiblemem: readwrite)
declare i32 @__gr_device_status(ptr readnone captures(none), i64, i32) nounwind willreturn memory(inaccessiblemem: readwrite)
declare i32 @__gr_device_free_status(ptr readnone captures(none), i32) nounwind willreturn memory(inaccessiblemem: readwrite)
declare void @__gr_device_free(ptr captures(none)) nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)
declare i32 @__gr_copy_begin(ptr readnone captures(none), ptr readnone captures(none), i64, i32) nounwind willreturn memory(inaccessiblemem: readwrite)
declare i32 @__gr_fill_begin(ptr readnone captures(none), i64) nounwind willreturn memory(inaccessiblemem: readwrite)
declare void @__gr_activity_end() nounwind willreturn memory(inaccessiblemem: readwrite)
declare float @__gr_elapsed(ptr readnone captures(none), ptr readnone captures(none)) nounwind willreturn memory(inaccessiblemem: readwrite)
declare i32 @__gr_elapsed_status(ptr readnone captures(none), ptr readnone captures(none)) nounwind willreturn memory(inaccessiblemem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal i32 @__gr_allocate(ptr %to, i64 %size, i32 %owner) alwaysinline nounwind {
  %made = call ptr @__gr_device_malloc(i64 %size, i32 %owner)
  %status = call i32 @__gr_device_status(ptr %made, i64 %size, i32 %owner)
  store ptr %made, ptr %to
  ret i32 %status
}
define i32 @__gr_plain.cudaMalloc(ptr %to, i64 %size) alwaysinline nounwind {
  %status = call i32 @__gr_allocate(ptr %to, i64 %size, i32 2)
  ret i32 %status
}
define i32 @__gr_plain.cudaMallocAsync(ptr %to, i64 %size, ptr %stream) alwaysinline nounwind {
  %status = call i32 @__gr_allocate(ptr %to, i64 %size, i32 2)
  ret i32 %status
}
define i32 @__gr_plain.cudaMallocManaged(ptr %to, i64 %size, i32 %flags) alwaysinline nounwind {
  %status = call i32 @__gr_allocate(ptr %to, i64 %size, i32 3)
  ret i32 %status
}
define i32 @__gr_plain.cudaMallocHost(ptr %to, i64 %size) alwaysinline nounwind {
  %status = call i32 @__gr_allocate(ptr %to, i64 %size, i32 1)
  ret i32 %status
}
define i32 @__gr_plain.cudaHostAlloc(ptr %to, i64 %size, i32 %flags) alwaysinline nounwind {
  %status = call i32 @__gr_allocate(ptr %to, i64 %size, i32 1)
  ret i32 %status
}
define i32 @__gr_plain.cudaFree(ptr %memory) alwaysinline nounwind {
  %status = call i32 @__gr_device_free_status(ptr %memory, i32 2)
  call void @__gr_device_free(ptr %memory)
  ret i32 %status
}
define i32 @__gr_plain.cudaFreeAsync(ptr %memory, ptr %stream) alwaysinline nounwind {
  %status = call i32 @__gr_plain.cudaFree(ptr %memory)
  ret i32 %status
}
define i32 @__gr_plain.cudaFreeHost(ptr %memory) alwaysinline nounwind {
  %status = call i32 @__gr_device_free_status(ptr %memory, i32 1)
  call void @__gr_device_free(ptr %memory)
  ret i32 %status
}
define i32 @__gr_plain.cudaMemcpy(ptr %to, ptr %from, i64 %count, i32 %kind) alwaysinline nounwind {
  %status = call i32 @__gr_copy_begin(ptr %to, ptr %from, i64 %count, i32 %kind)
  %fits = icmp eq i32 %status, 0
  br i1 %fits, label %copy, label %end
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %count, i1 false)
  call void @__gr_activity_end()
  br label %end
end:
  ret i32 %status
}
define i32 @__gr_plain.cudaMemcpyAsync(ptr %to, ptr %from, i64 %count, i32 %kind, ptr %stream) alwaysinline nounwind {
  %status = call i32 @__gr_plain.cudaMemcpy(ptr %to, ptr %from, i64 %count, i32 %kind)
  ret i32 %status
}
define i32 @__gr_plain.cudaMemcpyToSymbol(ptr %to, ptr %from, i64 %count, i64 %offset, i32 %kind) alwaysinline nounwind {
  %at = getelementptr i8, ptr %to, i64 %offset
  %status = call i32 @__gr_plain.cudaMemcpy(ptr %at, ptr %from, i64 %count, i32 %kind)
  ret i32 %status
}
define i32 @__gr_plain.cudaMemcpyToSymbolAsync(ptr %to, ptr %from, i64 %count, i64 %offset, i32 %kind, ptr %stream) alwaysinline nounwind {
  %status = call i32 @__gr_plain.cudaMemcpyToSymbol(ptr %to, ptr %from, i64 %count, i64 %offset, i32 %kind)
  ret i32 %status
}
define i32 @__gr_plain.cudaMemcpyFromSymbol(ptr %to, ptr %from, i64 %count, i64 %offset, i32 %kind) alwaysinline nounwind {
  %at = getelementptr i8, ptr %from, i64 %offset
  %status = call i32 @__gr_plain.cudaMemcpy(ptr %to, ptr %at, i64 %count, i32 %kind)
  ret i32 %status
}
define i32 @__gr_plain.cudaMemcpyFromSymbolAsync(ptr %to, ptr %from, i64 %count, i64 %offset, i32 %kind, ptr %stream) alwaysinline nounwind {
  %status = call i32 @__gr_plain.cudaMemcpyFromSymbol(ptr %to, ptr %from, i64 %count, i64 %offset, i32 %kind)
  ret i32 %status
}
define i32 @__gr_plain.cudaGetSymbolAddress(ptr %to, ptr %symbol) alwaysinline nounwind {
  store ptr %symbol, ptr %to
  ret i32 0
}
define i32 @__gr_plain.cudaMemset(ptr %to, i32 %value, i64 %count) alwaysinline nounwind {
  %status = call i32 @__gr_fill_begin(ptr %to, i64 %count)
  %fits = icmp eq i32 %status, 0
  br i1 %fits, label %fill, label %end
fill:
  %byte = trunc i32 %value to i8
  call void @llvm.memset.p0.i64(ptr %to, i8 %byte, i64 %count, i1 false)
  call void @__gr_activity_end()
  br label %end
end:
  ret i32 %status
}
define i32 @__gr_plain.cudaMemsetAsync(ptr %to, i32 %value, i64 %count, ptr %stream) alwaysinline nounwind {
  %status = call i32 @__gr_plain.cudaMemset(ptr %to, i32 %value, i64 %count)
  ret i32 %status
}
define i32 @__gr_plain.cudaEventElapsedTime(ptr %to, ptr %start, ptr %end) alwaysinline nounwind {
  %status = call i32 @__gr_elapsed_status(ptr %start, ptr %end)
  %time = call float @__gr_elapsed(ptr %start, ptr %end)
  store float %time, ptr %to
  ret i32 %status
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    /// The lowered functions are valid LLVM IR, and a call is replaced only if its type matches.
    #[test]
    fn matching_calls_are_lowered() {
        let text = "
            declare i32 @cudaMalloc(ptr, i64)
            declare i32 @cudaMemcpy(ptr, i64)
            define i32 @f(ptr %to) {
              %a = call i32 @cudaMalloc(ptr %to, i64 8)
              %b = call i32 @cudaMemcpy(ptr %to, i64 8)
              ret i32 %a
            }";
        let mut host = Host::parse(text.as_bytes(), "f.ll").unwrap();
        host.lower_runtime_calls().unwrap();
        host.verify().unwrap();
        let text = host.to_text();
        assert!(text.contains("call i32 @__gr_plain.cudaMalloc(ptr %to, i64 8)"));
        assert!(text.contains("call i32 @cudaMemcpy(ptr %to, i64 8)"));
    }

    #[test]
    fn lowered_functions_verify() {
        let names = LOWERED_CALLS
            .lines()
            .filter_map(|line| line.split("@__gr_plain.").nth(1));
        let defines = names
            .filter_map(|rest| rest.split_once('('))
            .map(|(name, _)| name);
        let host = Host::parse(LOWERED_CALLS.as_bytes(), "parts.ll").unwrap();
        for name in defines {
            assert!(host.defines(&format!("{LOWERED_PREFIX}{name}")), "{name}");
        }
        host.verify().unwrap();
    }
}
