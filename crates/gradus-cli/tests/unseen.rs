//! Functions that are not seen: what they may do to active memory without being handed any.

mod support;

use support::{accepts, folder, refuses, write};

/// What is not seen may change variables that other files see, and have handlers called.
#[test]
fn what_is_not_seen_may_change_what_is_seen_elsewhere() {
    let at = folder("elsewhere");
    let program = "#include <gradus.h>
        #include <signal.h>
        #include <stdio.h>
        void step(int n);
        void stated(int n);
        GRADUS_INACTIVE(stated);
        double open_number;
        static double closed_number;
        static double *handled;
        static void handler(int number) { *handled *= 2; }
        double through(double x) {
            open_number = x * x;
            step(1);
            return open_number * x;
        }
        double beside(double x) {
            open_number = 2;
            closed_number = x * x;
            step(1);
            stated(2);
            printf(\"%d\\n\", 3);
            return closed_number * x;
        }
        double known(double x) {
            open_number = x * x;
            stated(1);
            printf(\"%d\\n\", 3);
            return open_number * x;
        }
        double back(double x) {
            double v = x * x;
            handled = &v;
            signal(SIGUSR1, handler);
            raise(SIGUSR1);
            return v * x;
        }\n";
    write(&at, "open.c", program);
    for level in ["-O0", "-O2"] {
        let said = refuses(
            &at,
            &format!("grad open.c -f through -o out.o -- {level}"),
            "GRD0005",
        );
        assert!(
            said.contains("open.c:13:") && said.contains("`open_number`"),
            "{said}"
        );
        let said = refuses(
            &at,
            &format!("grad open.c -f back -o out.o -- {level}"),
            "GRD0005",
        );
        assert!(
            said.contains("open.c:34:") && said.contains("`handler`"),
            "{said}"
        );
        for function in ["beside", "known"] {
            accepts(
                &at,
                &format!("grad open.c -f {function} -o out.o -- {level}"),
            );
        }
    }
}
