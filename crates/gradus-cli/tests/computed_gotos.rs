//! Derivatives of functions with computed gotos.

use crate::support::{accepts, folder, write};

#[test]
fn computed_gotos() {
    let at = folder("computed_gotos");
    write(&at, "g.c", include_str!("computed_gotos.c"));
    for level in ["-O0", "-O2"] {
        for function in ["by_table", "by_distances", "by_variable"] {
            let line = format!("check g.c -f {function} --arg n=6 --arg x=rand(6) -- {level}");
            accepts(&at, &line);
        }
    }
}
