//! Histogram of a module's operations, for comparing a module before import and after export.
//!
//! An operation is counted by its text with flags, types, attributes, callees and metadata, without value
//! names. All constant operands count alike as values, because a phi of equal constants is exported as the
//! constant. Branches, phis, selectors, returns and landing pads are left out, because restructuring may
//! change them. Numbers of attribute groups and metadata nodes are expanded to their contents, to a fixed
//! depth. A constant address counts by its meaning, a symbol and a byte offset: the unit has one constant
//! for all expressions of an address. Flags of constant addresses are left out, because they state facts
//! about the address only.
use crate::host::ffi::take_message;
use crate::host::module::Host;
use llvm_sys::core::{LLVMCloneModule, LLVMDisposeModule, LLVMPrintModuleToString};
use llvm_sys::prelude::LLVMModuleRef;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Expansion depth of metadata nodes.
const METADATA_DEPTH: usize = 3;
/// Instructions that restructuring may change, by the beginning of their text.
const UNCOUNTED: [&str; 9] = [
    "br ",
    "switch ",
    "phi ",
    "ret ",
    "unreachable",
    "landingpad ",
    "resume ",
    "indirectbr ",
    "callbr ",
];

impl Host {
    /// Counts the operations of the functions accepted by `counted`, by normalised text.
    pub fn census(&self, counted: impl Fn(&str) -> bool) -> BTreeMap<String, usize> {
        let text = self.plain_text();
        let legend = Legend::new(&text);
        let mut census = BTreeMap::new();
        let mut inside = false;
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("define ") {
                inside = counted(&function_name(head));
            } else if line == "}" {
                inside = false;
            } else if let Some(operation) = line.strip_prefix("  ").filter(|_| inside)
                && let Some(key) = legend.key(operation)
            {
                *census.entry(key).or_insert(0) += 1;
            }
        }
        census
    }
}

unsafe extern "C" {
    fn gr_plain_addresses(module: LLVMModuleRef);
}

impl Host {
    /// Returns the module's text with one spelling for each constant address.
    fn plain_text(&self) -> String {
        // SAFETY: the module is live; the clone is private to the function and disposed of here.
        unsafe {
            let copy = LLVMCloneModule(self.module);
            gr_plain_addresses(copy);
            let text = take_message(LLVMPrintModuleToString(copy));
            LLVMDisposeModule(copy);
            without_atom_groups(&text)
        }
    }
}

/// Returns a module's text without atom group numbers in debug locations: cloning a module renumbers atom
/// groups.
fn without_atom_groups(text: &str) -> String {
    let mut parts = text.split(", atomGroup: ");
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        kept.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    kept
}

/// Returns the name of a function from the first line of its definition.
fn function_name(head: &str) -> String {
    let from = head.find('@').map_or(head.len(), |at| at + 1);
    let rest = &head[from..];
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default().to_string(),
        None => rest.split('(').next().unwrap_or_default().to_string(),
    }
}

/// Definitions of the numbered and named entities in a module's text.
struct Legend<'t> {
    attributes: HashMap<&'t str, &'t str>,
    metadata: HashMap<&'t str, &'t str>,
    types: HashSet<&'t str>,
}

impl<'t> Legend<'t> {
    fn new(text: &'t str) -> Legend<'t> {
        let mut legend = Legend {
            attributes: HashMap::new(),
            metadata: HashMap::new(),
            types: HashSet::new(),
        };
        for line in text.lines() {
            let Some((left, right)) = line.split_once(" = ") else {
                continue;
            };
            if let Some(group) = left.strip_prefix("attributes ") {
                legend.attributes.insert(group, right);
            } else if left.starts_with('!') {
                legend.metadata.insert(left, right);
            } else if left.starts_with('%') && right.starts_with("type ") {
                legend.types.insert(left);
            }
        }
        legend
    }

    /// Returns the normalised text of an operation; `None` if the operation does not count.
    fn key(&self, line: &str) -> Option<String> {
        let operation = match line.split_once(" = ") {
            Some((left, right)) if left.starts_with('%') => {
                if left.starts_with("%gradus.selector") {
                    return None;
                }
                right
            }
            _ => line,
        };
        let starts = operation.trim_start();
        let continued = operation.len() != starts.len();
        if continued
            || starts.starts_with(['#', ']'])
            || UNCOUNTED.iter().any(|l| starts.starts_with(l))
        {
            return None;
        }
        let plain = operation.replace("getelementptr inbounds nuw (", "getelementptr (");
        let plain = plain.replace("getelementptr inbounds (", "getelementptr (");
        let plain = plain.replace("getelementptr nuw (", "getelementptr (");
        let indexed = ["extractvalue ", "insertvalue ", "shufflevector "];
        if indexed.iter().any(|i| starts.starts_with(i)) {
            return Some(self.normalised(&plain, 0));
        }
        let (code, notes) = plain.split_once(", !").unwrap_or((&plain, ""));
        let code = without_constants(code);
        let plain = if notes.is_empty() {
            code
        } else {
            format!("{code}, !{notes}")
        };
        Some(self.normalised(&plain, 0))
    }

    fn normalised(&self, text: &str, depth: usize) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['%', '#', '!', '"', ';']) {
            out.push_str(&rest[..at]);
            let token = token(&rest[at..]);
            rest = &rest[at + token.len()..];
            match token.as_bytes()[0] {
                b';' => return out.trim_end().to_string(),
                b'%' if !self.types.contains(token) => out.push('%'),
                b'#' => out.push_str(self.attributes.get(token).unwrap_or(&token)),
                b'!' if depth < METADATA_DEPTH => match self.metadata.get(token) {
                    Some(node) => out.push_str(&self.normalised(node, depth + 1)),
                    None => out.push_str(token),
                },
                b'!' if self.metadata.contains_key(token) => out.push('!'),
                _ => out.push_str(token),
            }
        }
        out.push_str(rest);
        out
    }
}

/// Returns an operation's text with `%` for every simple constant operand: after a scalar type or after a
/// comma. The numbers of a constant address stay, because they identify the address.
fn without_constants(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("getelementptr (") {
        let (before, address) = rest.split_at(at);
        let end = closing(address).unwrap_or(address.len());
        out.push_str(&without_operands(before));
        out.push_str(&address[..end]);
        rest = &address[end..];
    }
    out.push_str(&without_operands(rest));
    out
}

/// Returns the index after the bracket that closes the first bracket of a text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns a fragment of an operation's text with `%` for every simple constant operand.
fn without_operands(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut expected = false;
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end_matches([' ', ',', ')']);
        let number = bare.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let named = [
            "true",
            "false",
            "null",
            "undef",
            "poison",
            "zeroinitializer",
        ]
        .contains(&bare);
        if expected && (number || named) {
            out.push('%');
            out.push_str(&word[bare.len()..]);
        } else {
            out.push_str(word);
        }
        let last = bare
            .trim_start_matches('(')
            .rsplit('(')
            .next()
            .unwrap_or(bare);
        let integer = last
            .strip_prefix('i')
            .is_some_and(|w| w.parse::<u32>().is_ok());
        let attribute = ["noundef", "nonnull", "zeroext", "signext"].contains(&bare);
        let scalar = integer || ["ptr", "float", "double", "half", "x86_fp80"].contains(&last);
        expected = word.ends_with(' ') && (scalar || attribute || bare.len() + 2 == word.len());
    }
    out
}

/// Returns the name, number or string at the beginning of a text.
fn token(text: &str) -> &str {
    let bytes = text.as_bytes();
    let quoted = |from: usize| {
        text[from..]
            .find('"')
            .map_or(text.len(), |end| from + end + 1)
    };
    let end = match (bytes[0], bytes.get(1)) {
        (b';', _) => text.len(),
        (b'"', _) => quoted(1),
        (_, Some(b'"')) => quoted(2),
        _ => {
            let name = |b: &u8| b.is_ascii_alphanumeric() || b"-$._".contains(b);
            1 + bytes[1..].iter().take_while(|b| name(b)).count()
        }
    };
    &text[..end]
}
