//! The text form of units (`.gir`), generic and re-readable: printing and parsing are inverse.
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
//! The syntax of an op is `results = keyword flags data operands -> result types !facts {regions}`. Result
//! types are printed only if the operands do not imply the types. A constant is written at the use, after the
//! constant's type (`i32 3`). The type may be omitted for `i64`, `f64`, `i1` (`true`) and `ptr` (`null`,
//! `@f`). A region's parameters are enclosed in bars, `{ |%i: i64| … }`. Loops with the standard parameters
//! have the form `for %i < %n iter(%acc = 0.0)`. Unnamed values are numbered. The text form can also express
//! bodies that break the verifier's rules.
//!
//! Locations, alias scopes, TBAA types and attribute sets are numbered lines at the top.

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

/// The maximum nesting depth of types and constants in the text.
const MAX_NESTING: u32 = 200;

/// A syntax error with the position.
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
            .help("the header of `text/mod.rs` in gradus-ir describes the text form")
    }
}
