//! The verifier: numbered rules of the IR, each checked in time near linear in the body's size.
//!
//! The verifier walks the body once in program order (`walk`). The walk checks each op against the op table
//! and the rules of the op's group (`scalar`, `memory`, `calls`, `structure`, `parallel`), and each operand
//! for visibility. A second step checks the use lists (`links`). Ops with a wrong number of operands, results
//! or regions are not checked further. The rules are the rows of [`Rule`] below. No check recurses over
//! region depth.

mod calls;
mod links;
mod memory;
mod parallel;
mod scalar;
mod structure;
#[cfg(test)]
mod tests;
mod walk;

use crate::{
    Body, Code, Const, ConstKind, Diagnostic, FuncId, Global, LocId, Op, OpPrinter, Type, TypeId,
    Unit,
};

macro_rules! rules {
    ($($name:ident = $number:literal: $sentence:literal;)*) => {
        /// The verifier's rules.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule { $(
            #[doc = $sentence]
            $name,
        )* }

        impl Rule {
            /// All rules, in numerical order.
            pub const ALL: &[Rule] = &[$(Rule::$name),*];
            /// Returns the rule's number.
            pub fn number(self) -> &'static str {
                match self { $(Rule::$name => $number),* }
            }
            /// Returns the rule's text.
            pub fn sentence(self) -> &'static str {
                match self { $(Rule::$name => $sentence),* }
            }
        }
    };
}

rules! {
    LastTerminates = "V001": "the last op of a region is the only terminator of the region";
    OperandCount = "V002": "the operand count of an op matches the op table";
    ResultCount = "V003": "the result count of an op matches the op table";
    RegionCount = "V004": "the region count of an op matches the op table; a `switch` has distinct cases, one region per case and a default region";
    TerminatorFits = "V005": "the body ends with `return`, a `loop` region with `repeat`, any other region with `yield`; every region may instead end with `unreachable` or `resume`";
    YieldFits = "V006": "a `yield` passes the values that the enclosing op expects: results, carried values, reduction contributions, or none";
    RepeatFits = "V007": "a `repeat` passes an `i1` condition, the next carried values and the results";
    ReturnFits = "V008": "a `return` passes the function's result; in a nested region, a `return` directly follows a `musttail` call; parallel ops contain no `return`";
    RegionParams = "V009": "the parameters of a region match the values that the owning op passes";
    Visible = "V010": "every use of a value follows the definition, in the same region or in a nested region";
    Links = "V011": "ops, regions, results and use lists are consistent, and no op outside the body uses a value of the body";
    ConstantFits = "V012": "the type of a constant can represent the constant";
    ResultType = "V013": "the result types match the types that the operands imply";
    Arithmetic = "V014": "the operands of arithmetic have one type, integer or floating-point as the operation requires";
    CastFits = "V015": "a cast supports the kinds, widths and lane counts of the source and target types";
    CompareFits = "V016": "the operands of a comparison have one type: integer or pointer for `icmp`, floating-point for `fcmp`";
    SelectFits = "V017": "a `select` has an `i1` condition, or one `i1` per lane, and two values of one type";
    LaneFits = "V018": "vector ops have vector operands, integer indices and lane numbers in range";
    MemberFits = "V019": "an index path selects a member of the aggregate, and an inserted value has the member's type";
    Pointer = "V020": "memory accesses use pointers, and types in memory have a size";
    Alignment = "V021": "an alignment is a power of two";
    AddressFits = "V022": "an `addr` has a pointer base and integer indices that select elements of the source type";
    Order = "V023": "an atomic op has an ordering and a type that the op permits";
    Signature = "V024": "the arguments of a call match the signature, and the bundled operands match the operand bundles";
    MustTail = "V025": "a `return` of the result directly follows a `musttail` call";
    Pad = "V026": "a landing pad is the first op of the unwind region of an invoke, and occurs nowhere else";
    FlagFits = "V027": "an op has only the flags that the op supports";
    Condition = "V028": "an `if` tests an `i1`, a `switch` tests an integer that can represent the cases, and loop extents are integers";
    TaskPlace = "V029": "`spawn` and `sync` are nested in a `scope`";
    RankPlace = "V030": "every rank of the enclosing `spmd` reaches `barrier`, `share.for` and `single`: no `par.for`, `share.for`, `single`, `critical` or `spawn` lies in between";
    ParallelShape = "V031": "a parallel op has one extent per dimension, and reduction operators support the reduced types";
    ValueType = "V032": "the type of a value is neither `void` nor a function type";
    SymbolFits = "V033": "the parameters of a body match the function type, and the initial bytes and relocations of a global match the global's size";
}

/// Verifies a unit; returns one diagnostic per violation.
pub fn verify(unit: &Unit) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for (_, global) in unit.globals.iter() {
        check_global(unit, global, &mut findings);
    }
    for (id, function) in unit.functions.iter() {
        if function.body.is_some() {
            findings.extend(verify_function(unit, id));
        } else if !matches!(unit.types.get(function.ty), Type::Func { .. }) {
            let text = format!("the type of `@{}` is not a function type", function.name);
            findings.push(symbol_finding(&text));
        }
    }
    findings
}

/// Verifies one function; returns one diagnostic per violation, none for a declaration.
pub fn verify_function(unit: &Unit, id: FuncId) -> Vec<Diagnostic> {
    let function = &unit.functions[id];
    let Some(body) = &function.body else {
        return Vec::new();
    };
    let name = function.display_name();
    let mut check = Verifier {
        unit,
        body,
        result: unit.result_type(function.ty),
        name,
        param_names: &function.param_names,
        printer: None,
        findings: Vec::new(),
    };
    let params: Vec<TypeId> = body.params().iter().map(|p| body.ty(*p)).collect();
    if check.result.is_none() || unit.param_types(function.ty) != params {
        let text = "the parameters of the body do not match the function type";
        check.findings.push(symbol_finding(text).in_function(name));
    }
    walk::run(&mut check);
    links::check(&mut check);
    check.findings
}

fn symbol_finding(text: &str) -> Diagnostic {
    let rule = Rule::SymbolFits;
    let message = format!("{}: {}: {text}", rule.number(), rule.sentence());
    Diagnostic::error(Code::BrokenRule, message)
}

fn check_global(unit: &Unit, global: &Global, findings: &mut Vec<Diagnostic>) {
    let mut fail = |text: String| findings.push(symbol_finding(&text));
    if !global.align_bytes.is_power_of_two() {
        fail(format!(
            "the alignment of `@{}` is not a power of two",
            global.name
        ));
    }
    let Some(init) = &global.init else {
        // Not an error: the variable has no initial contents.
        return;
    };
    let size = unit.layout.size_bytes(unit, global.ty);
    if init.bytes.len() as u64 != size {
        let given = init.bytes.len();
        fail(format!(
            "`@{}` has {given} initial bytes, but the type has {size}",
            global.name
        ));
    }
    let pointer = unit.layout.pointer_bytes;
    let outside = |offset: u64| offset.checked_add(pointer).is_none_or(|end| end > size);
    if init.relocations.iter().any(|r| outside(r.offset_bytes)) {
        fail(format!(
            "a relocation of `@{}` lies outside the global",
            global.name
        ));
    }
}

/// The state of the verification of one body.
struct Verifier<'a> {
    unit: &'a Unit,
    body: &'a Body,
    /// The function's result type.
    result: Option<TypeId>,
    name: &'a str,
    param_names: &'a [Option<String>],
    /// The op printer, created for the first diagnostic.
    printer: Option<OpPrinter<'a>>,
    findings: Vec<Diagnostic>,
}

impl<'a> Verifier<'a> {
    /// Reports that `op` breaks `rule`; `detail` is the specific violation.
    fn fail(&mut self, rule: Rule, op: Op, detail: impl Into<String>) {
        let (unit, body, names) = (self.unit, self.body, self.param_names);
        let printer = self
            .printer
            .get_or_insert_with(|| OpPrinter::new(unit, body, names));
        let text = printer.line(op);
        let finding = self.finding(rule, detail.into(), body.ops[op].loc);
        self.findings
            .push(finding.note(format!("the op is `{text}`")));
    }
    /// Reports a violation of `rule` without an op.
    fn fail_without_op(&mut self, rule: Rule, detail: impl Into<String>) {
        let finding = self.finding(rule, detail.into(), None);
        self.findings.push(finding);
    }
    fn finding(&self, rule: Rule, detail: String, loc: Option<LocId>) -> Diagnostic {
        let message = format!("{}: {}: {detail}", rule.number(), rule.sentence());
        Diagnostic::error(Code::BrokenRule, message)
            .in_function(self.name)
            .at(self.unit.span(loc), "here")
    }
    /// Reports that `op` breaks `rule` unless `holds`.
    fn require(&mut self, holds: bool, rule: Rule, op: Op, detail: &str) {
        if !holds {
            self.fail(rule, op, detail);
        }
    }

    // ---- types -----------------------------------------------------------------------------

    fn operand_type(&self, op: Op, index: usize) -> TypeId {
        self.body.ty(self.body.operand(op, index))
    }
    fn result_type(&self, op: Op) -> TypeId {
        self.body.ty(self.body.result(op))
    }
    fn ty(&self, id: TypeId) -> &'a Type {
        self.unit.types.get(id)
    }
    /// Returns whether the type is an integer or a vector of integers.
    fn is_int(&self, id: TypeId) -> bool {
        self.unit.types.int_bits(id).is_some()
    }
    fn is_scalar_int(&self, id: TypeId) -> bool {
        matches!(self.ty(id), Type::Int(_))
    }
    fn is_bool(&self, id: TypeId) -> bool {
        matches!(self.ty(id), Type::Int(1))
    }
    /// Returns whether the type is a float or a vector of floats.
    fn is_float(&self, id: TypeId) -> bool {
        self.unit.types.float_kind(id).is_some()
    }
    fn is_scalar_ptr(&self, id: TypeId) -> bool {
        matches!(self.ty(id), Type::Ptr(_))
    }
    fn is_vector(&self, id: TypeId) -> bool {
        matches!(self.ty(id), Type::Vector { .. })
    }
    /// Returns the number of lanes and whether the vector is scalable; `None` for other types.
    fn lanes(&self, id: TypeId) -> Option<(u32, bool)> {
        match *self.ty(id) {
            Type::Vector { len, scalable, .. } => Some((len, scalable)),
            _ => None,
        }
    }
    /// Returns whether values of the type can be stored in memory.
    fn has_size(&self, id: TypeId) -> bool {
        !matches!(self.ty(id), Type::Void | Type::Func { .. })
    }

    /// Returns whether a constant fits its type.
    fn constant_fits(&self, constant: &Const) -> bool {
        match (&constant.kind, self.ty(constant.ty)) {
            (_, Type::Void | Type::Func { .. }) => false,
            (ConstKind::Int(n), Type::Int(bits)) => *bits >= 128 || n >> bits == 0,
            (ConstKind::Float(n), Type::Float(kind)) => kind.bits() >= 128 || n >> kind.bits() == 0,
            (ConstKind::Int(_) | ConstKind::Float(_), _) => false,
            (ConstKind::Func(_) | ConstKind::Global { .. }, ty) => matches!(ty, Type::Ptr(_)),
            (ConstKind::Aggregate(members), ty) => self.members_fit(members, ty),
            _ => true,
        }
    }
    fn members_fit(&self, members: &[crate::ConstId], ty: &Type) -> bool {
        let mut types = members.iter().map(|m| self.unit.constant(*m).ty);
        match ty {
            Type::Struct { fields, .. } => types.eq(fields.iter().copied()),
            Type::Vector { elem, len, .. } => {
                members.len() as u64 == u64::from(*len) && types.all(|t| t == *elem)
            }
            Type::Array { elem, len } => members.len() as u64 == *len && types.all(|t| t == *elem),
            _ => false,
        }
    }
}
