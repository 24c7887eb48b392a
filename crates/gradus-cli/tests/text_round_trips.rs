//! Numbers that go through text or a file are an error unless allowed; numbers that are only written are none.

mod support;

use std::path::Path;
use support::{folder, gradus, refuses, text, write};

/// Runs a command that succeeds, and returns its messages.
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
fn numbers_that_come_back_are_refused() {
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
fn numbers_that_are_only_written_are_accepted() {
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
