//! Stage 3: the README's example, extracted from the text of the README.

use super::Kitchen;
use crate::process::{self, Failure, Outcome};
use crate::workspace;
use std::process::Command;

/// Runs the example and checks the gradient.
///
/// # Errors
/// Fails if the README has no example, if Gradus refuses the example, or if the gradient is wrong.
pub fn run(kitchen: &Kitchen) -> Outcome<()> {
    let path = workspace::root().join("README.md");
    let text =
        std::fs::read_to_string(&path).map_err(|e| Failure::new(format!("README.md: {e}")))?;
    let example = Example::read(&text)?;
    let folder = kitchen.folder.join("readme");
    std::fs::create_dir_all(&folder).map_err(|e| Failure::new(e.to_string()))?;
    kitchen.write("readme/energy.c", &example.source)?;
    kitchen.write("readme/main.c", include_str!("energy_check.c"))?;
    println!("  $ {}", example.command);
    let arguments: Vec<&str> = example.command.split_whitespace().skip(1).collect();
    print!("{}", indented(&kitchen.gradus(&arguments, &folder)?));
    let mut clang = Command::new(workspace::clang());
    clang
        .args(["-O2", "main.c", "energy.o", "-lm", "-o", "main"])
        .current_dir(&folder);
    process::capture(&mut clang)?;
    kitchen.show(&folder.join("main"))?;
    let check = [
        "check",
        "energy.c",
        "-f",
        "energy",
        "--arg",
        "n=100",
        "--arg",
        "x=rand(n)",
    ];
    println!("  $ gradus {}", check.join(" "));
    print!("{}", indented(&kitchen.gradus(&check, &folder)?));
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Example of the README.
struct Example {
    /// Text of `energy.c`.
    source: String,
    /// Command that differentiates the source.
    command: String,
}

impl Example {
    fn read(text: &str) -> Outcome<Example> {
        let blocks = || text.split("```").skip(1).step_by(2);
        let source = blocks().find_map(|b| b.strip_prefix("c energy.c\n"));
        let command = blocks()
            .filter_map(|b| b.strip_prefix("sh\n"))
            .flat_map(str::lines)
            .find(|line| line.starts_with("gradus grad energy.c"));
        match (source, command) {
            (Some(source), Some(command)) => Ok(Example {
                source: source.to_owned(),
                command: command.trim().to_owned(),
            }),
            _ => Err(Failure::new(
                "the README has no example `energy.c` with a command",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_its_example() {
        let text = std::fs::read_to_string(workspace::root().join("README.md")).unwrap();
        let example = Example::read(&text).unwrap();
        assert!(example.source.contains("double energy(") && example.command.contains("--wrt x"));
        assert!(Example::read("no blocks").is_err());
    }
}
