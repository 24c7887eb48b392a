//! CUDA's libraries on a command line: those that the run-time library stands for go, others are refused.

use gradus_ir::{Code, Diagnostic};

/// Libraries whose functions are in our run-time library, or mean nothing without a GPU.
const OURS: &[&str] = &[
    "cuda",
    "cudart",
    "cudart_static",
    "cudadevrt",
    "curand",
    "curand_static",
    "nvToolsExt",
    "culibos",
];
/// Libraries that nothing here stands for.
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

/// Libraries that are headers only.
const HEADERS_ONLY: &[&str] = &["cub", "thrust", "cutlass", "cute"];

/// The words of a link that are kept.
///
/// # Errors
/// A library of CUDA's that is missing here.
pub(super) fn kept(link: &[String]) -> Result<Vec<String>, Diagnostic> {
    let library = |word: &String| word.strip_prefix("-l").map(String::from);
    let mut names = link.iter().filter_map(library);
    if let Some(name) = names.find(|l| MISSING.contains(&l.as_str())) {
        return Err(missing(&name));
    }
    let ours = |word: &&String| library(word).is_some_and(|l| OURS.contains(&l.as_str()));
    Ok(link.iter().filter(|word| !ours(word)).cloned().collect())
}

/// That nothing here stands for a library.
pub(super) fn missing(name: &str) -> Diagnostic {
    if HEADERS_ONLY.contains(&name) {
        let message =
            format!("the CUDA library `{name}`, which is headers only, is not among ours");
        return Diagnostic::error(Code::ToolFailed, message)
            .help("name an installed toolkit (`--cuda-path DIR`), or the folder of its headers (`-isystem`)");
    }
    let message = format!("the CUDA library `{name}` has no counterpart on this machine");
    Diagnostic::error(Code::ToolFailed, message)
        .help("use a library with the same functions for this machine, or leave it out")
}

/// The library of CUDA's that a header belongs to.
pub(super) fn of_header(header: &str) -> Option<&'static str> {
    let of = |name: &&&str| header.strip_prefix(**name).is_some_and(ends_name);
    HEADERS_ONLY.iter().chain(MISSING).find(of).copied()
}

/// Whether what follows a library's name in a header's is of a part of it: `_v2.h`, `Dn.h`, `/device/device_scan.cuh`.
fn ends_name(rest: &str) -> bool {
    let part = |c: char| c == '_' || c.is_ascii_uppercase();
    rest.starts_with('/') || rest.starts_with('.') || rest.starts_with(part)
}
