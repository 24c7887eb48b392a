//! Edge cases of kernels: derivatives requested by kernel threads, wrapping indices into shared memory,
//! barriers in the cases of a `switch`, invalid accesses, and device functions of other sources.

use crate::support::{accepts, folder, refuses, succeeds, text, write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
const CHECK: &str = include_str!("cuda/check.h");

fn runs(at: &Path, program: &str, what: &str) {
    for (workers, forced) in [("1", "0"), ("2", "0"), ("2", "1")] {
        let mut run = Command::new(at.join(program));
        run.env("GRADUS_NUM_THREADS", workers);
        run.env("GRADUS_FORCE_FORK", forced);
        let said = text(&succeeds(&mut run).stdout);
        assert_eq!(said, "", "{what}, {workers} workers, forced: {forced}");
    }
}

fn builds_and_runs(name: &str, source: &str, flags: &[&str]) {
    let at = folder(&format!("kernel_edges_{name}"));
    write(&at, "check.h", CHECK);
    write(&at, "program.cu", source);
    for level in LEVELS {
        for flag in flags {
            accepts(&at, &format!("nvcc {level} {flag} program.cu -o program"));
            runs(&at, "program", &format!("{name} {level} {flag}"));
        }
    }
}

/// All threads add to shared memory; with and without separate compilation, and with line information.
#[test]
fn threads_request_derivatives() {
    let source = include_str!("cuda/asked_in_kernels.cu");
    builds_and_runs("asked", source, &["", "-rdc=true", "-g"]);
}

/// The object of a derivative run by threads has atomic adds, also for a GPU.
#[test]
fn code_for_a_gpu_adds_atomically() {
    let at = folder("kernel_edges_ptx");
    let source = "void r(const double *x, double *y, double s) {
  int t = __nvvm_read_ptx_sreg_tid_x();
  y[t] = x[0] * x[0] * s;
}
";
    write(&at, "r.c", source);
    let flags =
        "-- -O2 --target=nvptx64-nvidia-cuda -march=sm_80 -Xclang -target-feature -Xclang +ptx80";
    accepts(&at, &format!("grad r.c -f r --emit llvm -o r.ll {flags}"));
    let code = std::fs::read_to_string(at.join("r.ll")).expect("it is written");
    assert!(code.contains("atomicrmw fadd"), "{code}");
    let meets = source.replace("  y[t]", "  __nvvm_bar_sync(0);\n  y[t]");
    write(&at, "r.c", &meets);
    let said = refuses(
        &at,
        &format!("grad r.c -f r --emit llvm -o r.ll {flags}"),
        "GRD0013",
    );
    assert!(said.contains("r.c:3:"), "{said}");
}

/// A derivative of a single thread does not cover collective operations of a block.
#[test]
fn collective_ops_are_refused() {
    let at = folder("kernel_edges_together");
    let source = "template <typename... A> __device__ void __enzyme_autodiff(void *, A...);
__device__ double known[4];
__device__ void f(const double *x, double *y, int i) {
  WHAT
}
__global__ void k(double *x, double *dx, double *y, double *dy) {
  __enzyme_autodiff((void *)f, x, dx, y, dy, (int)threadIdx.x);
}
void run(double *x, double *dx, double *y, double *dy) { k<<<1, 64>>>(x, dx, y, dy); }
";
    let kinds = [
        "__shared__ double s[64]; s[i] = x[i]; y[i] = s[i] * s[i];",
        "extern __shared__ double s[]; s[i] = x[i]; y[i] = s[i] * s[i];",
        "y[i] = x[i]; __syncthreads(); y[i] = y[i] * x[i];",
        "y[i] = __shfl_down_sync(~0u, x[i], 1) * x[i];",
        "y[i] = __any_sync(~0u, x[i] > 0) * x[i]; __syncwarp();",
        "known[0] = x[i]; y[i] = known[i & 1] * x[i];",
    ];
    for kind in kinds {
        write(&at, "k.cu", &source.replace("WHAT", kind));
        for flags in ["", "-rdc=true", "-g -O0"] {
            let said = refuses(&at, &format!("nvcc -c {flags} k.cu -o k.o"), "GRD0013");
            let in_header = kind.contains("_sync(");
            assert!(in_header || said.contains("k.cu:"), "{kind}: {said}");
        }
    }
}

#[test]
fn shared_memory_indices_wrap() {
    builds_and_runs("wraps", include_str!("cuda/shared_wraps.cu"), &["", "-g"]);
}

/// A `switch` with barriers in its cases, in loops of all forms; cases fall through, and some are
/// unreachable.
#[test]
fn barriers_in_switch_cases() {
    builds_and_runs("switches", include_str!("cuda/switches.cu"), &[""]);
}

/// An invalid access in a kernel is a CUDA error; an invalid access on the host ends the program as before.
#[test]
fn invalid_accesses() {
    let at = folder("kernel_edges_faults");
    write(&at, "check.h", CHECK);
    write(&at, "faults.cu", include_str!("cuda/faults.cu"));
    for level in LEVELS {
        accepts(&at, &format!("nvcc {level} faults.cu -o faults"));
        for kind in ["null", "nulls", "inside", "far", "shared", "address"] {
            for (workers, forced) in [("1", "0"), ("2", "0"), ("2", "1")] {
                let mut run = Command::new(at.join("faults"));
                run.arg(kind).env("GRADUS_NUM_THREADS", workers);
                run.env("GRADUS_FORCE_FORK", forced);
                let said = text(&succeeds(&mut run).stdout);
                assert_eq!(said, "went on\n", "{level} {kind} {workers} {forced}");
            }
        }
        let host = Command::new(at.join("faults"))
            .arg("host")
            .output()
            .expect("it runs");
        assert_eq!(host.status.signal(), Some(11), "{level}");
    }
}

/// The link refuses a device function of another source that synchronises, before the linker reports an
/// undefined symbol.
#[test]
fn separate_synchronizing_fns_refused() {
    let at = folder("kernel_edges_apart");
    write(
        &at,
        "kernel.cu",
        "extern __device__ int total(int v, int *room);
__global__ void k(int *y) {
  __shared__ int room[64];
  y[threadIdx.x] = total(y[threadIdx.x], room);
}
int main() { k<<<1, 64>>>(nullptr); }
",
    );
    let waits = "__device__ int total(int v, int *room) {
  atomicAdd(room, v);
  __syncthreads();
  return room[0];
}
";
    write(&at, "total.cu", waits);
    accepts(&at, "nvcc -rdc=true -c kernel.cu -o kernel.o");
    accepts(&at, "nvcc -rdc=true -c total.cu -o total.o");
    for files in [
        "kernel.cu total.cu",
        "kernel.o total.o",
        "total.o kernel.cu",
    ] {
        let said = refuses(
            &at,
            &format!("nvcc -rdc=true {files} -o program"),
            "GRD0037",
        );
        assert!(
            said.contains("`total`") && said.contains("kernel.cu:4:"),
            "{said}"
        );
    }
    write(&at, "total.cu", &waits.replace("  __syncthreads();\n", ""));
    accepts(&at, "nvcc -rdc=true kernel.cu total.cu -o program");
}
