//! CUDA's libraries on a command line: libraries replaced by the runtime library are removed, others are
//! refused.

use gradus_ir::{Code, Diagnostic};

/// Libraries whose functions are in the runtime library, or are meaningless without a GPU.
const REPLACED: &[&str] = &[
    "cuda",
    "cudart",
    "cudart_static",
    "cudadevrt",
    "curand",
    "curand_static",
    "nvToolsExt",
    "culibos",
];
/// Libraries without a replacement.
const MISSING: &[&str] = &[
    "cublas",
    "cublasLt",
    "cublas_static",
    "cusparse",
    "cusolver",
    "cufft",
    "cudnn",
    "nccl",
    "npp",
    "nvrtc",
    "nvjpeg",
    "cutensor",
    "nvml",
    "nvidia-ml",
];

/// Header-only libraries.
const HEADERS_ONLY: &[&str] = &["cub", "thrust", "cutlass", "cute"];

/// Returns the link arguments without replaced libraries.
///
/// # Errors
/// A CUDA library without a replacement.
pub(super) fn without_replaced_libraries(link: &[String]) -> Result<Vec<String>, Diagnostic> {
    let library = |word: &String| word.strip_prefix("-l").map(String::from);
    let mut names = link.iter().filter_map(library);
    if let Some(name) = names.find(|l| MISSING.contains(&l.as_str())) {
        return Err(missing_library_error(&name));
    }
    let ours = |word: &&String| library(word).is_some_and(|l| REPLACED.contains(&l.as_str()));
    Ok(link.iter().filter(|word| !ours(word)).cloned().collect())
}

/// Returns the diagnostic on a library without a replacement.
pub(super) fn missing_library_error(name: &str) -> Diagnostic {
    if HEADERS_ONLY.contains(&name) {
        let message = format!("Gradus does not provide the header-only CUDA library `{name}`");
        return Diagnostic::error(Code::ToolFailed, message)
            .help("pass an installed toolkit with `--cuda-path DIR`, or the folder of the headers with `-isystem`");
    }
    let message = format!("Gradus does not provide the CUDA library `{name}` for CPUs");
    Diagnostic::error(Code::ToolFailed, message)
        .help("use a CPU library with the same functions, or remove the library from the link")
}

/// Returns the CUDA library of a header.
pub(super) fn library_of_header(header: &str) -> Option<&'static str> {
    let of = |name: &&&str| header.strip_prefix(**name).is_some_and(is_part_of_library);
    HEADERS_ONLY.iter().chain(MISSING).find(of).copied()
}

/// Returns true if the text after a library's name belongs to a header of the library: `_v2.h`, `Dn.h`,
/// `/device/device_scan.cuh`.
fn is_part_of_library(rest: &str) -> bool {
    let part = |c: char| c == '_' || c.is_ascii_uppercase();
    rest.starts_with('/') || rest.starts_with('.') || rest.starts_with(part)
}
