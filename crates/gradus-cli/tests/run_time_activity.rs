//! Run-time activity: a pointer whose shadow is the pointer itself is inactive. A page per use of such
//! pointers, compared with formulas at every level and under the sanitizers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FLAGS: &[&str] = &[
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
];

fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn is_right(page: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run_time_activity");
    let program: PathBuf =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-time-activity-{page}"));
    for flags in FLAGS {
        let made = Command::new(env!("CARGO_BIN_EXE_gradus"))
            .arg("cc")
            .args(flags.split_whitespace())
            .arg(source.join(format!("{page}.c")))
            .args(["-lm", "-o"])
            .arg(&program)
            .output()
            .expect("gradus runs");
        assert!(made.status.success(), "{page} {flags}\n{}", said(&made));
        let ran = Command::new(&program).output().expect("it runs");
        assert!(ran.status.success(), "{page} {flags}\n{}", said(&ran));
    }
}

macro_rules! pages {
    ($($page:ident),* $(,)?) => { $(
        #[test]
        fn $page() {
            is_right(stringify!($page));
        }
    )* };
}

pages! { picked, loaded, null, functions, copies, in_place, handed, numbers, left, parts }
