//! What the pipeline answers: outcome, findings, outputs, and facts about the derivatives made.

use crate::OutputKind;
use crate::request::Mode;
use crate::wire;
use gradus_ir::{Diagnostic, Severity};
use serde::{Deserialize, Serialize};

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether the request was carried out.
    pub outcome: Outcome,
    /// All findings of the run, in a fixed order.
    #[serde(with = "wire::diagnostics")]
    pub diagnostics: Vec<Diagnostic>,
    /// What was asked for, in the order of the request; empty where the request is refused.
    pub outputs: Vec<Output>,
    /// The derivatives made under names of their own, in the order of the request.
    pub derivatives: Vec<Derivative>,
    /// The functions that the program defines ([`crate::Task::List`]).
    pub functions: Vec<FunctionInfo>,
    /// The number of differentiation calls that were replaced.
    pub calls_replaced: usize,
    /// The program's text after the passes asked for.
    pub dumps: Vec<Dump>,
    /// How long each pass took, in order.
    pub timings: Vec<Timing>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Carried out.
    #[default]
    Ok,
    /// Refused: there is an error among the diagnostics, and no output.
    Refused,
}

/// An emitted form of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Which.
    pub kind: OutputKind,
    /// Its bytes; UTF-8 where it is text.
    pub bytes: Vec<u8>,
}

/// A derivative, as callers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Derivative {
    /// Its symbol.
    pub name: String,
    /// The symbol of the function that was differentiated.
    pub function: String,
    /// That function's name in the source.
    pub source_name: String,
    /// The direction.
    pub mode: Mode,
    /// The number of tangents or cotangents that go along at once.
    pub width: u32,
    /// The function's own arguments in order.
    pub primal: Vec<Argument>,
    /// The derivative's arguments in order.
    pub arguments: Vec<Argument>,
    /// What it returns: nothing, one value, or the members of `struct NAME_result` in order
    /// (`struct f_adj`, for a VJP called `f_vjp`).
    pub results: Vec<Part>,
    /// Its C prototype, without the semicolon.
    pub prototype: String,
    /// The function's own C prototype, without the semicolon.
    pub primal_prototype: String,
    /// The arguments that are addresses of Fortran descriptors.
    pub descriptors: Vec<String>,
    /// The definitions in C of structures by value for which the source has no name.
    pub structures: Vec<String>,
    /// True if the derivative is zero for all arguments.
    pub is_zero: bool,
}

/// An argument of a function or derivative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// The name in the prototype: a C identifier that no other argument has.
    pub name: String,
    /// The name in the source.
    pub source_name: String,
    /// Its C type.
    pub c_type: String,
    /// What it is.
    pub role: Role,
    /// The description of a Fortran array that a descriptor passes (`x(:)`).
    pub descriptor: Option<Descriptor>,
    /// Of a structure that is passed by value in memory and consists of numbers of one type: that
    /// type in C, and how many.
    pub elements: Option<(String, u64)>,
}

/// The array that a Fortran descriptor describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// The C type of an element; empty if C has none.
    pub elem: String,
    /// The number of dimensions.
    pub rank: u32,
    /// The form of its declaration.
    pub kind: DescriptorKind,
}

/// The form in which an array with a descriptor was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DescriptorKind {
    /// `x(:)`: the caller's shape.
    AssumedShape,
    /// `allocatable`.
    Allocatable,
    /// `pointer`.
    Pointer,
    /// `x(..)`.
    AssumedRank,
}

/// A part of what a derivative returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name as a member of the structure.
    pub name: String,
    /// Its C type.
    pub c_type: String,
    /// What it is.
    pub role: Role,
}

/// What an argument or a part of a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Argument so-and-so of the primal, as it is; inactive.
    Inactive(usize),
    /// Argument so-and-so of the primal, as it is; a tangent or adjoint belongs to it.
    Active(usize),
    /// The tangent (forward) or the memory for the adjoint (reverse) of argument so-and-so, in a
    /// lane.
    Shadow(usize, u32),
    /// The cotangent of the result, in a lane.
    Cotangent(u32),
    /// The primal's result.
    PrimalResult,
    /// The tangent (or shadow) of the result, in a lane.
    ResultTangent(u32),
    /// The adjoint of argument so-and-so, in a lane.
    Adjoint(usize, u32),
}

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionInfo {
    /// Its symbol.
    pub name: String,
    /// What the source calls its arguments, else `arg0` ….
    pub arguments: Vec<String>,
    /// File and line of its definition, where known.
    pub place: Option<(String, u32)>,
}

/// The program's text after a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// The pass.
    pub pass: String,
    /// LLVM's text or the text form of bodies, as the program stood then.
    pub text: String,
}

/// How long a pass took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// The pass.
    pub pass: String,
    /// In units of the caller's clock; nanoseconds by custom.
    pub duration: u64,
}

impl Reply {
    /// The bytes of an output, if it was made.
    pub fn output(&self, kind: OutputKind) -> Option<&[u8]> {
        let hit = self.outputs.iter().find(|o| o.kind == kind)?;
        Some(&hit.bytes)
    }
    /// The text of an output, if it was made and is text.
    pub fn text(&self, kind: OutputKind) -> Option<&str> {
        std::str::from_utf8(self.output(kind)?).ok()
    }
    /// Whether an error was found.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|d| d.severity == Severity::Error)
    }
}
