//! Splits a C or C++ compilation (`clang -cc1`) into halves: arguments of the front half and of the back half.
//!
//! Flow: [`super::split_compilation`] asks for both. The front half emits bitcode before LLVM's passes.

use super::{DebugDetail, EMITS, without_fast_isel};
use std::path::Path;

/// Options of the back half that concern sources and take the next argument.
const SOURCE_OPTIONS: &[&str] = &[
    "-I",
    "-D",
    "-U",
    "-include",
    "-isystem",
    "-internal-isystem",
    "-internal-externc-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-iprefix",
    "-iwithprefix",
    "-resource-dir",
    "-std",
    "-dependency-file",
    "-MT",
    "-MQ",
    "-MF",
    "-main-file-name",
    "-x",
    "-include-pch",
    "-fmacro-prefix-map",
    "-header-include-file",
];

/// Returns the arguments of the front half.
pub(super) fn front(args: &[String], bitcode: &Path, detail: Option<DebugDetail>) -> Vec<String> {
    let mut out = vec![
        "-cc1".to_string(),
        "-emit-llvm-bc".into(),
        "-disable-llvm-passes".into(),
    ];
    let no_level = args.iter().all(|a| !a.starts_with("-O"));
    // A precompiled header is accepted only at the level of its creation.
    let keeps_level = args.iter().any(|a| a == "-include-pch");
    // At -O0 the front end marks every function `optnone` and omits optimisation facts.
    match keeps_level {
        true => out.push("-disable-O0-optnone".into()),
        false => out.extend(no_level.then(|| "-O2".into())),
    }
    if let Some(detail) = detail {
        let kind = match detail {
            DebugDetail::Lines => "line-tables-only",
            DebugDetail::Types => "constructor",
        };
        out.push(format!("-debug-info-kind={kind}"));
        out.push("-dwarf-version=5".into());
    }
    let mut rest = args.iter().skip(1);
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "-discard-value-names" => {}
            "-split-dwarf-output" => {
                rest.next();
            }
            a if EMITS.contains(&a) => {}
            "-O0" | "-O1" | "-Og" if !keeps_level => out.push("-O2".into()),
            "-o" => {
                rest.next();
                out.extend(["-o".into(), bitcode.display().to_string()]);
            }
            _ => out.push(arg.clone()),
        }
    }
    out
}

/// Returns the arguments of the back half.
pub(super) fn back(args: &[String], derived: &Path) -> Vec<String> {
    let mut out = vec!["-cc1".to_string()];
    // The last argument is the source.
    let mut rest = args[..args.len().saturating_sub(1)].iter().skip(1);
    while let Some(arg) = rest.next() {
        if SOURCE_OPTIONS.contains(&arg.as_str()) {
            rest.next();
        } else if !is_source_option(arg) {
            out.push(arg.clone());
        }
    }
    out.extend(without_fast_isel(args));
    out.extend(["-x".into(), "ir".into(), derived.display().to_string()]);
    out
}

/// Returns true for options of a single word that concern sources, or only affect diagnostics.
fn is_source_option(arg: &str) -> bool {
    let begins = [
        "-std=",
        "-W",
        "-I",
        "-D",
        "-U",
        "-sys-header-deps",
        "-fdeprecated-macro",
        "-pedantic",
    ];
    begins.iter().any(|b| arg.starts_with(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precompiled_header_has_the_level_that_it_was_made_at() {
        for (level, kept) in [("", ""), ("-O0", "-O0"), ("-O1", "-O1"), ("-O3", "-O3")] {
            let args = format!("-cc1 {level} -emit-obj -include-pch h.pch -o a.o -x c a.c");
            let args: Vec<String> = args.split_whitespace().map(String::from).collect();
            let told = front(&args, Path::new("a.bc"), None);
            let said: Vec<&str> = (told.iter().filter(|a| a.starts_with("-O")))
                .map(String::as_str)
                .collect();
            assert_eq!(said.join(" "), kept);
            assert!(told.contains(&"-disable-O0-optnone".to_string()));
        }
    }
}
