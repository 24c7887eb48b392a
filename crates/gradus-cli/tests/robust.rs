//! Errors outside of calculus: limits, signals, invalid input, failing output. Each ends with exactly one
//! diagnostic, without partial output and without a panic.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("tmp")).expect("a folder");
    folder
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(folder.join(name), bytes).expect("written");
}

/// Returns the `gradus` command in a folder, with temporary files in `tmp`.
fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command
        .args(line.split_whitespace())
        .env("TMPDIR", folder.join("tmp"))
        .current_dir(folder);
    command
}

fn gradus(folder: &Path, line: &str) -> Output {
    command(folder, line).output().expect("gradus runs")
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// Returns the files of a folder without `tmp`, and those in `tmp`.
fn files(folder: &Path) -> (Vec<String>, Vec<String>) {
    let list = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("listed").flatten();
        let mut names: Vec<String> = entries
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|name| name != "tmp")
            .collect();
        names.sort();
        names
    };
    (list(folder), list(&folder.join("tmp")))
}

/// Checks for a single refusal with this code and status, and for no new files.
fn refused(folder: &Path, line: &str, code: &str, status: i32) -> String {
    let before = files(folder);
    let output = gradus(folder, line);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(status), "gradus {line}\n{text}");
    assert_eq!(text.matches("error[").count(), 1, "gradus {line}\n{text}");
    assert!(
        text.contains(&format!("error[{code}]")),
        "gradus {line}\n{text}"
    );
    assert_eq!(files(folder).0, before.0, "gradus {line}");
    text
}

const CURVE: &str = "#include <math.h>
double curve(const double *x, int n, double s)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += s * sin(x[i]) * x[i];
    return sum;
}
";

/// Returns a program that keeps the passes busy for a while, with much memory.
fn slow() -> String {
    let mut text = String::from("#include <math.h>\ndouble slow(double x, double y) {\n");
    for i in 0..12_000 {
        text.push_str(&format!("x = sin(x) * y + {i}; y = x * y - {i};\n"));
    }
    text + "return x + y;\n}\n"
}

fn bitcode(folder: &Path, source: &str, output: &str) {
    let clang = std::env::var_os("GRADUS_CLANG").unwrap_or("clang-22".into());
    let status = Command::new(clang)
        .args(["-O1", "-c", "-emit-llvm", "-Xclang", "-disable-llvm-passes"])
        .args([source, "-o", output])
        .current_dir(folder)
        .status();
    assert!(status.expect("clang runs").success());
}

#[test]
fn limits_of_time_and_memory_are_findings_with_status_3() {
    let at = folder("limits");
    write(&at, "slow.c", slow());
    bitcode(&at, "slow.c", "slow.bc");
    let line = "grad slow.bc -f slow -o out.o --max-time";
    let text = refused(&at, &format!("{line} 1"), "GRD0026", 3);
    assert!(text.contains("the limit of 1 seconds"), "{text}");
    assert!(text.contains("--max-time SECONDS"), "{text}");
    let line = "grad slow.bc -f slow -o out.o --max-memory=1M";
    let text = refused(&at, line, "GRD0026", 3);
    assert!(text.contains("the memory limit of 1 MiB"), "{text}");
}

/// Returns the id of a child process of `parent`.
fn child_of(parent: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let mut numbers = processes.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    numbers.find(|number| {
        let words = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default();
        let owner = after.split_whitespace().nth(1).and_then(|w| w.parse().ok());
        owner == Some(parent) && String::from_utf8_lossy(&words).contains("gradus-compiler")
    })
}

fn kill(number: u32, signal: &str) {
    let status = Command::new("kill")
        .args([format!("-{signal}"), number.to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

/// Starts `gradus` and waits until its compiling process runs.
fn start_compiling(folder: &Path, line: &str) -> (std::process::Child, u32) {
    let mut running = command(folder, line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("gradus runs");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if let Some(child) = child_of(running.id()) {
            return (running, child);
        }
        let ended = running.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "gradus {line} ended before");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.kill().expect("it can be stopped");
    running.wait().expect("it ends");
    panic!("no compiling process was seen");
}

#[test]
fn crashed_child_leaves_reproducer() {
    let at = folder("dead");
    write(&at, "slow.c", slow());
    bitcode(&at, "slow.c", "slow.bc");
    let (running, child) = start_compiling(&at, "grad slow.bc -f slow -o out.o");
    // Not SEGV: the handler that detects stack overflows ignores a sent SEGV.
    kill(child, "ABRT");
    let output = running.wait_with_output().expect("it ends");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.matches("error[").count(), 1, "{text}");
    assert!(
        text.contains("error[GRD0024]") && text.contains("signal: 6"),
        "{text}"
    );
    let (left, temporary) = files(&at);
    assert_eq!(left, ["slow.bc", "slow.c"]);
    let [archive] = &temporary[..] else {
        panic!("one reproducer and nothing else: {temporary:?}");
    };
    assert!(text.contains(archive.as_str()), "{text}");
    // The reproducer holds an equal program: it exceeds the limit likewise.
    let line = format!("bug-report --replay tmp/{archive} --max-time 1");
    let again = gradus(&at, &line);
    assert!(said(&again).contains("GRD0026"), "{}", said(&again));
}

#[test]
fn signal_leaves_no_files() {
    let at = folder("signal");
    write(&at, "slow.c", slow());
    write(&at, "quick.c", "double quick(double x) { return x * x; }\n");
    let ask = "double __enzyme_autodiff(void *, ...);\ndouble slow(double, double);\n\
        double d(double x, double y) { return __enzyme_autodiff((void *)slow, x, y); }\n";
    write(&at, "both.c", slow() + ask);
    bitcode(&at, "slow.c", "slow.bc");
    bitcode(&at, "both.c", "both.bc");
    for line in ["grad slow.bc -f slow -o out.o", "cc -O1 -c quick.c both.bc"] {
        let before = files(&at).0;
        let (running, _) = start_compiling(&at, line);
        kill(running.id(), "TERM");
        let output = running.wait_with_output().expect("it ends");
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(15), "{line}");
        assert_eq!(files(&at).0, before, "{line}");
        assert_eq!(files(&at).1, Vec::<String>::new(), "{line}");
    }
}

/// A compiling process ends with `gradus`, also if `gradus` cannot stop it.
#[test]
fn killed_parent_leaves_no_process() {
    let at = folder("orphan");
    write(&at, "slow.c", slow());
    bitcode(&at, "slow.c", "slow.bc");
    let (mut running, child) = start_compiling(&at, "grad slow.bc -f slow -o out.o");
    // The child asks the system for the end of its parent first of all.
    std::thread::sleep(Duration::from_millis(500));
    kill(running.id(), "KILL");
    running.wait().expect("it ends");
    let start = Instant::now();
    while std::fs::read_link(format!("/proc/{child}/exe")).is_ok() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "process {child} runs on"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_failed_driver_leaves_none_of_its_outputs() {
    let at = folder("several");
    write(&at, "good.c", "int good(void) { return 1; }\n");
    write(&at, "bad.c", "int bad(void) { return x; }\n");
    let output = gradus(&at, "cc -c good.c bad.c");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(files(&at), (vec!["bad.c".into(), "good.c".into()], vec![]));
    let output = gradus(&at, "cc -MD -c good.c -o made.o");
    assert!(output.status.success());
    assert_eq!(files(&at).0, ["bad.c", "good.c", "made.d", "made.o"]);
    let rule = std::fs::read_to_string(at.join("made.d")).expect("a rule");
    assert!(rule.starts_with("made.o:"), "{rule}");
}

#[test]
fn invalid_input_is_one_diagnostic() {
    let at = folder("no-program");
    write(&at, "curve.c", CURVE);
    bitcode(&at, "curve.c", "curve.bc");
    let whole = std::fs::read(at.join("curve.bc")).expect("bitcode");
    let noise: Vec<u8> = (0..4096u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    write(&at, "empty.bc", "");
    write(&at, "cut.bc", &whole[..whole.len() / 2]);
    write(&at, "noise.bc", &noise);
    write(&at, "words.bc", "this is no bitcode");
    write(&at, "magic.bc", b"BC\xc0\xde");
    write(&at, "words.ll", "define double @f(");
    write(&at, "plain.o", b"\x7fELF\x02\x01\x01");
    std::fs::create_dir(at.join("folder.bc")).expect("a folder");
    for (name, code) in [
        ("empty.bc", "GRD0001"),
        ("cut.bc", "GRD0001"),
        ("noise.bc", "GRD0001"),
        ("words.bc", "GRD0001"),
        ("magic.bc", "GRD0001"),
        ("words.ll", "GRD0001"),
        ("plain.o", "GRD0001"),
        ("folder.bc", "GRD0023"),
        ("missing.bc", "GRD0023"),
        ("curve.txt", "GRD0023"),
    ] {
        refused(&at, &format!("grad {name} -f curve -o out.o"), code, 1);
    }
    write(&at, "elf.c", "int main(void) { return 0; }\n");
    assert!(gradus(&at, "cc elf.c -o elf.o").status.success());
    std::fs::remove_file(at.join("elf.c")).expect("gone");
    refused(&at, "grad elf.o -f main -o out.o", "GRD0001", 1);
}

#[test]
fn invalid_requests_are_one_diagnostic() {
    let at = folder("requests");
    write(&at, "curve.c", CURVE);
    std::fs::create_dir(at.join("folder")).expect("a folder");
    let long = "f".repeat(60_000);
    for (line, code) in [
        ("grad curve.c -f nothing -o out.o".to_string(), "GRD0002"),
        (format!("grad curve.c -f {long} -o out.o"), "GRD0002"),
        (
            "grad curve.c -f curve --wrt y -o out.o".to_string(),
            "GRD0003",
        ),
        (
            format!("grad curve.c -f curve --wrt {long} -o out.o"),
            "GRD0003",
        ),
        (
            "grad curve.c -f curve --wrt n -o out.o".to_string(),
            "GRD0003",
        ),
        ("grad curve.c -f curve -o folder".to_string(), "GRD0023"),
        ("grad curve.c -f curve -o none/out.o".to_string(), "GRD0023"),
        ("grad curve.c -f curve -o /dev/full".to_string(), "GRD0023"),
        (
            "grad curve.c -f curve --name 2x -o out.o".to_string(),
            "GRD0017",
        ),
        ("cc -c curve.c -o none/out.o".to_string(), "GRD0023"),
    ] {
        refused(&at, &line, code, 1);
    }
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"cur\xffve.c");
    std::fs::write(at.join(odd), CURVE).expect("written");
    for words in [&["grad", "-f", "curve"][..], &["cc", "-c"]] {
        let output = command(&at, "")
            .args(words)
            .arg(odd)
            .output()
            .expect("gradus runs");
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("not valid UTF-8"), "{text}");
    }
}

/// Returns bitcode of a few records, written bit by bit, that claims to be from a newer LLVM.
fn newer_bitcode() -> Vec<u8> {
    #[derive(Default)]
    struct Bits(Vec<bool>);
    impl Bits {
        fn put(&mut self, value: u32, width: u32) {
            self.0.extend((0..width).map(|i| value >> i & 1 == 1));
        }
        fn varying(&mut self, mut value: u32, width: u32) {
            let more = 1 << (width - 1);
            while value >= more {
                self.put(value & (more - 1) | more, width);
                value >>= width - 1;
            }
            self.put(value, width);
        }
        fn align(&mut self) {
            while self.0.len() % 32 != 0 {
                self.0.push(false);
            }
        }
        fn block(&mut self, number: u32, records: &[(u32, &[u8])]) {
            self.put(1, 2);
            self.varying(number, 8);
            self.varying(3, 4);
            self.align();
            let mut inner = Bits::default();
            for (code, words) in records {
                inner.put(3, 3);
                inner.varying(*code, 6);
                inner.varying(words.len() as u32, 6);
                words
                    .iter()
                    .for_each(|word| inner.varying((*word).into(), 6));
            }
            inner.put(0, 3);
            inner.align();
            self.put(inner.0.len() as u32 / 32, 32);
            self.0.extend(inner.0);
        }
    }
    let mut bits = Bits::default();
    b"BC\xc0\xde"
        .iter()
        .for_each(|byte| bits.put((*byte).into(), 8));
    bits.block(13, &[(1, b"LLVM99.0.0"), (2, &[1])]);
    bits.block(8, &[(1, &[2])]);
    let byte = |bits: &[bool]| (0..8).map(|i| u8::from(bits[i]) << i).sum();
    bits.0.chunks(8).map(byte).collect()
}

#[test]
fn bitcode_of_a_newer_llvm_is_one_finding() {
    let at = folder("newer");
    write(&at, "newer.bc", newer_bitcode());
    let text = refused(&at, "grad newer.bc -f curve -o out.o", "GRD0001", 1);
    assert!(text.contains("epoch"), "{text}");
}

#[test]
fn mismatched_calls_are_one_diagnostic() {
    let at = folder("misfits");
    // table
    let calls = [
        ("enzyme_out, &x, 3", "`out` marks the pointer `x`"),
        ("enzyme_dup, &x, 3", "the wrong type"),
        ("enzyme_dup, &x", "the shadow of `x` of `f` is missing"),
        ("enzyme_dup, &x, &dx", "the argument `n` of `f` is missing"),
        ("enzyme_dup, &x, &dx, enzyme_const, 3, 4, 5", "(2 extra)"),
        ("enzyme_dup, &x, &dx, enzyme_dup, 3, 4", "`n` is an integer"),
        ("enzyme_out, 3, &x", "the wrong type"),
        ("enzyme_width, 0, enzyme_dup, &x, &dx, 3", "from 1 to 64"),
    ];
    for (arguments, says) in calls {
        let program = format!(
            "extern int enzyme_dup, enzyme_const, enzyme_out, enzyme_width;
            void __enzyme_autodiff(void *, ...);
            double f(const double *x, int n) {{ return x[0] * n; }}
            int main(void) {{ double x = 1, dx = 0; __enzyme_autodiff((void *)f, {arguments}); return dx != 3; }}\n"
        );
        write(&at, "call.c", program);
        let text = refused(&at, "cc call.c -o call", "GRD0017", 1);
        assert!(
            text.contains(says) && text.contains("call.c:4"),
            "{arguments}\n{text}"
        );
    }
}

#[test]
fn mismatched_prototype_one_diagnostic() {
    let at = folder("prototype");
    let asks = "double scaled(double, int);
        double __enzyme_autodiff(void *, ...);
        double f(double x, int n) { return scaled(x, n) * x; }
        int main(void) { return __enzyme_autodiff((void *)f, 2.0, 3) != 12; }\n";
    write(&at, "asks.c", asks);
    write(
        &at,
        "scaled.c",
        "double scaled(double x, long n) { return x * n; }\n",
    );
    let text = refused(&at, "cc asks.c scaled.c -o asks", "GRD0005", 1);
    assert!(
        text.contains("asks.c:3") && text.contains("argument types that differ"),
        "{text}"
    );
}

/// The function missing in the first file is defined in a second file with a compile error: only the error
/// is reported.
#[test]
fn deferred_notes_after_compile_error() {
    let at = folder("does-not-compile");
    let asks = "double square(double);
        double __enzyme_autodiff(void *, ...);
        double f(double x) { return square(x) * x; }
        int main(void) { return __enzyme_autodiff((void *)f, 2.0) != 12; }\n";
    write(&at, "asks.c", asks);
    write(
        &at,
        "square.c",
        "double square(double x) { return x * y; }\n",
    );
    for line in ["cc asks.c square.c -o asks", "cc -c asks.c square.c"] {
        let output = gradus(&at, line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("square.c:1"),
            "{said}"
        );
        assert!(!said.contains("GRD0005"), "{said}");
    }
}

/// The limit is exceeded by Gradus, by the compiler, or by the linker.
#[test]
fn file_size_limit_is_one_diagnostic() {
    let at = folder("file-size");
    write(&at, "curve.c", CURVE);
    write(&at, "main.c", "int main(void) { return 0; }\n");
    bitcode(&at, "curve.c", "curve.bc");
    assert!(gradus(&at, "cc -c main.c").status.success());
    for (blocks, line, code) in [
        (1, "grad curve.bc -f curve --emit gir -o out.gir", "GRD0023"),
        (1, "grad curve.bc -f curve -o out.o", "GRD0023"),
        (1, "grad curve.c -f curve -o out.o", "GRD0022"),
        (1, "cc -O1 -c curve.c -o out.o", "GRD0022"),
        (8, "cc main.o -o out", "GRD0022"),
    ] {
        let program = env!("CARGO_BIN_EXE_gradus");
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -f {blocks}; exec {program} {line}")])
            .env("TMPDIR", at.join("tmp"))
            .current_dir(&at)
            .output()
            .expect("a shell runs");
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{line}\n{text}");
        assert_eq!(text.matches("error[").count(), 1, "{line}\n{text}");
        assert!(text.contains(&format!("error[{code}]")), "{line}\n{text}");
        assert_eq!(
            files(&at).0,
            ["curve.bc", "curve.c", "main.c", "main.o"],
            "{line}"
        );
    }
}

/// `--help` prints the usage in every command, and does nothing else.
#[test]
fn help_is_given_where_it_is_asked_for() {
    let at = folder("help");
    write(&at, "curve.c", CURVE);
    for line in [
        "--help",
        "grad --help",
        "grad curve.c -f curve -o out.o -h",
        "check --help",
        "dev -h",
        "explain --help",
    ] {
        let output = gradus(&at, line);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert!(text.contains("Usage: gradus"), "{line}\n{text}");
    }
    assert_eq!(files(&at).0, ["curve.c"]);
}

/// Full streams, and closed pipes.
#[test]
fn full_streams_do_not_crash() {
    let at = folder("full");
    write(&at, "curve.c", CURVE);
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("it is there")
    };
    for line in [
        "explain GRD0007",
        "--help",
        "--version",
        "grad curve.c -f curve -o out.o",
    ] {
        let output = command(&at, line)
            .stdout(full())
            .output()
            .expect("gradus runs");
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{line}\n{text}");
        assert_eq!(text.matches("error[GRD0023]").count(), 1, "{line}\n{text}");
        assert!(!text.contains("panicked"), "{line}\n{text}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(&at, line)
            .stdout(writer)
            .output()
            .expect("gradus runs");
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert!(!said(&output).contains("panicked"), "{line}");
    }
    for format in ["human", "json"] {
        let line = format!("grad curve.c -f nothing -o out.o --message-format {format}");
        let ended = command(&at, &line)
            .stderr(full())
            .status()
            .expect("gradus runs");
        assert_eq!(ended.code(), Some(1), "{format}");
    }
}

/// Bitcode with flipped bytes or truncated: an error, an exceeded limit, or a derivative, with clean
/// outcome.
#[test]
fn damaged_bitcode_ends_cleanly() {
    const DAMAGES: u64 = 1000;
    let at = folder("damaged");
    write(&at, "curve.c", CURVE);
    bitcode(&at, "curve.c", "curve.bc");
    let whole = std::fs::read(at.join("curve.bc")).expect("bitcode");
    let one = |seed: u64| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % below
        };
        let mut bytes = whole.clone();
        for _ in 0..=random(4) {
            let place = random(bytes.len());
            bytes[place] ^= 1 << random(8);
        }
        if random(4) == 0 {
            bytes.truncate(random(whole.len()));
        }
        let (name, out) = (format!("{seed}.bc"), format!("{seed}.gir"));
        write(&at, &name, bytes);
        let line =
            format!("grad {name} -f curve --emit gir -o {out} --max-time 60 --max-memory 2G");
        let output = gradus(&at, &line);
        let text = said(&output);
        let errors = text.matches("error[").count();
        let status = output.status.code();
        // If LLVM's reader crashes, the input is at fault.
        assert!(!text.contains("GRD0024"), "{seed}: {text}");
        assert_eq!(at.join(&out).exists(), status == Some(0), "{seed}: {text}");
        match status {
            Some(0) => assert_eq!(errors, 0, "{seed}: {text}"),
            Some(1 | 3) => assert!(errors >= 1, "{seed}: {text}"),
            _ => panic!("{seed}: {status:?}\n{text}"),
        }
        u64::from(status == Some(0))
    };
    let half = |odd: u64| (0..DAMAGES / 2).map(|i| one(2 * i + odd)).sum::<u64>();
    let fine = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        half(0) + other.join().expect("the other half")
    });
    assert!(fine < DAMAGES, "no damage did any harm");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let at = folder("same");
    write(&at, "curve.c", CURVE);
    let ask = "double __enzyme_autodiff(void *, ...);\ndouble curve(const double *, int, double);\n\
        void d(double *x, double *dx, int n) { __enzyme_autodiff((void *)curve, x, dx, n, 2.0); }\n";
    write(&at, "ask.c", ask);
    let lines = [
        "grad curve.c -f curve -o N.o",
        "grad curve.c -f curve --emit llvm -o N.ll -- -O2 -g",
        "cc -O2 -c ask.c -o N.a.o",
        "cc -O2 -shared -fPIC ask.c curve.c -lm -o N.so",
    ];
    let round = |name: &str| {
        for line in lines {
            let output = gradus(&at, &line.replace('N', name));
            assert!(output.status.success(), "{}", said(&output));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| round("one"));
        round("two");
    });
    for ending in ["o", "ll", "a.o", "so"] {
        let read = |name: &str| std::fs::read(at.join(format!("{name}.{ending}"))).expect("made");
        assert!(read("one") == read("two"), "{ending}");
    }
    let header = |name: &str| std::fs::read_to_string(at.join(name)).expect("a header");
    assert_eq!(header("one.h"), header("two.h"));
}

#[test]
fn findings_come_as_json_too() {
    let at = folder("json");
    write(
        &at,
        "f.c",
        "double g(double);\ndouble f(double x) { return 2 * g(x); }\n",
    );
    let ask = "double __enzyme_autodiff(void *, ...);\ndouble g(double);\n\
        double f(double x) { return 2 * g(x); }\n\
        double d(double x) { return __enzyme_autodiff((void *)f, x); }\n\
        int main(void) { return d(1) != 2; }\n";
    write(&at, "ask.c", ask);
    std::fs::copy(at.join("ask.c"), at.join("ask.cpp")).expect("copied");
    let asks = ask.replace("double g(double);", "extern \"C\" double g(double);");
    let asks = asks.replace(
        "double __enzyme_autodiff(void *, ...);",
        "template <class... A> double __enzyme_autodiff(void *, A...);",
    );
    write(&at, "ask.cpp", asks);
    for (line, code) in [
        ("grad f.c -f f --message-format=json -o out.o", "GRD0005"),
        ("grad f.c -f f --message-format json -o out.o", "GRD0005"),
        ("check f.c -f f --message-format=json", "GRD0005"),
        ("cc -O1 --message-format=json ask.c -o out", "GRD0005"),
        ("c++ -O1 --message-format=json ask.cpp -o out", "GRD0005"),
        ("grad f.c --message-format=json", "GRD0035"),
        ("grad gone.c -f f --message-format=json", "GRD0023"),
    ] {
        let output = gradus(&at, line);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "gradus {line}\n{text}");
        let objects: Vec<serde_json::Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
            .collect();
        let error = objects
            .iter()
            .find(|o| o["level"] == "error")
            .expect("an error");
        assert_eq!(error["code"]["code"], code, "gradus {line}\n{text}");
        assert_eq!(error["$message_type"], "diagnostic");
        assert!(error["rendered"].as_str().is_some_and(|r| r.contains(code)));
        assert!(error["children"].is_array() && error["spans"].is_array());
        if code == "GRD0005" {
            let span = &error["spans"][0];
            assert!(
                span["text"][0]["text"]
                    .as_str()
                    .is_some_and(|t| t.contains("g(x)")),
                "{text}"
            );
            assert_eq!(span["is_primary"], true);
        }
    }
}

#[test]
fn bug_report_can_be_replayed() {
    let at = folder("report");
    write(
        &at,
        "f.c",
        "double g(double);\ndouble f(double x) { return 2 * g(x); }\n",
    );
    write(&at, "curve.c", CURVE);
    let made = gradus(&at, "bug-report -o refused.tar -- grad f.c -f f -o out.o");
    assert!(
        made.status.success() && said(&made).contains("GRD0005"),
        "{}",
        said(&made)
    );
    let made = gradus(
        &at,
        "bug-report -o fine.tar -- grad curve.c -f curve -o curve.o",
    );
    assert!(made.status.success(), "{}", said(&made));
    let copied = gradus(
        &at,
        "bug-report -o copied.tar -- gradus grad curve.c -f curve",
    );
    assert!(copied.status.success(), "{}", said(&copied));
    std::fs::remove_file(at.join("f.c")).expect("gone");
    let again = gradus(&at, "bug-report --replay refused.tar");
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("error[GRD0005]"), "{}", said(&again));
    let again = gradus(&at, "bug-report --replay fine.tar");
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    refused(&at, "bug-report --replay curve.c", "GRD0001", 1);
    refused(&at, "bug-report", "GRD0035", 1);
    let nothing = gradus(&at, "bug-report -- explain 5");
    assert!(said(&nothing).contains("GRD0017"), "{}", said(&nothing));
}

#[test]
fn signal_is_reported_with_line() {
    let at = folder("struck");
    let text = "#include <stdlib.h>
static double third(const double *x, int n)
{
    return x[n / 3] * x[0];
}
double struck(const double *x, int n)
{
    return third(x, n);
}
double hungry(double x)
{
    double sum = 0;
    for (long i = 1; i < 1000000; i++) {
        double *more = malloc(1 << 20);
        more[0] = x;
        for (long k = 1; k < 1 << 17; k++)
            more[k] = more[k - 1] * 0.5;
        sum += more[i % 100];
    }
    return sum;
}
";
    write(&at, "struck.c", text);
    let output = gradus(
        &at,
        "check struck.c -f struck --arg n=300000000 --arg x=rand(3)",
    );
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("error[GRD0027]"), "{text}");
    assert!(
        text.contains("argument `x`: struck reads past the end of the 3 elements"),
        "{text}"
    );
    assert!(text.contains("struck.c:4"), "{text}");
    let output = gradus(&at, "check struck.c -f hungry --max-memory 300M --arg x=1");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("error[GRD0026]"), "{text}");
}
