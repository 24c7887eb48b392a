//! Random CUDA kernels through `gradus nvcc`, compared with host threads that run an equal text.
//!
//! Each kernel is emitted twice: for the device, and for host threads that synchronise at the barriers of a
//! block. Barriers occur in loops of all forms and in their conditions, with `continue`, `break` and
//! `return` as far as the language permits, and in the cases of a `switch` with fall-through. Indices into
//! shared memory wrap around zero, as constants and as variables. Finished threads exit. The threads of a
//! warp communicate in lockstep through volatile shared memory, whose size is static or given by the
//! launch. Launches of one kernel give several sizes, and the kernel accesses the last row of the memory. On the
//! host all threads read before any thread writes. No two threads race otherwise. A barrier depends only on
//! uniform values. Every fifth program has two files (`-rdc=true`): a device function, a table of device functions
//! and a device variable are in the second file.
//!
//! `GRADUS_FUZZ` is the number of programs, `GRADUS_FUZZ_SEED` the first seed (`cargo xtask fuzz --cuda`).

use crate::support::{folder, text};
use std::fmt::Write;
use std::process::Command;

/// The number of kernels in a program.
const KERNELS: u32 = 6;
/// The maximum nesting depth of loops, in blocks of few threads and of many.
const DEPTH_MAX: [usize; 2] = [3, 2];

/// The beginning of a program: a block of host threads.
const HEAD: &str = r#"#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>
using std::max;
using std::min;
#define WRAPPED(p, k) ((p) + (k))[0u - (k)]
#define PLAIN(p, k) (*(p))
struct Block {
    std::mutex mutex;
    std::condition_variable met;
    int threads, here = 0, meeting = 0, some = 0, told = 0;
    unsigned s[192];
    void go() { here = 0, meeting++, told = some, some = 0, met.notify_all(); }
    int any(int holds)
    {
        std::unique_lock<std::mutex> lock(mutex);
        some |= holds != 0;
        int now = meeting;
        if (++here == threads) go();
        else met.wait(lock, [&] { return meeting != now; });
        return told;
    }
    void sync() { any(0); }
    void leave()
    {
        std::unique_lock<std::mutex> lock(mutex);
        if (--threads > 0 && here == threads) go();
    }
};
"#;

/// The second file of a program, the declarations in the first file, and the host's twins.
const OTHER_FILE: &str = "
__device__ unsigned bias = 5;
__device__ unsigned mix(unsigned a, unsigned by) { return a * 3 ^ (a >> (by & 7)); }
static __device__ unsigned plus(unsigned a, unsigned by) { return a + by; }
static __device__ unsigned minus(unsigned a, unsigned by) { return a - 2 * by; }
typedef unsigned (*Step)(unsigned, unsigned);
__device__ Step table[2] = {plus, minus};
";
const OF_OTHER_FILE: &str = "
extern __device__ unsigned bias, mix(unsigned, unsigned);
typedef unsigned (*Step)(unsigned, unsigned);
extern __device__ Step table[2];
static unsigned host_mix(unsigned a, unsigned by) { return a * 3 ^ (a >> (by & 7)); }
static unsigned host_step(int u, unsigned a, unsigned by) { return u & 1 ? a - 2 * by : a + by; }
";

/// Runs a kernel and its host twin for some arguments.
const CHECK: &str = r#"
static int check(void (*device)(int, unsigned *), void (*host)(Block &, int, int, int, unsigned *), int n, int bytes, int number)
{
    const int blocks = 2;
    std::vector<unsigned> found(blocks * n), wanted(blocks * n);
    unsigned *out;
    cudaMalloc(&out, found.size() * sizeof(unsigned));
    for (int x = 0; x < 6; x += 2) {
        device<<<blocks, n, bytes * (1 + x / 2)>>>(x, out);
        if (cudaMemcpy(found.data(), out, found.size() * sizeof(unsigned), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
        for (int b = 0; b < blocks; b++) {
            Block block;
            block.threads = n;
            std::vector<std::thread> threads;
            for (int t = 0; t < n; t++)
                threads.emplace_back([&, t] { host(block, t, b, x, wanted.data()), block.leave(); });
            for (std::thread &thread : threads) thread.join();
        }
        for (int i = 0; i < blocks * n; i++)
            if (found[i] != wanted[i]) {
                printf("kernel %d, x = %d, block %d, thread %d: %u instead of %u\n", number, x, i / n, i % n, found[i], wanted[i]);
                return 1;
            }
    }
    cudaFree(out);
    return 0;
}
"#;

/// A line of both texts, or a line for each text.
enum Line {
    /// An equal line; `SYNC`, `SOME(`, `BACK(`, `LEAVE`, `MIX(`, `STEP(` and `BIAS` are replaced by each side's
    /// text.
    Both(String),
    /// A step of a warp: a guard, and the value stored by a thread into its cell.
    Step(String, String),
}

struct Writer {
    state: u64,
    /// The number of threads in a block.
    threads: u32,
    /// Whether the launch gives the size of shared memory: one row of cells, or several.
    dynamic: bool,
    /// Whether the kernel uses functions and variables of the second file.
    two_files: bool,
    lines: Vec<Line>,
    deep: usize,
    names: u32,
    budget: i32,
}

impl Writer {
    fn below(&mut self, n: u32) -> u32 {
        self.state = self.state.wrapping_mul(6364136223846793005);
        self.state = self.state.wrapping_add(1442695040888963407);
        ((self.state >> 33) % u64::from(n)) as u32
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u32) as usize]
    }

    fn line(&mut self, line: &str) {
        let indent = "    ".repeat(self.deep + 1);
        self.lines.push(Line::Both(format!("{indent}{line}\n")));
    }

    /// Returns a thread-dependent number.
    fn thread_dependent(&mut self) -> String {
        let (by, more) = (1 + self.below(13), 1 + self.below(4));
        match self.below(if self.two_files { 8 } else { 5 }) {
            5 => format!("MIX(a, {by})"),
            6 => format!("STEP(a, {by} + T)"),
            7 => "a ^ BIAS".to_owned(),
            0 => format!("a * 3 + {by}"),
            1 => format!("a ^ (a >> {more})"),
            2 => format!("a + T * {by}"),
            3 => format!("(a & 1) ? a * 5 + 1 : a - {by}"),
            _ => format!("a + u * {by}"),
        }
    }

    /// Returns the cell of any thread.
    fn cell(&mut self) -> String {
        let (by, more, n) = (1 + 2 * self.below(3), self.below(10), self.threads);
        match self.below(4) {
            0 => format!("BACK(s + (T * {by} + {more}) % {n}, {}u)", more + 1),
            1 => format!("BACK(s + (T * {by} + {more}) % {n}, a)"),
            _ => format!("s[(T * {by} + {more}) % {n}]"),
        }
    }

    /// Returns the cell of another thread of the same warp.
    fn neighbour(&mut self, far: u32) -> String {
        match self.threads {
            n if n < 32 => format!("v[(T + {far}) % {n}]"),
            _ => format!("v[(T & ~31) | ((T + {far}) & 31)]"),
        }
    }

    /// Returns a uniform condition.
    fn uniform_condition(&mut self, loops: &[String]) -> String {
        let n = self.below(5);
        let lp = self.below(loops.len().max(1) as u32) as usize;
        match (self.below(6), loops.get(lp)) {
            (0, Some(i)) => format!("{i} == {n}"),
            (1, Some(i)) => format!("{i} > {n}"),
            (2, Some(i)) => format!("({i} & 1)"),
            (3, _) => format!("(u & {})", 1 + n % 3),
            (4, _) => format!("x > {n}"),
            _ => "(u + x) % 3 == 0".to_owned(),
        }
    }

    fn statements(&mut self, loops: &[String], least: u32) {
        for _ in 0..least + self.below(3) {
            self.statement(loops);
        }
    }

    fn statement(&mut self, loops: &[String]) {
        self.budget -= 1;
        if self.dynamic && self.below(5) == 0 {
            return self.last_row();
        }
        let nests = self.budget > 0 && loops.len() < DEPTH_MAX[usize::from(self.threads > 8)];
        match self.below(if nests { 18 } else { 9 }) {
            0 => {
                let own = self.thread_dependent();
                self.line(&format!("a = {own};"));
            }
            1 => {
                let (own, cell) = (self.thread_dependent(), self.cell());
                self.line(&format!("s[T] = {own};"));
                self.line("SYNC;");
                self.line(&format!("a += {cell};"));
                self.line("SYNC;");
            }
            2 => {
                let (who, own) = (self.below(self.threads), self.thread_dependent());
                self.line(&format!("if (T == {who}) s[0] = {own};"));
                self.line("SYNC;");
                self.line("u = s[0] & 7;");
                self.line("SYNC;");
            }
            3 | 4 => self.steps(),
            5 => {
                let (of, own) = (2 + self.below(3), self.thread_dependent());
                match self.below(2) {
                    0 => self.line(&format!("if (T % {of} == 1) a = {own};")),
                    _ => self.line(&format!("for (int q = 0; q < T % {of}; q++) a = {own};")),
                }
            }
            6 | 7 if !loops.is_empty() => {
                let (when, what) = (
                    self.uniform_condition(loops),
                    self.one_of(&["continue", "break"]),
                );
                self.line(&format!("if ({when}) {what};"));
            }
            6..=8 => {
                let (one, other) = (self.uniform_condition(loops), self.uniform_condition(loops));
                let from = 1 + self.below(self.threads);
                match self.below(2) {
                    0 => self.line(&format!("if ({one} && {other}) LEAVE;")),
                    _ => self.line(&format!("if (T >= {from} && {one}) LEAVE;")),
                }
            }
            9 | 10 => self.branch(loops),
            11 | 12 => self.choice(loops),
            _ => self.loop_statement(loops),
        }
    }

    /// Emits accesses to the last row of shared memory, as numbers and as bytes of another name.
    fn last_row(&mut self) {
        let (own, by, more) = (
            self.thread_dependent(),
            1 + 2 * self.below(3),
            self.below(10),
        );
        let (n, byte) = (self.threads, self.below(4));
        self.line(&format!("s[N * (R - 1) + T] = {own};"));
        self.line("SYNC;");
        self.line(&format!("a += s[N * (R - 1) + (T * {by} + {more}) % {n}];"));
        self.line(&format!(
            "a ^= bytes[4 * (N * (R - 1) + (T + {more}) % {n}) + {byte}];"
        ));
        self.line("SYNC;");
    }

    /// Emits steps of a warp whose threads communicate through volatile memory.
    fn steps(&mut self) {
        self.line("s[T] = a;");
        self.line("SYNC;");
        let first = self.one_of(&["1", "5", "7", "32"]);
        let guard = match self.below(3) {
            0 => String::new(),
            1 => format!("if (T < {first})"),
            _ => "if (T < 32)".to_owned(),
        };
        let how = self.one_of(&["+", "^", "-", "min", "max"]);
        let mut far = 1 << self.below(5);
        while far > 0 {
            let other = self.neighbour(far);
            let value = match how {
                "min" | "max" => format!("{how}((unsigned)v[T], (unsigned){other})"),
                _ => format!("v[T] {how} {other}"),
            };
            self.lines.push(Line::Step(guard.clone(), value));
            far /= 2;
        }
        self.line("SYNC;");
        let cell = self.cell();
        self.line(&format!("a += {cell};"));
        self.line("SYNC;");
    }

    fn branch(&mut self, loops: &[String]) {
        let when = self.uniform_condition(loops);
        self.line(&format!("if ({when}) {{"));
        self.deep += 1;
        self.statements(loops, 1);
        self.deep -= 1;
        if self.below(2) == 0 {
            self.line("} else {");
            self.deep += 1;
            self.statements(loops, 1);
            self.deep -= 1;
        }
        self.line("}");
    }

    /// Emits a `switch` whose cases may fall through, and may cover all occurring numbers.
    fn choice(&mut self, loops: &[String]) {
        let lp = self.below(loops.len().max(1) as u32) as usize;
        let number = match (self.below(3), loops.get(lp)) {
            (0 | 1, Some(i)) => i.as_str(),
            (1, None) => "(u + x)",
            _ => "u",
        };
        let how = self.one_of(&["& 1", "& 3", "% 3"]);
        self.line(&format!("switch ({number} {how}) {{"));
        let mut labels: Vec<String> = (0..2 + self.below(3))
            .map(|n| format!("case {n}"))
            .collect();
        if self.below(2) == 0 {
            let at = self.below(labels.len() as u32 + 1) as usize;
            labels.insert(at, "default".to_owned());
        }
        for label in labels {
            self.line(&format!("{label}: {{"));
            self.deep += 1;
            self.statements(loops, 1);
            self.deep -= 1;
            self.line("}");
            if self.below(3) > 0 {
                self.line("break;");
            }
        }
        self.line("}");
    }

    fn loop_statement(&mut self, loops: &[String]) {
        let i = format!("i{}", self.names);
        self.names += 1;
        let (most, bit) = (1 + self.below(4), self.below(4));
        let when = match self.below(6) {
            0 => format!("{i} < {most}"),
            1 => {
                let other = self.uniform_condition(loops);
                format!("{i} < {most} && {other}")
            }
            2 => format!("(SYNC, {i} < {most})"),
            3 => format!("SOME(a & {}) && {i} < {most}", bit + 1),
            4 => format!("{i} < {most} && SOME((a >> {bit}) & 1)"),
            _ => format!("{i} < 1 + (x & 3)"),
        };
        let form = self.below(4);
        if form > 0 {
            self.line(&format!("int {i} = 0;"));
        }
        self.line(&match form {
            0 => format!("for (int {i} = 0; {when}; {i}++) {{"),
            1 => format!("while ({when}) {{"),
            2 => "do {".to_owned(),
            _ => "for (;;) {".to_owned(),
        });
        self.deep += 1;
        if form > 0 {
            self.line(&format!("{i}++;"));
        }
        if form == 3 {
            // The exit precedes statements that may continue with the next iteration.
            self.line(&format!("if (!({when}) || {i} > 4) break;"));
        }
        self.statements(&[loops, &[i]].concat(), 1);
        self.deep -= 1;
        match form {
            2 => self.line(&format!("}} while ({when});")),
            _ => self.line("}"),
        }
    }

    /// Returns the kernel's text for the device or for a host thread.
    fn text_for(&self, device: bool) -> String {
        let leave = "{ out[B * N + T] = a; return; }";
        let (sync, some, back) = match device {
            true => ("__syncthreads()", "__syncthreads_or(", "WRAPPED("),
            false => ("block.sync()", "block.any(", "PLAIN("),
        };
        let (mix, step, bias) = match device {
            true => ("mix(", "table[u & 1](", "bias"),
            false => ("host_mix(", "host_step(u, ", "5"),
        };
        let mut all = String::new();
        for line in &self.lines {
            match line {
                Line::Both(text) => {
                    let text = text.replace("SYNC", sync).replace("SOME(", some);
                    let text = text.replace("BACK(", back).replace("MIX(", mix);
                    let text = text.replace("STEP(", step).replace("BIAS", bias);
                    all.push_str(&text.replace("LEAVE;", leave));
                }
                Line::Step(guard, value) if device => {
                    let _ = writeln!(all, "    {guard} v[T] = {value};");
                }
                Line::Step(guard, value) => {
                    let _ = writeln!(
                        all,
                        "    {{ bool on = false; unsigned w = 0; {guard} {{ w = {value}; on = true; }}\n      \
                         block.sync(); if (on) v[T] = w; block.sync(); }}"
                    );
                }
            }
        }
        all
    }
}

/// Returns true if the program of a seed has two files.
fn has_two_files(seed: u64) -> bool {
    seed % 5 == 0
}

/// Returns the program of a seed, without the second file.
fn program(seed: u64) -> String {
    let (mut all, mut calls) = (HEAD.to_owned(), String::new());
    if has_two_files(seed) {
        all.push_str(OF_OTHER_FILE);
    }
    for number in 0..KERNELS {
        let mut writer = Writer {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number + 1) << 40,
            threads: 0,
            dynamic: false,
            two_files: has_two_files(seed),
            lines: Vec::new(),
            deep: 0,
            names: 0,
            budget: 0,
        };
        writer.below(2);
        writer.threads = [4, 8, 16, 32, 32, 64][writer.below(6) as usize];
        writer.budget = 4 + writer.below(10) as i32;
        writer.dynamic = writer.below(2) == 0;
        let (n, dynamic) = (writer.threads, writer.dynamic);
        writer.statements(&[], 3);
        let memory = match dynamic {
            true => {
                "extern __shared__ unsigned s[]; extern __shared__ unsigned char bytes[]".to_owned()
            }
            false => format!("__shared__ unsigned s[{n}]"),
        };
        let rows = if dynamic { "1 + x / 2" } else { "1" };
        let begin = format!(
            "    volatile unsigned *v = s;\n    const int N = {n};\n    unsigned a = T * 7 + B;\n    int u = x & 3;\n    const int R = {rows};\n    for (int r = 0; r < R; r++) s[N * r + T] = 0;\n"
        );
        let (device, host) = (writer.text_for(true), writer.text_for(false));
        let end = "    out[B * N + T] = a;\n}\n";
        let _ = write!(
            all,
            "__global__ void device{number}(int x, unsigned *out)\n{{\n    {memory};\n    const int T = threadIdx.x, B = blockIdx.x;\n\
             {begin}    __syncthreads();\n{device}{end}\
             static void host{number}(Block &block, int T, int B, int x, unsigned *out)\n{{\n    unsigned *s = block.s;\n    unsigned char *bytes = (unsigned char *)s;\n\
             {begin}    block.sync();\n{host}{end}"
        );
        let bytes = if dynamic { 4 * n } else { 0 };
        let _ = writeln!(
            calls,
            "    wrong += check(device{number}, host{number}, {n}, {bytes}, {number});"
        );
    }
    format!("{all}{CHECK}int main()\n{{\n    int wrong = 0;\n{calls}    return wrong;\n}}\n")
}

fn number(name: &str, otherwise: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn kernels_match_host_threads() {
    let folder = folder("cuda-made");
    let (first, count) = (number("GRADUS_FUZZ_SEED", 0), number("GRADUS_FUZZ", 2));
    let mut wrong = Vec::new();
    for seed in first..first + count {
        let (source, object) = (format!("made{seed}.cu"), format!("made{seed}"));
        std::fs::write(folder.join(&source), program(seed)).expect("the program is written");
        let level = ["-O1", "-O3", "-O0", "-O2"][(seed % 4) as usize];
        let mut nvcc = Command::new(env!("CARGO_BIN_EXE_gradus"));
        nvcc.args(["nvcc", level, &source, "-o", &object]);
        if has_two_files(seed) {
            std::fs::write(folder.join("other.cu"), OTHER_FILE).expect("the file is written");
            nvcc.args(["-rdc=true", "other.cu"]);
        }
        if seed % 3 == 1 {
            nvcc.arg("-g");
        }
        let made = nvcc.current_dir(&folder).output().expect("gradus runs");
        if !made.status.success() {
            wrong.push(format!("{source} {level}: {}", text(&made.stderr)));
            continue;
        }
        for workers in ["1", "2"] {
            let mut run = Command::new("timeout");
            run.arg("60").arg(folder.join(&object));
            run.env("GRADUS_NUM_THREADS", workers);
            let ran = run.output().expect("it starts");
            if !ran.status.success() {
                let said = text(&ran.stdout);
                wrong.push(format!(
                    "{source} {level}, {workers} workers: {} {said}",
                    ran.status
                ));
            }
        }
        if wrong.is_empty() {
            // A passing program is deleted.
            let _ = std::fs::remove_file(folder.join(&object));
            let _ = std::fs::remove_file(folder.join(&source));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}: {}",
        folder.display(),
        wrong.join("\n")
    );
}
