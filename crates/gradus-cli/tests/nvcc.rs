//! CUDA programs on the host: results of kernels, options accepted by the driver, and refusals.
//!
//! The programs of `tests/cuda` compare with values computed on the host, and finally print `right`.

use crate::support::text;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(test: &str) -> PathBuf {
    crate::support::folder(&format!("cuda-{test}"))
}

fn nvcc(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    let words = line.split_whitespace();
    let command = command.arg("nvcc").args(words).current_dir(folder);
    command.output().expect("it starts")
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Returns the output of a program of `tests/cuda`, with one worker and with two, every loop forked.
fn prints(name: &str, options: &str) -> Vec<String> {
    let folder = folder(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cuda/{name}.cu"));
    let line = format!("{} -o program {options}", source.display());
    succeeds(&nvcc(&folder, &line));
    let run = |workers: &str| {
        let mut command = Command::new(folder.join("program"));
        command.env("GRADUS_NUM_THREADS", workers);
        command.env("GRADUS_FORCE_FORK", "1");
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{name}: {:?}", output.status);
        text(&output.stdout)
    };
    ["1", "2"].map(run).to_vec()
}

#[test]
fn kernels_without_barriers() {
    for said in prints("memory", "-O3") {
        assert_eq!(said, "thread 3 of 7: 1.50 spoke\nright\n");
    }
}

#[test]
fn block_barriers() {
    for said in prints("barriers", "-arch=sm_70 -lineinfo") {
        assert_eq!(said, "right\n");
    }
}

#[test]
fn warp_shuffles() {
    for said in prints("warps", "-G") {
        assert_eq!(said, "right\n");
    }
}

#[test]
fn spin_waits_between_threads() {
    for said in prints("waits", "-O2") {
        assert_eq!(said, "right\n");
    }
}

#[test]
fn unsupported_spin_waits_are_reported() {
    let folder = folder("waits-told");
    let source = "__global__ void k(volatile int *flag, int *x) {\n\
          if (threadIdx.x & 1) {\n\
            while (flag[threadIdx.x] == 0);\n\
            x[threadIdx.x] = __shfl_sync(0xaaaaaaaa, 3, 1);\n\
          }\n\
          __syncthreads();\n\
          flag[threadIdx.x] = 1;\n\
        }\n\
        int main() { int *p; cudaMalloc(&p, 256); k<<<1, 32>>>(p, p); }\n";
    std::fs::write(folder.join("k.cu"), source).expect("written");
    let output = nvcc(&folder, "-c k.cu");
    succeeds(&output);
    let said = text(&output.stderr);
    let names = ["GRD0037", "may wait in this loop", "k.cu:3"];
    assert!(names.iter().all(|name| said.contains(name)), "{said}");
}

#[test]
fn several_files_are_compiled_and_linked() {
    let folder = folder("files");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    write(
        "k.cu",
        "__global__ void twice(int *x) { x[threadIdx.x] *= 2; }\n\
         void run(int *x, int n) { twice << < 1, n >> > (x); }\n",
    );
    write("old.c", "int start(void) { return 3; }\n");
    write(
        "main.cpp",
        "#include <cuda_runtime.h>\n#include <cstdio>\n#include <memory>\n\
         extern \"C\" int start(void);\nvoid run(int *x, int n);\n\
         int main() { int *x; cudaMalloc((void **)&x, 4 * sizeof(int));\n\
           for (int i = 0; i < 4; i++) x[i] = start() + i;\n\
           run(x, 4); std::printf(\"%d %d\\n\", x[0], x[3]); }\n",
    );
    succeeds(&nvcc(
        &folder,
        "-c k.cu -o k.o -Xcompiler -Wall,-fPIC -gencode arch=compute_70,code=sm_70",
    ));
    succeeds(&nvcc(&folder, "-o all k.o main.cpp old.c -lcudart -lm"));
    succeeds(&nvcc(&folder, "-std=c++17 -c old.c -o old.o"));
    let output = Command::new(folder.join("all"))
        .output()
        .expect("it starts");
    assert_eq!(text(&output.stdout), "6 12\n");
}

/// Build-system features besides compiling and linking: dependence lists, device link, archives, option
/// files, and links by another compiler.
#[test]
fn build_system_features() {
    let folder = folder("build-systems");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    std::fs::create_dir_all(folder.join("out")).expect("a folder");
    write("k.h", "int run(int);\n");
    write(
        "k.cu",
        "#include \"k.h\"\n__global__ void add(int *x) { atomicAdd(x, N); }\n\
         int run(int n) { int *x; cudaMallocManaged(&x, 4); *x = 0; add << <1, n>> >(x);\n\
           cudaDeviceSynchronize(); return *x; }\n",
    );
    write(
        "main.cpp",
        "#include \"k.h\"\n#include <cstdio>\nint main() { std::printf(\"%d\\n\", run(7)); }\n",
    );
    write("options", "-DN=\"3\" -MD -c 'k.cu'\n");
    succeeds(&nvcc(&folder, "@options -odir out -rdc=true"));
    let list = std::fs::read_to_string(folder.join("out/k.d")).expect("a list");
    let (object, sources) = list.split_once(": ").expect("a rule");
    assert_eq!(object, "out/k.o");
    let mut sources = sources.split_whitespace().filter(|word| *word != "\\");
    assert_eq!(sources.next(), Some("k.cu"));
    assert!(sources.clone().any(|path| path == "k.h"), "{list}");
    // The dependence list triggers rebuilds: all listed files exist.
    assert!(sources.all(|path| folder.join(path).is_file()), "{list}");

    succeeds(&nvcc(&folder, "-dlink out/k.o -o device.o"));
    succeeds(&nvcc(&folder, "-lib out/k.o -o libk.a"));
    succeeds(&nvcc(&folder, "main.cpp device.o -L. -lk -o by-us"));

    let told = nvcc(&folder, "-v none.cu");
    let told = text(&told.stderr);
    let line = |start: &str| told.lines().find_map(|line| line.strip_prefix(start));
    let libraries = line("#$ LIBRARIES= ").expect("where libraries are");
    let headers = line("#$ INCLUDES=\"-I").expect("where headers are");
    let headers = Path::new(headers.trim_matches('"'));
    // CMake recognises a link by this line.
    assert!(
        line(" ld ").is_some_and(|words| words.contains(libraries)),
        "{told}"
    );
    assert!(headers.join("cuda_runtime.h").is_file(), "{told}");
    let by_other = Command::new("clang++-22")
        .current_dir(&folder)
        .args(["main.cpp", "device.o", "libk.a", "-o", "by-other"])
        .arg(libraries.trim_matches('"'))
        .args(["-lcudadevrt", "-lcudart_static"])
        .output();
    succeeds(&by_other.expect("it starts"));
    for program in ["by-us", "by-other"] {
        let output = Command::new(folder.join(program)).output();
        assert_eq!(
            text(&output.expect("it starts").stdout),
            "21\n",
            "{program}"
        );
    }
    for line in ["-dlink k.cu", "-lib main.cpp -o m.a", "-c k.cu -m32"] {
        assert!(!nvcc(&folder, line).status.success(), "{line}");
    }
}

/// Device functions and variables of a source in another source's kernels, compiled and linked in one step
/// and separately.
#[test]
fn device_code_of_several_sources_is_linked() {
    let folder = folder("separate");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    write(
        "a.cu",
        "#include <cstdio>\nextern __device__ int scale;\nextern __constant__ float table[4];\n\
         __device__ float f(float x);\nnamespace { __device__ float own(float x) { return x + 1; } }\n\
         static __device__ int hidden = 5;\nstruct S { __device__ float get(float) const; float by; };\n\
         __global__ void k(float *x, S s) { int t = threadIdx.x;\n\
           x[t] = s.get(f(own(x[t])) * scale) + table[t & 3] + hidden; }\n\
         void set(int);\n__global__ void turned(float *x);\nextern __device__ int host_only;\n\
         int main() { float *x; cudaMallocManaged(&x, 8 * 4);\n\
           for (int i = 0; i < 8; i++) x[i] = i;\n\
           set(3); k<<<1, 8>>>(x, S{2}); cudaDeviceSynchronize(); std::printf(\"%g %g\\n\", x[0], x[7]);\n\
           turned<<<1, 8>>>(x); cudaDeviceSynchronize();\n\
           int s; cudaMemcpyFromSymbol(&s, scale, sizeof s);\n\
           int h; cudaMemcpyFromSymbol(&h, host_only, sizeof h); std::printf(\"%g %d %d\\n\", x[0], s, h); }\n",
    );
    write(
        "b.cu",
        "__device__ int scale = 1;\n__constant__ float table[4] = {1, 2, 3, 4};\n\
         struct S { __device__ float get(float) const; float by; };\n\
         __device__ float S::get(float x) const { return x * by; }\n\
         namespace { __device__ float own(float x) { return x * x; } }\n\
         static __device__ int hidden = 0;\n\
         __device__ float f(float x) { return own(x) + hidden; }\n\
         __device__ int host_only = 6;\n\
         __global__ void turned(float *x) { if (threadIdx.x == 0) host_only++; __shared__ float s[8]; int t = threadIdx.x; s[t] = x[t];\n\
           __syncthreads(); x[t] = s[7 - t] + hidden; }\n\
         void set(int to) { cudaMemcpyToSymbol(scale, &to, sizeof to); }\n",
    );
    // (x + 1)² · 3 · 2 + table + 5
    let right = "12 393\n393 3 7\n";
    let said = |program: &str| {
        let output = Command::new(folder.join(program)).output();
        text(&output.expect("it starts").stdout)
    };
    succeeds(&nvcc(&folder, "-rdc=true -o at_once a.cu b.cu"));
    assert_eq!(said("at_once"), right);
    succeeds(&nvcc(&folder, "-dc a.cu -o a.o"));
    succeeds(&nvcc(&folder, "-rdc=true -c b.cu -o b.o"));
    succeeds(&nvcc(&folder, "-rdc=true -o linked a.o b.o"));
    assert_eq!(said("linked"), right);
    // Without `-rdc`, each source's device code is private.
    assert!(!nvcc(&folder, "-o apart a.cu b.cu").status.success());
}

/// Lines, values live across a barrier, interchanged loops, and the vectoriser's remarks.
#[test]
fn kernel_report() {
    let folder = folder("report");
    let source = "__global__ void smooth(const float *x, float *y)\n{\n\
        __shared__ float tile[256];\n\
        int t = threadIdx.x;\n\
        float own = x[t] / 3;\n\
        tile[t] = own;\n\
        __syncthreads();\n\
        y[t] = tile[255 - t] + own;\n\
        }\n\
        __global__ void columns(const float *x, float *y, int n)\n{\n\
        int i = threadIdx.x;\n\
        float sum = 0;\n\
        for (int k = 0; k < n; k++) sum += x[k * n + i];\n\
        y[i] = sum;\n\
        }\n\
        __global__ void apart(const float *x, float *y, int n)\n{\n\
        float own = x[threadIdx.x], sum = 0;\n\
        for (int k = 0; k < n; k++) sum += (x[k] - own) * (x[k] - own);\n\
        y[threadIdx.x] = sum;\n\
        }\n\
        __global__ void alone(float *y)\n{\n\
        __shared__ float cell[256];\n\
        int t = threadIdx.x;\n\
        float own = y[t] / 3;\n\
        cell[t] = own;\n\
        __syncthreads();\n\
        y[t] = cell[t] + own;\n\
        }\n\
        void run(const float *x, float *y) {\n\
        smooth<<<8, 256>>>(x, y); alone<<<8, 256>>>(y); apart<<<1, 256>>>(x, y, 999);\n\
        columns<<<1, 256>>>(x, y, 256); }\n";
    std::fs::write(folder.join("k.cu"), source).expect("written");
    let output = nvcc(&folder, "--gpu-report -c k.cu");
    succeeds(&output);
    let said = text(&output.stdout);
    let paragraph = |head: &str| {
        let from = said.find(head).unwrap_or_else(|| panic!("{head}: {said}"));
        let end = said[from..].find("\nk.cu").map_or(said.len(), |n| from + n);
        &said[from..end]
    };
    let smooth = paragraph("k.cu:5-8: kernel, launched by ");
    // The result of a division is saved; it is the only value live across the barrier.
    let barrier = "line 7: barrier, split: 1 value saved per thread (4 bytes)";
    assert!(smooth.contains(barrier), "{said}");
    assert!(smooth.contains(": loop vectorised, width "), "{said}");
    assert!(!smooth.contains("interchanged"), "{said}");
    let columns = paragraph("k.cu:14-15: kernel, launched by ");
    assert!(columns.contains("no barrier"), "{said}");
    assert!(columns.contains("line 14: interchanged"), "{said}");
    // A compiler does not regroup a single sum; the sums of all threads form a vector.
    let apart = paragraph("k.cu:19-21: kernel, launched by ");
    assert!(apart.contains("line 20: interchanged"), "{said}");
    assert!(apart.contains("line 20: loop vectorised, width "), "{said}");
    let alone = paragraph("k.cu:27-30: kernel, launched by ");
    let removed = "line 29: barrier, removed: no accesses to order";
    assert!(
        alone.contains(removed) && alone.contains("no barrier"),
        "{said}"
    );
    let output = nvcc(
        &folder,
        "--gpu-report --gradus-without=barrier-removal -c k.cu",
    );
    let barrier = "line 29: barrier, split: 1 value saved per thread (4 bytes)";
    assert!(
        text(&output.stdout).contains(barrier),
        "{}",
        text(&output.stdout)
    );
    assert!(text(&nvcc(&folder, "-c k.cu").stdout).is_empty());
}

/// Launches of equal size are fused if each thread of the second reads only values stored by itself; values
/// of a neighbour prevent fusion.
#[test]
fn launch_fusion() {
    const SOURCE: &str = "__global__ void twice(float *y, const float *x, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n) y[t] = 2 * x[t]; }
__global__ void next(float *y, const float *x, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t + 1 < n) y[t] = x[t + 1]; }
void same(float *x, float *y, float *z, int n) {
    twice<<<(n + 99) / 100, 100>>>(y, x, n);
    twice<<<(n + 99) / 100, 100>>>(z, y, n); }
void neighbour(float *x, float *y, float *z, int n) {
    twice<<<(n + 99) / 100, 100>>>(y, x, n);
    next<<<(n + 99) / 100, 100>>>(z, y, n); }
";
    let folder = folder("together");
    std::fs::write(folder.join("k.cu"), SOURCE).expect("written");
    let told = |switch: &str| {
        let output = nvcc(&folder, &format!("-O3 --gpu-report {switch} -c k.cu"));
        text(&output.stdout)
    };
    let (with, without) = (told(""), told("--gradus-without=launch-fusion"));
    let line = "k.cu:2-3: kernel, launched by same\n    fused with the launch in line 9 if the checks at run time pass";
    assert!(with.contains(line), "{with}");
    assert_eq!(with.matches("fused").count(), 1, "{with}");
    assert!(!without.contains("fused"), "{without}");
}

/// A uniform computation is hoisted out of its guard, and is then not a loop over threads.
#[test]
fn uniform_guards() {
    const SOURCE: &str = "__device__ float sum(const float *in, int n) {
    float s = 0; for (int i = 0; i < n; i++) s += in[i]; return s; }
__global__ void norm(float *__restrict__ out, const float *__restrict__ in, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n) out[t] = in[t] / sum(in, n); }
void go(float *out, float *in, int n) { norm<<<(n + 255) / 256, 256>>>(out, in, n); }
";
    let folder = folder("guards");
    std::fs::write(folder.join("k.cu"), SOURCE).expect("written");
    let told = |switch: &str| {
        let output = nvcc(&folder, &format!("-O3 --gpu-report {switch} -c k.cu"));
        text(&output.stdout)
    };
    let (with, without) = (told(""), told("--gradus-without=uniform-guards"));
    assert!(!with.contains("line 2: loop"), "{with}");
    assert!(without.contains("line 2: loop"), "{without}");
}

/// The speculative search changes the code of a search loop; the sparse thread loops do not.
#[test]
fn speculative_search() {
    let folder = folder("searches");
    let code = "__global__ void at_least(const double *a, const double *u, int *found, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, index = -1, x;
  for (x = 0; x < n; x++) if (a[x] >= u[i]) { index = x; break; }
  found[i] = index;
}
void find(const double *a, const double *u, int *found, int n, int m) {
  at_least<<<m / 64, 64>>>(a, u, found, n);
}
";
    std::fs::write(folder.join("k.cu"), code).expect("it can be written");
    let made = |options: &str| {
        succeeds(&nvcc(&folder, &format!("{options} -O3 -c k.cu -o k.o")));
        std::fs::read(folder.join("k.o")).expect("it is there")
    };
    assert!(made("") != made("--gradus-without=speculative-search"));
    assert!(
        made("") == made("--gradus-without=sparse-thread-loops"),
        "else the test says nothing"
    );
}

/// A header declares a function of plain C++; the unit also defines it for the device, below the kernel.
#[test]
fn execution_spaces_are_merged() {
    let folder = folder("spaces");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    std::fs::create_dir_all(folder.join("inc")).expect("a folder");
    write(
        "inc/f.h",
        "#pragma once\nint f(int x);\nint\ng(int x);\nint host_only(int x);\n",
    );
    write(
        "k.cu",
        "#include \"inc/../inc/f.h\"\n#include <cstdio>\n\
         __global__ void k(int *x) { *x = f(*x) + g(*x); }\n\
         __host__ __device__ int f(int x) { return x + 1; }\n\
         __device__ __host__ int g(int x) { return 10 * x; }\n\
         int main() { int *x; cudaMallocManaged(&x, 4); *x = 3; k<<<1, 1>>>(x);\n\
           cudaDeviceSynchronize(); std::printf(\"%d %d\\n\", *x, f(1)); }\n",
    );
    succeeds(&nvcc(&folder, "-o k k.cu"));
    let output = Command::new(folder.join("k")).output().expect("it starts");
    assert_eq!(text(&output.stdout), "34 2\n");
    write(
        "no.cu",
        "#include \"inc/f.h\"\n__global__ void k(int *x) { *x = host_only(*x); }\n\
         int host_only(int x) { return x; }\n",
    );
    let refused = nvcc(&folder, "-c no.cu");
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("no.cu:2"));
}

/// Headers missing in Gradus are found in a toolkit, whose C++ detects clang; the device is the
/// architecture for which kernels are compiled.
#[test]
fn toolkit_headers_come_last() {
    const SOURCE: &str = "#include <cuda_runtime.h>
        #include <only_there.h>
        #include <cuda/std/cstdint>
        #include <cuda/std/__cccl/compiler.h>
        static_assert(OF_THE_TOOLKIT && ASKED && __NVCC__, \"its own C++ headers\");
        __global__ void store(int *x) { *x = THERE; }
        int main() {
          int *x;
          cudaMallocManaged(&x, sizeof(int));
          store<<<1, 1>>>(x);
          cudaDeviceSynchronize();
          cudaFuncAttributes a;
          cudaFuncGetAttributes(&a, store);
          cudaDeviceProp p;
          cudaGetDeviceProperties(&p, 0);
          return *x == 7 && a.ptxVersion == 86 && p.major == 8 && p.minor == 6 ? 0 : 1;
        }";
    let folder = folder("toolkit");
    let headers = folder.join("toolkit/include");
    std::fs::create_dir_all(headers.join("cuda/std/__cccl")).expect("made");
    let write = |name: &str, text: &str| std::fs::write(headers.join(name), text).expect("written");
    write("only_there.h", "#define THERE 7\n");
    write("cuda_runtime.h", "#error not this one\n");
    write("cuda/std/cstdint", "#define OF_THE_TOOLKIT 1\n");
    let asks = "#ifdef __NVCC__\n#error the compiler is clang\n#endif\n#define ASKED 1\n";
    write("cuda/std/__cccl/compiler.h", asks);
    std::fs::write(folder.join("store.cu"), SOURCE).expect("written");
    succeeds(&nvcc(
        &folder,
        "--cuda-path=toolkit -arch=sm_86 store.cu -o store",
    ));
    let output = Command::new(folder.join("store")).output();
    succeeds(&output.expect("it starts"));
    let wrong = nvcc(&folder, "--cuda-path nowhere store.cu -o wrong");
    let said = text(&wrong.stderr);
    assert!(
        !wrong.status.success() && said.contains("`nowhere`"),
        "{said}"
    );
}

/// With `-g` a debugger finds a kernel's lines in its code, wherever it was inlined.
#[test]
fn a_debugger_finds_kernels() {
    const SCALE: &str = "#include <cstdio>
        __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }
        int main() {
          float *x;
          cudaMallocManaged(&x, 32 * sizeof(float));
          scale<<<1, 32>>>(x, 2.0f);
          return cudaDeviceSynchronize();
        }";
    let folder = folder("debugger");
    std::fs::write(folder.join("scale.cu"), SCALE).expect("written");
    for options in ["-g -O2", "-g -G"] {
        succeeds(&nvcc(&folder, &format!("{options} scale.cu -o scale")));
        let mut dump = Command::new("llvm-dwarfdump-22");
        dump.args(["--name=scale", "scale"]);
        let output = dump.current_dir(&folder).output().expect("it runs");
        let said = text(&output.stdout);
        let place = said.find("DW_TAG_inlined_subroutine").expect("its code");
        assert!(
            said[place..].contains("\"_Z5scalePff\""),
            "{options}: {said}"
        );
    }
}

#[test]
fn refusals_write_nothing() {
    let cases = [
        (
            "__global__ void k(int *x) { asm(\"tex.2d.v4 $0;\" : : \"r\"(x[0])); }",
            "GRD0037",
        ),
        (
            "__device__ int f(int n) { return n ? f(n - 1) + threadIdx.x : 0; }\n\
             __global__ void k(int *x) { x[0] = f(x[1]); }",
            "GRD0037",
        ),
        (
            "__global__ void k(long double *x, long double by) { x[0] *= by; }",
            "GRD0037",
        ),
        (
            "struct S { int n; long double x; };\n\
             __global__ void k(S s, double *y) { *y = s.x; }",
            "k.cu:2",
        ),
        (
            "__device__ long double scale = 2;\n\
             __global__ void k(float *x) { x[0] *= scale; }",
            "k.cu:2",
        ),
        (
            "__device__ int f(int);\n__global__ void k(int *x) {\n*x = f(1); }",
            "k.cu:3",
        ),
        ("#include <mma.h>\n__global__ void k() {}", "tensor cores"),
        (
            "#include <cooperative_groups.h>\n__global__ void k(int *x) {\n\
             x[0] = 1; cooperative_groups::this_grid().sync(); x[1] = 2; }",
            "the blocks of a grid become iterations of a parallel loop\n",
        ),
        (
            "__global__ void child(int *x) { x[0] = 1; }\n\
             __global__ void k(int *x) {\nchild<<<1, 1>>>(x); }",
            "a kernel launches a kernel",
        ),
        ("#include <cublas_v2.h>\n", "the CUDA library `cublas`"),
        (
            "#include <cub/cub.cuh>\n",
            "the header-only CUDA library `cub`",
        ),
        ("__global__ void k(int *x) { x = 1.5; }", "error:"),
    ];
    for (source, expected) in cases {
        let folder = folder("refused");
        std::fs::write(folder.join("k.cu"), source).expect("written");
        let output = nvcc(&folder, "-c k.cu");
        assert!(!output.status.success(), "{source}");
        assert!(
            text(&output.stderr).contains(expected),
            "{}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).matches("error[").count() < 2,
            "{source}"
        );
        assert!(!folder.join("k.o").exists());
    }
}

#[test]
fn long_double_layout() {
    let folder = folder("wide");
    let source = "#include <cstdio>\n\
        struct S { int n; long double x; int m; };\n\
        __constant__ S table[2];\n\
        __global__ void k(long double unused, S s, S *out) {\n\
          out[threadIdx.x] = s; out[threadIdx.x].m += table[threadIdx.x].m + (int)sizeof(S); }\n\
        int main() {\n\
          S *out, h[2] = {{1, 2.5L, 3}, {4, 5.25L, 6}};\n\
          cudaMalloc(&out, sizeof h); cudaMemcpyToSymbol(table, h, sizeof h);\n\
          k<<<1, 2>>>(1.5L, h[1], out); cudaDeviceSynchronize();\n\
          for (int i = 0; i < 2; i++)\n\
            std::printf(\"%d %Lg %d;\", out[i].n, out[i].x, out[i].m - (int)sizeof(S)); }\n";
    std::fs::write(folder.join("k.cu"), source).expect("written");
    succeeds(&nvcc(&folder, "k.cu -o k"));
    let output = Command::new(folder.join("k")).output().expect("it starts");
    assert_eq!(text(&output.stdout), "4 5.25 9;4 5.25 12;");
}

#[test]
fn wrong_command_lines_are_findings() {
    let folder = folder("lines");
    std::fs::write(folder.join("k.cu"), "int main() {}\n").expect("written");
    for (line, expected) in [
        ("-maxregcount=32 k.cu", "-maxrregcount"),
        ("k.cu -lcublas", "cublas"),
        ("-ptx k.cu", "not supported"),
        ("-c a.cu b.cu -o c.o", "several objects"),
    ] {
        let output = nvcc(&folder, line);
        assert!(!output.status.success(), "{line}");
        assert!(
            text(&output.stderr).contains(expected),
            "{line}: {}",
            text(&output.stderr)
        );
    }
    let version = nvcc(&folder, "--version");
    assert!(text(&version.stdout).contains("Cuda compiler driver"));
}

/// Warps that rely on lockstep through non-volatile memory are reported once, with the line; warps that
/// synchronise, or whose threads access private elements only, are not.
#[test]
fn lockstep_assumptions_are_reported() {
    const HEAD: &str = "__global__ void sum(float *y, const float *x) {
    __shared__ float s[64]; int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
";
    const TAIL: &str = "
    if (t == 0) y[0] = s[0]; }
void go(float *y, float *x, int n) { sum<<<1, n>>>(y, x); }
";
    let folder = folder("unmet");
    let told = |body: &str, head: &str| {
        let source = format!("{head}{body}{TAIL}");
        std::fs::write(folder.join("k.cu"), source).expect("written");
        let output = nvcc(&folder, "-O2 -c k.cu");
        succeeds(&output);
        text(&output.stderr)
    };
    let old = "    if (t < 32) {
        s[t] += s[t + 32];
        s[t] += s[t + 16];
        s[t] += s[t + 8]; }";
    let scan = "    if ((t & 31) >= 1) s[t] += s[t - 1];";
    for (body, line) in [(old, "k.cu:7"), (scan, "k.cu:5")] {
        let said = told(body, HEAD);
        assert_eq!(said.matches("warning[GRD0037]").count(), 1, "{said}");
        assert!(said.contains(line) && said.contains("__syncwarp"), "{said}");
    }
    let silent = [
        "    if (t < 32) s[t] += s[t + 32];",
        "    for (int k = 32; k > 0; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }",
        "    if (t < 32) { float v = s[t] + s[t + 16]; __syncwarp(); s[t] = v; __syncwarp(); }",
        "    if (t % 2 == 0) s[t] += s[t + 1];",
        "    if (t < 16) { s[2 * t] += 1; s[2 * t + 1] += s[2 * t]; }",
    ];
    for body in silent {
        let said = told(body, HEAD);
        assert!(said.is_empty(), "{body}: {said}");
    }
    let volatile = HEAD.replace("__shared__", "volatile __shared__");
    let said = told(old, &volatile);
    assert!(said.is_empty(), "{said}");
}

/// Returns the size in bytes of a source's object.
fn object_bytes(folder: &Path, source: &str) -> u64 {
    std::fs::write(folder.join("grows.cu"), source).expect("it is written");
    succeeds(&nvcc(folder, "-O3 -dc grows.cu -o grows.o"));
    let object = std::fs::metadata(folder.join("grows.o"));
    object.expect("it is there").len()
}

/// Short device functions are inlined, although eight call levels have 3⁷ call paths.
#[test]
fn nested_inlining_is_bounded() {
    let folder = folder("levels");
    let bytes = |levels: usize| {
        let first = "__device__ unsigned f0(unsigned x) { return (x * 2654435761u ^ x >> 7) + (x << 3); }\n";
        let next = |k: usize| {
            let call = format!("f{}", k - 1);
            format!(
                "__device__ unsigned f{k}(unsigned x) {{ return {call}({call}({call}(x) + {k}) * 3u); }}\n"
            )
        };
        let source: String = (1..=levels).map(next).collect();
        object_bytes(&folder, &format!("{first}{source}"))
    };
    let (few, many) = (bytes(4), bytes(7));
    assert!(many < 8 * few, "{few} bytes for 4 levels, {many} for 7");
}

/// `#pragma unroll` applies to a single thread's loop: a loop interchanged around thread loops stays a
/// loop.
#[test]
fn thread_loops_are_not_unrolled() {
    let folder = folder("unrolled");
    let bytes = |runs: usize| {
        let source = format!(
            "__global__ void k(float *x) {{\n\
                 __shared__ float s[1024];\n\
                 int t = threadIdx.x;\n\
                 float v = x[blockIdx.x * blockDim.x + t];\n\
             #pragma unroll\n\
                 for (int i = 1; i <= {runs}; ++i) {{\n\
                     s[t] = v;\n\
                     __syncthreads();\n\
                     v += s[(t + i) % blockDim.x] * i;\n\
                     __syncthreads();\n\
                 }}\n\
                 x[blockIdx.x * blockDim.x + t] = v;\n\
             }}\n"
        );
        object_bytes(&folder, &source)
    };
    let (few, many) = (bytes(4), bytes(64));
    assert!(many < 3 * few, "{few} bytes for 4 runs, {many} for 64");
}
