//! C and C++ identifiers for a program's names in headers: `b.c`, `.1` or `new` are not identifiers.

use std::collections::BTreeSet;

/// Keywords of C and C++, and macros defined by compilers or by headers included.
const WORDS: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "i386",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "NULL",
    "offsetof",
];

/// Returns true if `name` has the letters of a C identifier.
pub(crate) fn is_identifier(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let mut chars = name.chars();
    chars.next().is_some_and(is_letter) && chars.all(|c| is_letter(c) || c.is_ascii_digit())
}

/// Returns a C identifier that resembles `name`.
pub(crate) fn identifier(name: &str) -> String {
    let mut made = String::new();
    for c in name.chars() {
        match c {
            _ if c.is_ascii_alphanumeric() || c == '_' => made.push(c),
            _ if c.is_ascii() => made.push('_'),
            _ => made.push_str(&format!("u{:x}", u32::from(c))),
        }
    }
    if !made.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        made.insert(0, '_');
    }
    if WORDS.contains(&made.as_str()) {
        made.push('_');
    }
    made
}

/// Returns distinct C identifiers that resemble these names. The earlier of two names keeps its form.
pub(crate) fn distinct(names: Vec<String>) -> Vec<String> {
    let plain: Vec<String> = names.iter().map(|n| identifier(n)).collect();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut made = Vec::new();
    for name in &plain {
        let mut candidate = name.clone();
        let mut number = 2;
        while taken.contains(&candidate) || (candidate != *name && plain.contains(&candidate)) {
            candidate = format!("{name}_{number}");
            number += 1;
        }
        taken.insert(candidate.clone());
        made.push(candidate);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_one_of_c() {
        let made = [".1", "b.c", "new", "x", "", "α", "_ZN1a$LT$T$GT$E", "linux"].map(identifier);
        let expected = [
            "_1",
            "b_c",
            "new_",
            "x",
            "_",
            "u3b1",
            "_ZN1a_LT_T_GT_E",
            "linux_",
        ];
        assert_eq!(made, expected);
        assert!(made.iter().all(|name| is_identifier(name)));
    }

    #[test]
    fn no_two_names_are_alike() {
        let names = ["a.b", "a_b", "a-b", "a_b_2", "x"]
            .map(String::from)
            .to_vec();
        let made = distinct(names);
        assert_eq!(made, ["a_b", "a_b_3", "a_b_4", "a_b_2", "x"]);
    }
}
