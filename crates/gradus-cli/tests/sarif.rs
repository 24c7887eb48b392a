//! `--sarif FILE`: the diagnostics of a run as a SARIF log.

use crate::support::{accepts, folder, gradus, refuses, text, write};

/// The log holds the diagnostics of the run, also those of a wrong command line and of a driver.
#[test]
fn diagnostics_are_written_as_a_sarif_log() {
    let at = folder("sarif");
    write(
        &at,
        "f.c",
        "double g(double);\ndouble f(double x) { return g(x); }\n",
    );
    for (line, code, level) in [
        ("grad f.c -f f -o f.o --sarif log.sarif", "GRD0005", "error"),
        ("grad f.c --wrong --sarif=log.sarif", "GRD0035", "error"),
        (
            "grad f.c -f f --message-format=json --sarif=log.sarif",
            "GRD0005",
            "error",
        ),
    ] {
        let said = gradus(&at, line);
        assert!(
            !said.status.success() && text(&said.stderr).contains(code),
            "{line}"
        );
        let bytes = std::fs::read(at.join("log.sarif")).expect("the log");
        let log: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        let result = &log["runs"][0]["results"][0];
        assert_eq!(
            (&result["ruleId"], &result["level"]),
            (&code.into(), &level.into()),
            "{line}"
        );
        std::fs::remove_file(at.join("log.sarif")).expect("removed");
    }
    accepts(&at, "cc -c f.c -o f.o --sarif=log.sarif");
    let bytes = std::fs::read(at.join("log.sarif")).expect("the log");
    let log: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
    let said = refuses(&at, "cc -c f.c -o f.o --sarif=no/log.sarif", "GRD0023");
    assert!(said.contains("no/log.sarif"), "{said}");
}
