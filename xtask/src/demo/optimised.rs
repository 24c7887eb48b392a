//! Stage 4: differentiation of the optimised program, on two small pages. The first compares the operations of
//! a gradient with those of the formula; the second shows a gradient with the expected growth of cost.

use super::{BUILD_LIMIT, Kitchen};
use crate::process::{self, Failure, Outcome};
use crate::workspace;
use std::process::Command;

/// Builds and runs both pages.
///
/// # Errors
/// Fails if Gradus refuses a page or if a page's claim does not hold.
pub fn run(kitchen: &Kitchen) -> Outcome<()> {
    let folder = kitchen.folder.join("optimised");
    std::fs::create_dir_all(&folder).map_err(|e| Failure::new(e.to_string()))?;
    for (name, text) in [
        ("relu3.c", include_str!("relu3.c")),
        ("relu3_hand.c", include_str!("relu3_hand.c")),
        ("norm.c", include_str!("norm.c")),
    ] {
        kitchen.write(&format!("optimised/{name}"), text)?;
    }
    println!(
        "  gradient of x > 0 ? pow(x, 3) : 0 at -O3, compared with the hand-written x > 0 ? 3 * x * x : 0"
    );
    kitchen.gradus(&["cc", "-O3", "-c", "relu3.c", "-o", "relu3.o"], &folder)?;
    let mut clang = Command::new(workspace::clang());
    let clang = clang
        .args(["-O3", "-c", "relu3_hand.c", "-o", "relu3_hand.o"])
        .current_dir(&folder);
    process::within(clang, BUILD_LIMIT)?;
    let mut codes = Vec::new();
    for (object, symbol) in [("relu3.o", "by_gradus"), ("relu3_hand.o", "by_hand")] {
        let mut disassembler = Command::new("llvm-objdump-22");
        disassembler.args([
            "--no-show-raw-insn",
            "--no-addresses",
            &format!("--disassemble-symbols={symbol}"),
            object,
        ]);
        codes.push(instructions(&process::capture(
            disassembler.current_dir(&folder),
        )?));
    }
    println!(
        "    gradus: {}\n    hand:   {}",
        codes[0].join("; "),
        codes[1].join("; ")
    );
    let same = operations(&codes[0]) == operations(&codes[1]);
    println!(
        "    {}\n",
        if same {
            "the same operations"
        } else {
            "DIFFERENT OPERATIONS"
        }
    );
    println!("  out[i] = in[i] / mag(in, n), with mag() inside the loop");
    let mut failed = if same {
        Vec::new()
    } else {
        vec!["relu3".to_owned()]
    };
    for flags in [&[][..], &["-fno-math-errno"]] {
        println!("  {}", ["-O3", &flags.join(" ")].join(" "));
        let arguments = [&["cc", "-O3"][..], flags, &["norm.c", "-lm", "-o", "norm"]].concat();
        let shown = kitchen
            .gradus(&arguments, &folder)
            .and_then(|_| kitchen.show(&folder.join("norm")));
        if let Err(failure) = shown {
            println!("  FAILED: {failure}");
            failed.push(["norm", &flags.join(" ")].join(" "));
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(failed.join(", ")))
    }
}

/// Returns the instructions of a disassembly, without padding.
fn instructions(text: &str) -> Vec<String> {
    let code = text
        .lines()
        .filter(|line| line.starts_with([' ', '\t']))
        .map(str::trim);
    let code = code.map(|line| {
        line.split(['#', '<'])
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    });
    code.filter(|line| !line.is_empty() && !line.starts_with("nop") && !line.starts_with("cs nop"))
        .collect()
}

/// Returns the sorted operations of some instructions, without registers.
fn operations(code: &[String]) -> Vec<&str> {
    let mut operations: Vec<&str> = code
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    operations.sort_unstable();
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disassembly_becomes_operations() {
        let text = "\nrelu3.o:\tfile format elf64-x86-64\n\nDisassembly of section .text:\n\n<by_gradus>:\n\
                    \t\tmulsd\t%xmm0, %xmm1\n   \tmovsd\t0x0(%rip), %xmm1 # 0x8 <f>\n  nopw  (%rax)\n  retq\n";
        let code = instructions(text);
        assert_eq!(
            code,
            ["mulsd %xmm0, %xmm1", "movsd 0x0(%rip), %xmm1", "retq"]
        );
        assert_eq!(operations(&code), ["movsd", "mulsd", "retq"]);
    }
}
