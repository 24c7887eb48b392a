//! The reply of the pipeline: outcome, diagnostics, outputs, and descriptions of the derivatives.

use crate::OutputKind;
use crate::wire::codec;
use crate::wire::report::Report;
use crate::wire::request::Mode;
use gradus_ir::{Diagnostic, Severity};
use serde::{Deserialize, Serialize};

/// The reply to a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The outcome of the request.
    pub outcome: Outcome,
    /// All diagnostics of the run, in a fixed order.
    #[serde(with = "codec::diagnostics")]
    pub diagnostics: Vec<Diagnostic>,
    /// The requested outputs, in the order of the request; empty if the request is refused.
    pub outputs: Vec<Output>,
    /// The report, if requested; empty if the request is refused.
    pub report: Report,
    /// The derivatives requested by name, in the order of the request.
    pub derivatives: Vec<Derivative>,
    /// The functions that the program defines ([`crate::Task::List`]).
    pub functions: Vec<FunctionInfo>,
    /// The number of differentiation calls that were replaced.
    pub calls_replaced: usize,
    /// The program's text after each requested pass.
    pub dumps: Vec<Dump>,
    /// The duration of each pass, in order.
    pub timings: Vec<Timing>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Carried out.
    #[default]
    Ok,
    /// Refused: the diagnostics contain an error, and no output exists.
    Refused,
}

/// An emitted form of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The kind of output.
    pub kind: OutputKind,
    /// The bytes; UTF-8 if text.
    pub bytes: Vec<u8>,
}

/// A derivative, as seen by callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Derivative {
    /// The symbol.
    pub name: String,
    /// The symbol of the primal.
    pub function: String,
    /// The primal's name in the source.
    pub source_name: String,
    /// The mode.
    pub mode: Mode,
    /// The number of simultaneous tangents or cotangents.
    pub width: u32,
    /// The primal's arguments in order.
    pub primal: Vec<Argument>,
    /// The derivative's arguments in order.
    pub arguments: Vec<Argument>,
    /// The results: none, a single value, or the members of `struct NAME_result` in order (`struct f_adj`,
    /// for a VJP called `f_vjp`).
    pub results: Vec<ResultPart>,
    /// The C prototype, without the semicolon.
    pub prototype: String,
    /// The primal's C prototype, without the semicolon.
    pub primal_prototype: String,
    /// The C type of the primal's result.
    pub primal_result: String,
    /// The C type of the derivative's result.
    pub result: String,
    /// The arguments that hold addresses of Fortran descriptors.
    pub descriptors: Vec<String>,
    /// The C definitions of by-value structures without a name in the source.
    pub structures: Vec<String>,
    /// True if the derivative is zero for all arguments.
    pub is_zero: bool,
    /// True if the primal computes in single precision.
    pub computes_single: bool,
}

/// An argument of a function or derivative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// The name in the prototype: a C identifier, unique among the arguments.
    pub name: String,
    /// The name in the source.
    pub source_name: String,
    /// The C type.
    pub c_type: String,
    /// The role.
    pub role: Role,
    /// The description of a Fortran array that a descriptor passes (`x(:)`).
    pub descriptor: Option<Descriptor>,
    /// For a by-value structure in memory with members of a single float type: the C type and the number of
    /// members.
    pub elements: Option<(String, u64)>,
    /// The extents of an array that Fortran passes by address; none for a scalar. `None` in other languages, and
    /// for an array with a descriptor; an extent is `None` unless constant.
    pub shape: Option<Vec<Option<u64>>>,
    /// True if the function may write floats through the argument.
    pub is_written: bool,
}

/// The array that a Fortran descriptor describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// The C type of an element; empty if C has none.
    pub elem: String,
    /// The number of dimensions.
    pub rank: u32,
    /// The form of declaration.
    pub kind: DescriptorKind,
}

/// The form of declaration of an array with a descriptor.
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

/// A part of a derivative's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPart {
    /// The name as a member of the structure.
    pub name: String,
    /// The C type.
    pub c_type: String,
    /// The role.
    pub role: Role,
}

/// The role of an argument or of a part of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Argument `.0` of the primal, unchanged; inactive.
    Inactive(usize),
    /// Argument `.0` of the primal, unchanged; a tangent or adjoint belongs to the argument.
    Active(usize),
    /// The tangent (forward mode) or the memory for the adjoint (reverse mode) of argument `.0`, for batch
    /// element `.1`.
    Shadow(usize, u32),
    /// The cotangent of the result, for a batch element.
    Cotangent(u32),
    /// The primal's result.
    PrimalResult,
    /// The tangent (or shadow) of the result, for a batch element.
    ResultTangent(u32),
    /// The adjoint of argument `.0`, for batch element `.1`.
    Adjoint(usize, u32),
}

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionInfo {
    /// The symbol.
    pub name: String,
    /// The names of the arguments in the source; `arg0` … if unknown.
    pub arguments: Vec<String>,
    /// File and line of the definition, if known.
    pub place: Option<(String, u32)>,
}

/// The program's text after a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// The pass.
    pub pass: String,
    /// LLVM's text, or the text form of bodies, after the pass.
    pub text: String,
}

/// The duration of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// The pass.
    pub pass: String,
    /// In units of the caller's clock; nanoseconds by convention.
    pub duration: u64,
}

impl Role {
    /// Returns the name of the role, and the index of the primal's argument that the role refers to.
    pub fn name_and_argument(self) -> (&'static str, Option<usize>) {
        match self {
            Role::Inactive(i) => ("inactive", Some(i)),
            Role::Active(i) => ("active", Some(i)),
            Role::Shadow(i, _) => ("shadow", Some(i)),
            Role::Cotangent(_) => ("cotangent", None),
            Role::PrimalResult => ("primal result", None),
            Role::ResultTangent(_) => ("result tangent", None),
            Role::Adjoint(i, _) => ("adjoint", Some(i)),
        }
    }
}

impl Reply {
    /// Returns the bytes of an output, if emitted.
    pub fn output(&self, kind: OutputKind) -> Option<&[u8]> {
        let hit = self.outputs.iter().find(|o| o.kind == kind)?;
        Some(&hit.bytes)
    }
    /// Returns the text of an output, if emitted and textual.
    pub fn text(&self, kind: OutputKind) -> Option<&str> {
        std::str::from_utf8(self.output(kind)?).ok()
    }
    /// Returns true if the diagnostics contain an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|d| d.severity == Severity::Error)
    }
}
