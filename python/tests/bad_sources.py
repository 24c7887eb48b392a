"""Generates bad sources, and loads them: `python tests/bad_sources.py FIRST COUNT FOLDER` prints one JSON line per source.

A source is a function of its number: the same number gives the same files. Two thirds are mutations of programs that
compile (some of them still compile); one third is made bad in a known way.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# The compiler's limits, and that of one source with both compilations, for a loaded machine.
LIMITS = {"GRADUS_MAX_TIME": "100", "GRADUS_MAX_MEMORY": "4G"}
LIMIT_S = 300

C = """#include <math.h>
#include <stdlib.h>
typedef struct { double mass, *position; int count; } body;
static double pull(const body *b, double r) { return b->mass / (1.0 + r * r); }
double f(const double *x, int n) {
    double *y = malloc(n * sizeof *y), s = 0;
    body b = {2.0, y, n};
    for (int i = 0; i < n; i++) y[i] = x[i] * sin(x[i]);
    for (int i = 0; i + 1 < b.count; i++) {
        double r = b.position[i + 1] - y[i];
        if (r > 0.5) s += pull(&b, r); else s -= sqrt(1.0 + r * r);
    }
    free(y);
    return s;
}
"""
CPP = """#include <cmath>
#include <memory>
#include <vector>
struct Law { virtual ~Law() = default; virtual double of(double x) const = 0; };
struct Cube : Law { double of(double x) const override { return x * x * x; } };
template <class T> struct Wave : Law { T k; Wave(T k) : k(k) {} double of(double x) const override { return std::sin(k * x); } };
double f(const double *x, std::size_t n) {
    std::vector<std::unique_ptr<Law>> laws;
    laws.push_back(std::make_unique<Cube>());
    laws.push_back(std::make_unique<Wave<double>>(2.0));
    double s = 0;
    for (std::size_t i = 0; i < n; i++)
        for (auto &law : laws) s += law->of(x[i]);
    return s;
}
"""
FORTRAN = """module springs
  implicit none
  type body
    real(8) :: mass
    real(8), allocatable :: at(:)
  end type
contains
  real(8) function f(x, n) bind(c)
    integer, value :: n
    real(8), intent(in) :: x(n)
    type(body) :: b
    integer :: i
    allocate(b%at(n))
    b%mass = 2
    b%at = x**2
    f = 0
    do i = 1, n - 1
      f = f + b%mass * (b%at(i + 1) - x(i))**2
    end do
  end function
end module
"""
RUST = """trait Law { fn of(&self, x: f64) -> f64; }
struct Cube;
struct Wave(f64);
impl Law for Cube { fn of(&self, x: f64) -> f64 { x * x * x } }
impl Law for Wave { fn of(&self, x: f64) -> f64 { (self.0 * x).sin() } }
#[unsafe(no_mangle)]
pub extern "C" fn f(x: *const f64, n: usize) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    let laws: Vec<Box<dyn Law>> = vec![Box::new(Cube), Box::new(Wave(2.0))];
    x.iter().map(|v| laws.iter().map(|law| law.of(*v)).sum::<f64>()).sum()
}
"""
CUDA = """__global__ void square(const double *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ double s[32];
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) y[i] = s[threadIdx.x] * s[threadIdx.x];
}
void f(const double *x, double *y, int n) { square<<<(n + 31) / 32, 32>>>(x, y, n); }
"""
IR = """define double @f(double %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ %x, %entry ], [ %t, %loop ]
  %t = fmul double %s, %x
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret double %t
}
"""
PROGRAMS = {".c": C, ".cpp": CPP, ".f90": FORTRAN, ".rs": RUST, ".cu": CUDA, ".ll": IR}
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass
class Bad:
    """A source, and whether it must be refused."""

    kind: str
    name: str
    content: bytes
    must_fail: bool
    function: str = "f"


def mutated(chance: random.Random) -> Bad:
    """Returns a program with one to three mutations."""
    suffix = chance.choice(list(PROGRAMS))
    text, done = PROGRAMS[suffix], []
    for _ in range(chance.randint(1, 3)):
        kind = chance.choice(["truncated", "swapped", "removed", "doubled", "foreign", "retyped", "renumbered"])
        done.append(kind)
        if kind == "truncated":
            text = text[: chance.randrange(1, len(text) + 1)]
            continue
        tokens = TOKEN.findall(text)
        a, b = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        if kind == "swapped":
            tokens[a], tokens[b] = tokens[b], tokens[a]
        elif kind == "removed":
            del tokens[a]
        elif kind == "doubled":
            tokens[a:a] = tokens[min(a, b) : max(a, b)]
        elif kind == "foreign":
            tokens[a] = chance.choice(TOKEN.findall(PROGRAMS[chance.choice(list(PROGRAMS))]))
        elif kind == "retyped":
            types = ["int", "double", "float", "char", "void *", "long double", "_Complex double", "i128", "f16", "logical"]
            places = [k for k, t in enumerate(tokens) if t in ("double", "int", "f64", "real", "i64", "void", "struct")] or [a]
            tokens[chance.choice(places)] = chance.choice(types)
        else:
            places = [k for k, t in enumerate(tokens) if t.isdigit()] or [a]
            tokens[chance.choice(places)] = chance.choice(["-1", "0", "99999999999999999999", "1e999", "4294967296", "0x7fffffffffffffff"])
        text = "".join(tokens)
    return Bad("+".join(done), "f" + suffix, text.encode(), False)


def damaged(chance: random.Random, bitcode: bytes) -> Bad:
    """Returns bitcode with changed, missing or additional bytes."""
    content = bytearray(bitcode)
    kind = chance.choice(["flipped", "cut", "extended"])
    if kind == "flipped":
        for _ in range(chance.choice([1, 1, 4, 64])):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del content[chance.randrange(len(content)) :]
    else:
        at = chance.randrange(len(content))
        content[at:at] = chance.randbytes(chance.choice([1, 4, 1000]))
    return Bad(f"bitcode {kind}", "f.bc", bytes(content), False)


def nested(chance: random.Random) -> Bad:
    """Returns deep nests of expressions, blocks and loops, and a long chain of calls."""
    deep = chance.choice([300, 5_000, 100_000])
    made = {
        "parentheses": f"double f(double x) {{ return {'(' * deep}x{')' * deep}; }}",
        "unclosed parentheses": f"double f(double x) {{ return {'(' * deep}x; }}",
        "negations": f"double f(double x) {{ return {'- ' * deep}x; }}",
        "blocks": f"double f(double x) {{ {'{' * deep} x *= 2; {'}' * deep} return x; }}",
        "conditions": f"double f(double x) {{ {'if (x > 0) ' * deep} x *= 2; return x; }}",
        "pointers": f"double f(double {'*' * deep}x) {{ return 1; }}",
    }
    kind = chance.choice(list(made))
    return Bad(f"{deep} {kind}", "f.c", made[kind].encode(), False)


# Programs that cannot be compiled or differentiated; K is a number.
HOPELESS = {
    "no expression": (".c", "double f(double x) { return x + K"),
    "assembly": (".c", 'double f(const double *x, int n) { asm volatile("nop %0" :: "r"(x[K])); return x[0]; }'),
    "no body": (".c", "double gK(double); double f(double x) { return gK(x); }"),
    "#error": (".c", "#error K"),
    "structure by value": (".c", "struct s { double a[K + 2]; int b; }; double f(struct s x) { return x.a[0]; }"),
    "no numbers": (".c", "double f(int n) { return n + K; }"),
    "text": (".c", '#include <stdio.h>\ndouble f(double x) { char t[99]; double y; sprintf(t, "%g", x); sscanf(t, "%lg", &y); return y * K; }'),
    "variadic": (".c", "double f(double x, ...) { return x * K; }"),
    "no parameters": (".c", "int f(void) { return K; }"),
    "pointers to pointers": (".c", "double f(double ***x, int n) { return ***x * K; }"),
    "functions as arguments": (".c", "double f(double (*g)(double), double x) { return g(x) * K; }"),
    "long double": (".c", "long double f(long double x) { return x * x * K; }"),
    "no include": (".c", '#include "missingK.h"\ndouble f(double x) { return x; }'),
    "includes itself": (".c", "#include __FILE__\ndouble f(double x) { return x * K; }"),
    "endless templates": (".cpp", "template <int N> struct T { static constexpr double v = T<N + 1>::v; }; double f(double x) { return x * T<K>::v; }"),
    "endless constant": (".cpp", "constexpr int g(int n) { return g(n + 1); } constexpr int v = g(K); double f(double x) { return x * v; }"),
    "wrong template": (".cpp", "#include <vector>\ndouble f(double x) { std::vector<int> v = {1.5 * x}; return v.nothing(K); }"),
    "no module": (".f90", "function f(x)\n use missingK\n real(8) :: f, x\n f = x\nend function\n"),
    "no Fortran": (".f90", "real(8) function f(x)\n real(8) :: x\n f = x +* K\nend function\n"),
    "no crate": (".rs", "use missingK::*; #[unsafe(no_mangle)] pub extern \"C\" fn f(x: f64) -> f64 { x }"),
    "borrowed twice": (".rs", "#[unsafe(no_mangle)] pub extern \"C\" fn f(mut x: f64) -> f64 { let a = &mut x; let b = &mut x; *a += K.0; *b }"),
    "endless macro": (".rs", "macro_rules! m { ($e:expr) => { m!($e + 1.0) } } #[unsafe(no_mangle)] pub extern \"C\" fn f(x: f64) -> f64 { m!(x) }"),
    "no terminator": (".ll", "define double @f(double %x) {\n  %y = fadd double %x, K.0\n}\n"),
    "no LLVM": (".ll", "define double @f(double %x) { ret double %yK }\n"),
    "no binary": (".bc", "BC\xc0\xde K"),
    "a C program as bitcode": (".bc", C),
    "a C program as Rust": (".rs", C),
    "a C program as Fortran": (".f90", C),
    "a Rust program as C": (".c", RUST),
    "unknown suffix": (".txt", C),
    "no suffix": ("", C),
    "empty": (".c", ""), "empty C++": (".cpp", ""), "empty Fortran": (".f90", ""), "empty Rust": (".rs", ""),
    "empty IR": (".ll", ""), "empty bitcode": (".bc", ""), "empty CUDA": (".cu", ""), "only NUL": (".c", "\0" * 64),
}


def hopeless(chance: random.Random) -> Bad:
    """Returns a program that is made bad in a known way."""
    kind = chance.choice([*HOPELESS, "garbage", "no such function", "recursion"])
    if kind == "garbage":
        suffix = chance.choice([".c", ".cpp", ".f90", ".rs", ".cu", ".ll", ".bc"])
        return Bad(f"garbage in {suffix}", "f" + suffix, chance.randbytes(chance.choice([1, 16, 5_000])), True)
    if kind == "no such function":
        suffix = chance.choice(list(PROGRAMS))
        name = chance.choice(["g", "F", "f f", "", "ſ", "-f", "--help", "f;", "f" * 5_000, "a::b::c<", "\n"])
        return Bad(kind, "f" + suffix, PROGRAMS[suffix].encode(), True, name)
    if kind == "recursion":
        # The function is accepted: the recursion ends only at run time.
        return Bad(kind, "f.c", b"double f(double x) { return f(x + 1) * x; }", False)
    suffix, text = HOPELESS[kind]
    return Bad(kind, "f" + suffix, text.replace("K", str(chance.randrange(1, 99))).encode("latin-1"), True)


def source(number: int, bitcode: bytes) -> Bad:
    """Returns the source of the number."""
    chance = random.Random(number)
    return chance.choice([mutated, mutated, mutated, lambda c: damaged(c, bitcode), nested, hopeless, hopeless, hopeless])(chance)


def bitcode(folder: Path) -> bytes:
    """Compiles the C program to bitcode; without a compiler, the bytes are only a header."""
    clang = shutil.which("clang-22") or shutil.which("clang")
    if clang is None:
        return b"BC\xc0\xde" + bytes(1000)
    (folder / "base.c").write_text(C)
    words = [clang, "-O1", "-g", "-c", "-emit-llvm", "base.c", "-o", "base.bc"]
    subprocess.run(words, cwd=folder, check=True)
    return (folder / "base.bc").read_bytes()


def outcome(bad: Bad, folder: Path) -> str:
    """Loads a source. Returns `made`, `refused: MESSAGE`, or `fault: MESSAGE` for any other end."""
    import gradus

    file = folder / bad.name
    file.write_bytes(bad.content)
    try:
        gradus.load(file)[bad.function]
        return "made"
    except gradus.Error as error:
        internal = "GRD0024" in str(error) or getattr(error, "code", None) == "GRD0024"
        return f"{'refused' if str(error).strip() and not internal else 'fault'}: {error}"
    except Exception as error:  # noqa: BLE001: the outcome names it
        return f"fault: {type(error).__name__}: {error}"


def main() -> None:
    """Loads the sources FIRST to FIRST + COUNT - 1."""
    first, count, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {LIMIT_S} s")

    os.environ.update(LIMITS)
    signal.signal(signal.SIGALRM, stop)
    base = bitcode(folder)
    for number in range(first, first + count):
        bad, start = source(number, base), time.monotonic()
        place = folder / str(number)
        place.mkdir()
        signal.alarm(LIMIT_S)
        told = outcome(bad, place)
        signal.alarm(0)
        shutil.rmtree(place)
        print(json.dumps({"number": number, "kind": bad.kind, "name": bad.name, "must_fail": bad.must_fail, "outcome": told,
                          "seconds": round(time.monotonic() - start, 2)}), flush=True)


if __name__ == "__main__":
    main()
