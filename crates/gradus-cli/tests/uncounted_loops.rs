//! Gradients of uncounted loops with inner loops.

use crate::support::{accepts, folder, write};

/// The structure of LAPACK's `dgebal`, a scaling of matrices: a loop that carries a flag, around a counted
/// loop, around two loops that double a value.
const BALANCE: &str = r#"
#include <math.h>
static void balance(int n, double *a, double *scale) {
    int changed = 1;
    while (changed) {
        changed = 0;
        for (int i = 0; i < n; i++) {
            double c = 0, r = 0;
            for (int k = 0; k < n; k++) c += a[k + n * i] * a[k + n * i], r += a[i + n * k] * a[i + n * k];
            c = sqrt(c), r = sqrt(r);
            if (c == 0 || r == 0) continue;
            double g = r / 2, f = 1, s = c + r;
            while (c < g) f *= 2, c *= 2, r /= 2, g /= 2;
            g = c / 2;
            while (g >= r) f /= 2, c /= 2, g /= 2, r *= 2;
            if (c + r >= 0.95 * s) continue;
            g = 1 / f;
            scale[i] *= f;
            changed = 1;
            for (int k = 0; k < n; k++) a[i + n * k] *= g;
            for (int k = 0; k < n; k++) a[k + n * i] *= f;
        }
    }
}
double f(const double *x) {
    double w[9], scale[3] = {1, 1, 1}, sum = 0;
    for (int i = 0; i < 9; i++) w[i] = x[i];
    balance(3, w, scale);
    for (int i = 0; i < 9; i++) sum += w[i] * w[i];
    return sum + scale[0] + scale[1] * scale[2];
}
"#;

#[test]
fn uncounted_loops_with_counted_loops() {
    let at = folder("uncounted_loops");
    write(&at, "balance.c", BALANCE);
    for level in 0..4 {
        let values = "--arg x=[1,0.1,0.2,30,2,0.1,0.5,20,4]";
        let said = accepts(&at, &format!("check balance.c -f f {values} -- -O{level}"));
        assert!(
            said.contains("the derivative is right"),
            "-O{level}: {said}"
        );
    }
}
