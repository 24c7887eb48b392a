//! Splits a Fortran compilation into halves, like [`super::cc1`] for C.
//!
//! flang has no option to skip LLVM's passes. The front half uses `-O1`: at `-O0`, flang calls its library
//! for operations otherwise inlined; above `-O1`, loops are unrolled and vectorised.

use super::{DebugDetail, EMITS, without_fast_isel};
use std::path::Path;

/// The first argument of flang's compilations.
pub(super) const FIRST: &str = "-fc1";

/// Options of the front half only that take the next argument.
const SOURCE_OPTIONS: [&str; 6] = [
    "-I",
    "-D",
    "-U",
    "-module-dir",
    "-fintrinsic-modules-path",
    "-x",
];

/// Returns the arguments of the front half.
pub(super) fn front(args: &[String], bitcode: &Path, detail: Option<DebugDetail>) -> Vec<String> {
    let mut out = [FIRST, "-emit-llvm-bc", "-O1"].map(String::from).to_vec();
    let kind = detail.map(|detail| match detail {
        DebugDetail::Lines => "line-tables-only",
        DebugDetail::Types => "standalone",
    });
    out.extend(kind.map(|kind| format!("-debug-info-kind={kind}")));
    let mut rest = args.iter().skip(1);
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "-vectorize-loops" | "-vectorize-slp" | "-fversion-loops-for-stride" => {}
            "-split-dwarf-output" | "-split-dwarf-file" => {
                rest.next();
            }
            a if EMITS.contains(&a) || a.starts_with("-O") => {}
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
    let mut out = vec![FIRST.to_string()];
    // The last argument is the source.
    let mut rest = args[..args.len().saturating_sub(1)].iter().skip(1);
    while let Some(arg) = rest.next() {
        let begins = |start: &&str| arg.starts_with(*start);
        if SOURCE_OPTIONS.contains(&arg.as_str()) {
            rest.next();
        } else if !["-I", "-D", "-U", "-W", "-pedantic"]
            .iter()
            .any(|start| begins(&start))
        {
            out.push(arg.clone());
        }
    }
    out.extend(without_fast_isel(args));
    out.extend(["-x".into(), "ir".into(), derived.display().to_string()]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_half_is_optimised_little_and_the_back_half_as_asked() {
        let whole = "-fc1 -triple t -emit-obj -O3 -vectorize-loops -module-dir mods -I inc -DA=1 -fopenmp -o a.o -x f95 a.f90";
        let words: Vec<String> = whole.split(' ').map(String::from).collect();
        assert_eq!(
            front(&words, Path::new("a.bc"), Some(DebugDetail::Lines)).join(" "),
            "-fc1 -emit-llvm-bc -O1 -debug-info-kind=line-tables-only -triple t -module-dir mods -I inc -DA=1 -fopenmp \
             -o a.bc -x f95 a.f90"
        );
        assert_eq!(
            back(&words, Path::new("d.bc")).join(" "),
            "-fc1 -triple t -emit-obj -O3 -vectorize-loops -fopenmp -o a.o -x ir d.bc"
        );
    }
}
