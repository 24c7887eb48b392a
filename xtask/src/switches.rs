//! `cargo xtask bench --switches`: benefit of each switch of the tape plan, on a page written for the switch.
//!
//! A page of `bench/switches` has the name of its switch (`--gradus-without=NAME`) and prints the cost of its
//! gradient in bytes and seconds. A wrong gradient, with the switch on or off, fails the command.

use crate::gradus;
use crate::process::{self, Failure, Outcome};
use crate::table::Table;
use crate::workspace;
use std::path::Path;
use std::process::Command;

/// Cost that a page prints.
struct Cost {
    bytes: f64,
    seconds: f64,
}

/// Builds and runs every page with its switch on and off, and prints the table.
///
/// # Errors
/// Fails if a page is refused or has a wrong gradient.
pub fn run() -> Outcome<()> {
    let Some(gradus) = gradus::binary()? else {
        return Err(Failure::new(gradus::NOT_THERE_YET));
    };
    let pages = workspace::root().join("bench/switches");
    let mut names: Vec<String> = std::fs::read_dir(&pages)
        .map_err(|e| e.to_string())?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter_map(|file| Some(file.strip_suffix(".c")?.to_owned()))
        .collect();
    names.sort();
    let folder = workspace::target().join("switches");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let mut table = Table::new(&[
        "switch",
        "bytes on",
        "bytes off",
        "off / on",
        "us on",
        "us off",
        "off / on",
    ]);
    for name in &names {
        eprintln!("{name}");
        let on = cost(&gradus, &pages, &folder, name, None)?;
        let off = cost(&gradus, &pages, &folder, name, Some(name))?;
        table.row(vec![
            name.clone(),
            format!("{:.0}", on.bytes),
            format!("{:.0}", off.bytes),
            ratio(off.bytes, on.bytes),
            format!("{:.1}", on.seconds * 1e6),
            format!("{:.1}", off.seconds * 1e6),
            ratio(off.seconds, on.seconds),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn ratio(off: f64, on: f64) -> String {
    match on > 0.0 {
        true => format!("{:.1}", off / on),
        false => String::new(),
    }
}

fn cost(
    gradus: &Path,
    pages: &Path,
    folder: &Path,
    name: &str,
    without: Option<&str>,
) -> Outcome<Cost> {
    let program = folder.join(name);
    let mut build = Command::new(gradus);
    build
        .args(["cc", "-O3", "-march=native"])
        .arg("-Wl,--wrap=malloc,--wrap=calloc,--wrap=free")
        .arg(pages.join(format!("{name}.c")))
        .arg("-o")
        .arg(&program)
        .arg("-lm");
    if let Some(switch) = without {
        build.arg(format!("--gradus-without={switch}"));
    }
    process::show(&mut build)?;
    let said = process::capture(&mut Command::new(&program))?;
    let words: Vec<&str> = said.split_whitespace().collect();
    let number = |key: &str| -> Option<f64> {
        let at = words.iter().position(|word| *word == key)?;
        words.get(at + 1)?.parse().ok()
    };
    match (number("bytes"), number("seconds")) {
        (Some(bytes), Some(seconds)) => Ok(Cost { bytes, seconds }),
        _ => Err(Failure::new(format!("{name} reports no costs: {said}"))),
    }
}
