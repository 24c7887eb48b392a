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

/// The words of a link that are kept.
///
/// # Errors
/// A library of CUDA's that is missing here.
pub(super) fn kept(link: &[String]) -> Result<Vec<String>, Diagnostic> {
    let library = |word: &String| word.strip_prefix("-l").map(String::from);
    if let Some(name) = link
        .iter()
        .filter_map(library)
        .find(|l| MISSING.contains(&l.as_str()))
    {
        let message = format!("the CUDA library `{name}` has no counterpart on this machine");
        return Err(Diagnostic::error(Code::ToolFailed, message)
            .help("link a library with the same functions for this machine, or leave it out"));
    }
    let ours = |word: &&String| library(word).is_some_and(|l| OURS.contains(&l.as_str()));
    Ok(link.iter().filter(|word| !ours(word)).cloned().collect())
}
