//! Lists Gradus's headers, for embedding in the command.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let variable = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let include = variable("CARGO_MANIFEST_DIR").join("../../include");
    println!("cargo:rerun-if-changed={}", include.display());
    let mut files = Vec::new();
    let mut open = vec![include.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("our headers are there") {
            let path = entry.expect("a readable folder").path();
            match path.is_dir() {
                true => open.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&include).unwrap_or(Path::new(""));
        // Writing to a string does not fail.
        let _ = writeln!(list, "({name:?}, include_str!({file:?})),");
    }
    list.push(']');
    fs::write(variable("OUT_DIR").join("headers.rs"), list).expect("written");
}
