//! The text form of units (`.gir`): generic and re-readable, so that printing what was parsed
//! gives the same text, and parsing what was printed the same unit.
//!
//! ```text
//! func @sum(%n: i64, %x: ptr) -> f64 {
//!   %r = for %i < %n iter(%acc = 0.0) {
//!     %p = addr inbounds f64, %x, %i
//!     %v = load %p -> f64
//!     %next = fadd %acc, %v
//!     yield %next
//!   }
//!   return %r
//! }
//! ```
//!
//! An op is `results = word flags data operands -> result types !facts {regions}`. Result types
//! stand only where operands do not imply them. A constant stands in the place of its use with
//! its type before it (`i32 3`), which may be missing for `i64`, `f64`, `i1` (`true`) and `ptr`
//! (`null`, `@f`). A region's parameters stand between bars, `{ |%i: i64| … }`; loops with the
//! usual parameters are written `for %i < %n iter(%acc = 0.0)`. Values without a name are
//! numbered. Bodies that break the language's rules can be written too: the rules are the
//! verifier's.
//!
//! Locations, alias scopes, types of alias analysis and attributes are numbered lines at the top.

mod lex;
mod names;
mod parse;
mod parse_body;
mod parse_const;
mod parse_facts;
mod parse_kind;
mod print;
mod print_const;
mod print_kind;
mod print_op;
#[cfg(test)]
mod tests;

pub use parse::parse;
pub use print::{print, print_function};
pub use print_op::OpPrinter;

use crate::{Code, Diagnostic, SourceSpan};

/// How deep types and constants may nest in the text.
const MAX_NESTING: u32 = 200;

/// What could not be read, and where.
#[derive(Clone, Debug)]
struct TextError {
    line: u32,
    column: u32,
    message: String,
}

impl TextError {
    fn diagnostic(self, file: &str) -> Diagnostic {
        let span = SourceSpan {
            file: file.to_string(),
            line: self.line,
            column: self.column,
            called_at: None,
        };
        Diagnostic::error(Code::BadText, self.message)
            .at(Some(span), "here")
            .help("the text form is described in the header of `text/mod.rs` of gradus-ir")
    }
}
