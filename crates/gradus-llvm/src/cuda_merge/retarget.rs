//! Retargets the text of a device module to the host.
//!
//! LLVM cannot change address spaces of an existing module, but the text can be parsed under another
//! layout. The text loses its triple, layout, address spaces, the kernels' calling convention and the
//! target's attributes; GPU builtins are renamed to the runtime's names.
//!
//! # Invariants
//! Quoted text (strings, metadata, quoted symbols) does not change, except whole symbols.

use crate::cuda_merge::builtin_names;
use crate::cuda_merge::builtin_names::HELPERS;
use gradus_ir::externals::{
    DEVICE_PREFIX, KERNEL_PREFIX, SHARED_DYNAMIC_PREFIX, SHARED_PREFIX, VARIABLE_PREFIX,
};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// A device module for the host.
#[derive(Debug, Default)]
pub(super) struct Retargeted {
    /// Its text.
    pub text: String,
    /// The kernels, by their names in the device half.
    pub kernels: Vec<String>,
    /// GPU intrinsics without a counterpart.
    pub unknown: Vec<String>,
    /// The target architecture: `80` for `sm_80`.
    pub architecture: u64,
}

fn architecture(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("\"target-cpu\"=\"sm_")?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

/// Rewrites a device module's text for `triple` and `layout`.
pub(super) fn retarget(text: &str, triple: &str, layout: &str, separate: bool) -> Retargeted {
    let mut out = Retargeted {
        architecture: architecture(text).unwrap_or(70),
        ..Retargeted::default()
    };
    let symbols = symbols(text, &mut out.kernels, separate);
    let kept_flags = debug_flags(text);
    let mut declared = HashSet::new();
    for line in text.lines() {
        if line.starts_with("target datalayout") {
            let _ = writeln!(out.text, "target datalayout = \"{layout}\"");
        } else if line.starts_with("target triple") {
            let _ = writeln!(out.text, "target triple = \"{triple}\"");
        } else if line.starts_with("!llvm.module.flags") {
            let _ = writeln!(
                out.text,
                "!llvm.module.flags = !{{{}}}",
                kept_flags.join(", ")
            );
        } else if !DROPPED.iter().any(|start| line.starts_with(start)) {
            let mut scan = Scan {
                line,
                at: 0,
                out: String::with_capacity(line.len()),
                symbols: &symbols,
                unknown: &mut out.unknown,
            };
            scan.run();
            let new = scan.out;
            if let Some(rest) = new.strip_prefix("declare ") {
                let name = symbol_in(rest).map(str::to_string);
                if !name.is_none_or(|name| declared.insert(name)) || is_helper(rest) {
                    continue;
                }
            }
            out.text.push_str(&new);
            out.text.push('\n');
        }
    }
    out.text.push_str(HELPERS);
    out.unknown.sort();
    out.unknown.dedup();
    out
}

/// Beginnings of lines that are dropped.
const DROPPED: [&str; 5] = [
    "!llvm.ident",
    "!nvvm.annotations",
    "!nvvmir.version",
    "@llvm.",
    "$",
];

/// Returns whether [`HELPERS`] defines a declared function.
fn is_helper(declaration: &str) -> bool {
    let name = symbol_in(declaration).unwrap_or_default();
    !name.is_empty() && HELPERS.contains(&format!(" {name}("))
}

/// Returns the new names of symbols, by their old spelling in the text.
fn symbols(text: &str, kernels: &mut Vec<String>, separate: bool) -> HashMap<String, String> {
    let mut symbols = HashMap::new();
    for line in text.lines() {
        if line.starts_with("define ") && line.contains(" ptx_kernel ") {
            if let Some(name) = symbol_in(line) {
                kernels.push(symbol_name(name).to_string());
                symbols.insert(name.to_string(), prefixed(KERNEL_PREFIX, name));
            }
        } else if separate
            && (line.starts_with("define ") || line.starts_with("declare "))
            && let Some(name) = symbol_in(line)
            && is_external_function(line, symbol_name(name))
        {
            symbols.insert(name.to_string(), prefixed(DEVICE_PREFIX, name));
        } else if line.starts_with('@')
            && let Some(name) = symbol_in(line)
            && let Some(prefix) = variable_prefix(line)
        {
            symbols.insert(name.to_string(), prefixed(prefix, name));
        }
    }
    symbols
}

/// Returns whether a C++ function is defined in exactly one translation unit.
fn is_external_function(line: &str, name: &str) -> bool {
    let head = line.split('@').next().unwrap_or(line);
    let own = ["internal", "private", "linkonce", "weak", "available"];
    let is_own = |word: &str| own.iter().any(|start| word.starts_with(start));
    is_external(name) && !head.split(' ').any(is_own)
}

/// Returns whether a C++ name has external linkage and is no allocation function.
pub(super) fn is_external(name: &str) -> bool {
    let hidden = ["_ZL", "_ZZ", "_ZN12_GLOBAL__N_1", "_ZGV"];
    let allocates = ["_Znw", "_Zna", "_Zdl", "_Zda"];
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    name.starts_with("_Z") && !begins(&hidden) && !begins(&allocates)
}

/// Returns the name prefix of a variable by its address space.
fn variable_prefix(line: &str) -> Option<&'static str> {
    let rest = &line[symbol_in(line)?.len()..];
    let head = rest.split('"').next().unwrap_or(rest);
    let external = head.contains("= external ") || head.contains("extern_weak ");
    if head.contains("addrspace(3) ") {
        Some(if external {
            SHARED_DYNAMIC_PREFIX
        } else {
            SHARED_PREFIX
        })
    } else if !head.contains("extern_weak ")
        && (head.contains("addrspace(1) ") || head.contains("addrspace(4) "))
    {
        Some(VARIABLE_PREFIX)
    } else {
        None
    }
}

/// Returns a quoted symbol with a prefix before its name.
fn prefixed(prefix: &str, symbol: &str) -> String {
    format!("@\"{prefix}{}\"", symbol_name(symbol))
}

/// Returns the name in a symbol's spelling.
fn symbol_name(symbol: &str) -> &str {
    symbol.trim_start_matches('@').trim_matches('"')
}

/// Returns the first symbol of a line, with `@`.
fn symbol_in(line: &str) -> Option<&str> {
    let start = line.find('@')?;
    Some(&line[start..start + symbol_length(&line[start..])])
}

/// Returns the length of the symbol at the beginning of `text`.
fn symbol_length(text: &str) -> usize {
    if let Some(rest) = text.strip_prefix("@\"") {
        return rest.find('"').map_or(text.len(), |end| end + 3);
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-$._".contains(c);
    let end = text[1..].find(|c: char| !is_name(c));
    end.map_or(text.len(), |end| end + 1)
}

/// Returns the module flags that describe the debug information.
fn debug_flags(text: &str) -> Vec<&str> {
    let says = |line: &&str| {
        line.contains("!\"Debug Info Version\"") || line.contains("!\"Dwarf Version\"")
    };
    let nodes = text
        .lines()
        .filter(|line| line.starts_with('!'))
        .filter(says);
    nodes.filter_map(|line| line.split(' ').next()).collect()
}

/// The rewriting of a line.
struct Scan<'a> {
    line: &'a str,
    at: usize,
    out: String,
    symbols: &'a HashMap<String, String>,
    unknown: &'a mut Vec<String>,
}

/// Dropped keywords, with the space after them.
const WORDS: [&str; 3] = ["ptx_kernel", "ptx_device", "externally_initialized"];

impl Scan<'_> {
    fn run(&mut self) {
        let constant = self.line.starts_with('@') && self.line.contains("addrspace(4) ");
        if self.line.starts_with("attributes #") {
            self.attributes();
            return;
        }
        while let Some(c) = self.line[self.at..].chars().next() {
            let rest = &self.line[self.at..];
            match c {
                ';' => return,
                '"' => self.copy(rest[1..].find('"').map_or(rest.len(), |end| end + 2)),
                '@' => self.symbol(symbol_length(rest)),
                ',' if rest.starts_with(", !invariant.load !") => {
                    let number = &rest[19..];
                    let digits = number.find(|c: char| !c.is_ascii_digit());
                    self.at += 19 + digits.unwrap_or(number.len());
                }
                _ if c.is_ascii_alphabetic() || c == '_' => self.word(rest, constant),
                // Names and numbers are copied whole: a keyword inside a name is no keyword.
                '%' | '!' | '#' | '$' => self.copy(1 + word_length(&rest[1..])),
                _ if c.is_ascii_digit() => self.copy(word_length(rest)),
                _ => self.copy(c.len_utf8()),
            }
        }
    }

    fn copy(&mut self, length: usize) {
        let end = (self.at + length).min(self.line.len());
        self.out.push_str(&self.line[self.at..end]);
        self.at = end;
    }

    fn word(&mut self, rest: &str, constant: bool) {
        let word = &rest[..word_length(rest)];
        match word {
            "addrspacecast" => {
                self.out.push_str("bitcast");
                self.at += word.len();
            }
            "addrspace" => {
                let end = rest.find(')').map_or(rest.len(), |end| end + 1);
                self.at += end;
                self.skip_space();
                self.trim_before_closing(&rest[end..]);
            }
            "comdat" => {
                // `comdat` follows a comma on a variable, and a space on a function.
                let length = self.out.strip_suffix(", ").map(str::len);
                self.out.truncate(length.unwrap_or(self.out.len()));
                self.at += word.len();
                if self.line[self.at..].starts_with('(') {
                    self.at += self.line[self.at..].find(')').map_or(0, |end| end + 1);
                }
                if length.is_none() {
                    self.skip_space();
                }
            }
            "constant" if constant => {
                self.out.push_str("global");
                self.at += word.len();
            }
            _ if WORDS.contains(&word) => {
                self.at += word.len();
                self.skip_space();
            }
            _ => self.copy(word.len()),
        }
    }

    fn skip_space(&mut self) {
        if self.line[self.at..].starts_with(' ') {
            self.at += 1;
        }
    }

    /// Removes the space between a type and a closing token after its address space was removed.
    fn trim_before_closing(&mut self, rest: &str) {
        if rest.starts_with([',', ')', '>', ']', '}', '(']) || rest.is_empty() {
            self.out.truncate(self.out.trim_end().len());
        }
    }

    fn symbol(&mut self, length: usize) {
        let old = &self.line[self.at..self.at + length];
        self.at += length;
        if let Some(new) = self.symbols.get(old) {
            self.out.push_str(new);
        } else if let Some(new) = builtin_names::builtin_name(old) {
            self.out.push_str(new);
        } else if let Some(rest) = old.strip_prefix("@llvm.nvvm.") {
            self.unknown.push(rest.to_string());
            self.out.push_str(old);
        } else if old.starts_with("@llvm.") {
            self.out.push_str(&in_address_space_zero(old));
        } else {
            self.out.push_str(old);
        }
    }

    /// Rewrites an attribute group without the target's attributes.
    fn attributes(&mut self) {
        let mut rest = self.line;
        while let Some(start) = rest.find('"') {
            let key_end = start + 1 + rest[start + 1..].find('"').unwrap_or(0);
            let key = &rest[start + 1..key_end];
            let mut end = key_end + 1;
            if rest[end..].starts_with("=\"") {
                end += 2 + rest[end + 2..].find('"').unwrap_or(0) + 1;
            }
            self.out.push_str(&rest[..start]);
            if key.starts_with("nvvm.") {
                self.out.push_str(&rest[start..end]);
            }
            rest = &rest[end..];
        }
        self.out.push_str(rest);
    }
}

/// Returns the length of the word at the beginning of `text`.
fn word_length(text: &str) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.-$".contains(c);
    text.find(|c: char| !is_word(c)).unwrap_or(text.len())
}

/// Returns an intrinsic's name with all pointers in address space 0.
fn in_address_space_zero(name: &str) -> String {
    let part = |part: &str| match part.strip_prefix('p') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            "p0".to_string()
        }
        _ => part.to_string(),
    };
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(text: &str) -> String {
        let out = retarget(text, "t", "l", false).text;
        out.strip_suffix(HELPERS).unwrap_or(&out).to_string()
    }

    #[test]
    fn address_spaces_vanish_strings_stay() {
        let text = text_of(
            "@s = linkonce_odr addrspace(3) global [4 x float] undef, comdat, align 4\n\
             @c = addrspace(4) externally_initialized constant float 0.0\n\
             @t = private constant [3 x i8] c\"addrspace(3) @s\"\n  \
             %1 = load ptr addrspace(3), ptr addrspacecast (ptr addrspace(3) @s to ptr), !invariant.load !4\n",
        );
        assert_eq!(
            text,
            "@\"__gr_shared.s\" = linkonce_odr global [4 x float] undef, align 4\n\
             @\"__gr_variable.c\" = global float 0.0\n\
             @t = private constant [3 x i8] c\"addrspace(3) @s\"\n  \
             %1 = load ptr, ptr bitcast (ptr @\"__gr_shared.s\" to ptr)\n"
        );
    }

    #[test]
    fn external_device_symbols_are_renamed() {
        let text = "@v = external addrspace(1) global i32\n\
                    define dso_local float @_Z1ff(float %0) {\n  %2 = call float @_Z1gf(float %0)\n}\n\
                    define internal float @_ZL1hf(float %0) {\n\
                    define linkonce_odr float @_Z1if(float %0) {\n\
                    declare float @_Z1gf(float)\ndeclare ptr @_Znwm(i64)\n";
        let renamed = |separate| retarget(text, "t", "l", separate).text;
        for name in ["f", "g"] {
            let new = format!("@\"__gr_device._Z1{name}f\"(");
            assert!(renamed(true).contains(&new), "{}", renamed(true));
            assert!(!renamed(false).contains(&new));
        }
        for same in ["@_ZL1hf(", "@_Z1if(", "@_Znwm("] {
            assert!(renamed(true).contains(same), "{}", renamed(true));
        }
        assert!(renamed(false).contains("@\"__gr_variable.v\" = external global i32"));
    }

    #[test]
    fn kernels_and_builtins_are_renamed() {
        let out = retarget(
            "$_Z1kv = comdat any\n\
             define dso_local ptx_kernel void @_Z1kv() #0 comdat {\n  \
             %1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x() ; here\n  \
             call void @llvm.nvvm.tma.x(i32 0)\n}\n\
             declare void @llvm.memcpy.p3.p0.i64(ptr)\n\
             declare void @llvm.memcpy.p0.p3.i64(ptr)\n\
             attributes #0 = { nounwind \"nvvm.maxntid\"=\"64\" \"target-cpu\"=\"sm_70\" }\n",
            "t",
            "l",
            false,
        );
        assert_eq!(out.kernels, ["_Z1kv"]);
        assert_eq!(out.unknown, ["tma.x"]);
        let lines: Vec<&str> = out.text.lines().collect();
        assert_eq!(
            lines[0],
            "define dso_local void @\"__gr_kernel._Z1kv\"() #0 {"
        );
        assert_eq!(lines[1].trim_end(), "  %1 = call i32 @__gr_tid_x()");
        assert_eq!(lines[4], "declare void @llvm.memcpy.p0.p0.i64(ptr)");
        assert!(lines[5].contains("maxntid") && !lines[5].contains("sm_70"));
    }
}
