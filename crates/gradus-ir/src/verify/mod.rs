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
    LastTerminates = "V001": "a region's last op, and no other, is a terminator";
    OperandCount = "V002": "an op has the number of operands that its row of the op table says";
    ResultCount = "V003": "an op has the number of results that its row of the op table says";
    RegionCount = "V004": "an op has the number of regions that its row says; a switch has one for each of its distinct cases and one for the rest";
    TerminatorFits = "V005": "the root ends in `return`, a loop's region in `repeat`, any other in `yield`; all may end in `unreachable` and `resume`";
    YieldFits = "V006": "a `yield` gives what its op takes: the results, the next carried values, the contributions, or nothing";
    RepeatFits = "V007": "a `repeat` gives a truth value, the next carried values and the results";
    ReturnFits = "V008": "a `return` gives the function's result; in a nested region it stands only behind a must-tail call, and in a parallel one never";
    RegionParams = "V009": "a region takes the parameters that its op gives it, and no others";
    Visible = "V010": "a value is used behind its definition, in the same region or inside it";
    Links = "V011": "ops, regions, results and use lists refer to each other, and no op outside the body uses a value";
    ConstantFits = "V012": "a constant is of a type that can hold it";
    ResultType = "V013": "a result is of the type that the operands imply";
    Arithmetic = "V014": "arithmetic has operands of one integer or one floating-point type, as its operation asks";
    CastFits = "V015": "a conversion goes between types of the kinds, widths and lanes that it is for";
    CompareFits = "V016": "a comparison is of two values of one type: integers or pointers, or floating-point numbers";
    SelectFits = "V017": "a select has a truth value, or one for each lane, and two values of one type";
    LaneFits = "V018": "ops on lanes have vectors, integer indices, and lanes that are there";
    MemberFits = "V019": "a path of indices leads to a member, of the type that is put there";
    Pointer = "V020": "memory is accessed through a pointer, and holds values of types with a size";
    Alignment = "V021": "an alignment is a power of two";
    AddressFits = "V022": "an address is a pointer and integer indices that lead through its type";
    Order = "V023": "an atomic access has an order and a type that its kind allows";
    Signature = "V024": "a call's arguments fit its signature, and its operands its bundles";
    MustTail = "V025": "a must-tail call is followed by the return of its result";
    Pad = "V026": "the second region of an invoke, and no other, begins with a landing pad";
    FlagFits = "V027": "a flag stands only on ops that it says something about";
    Condition = "V028": "an `if` tests a truth value, a `switch` an integer that holds its cases, and loops count integers";
    TaskPlace = "V029": "`spawn` and `sync` stand inside a `scope`";
    RankPlace = "V030": "`barrier`, `share.for` and `single` are reached by every rank: no region of `par.for`, `share.for`, `single`, `critical` or `spawn` lies between them and their `spmd`";
    ParallelShape = "V031": "a parallel op has as many extents as dimensions, and reductions fit their types";
    ValueType = "V032": "a value is of a type that has values";
    SymbolFits = "V033": "a function's body takes its type's parameters, and a global's initial bytes and addresses lie inside it";
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
            let text = format!(
                "`@{}` is declared with a type of no function",
                function.name
            );
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
    let name = function.source_name.as_ref().unwrap_or(&function.name);
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
        let text = "the parameters of the body are not those of the function's type";
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
        fail(format!("`@{}` is aligned to no power of two", global.name));
    }
    let Some(init) = &global.init else {
        // Not an error: the variable has no initial contents.
        return;
    };
    let size = unit.layout.size_bytes(unit, global.ty);
    if init.bytes.len() as u64 != size {
        let given = init.bytes.len();
        fail(format!(
            "`@{}` has {given} initial bytes, its type {size}",
            global.name
        ));
    }
    let pointer = unit.layout.pointer_bytes;
    let outside = |offset: u64| offset.checked_add(pointer).is_none_or(|end| end > size);
    if init.relocations.iter().any(|r| outside(r.offset_bytes)) {
        fail(format!("an address in `@{}` lies outside it", global.name));
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
