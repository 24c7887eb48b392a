//! State of the C library: text and files through which floats pass, and `errno`.

use crate::support::{accepts, folder, gradus, text, write};

/// A float that passes through text has no derivative: a warning reports the line if an active value is
/// written and a relevant value is read. Neither alone causes a warning.
#[test]
fn text_round_trips_warn() {
    let at = folder("text");
    let program = "#include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        double scanned(double x) {
            char text[40], copy[40]; double y = 0;
            snprintf(text, sizeof text, \"%.17g\", x * x);
            memcpy(copy, text, sizeof copy);
            sscanf(copy, \"%lf\", &y);
            return y * x;
        }
        double parsed(double x) {
            char text[40];
            sprintf(text, \"%.17g\", x * x);
            return strtod(text, 0) + atof(text) * x;
        }
        double filed(const double *x, int n) {
            double y = 0;
            FILE *file = tmpfile();
            fwrite(x, sizeof *x, n, file);
            rewind(file);
            fread(&y, sizeof y, 1, file);
            return y * x[0];
        }
        double piped(double x) {
            int ends[2];
            double y = x * x, z = 0;
            if (pipe(ends) || write(ends[1], &y, 8) != 8) return 0;
            if (read(ends[0], &z, 8) != 8) return 0;
            return z * x;
        }
        double told(double x) {
            char text[40];
            snprintf(text, sizeof text, \"%g\", x);
            puts(text);
            return x * x;
        }
        double scaled(double x, const char *by) {
            printf(\"%g\\n\", x);
            return x * atof(by);
        }\n";
    write(&at, "text.c", program);
    let warned = |function: &str| {
        let asked = format!("grad --allow=text-round-trip text.c -f {function} -o text.o");
        let output = gradus(&at, &asked);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        let count = said.matches("warning[GRD0040]").count();
        let lines = [9, 15, 22, 29].map(|line| said.contains(&format!("text.c:{line}:")));
        (count, lines)
    };
    assert_eq!(warned("scanned"), (1, [true, false, false, false]));
    assert_eq!(warned("parsed"), (2, [false, true, false, false]));
    assert_eq!(warned("filed"), (1, [false, false, true, false]));
    assert_eq!(warned("piped"), (1, [false, false, false, true]));
    assert_eq!(warned("told"), (0, [false; 4]));
    assert_eq!(warned("scaled"), (0, [false; 4]));
    let streams = "#include <sstream>
        double streamed(double x) {
            std::stringstream text;
            text << x * x;
            double y = 0;
            text >> y;
            return y * x;
        }\n";
    write(&at, "streams.cpp", streams);
    let function = "_Z8streamedd";
    let output = gradus(&at, &format!("grad streams.cpp -f {function} -o streams.o"));
    let said = text(&output.stderr);
    assert!(
        said.contains("error[GRD0040]") && said.contains("read here"),
        "{said}"
    );
}

/// A store to `errno` by a C library function is visible to a later load, also through another alias of its
/// address.
#[test]
fn errno_dependences() {
    let at = folder("errno");
    let program = "#include <errno.h>
        #include <math.h>
        double logged(double x, double z) {
            errno = 0;
            double y = log(x);
            if (errno) y = z * z;
            return y * z;
        }
        double grown(double x, double z) {
            errno = 0;
            double y = exp(x);
            return errno == ERANGE ? z * z : y * z;
        }
        double twice(double x, double z) {
            errno = 0;
            double a = log(x), s = errno ? z * z : a;
            errno = 0;
            double b = log(x);
            return s + (errno ? z * z * z : b * z);
        }
        double looped(double x, double z) {
            double s = 0;
            for (int i = 1; i < 4; i++) {
                errno = 0;
                double a = log(x);
                s += errno ? z * z * i : a * z;
            }
            return s;
        }
        double cleared(double x, double z) {
            double s = 0;
            for (int i = 1; i < 4; i++) {
                errno = 0;
                s += log(x) * i;
            }
            return errno ? z * z : s * z;
        }\n";
    write(&at, "errno.c", program);
    for level in ["-O0", "-O2"] {
        for (function, x) in [
            ("logged", -0.5),
            ("logged", 0.5),
            ("grown", 800.0),
            ("grown", 1.5),
            ("twice", -0.5),
            ("twice", 0.5),
            ("looped", -0.5),
            ("looped", 0.5),
            ("cleared", -0.5),
            ("cleared", 0.5),
        ] {
            let line = format!("check errno.c -f {function} --arg x={x} --arg z=0.7 -- {level}");
            accepts(&at, &line);
        }
    }
}
