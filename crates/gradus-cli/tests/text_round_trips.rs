//! Active values passed through text or a file are an error unless allowed; values only written are
//! accepted.

use crate::support::{folder, gradus, refuses, text, write};
use std::path::Path;

/// Runs a command that must succeed. Returns the messages.
fn accepts(at: &Path, line: &str) -> String {
    let output = gradus(at, line);
    let said = text(&output.stderr);
    assert!(output.status.success(), "gradus {line}\n{said}");
    said
}

const WRITES_AND_READS: &str = "#include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    double printed(double x) { char t[40]; snprintf(t, sizeof t, \"%.17g\", x * x); return strtod(t, 0) + x; }
    double scanned(double x) { char t[40]; double y; sprintf(t, \"%.17g\", x * x); sscanf(t, \"%lf\", &y); return y + x; }
    double copied(double x) {
        char t[40], u[40]; snprintf(t, sizeof t, \"%a\", x); strcpy(u, t); return atof(u) * x;
    }
    static char kept[40];
    static void leave(double x) { snprintf(kept, sizeof kept, \"%a\", x); }
    static double fetch(void) { return strtod(kept, 0); }
    double apart(double x) { leave(x * x); return fetch() + x; }
    double piped(double x) {
        int ends[2]; double y = x * x, z = 0;
        if (pipe(ends)) return 0;
        write(ends[1], &y, sizeof y); read(ends[0], &z, sizeof z);
        return z + x;
    }
    double filed(double x) {
        FILE *f = fopen(\"numbers\", \"w+\"); double y = x * x, z = 0;
        fwrite(&y, sizeof y, 1, f); rewind(f); fread(&z, sizeof z, 1, f); fclose(f);
        return z + x;
    }
    double parsed(const char *);
    double unseen(double x) { char t[40]; snprintf(t, sizeof t, \"%a\", x); return parsed(t) * x; }\n";

#[test]
fn values_read_back_are_refused() {
    let at = folder("text-back");
    write(&at, "back.c", WRITES_AND_READS);
    let names = [
        "printed", "scanned", "copied", "apart", "piped", "filed", "unseen",
    ];
    for flags in ["-O0", "-O2", "-O2 -g"] {
        for name in names {
            let asked = format!("back.c -f {name} -o out.o -- -w {flags}");
            let said = refuses(&at, &format!("grad {asked}"), "GRD0040");
            assert!(said.contains("back.c:"), "{said}");
            let allowed = accepts(&at, &format!("grad --allow=text-round-trip {asked}"));
            assert!(allowed.contains("warning[GRD0040]"), "{name}: {allowed}");
        }
    }
}

#[test]
fn drivers_and_checks_take_the_option() {
    let at = folder("text-drivers");
    let program = "#include <stdio.h>
        #include <stdlib.h>
        void __enzyme_autodiff(void *, ...);
        static double f(double *x) { char t[40]; snprintf(t, 40, \"%a\", *x); return strtod(t, 0) + *x; }
        void df(double *x, double *dx) { __enzyme_autodiff((void *)f, x, dx); }
        double g(double x) { char t[40]; snprintf(t, 40, \"%a\", x); return 0 * strtod(t, 0) + x; }\n";
    write(&at, "asked.c", program);
    for level in ["-O0", "-O2"] {
        refuses(&at, &format!("cc {level} -c asked.c"), "GRD0040");
        let said = accepts(
            &at,
            &format!("cc {level} --allow=text-round-trip -c asked.c"),
        );
        assert!(said.contains("warning[GRD0040]"), "{said}");
    }
    refuses(&at, "check asked.c -f g --arg x=3", "GRD0040");
    let told = gradus(&at, "check asked.c -f g --allow text-round-trip --arg x=3");
    assert!(told.status.success(), "{}", text(&told.stderr));
    for line in [
        "cc --allow=nothing -c asked.c",
        "grad --allow= asked.c -f g",
    ] {
        refuses(&at, line, "GRD0035");
    }
}

#[test]
fn written_only_values_are_accepted() {
    let at = folder("text-log");
    let program = "#include <stdio.h>
        #include <stdlib.h>
        double logs(double x) { printf(\"%g\\n\", x * x); fprintf(stderr, \"%g\\n\", x); return x * x; }
        double tells(double x) { char t[40]; snprintf(t, sizeof t, \"%g\", x); puts(t); return x * x; }
        double stores(double x) { FILE *f = fopen(\"log\", \"a\"); fprintf(f, \"%g\", x); fclose(f); return x * x; }
        double scaled(double x) {
            char t[40]; snprintf(t, sizeof t, \"%g\", x); puts(t);
            const char *scale = getenv(\"SCALE\");
            return x * (scale ? atof(scale) : atof(\"2.5\"));
        }
        double shown(double x) {
            double y = 1; FILE *f = fopen(\"scale\", \"r\");
            fprintf(stderr, \"%g\\n\", x);
            if (f) fscanf(f, \"%lf\", &y);
            return x * y;
        }\n";
    write(&at, "log.c", program);
    for level in ["-O0", "-O2"] {
        for name in ["logs", "tells", "stores", "scaled", "shown"] {
            let said = accepts(&at, &format!("grad log.c -f {name} -o out.o -- -w {level}"));
            assert!(!said.contains("GRD0040"), "{name}: {said}");
        }
    }
}

#[test]
fn streams_and_strings() {
    let at = folder("text-cpp");
    let program = "#include <iostream>
        #include <sstream>
        #include <string>
        double strings(double x) { return std::stod(std::to_string(x * x)) + x; }
        double streams(double x) { std::stringstream s; s << x * x; double y; s >> y; return y + x; }
        double shown(double x) { std::cout << \"x \" << x << std::endl; return x * x; }\n";
    write(&at, "text.cpp", program);
    for level in ["-O0", "-O2"] {
        for name in ["_Z7stringsd", "_Z7streamsd"] {
            let asked = format!("grad text.cpp -f {name} -o out.o -- -w {level}");
            let said = refuses(&at, &asked, "GRD0040");
            assert!(said.contains("read here"), "{said}");
        }
        accepts(
            &at,
            &format!("grad text.cpp -f _Z5shownd -o out.o -- -w {level}"),
        );
    }
}

/// Checks that each function is refused at both levels, with the line of the read.
fn all_refused(at: &Path, file: &str, names: &[&str]) {
    for level in ["-O0", "-O2"] {
        for name in names {
            let asked = format!("{file} -f {name} -o out.o -- -w {level}");
            let said = refuses(at, &format!("grad {asked}"), "GRD0040");
            assert!(said.contains("read here"), "{said}");
        }
    }
}

const WRAPPERS: &str = "#include <stdarg.h>
    #include <stdio.h>
    #include <stdlib.h>
    static FILE *log_file;
    static void put(char *b, const char *form, ...) { va_list a; va_start(a, form); vsnprintf(b, 64, form, a); va_end(a); }
    static void copy(char *b, const char *form, ...) {
        va_list a, c; va_start(a, form); va_copy(c, a); vsprintf(b, form, c); va_end(c); va_end(a);
    }
    static void hand(char *b, const char *form, va_list a) { vsnprintf(b, 64, form, a); }
    static void pass(char *b, const char *form, ...) { va_list a; va_start(a, form); hand(b, form, a); va_end(a); }
    static void out(const char *form, ...) { va_list a; va_start(a, form); vfprintf(log_file, form, a); va_end(a); }
    static void tell(const char *form, ...) { va_list a; va_start(a, form); vfprintf(stderr, form, a); va_end(a); }
    static void get(const char *b, const char *form, ...) { va_list a; va_start(a, form); vsscanf(b, form, a); va_end(a); }
    double own_print(double x) { char b[64]; put(b, \"%.17g\", x * x); return strtod(b, 0) * x; }
    double own_copy(double x) { char b[64]; copy(b, \"%.17g\", x * x); return strtod(b, 0) * x; }
    double own_pass(double x) { char b[64]; pass(b, \"%.17g\", x * x); return strtod(b, 0) * x; }
    double own_log(double x) {
        double z; log_file = tmpfile(); out(\"%.17g\", x * x); rewind(log_file); fscanf(log_file, \"%lf\", &z);
        return z * x;
    }
    double own_scan(double x) { char b[64]; double z; snprintf(b, 64, \"%.17g\", x * x); get(b, \"%lf\", &z); return z * x; }
    double tells(double x) { tell(\"%g\", x * x); return strtod(\"2\", 0) * x * x; }
    double sets(double x) { double z; tell(\"%g\", x); get(getenv(\"SCALE\"), \"%lf\", &z); return z * x * x; }\n";

#[test]
fn variadic_wrappers_of_the_program() {
    let at = folder("text-wrappers");
    write(&at, "own.c", WRAPPERS);
    let names = ["own_print", "own_copy", "own_pass", "own_log", "own_scan"];
    all_refused(&at, "own.c", &names);
    for level in ["-O0", "-O2"] {
        for name in ["tells", "sets"] {
            accepts(&at, &format!("grad own.c -f {name} -o out.o -- -w {level}"));
        }
    }
}

#[test]
fn static_memory_between_functions() {
    let at = folder("text-kept");
    let program = "#include <stdio.h>
        #include <stdlib.h>
        #define APART __attribute__((noinline)) static
        static char text[64];
        static double number;
        APART void save_text(double y) { snprintf(text, 64, \"%.17g\", y); }
        APART double load_text(void) { return strtod(text, 0); }
        APART double scan_text(void) { double z = 0; sscanf(text, \"%lf\", &z); return z; }
        APART void save(double y) { number = y; }
        APART double load(void) { return number; }
        double parsed(double x) { save_text(x * x); return load_text() * x; }
        double scanned(double x) { save_text(x * x); return scan_text() * x; }
        double kept(double x) { save(x * x); return load() * x; }\n";
    write(&at, "kept.c", program);
    all_refused(&at, "kept.c", &["parsed", "scanned"]);
    let program = "#include <sstream>
        #include <string>
        static std::string text;
        __attribute__((noinline)) static void save(double y) { std::ostringstream o; o << y; text = o.str(); }
        __attribute__((noinline)) static double load() { return std::stod(text); }
        double kept(double x) { save(x * x); return load() * x; }
        double local(double x) { std::ostringstream o; o << x * x; return std::stod(o.str()) * x; }\n";
    write(&at, "kept.cpp", program);
    all_refused(&at, "kept.cpp", &["_Z4keptd", "_Z5locald"]);
    for level in ["-O0", "-O2"] {
        let said = accepts(&at, &format!("check kept.c -f kept --arg x=3 -- {level}"));
        assert!(!said.contains("GRD0040"), "{said}");
    }
}

#[test]
fn files_in_memory_and_lists_of_buffers() {
    let at = folder("text-mapped");
    let program = "#define _GNU_SOURCE
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/socket.h>
        #include <sys/uio.h>
        #include <unistd.h>
        double opened(double x) {
            char *b; size_t n; FILE *m = open_memstream(&b, &n);
            fprintf(m, \"%.17g\", x * x); fclose(m);
            double z = strtod(b, 0); free(b); return z * x;
        }
        double over(double x) {
            char b[64] = {0}; FILE *m = fmemopen(b, 64, \"w+\");
            fprintf(m, \"%.17g\", x * x); fclose(m); return strtod(b, 0) * x;
        }
        double mapped(double x) {
            FILE *f = tmpfile(); double y = x * x; fwrite(&y, 8, 1, f); fflush(f);
            double *m = mmap(0, 8, PROT_READ, MAP_SHARED, fileno(f), 0);
            double z = *m; munmap(m, 8); fclose(f); return z * x;
        }
        double through(double x, int file) {
            double z = 0; double *m = mmap(0, 8, PROT_WRITE, MAP_SHARED, file, 0);
            *m = x * x; pread(file, &z, sizeof z, 0); return z * x;
        }
        double gathered(double x) {
            double y = x * x, z = 0; int p[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, p);
            struct iovec v = {&y, 8}; writev(p[0], &v, 1); recv(p[1], &z, 8, 0); return z * x;
        }
        double spread(double x) {
            double y = x * x, z = 0; int p[2]; pipe(p);
            struct iovec v = {&z, 8}; write(p[1], &y, 8); readv(p[0], &v, 1); return z * x;
        }
        double shown(double x) { double y = x * x, z = 1; write(2, &y, 8); read(0, &z, 8); return z * x; }\n";
    write(&at, "mapped.c", program);
    let names = ["opened", "over", "mapped", "through", "gathered", "spread"];
    all_refused(&at, "mapped.c", &names);
    for level in ["-O0", "-O2"] {
        accepts(
            &at,
            &format!("grad mapped.c -f shown -o out.o -- -w {level}"),
        );
    }
}

#[test]
fn fortran_writes_and_reads_numbers_as_they_are() {
    let at = folder("text-fortran");
    let program = "real(8) function sequential(x) bind(c)
  real(8), intent(in) :: x
  real(8) :: z
  open(10, status='scratch', form='unformatted')
  write(10) x*x
  rewind(10)
  read(10) z
  close(10)
  sequential = z*x
end function
real(8) function direct(x) bind(c)
  real(8), intent(in) :: x
  real(8) :: z(2), y(2)
  open(10, status='scratch', form='unformatted', access='direct', recl=16)
  y = [x*x, x]
  write(10, rec=1) y
  read(10, rec=1) z
  close(10)
  direct = z(1)*x + z(2)
end function
subroutine save_it(y)
  real(8), intent(in) :: y
  open(11, file='numbers.bin', form='unformatted', access='stream')
  write(11) y
  close(11)
end subroutine
real(8) function load_it()
  open(11, file='numbers.bin', form='unformatted', access='stream')
  read(11) load_it
  close(11)
end function
real(8) function streamed(x) bind(c)
  real(8), intent(in) :: x
  real(8), external :: load_it
  call save_it(x*x)
  streamed = load_it()*x
end function
real(8) function shown(x) bind(c)
  real(8), intent(in) :: x
  real(8) :: y(3), z
  y = x*x
  read(*,*) z
  print *, y
  write(*,*) x
  shown = y(2)*z
end function\n";
    write(&at, "io.f90", program);
    all_refused(&at, "io.f90", &["sequential", "direct", "streamed"]);
    accepts(&at, "grad io.f90 -f shown -o out.o -- -O1");
}

#[test]
fn manual_digit_conversion() {
    let at = folder("text-digits");
    let program = "#include <stdint.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        static double number(const char *b) {
            double s = 0, p = 1; int i = 0;
            for (; b[i] >= '0' && b[i] <= '9'; i++) s = s * 10 + (b[i] - '0');
            if (b[i] == '.') for (i++; b[i] >= '0' && b[i] <= '9'; i++) { p *= 0.1; s += p * (b[i] - '0'); }
            return s;
        }
        double digits(double x) { char b[64]; snprintf(b, 64, \"%.17g\", x * x); return number(b) * x; }
        double copied(double x) { char b[64], c[64]; snprintf(b, 64, \"%.17g\", x * x); strcpy(c, b); return number(c) * x; }
        double whole(double x) { char b[64]; snprintf(b, 64, \"%.0f\", 1e6 * x * x); return atoi(b) * 1e-6 * x; }
        double bits(double x) {
            double y = x * x, z; uint64_t u; char c[17]; memcpy(&u, &y, 8);
            sprintf(c, \"%016llx\", (unsigned long long)u); u = strtoull(c, 0, 16); memcpy(&z, &u, 8); return z * x;
        }
        double halves(double x) {
            double y = x * x, z; uint64_t u; char c[17]; memcpy(&u, &y, 8);
            sprintf(c, \"%08x\", (uint32_t)(u >> 32)); u = (uint64_t)strtoul(c, 0, 16) << 32; memcpy(&z, &u, 8); return z * x;
        }
        double given(double x) {
            char b[64]; snprintf(b, 64, \"%g\", x); puts(b);
            return number(getenv(\"SCALE\")) * x;
        }
        double counted(double x) {
            char b[64]; int n = snprintf(b, 64, \"%g\", x); puts(b);
            return x * x * n + (double)strlen(b) + (b[0] == '-');
        }
        double set(double x) {
            struct { char name[32]; int n; } s; snprintf(s.name, 32, \"%g\", x); puts(s.name);
            s.n = atoi(getenv(\"COUNT\")); return x * x * s.n;
        }\n";
    write(&at, "digits.c", program);
    all_refused(
        &at,
        "digits.c",
        &["digits", "copied", "whole", "bits", "halves"],
    );
    for level in ["-O0", "-O2"] {
        for name in ["given", "counted", "set"] {
            let asked = format!("grad digits.c -f {name} -o out.o -- -w {level}");
            let said = accepts(&at, &asked);
            assert!(!said.contains("GRD0040"), "{name}: {said}");
        }
    }
}
