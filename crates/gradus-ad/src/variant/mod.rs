//! Variants: the key of a derivative, and its signature.
//!
//! The signature follows from the key alone. A call can therefore be emitted before the derivative's body
//! exists.

pub(crate) mod indirect_calls;
pub(crate) mod inherit;

use gradus_ir::{FuncId, Function, Type, TypeId, Unit};

/// The mode of a derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// JVP: primal and tangents together.
    Forward,
    /// VJP: forward pass and reverse pass in one function.
    Combined,
    /// Augmented primal: the forward pass alone; returns a tape.
    Augmented,
    /// The reverse pass alone; receives the tape.
    Reverse,
}

/// Activity of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArgActivity {
    /// Inactive.
    Const,
    /// A pointer with a shadow.
    Dup,
    /// A pointer whose shadow may be the pointer itself, which then is inactive.
    MaybeDup,
    /// A pointer with a shadow, whose primal contents are not read after the call.
    DupNoNeed,
    /// An active value: with a tangent in forward mode, with a returned adjoint in reverse mode.
    Active,
}

/// Activity of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResultActivity {
    /// Inactive, or no result.
    Const,
    /// A value with a tangent or cotangent.
    Active,
    /// A pointer with a shadow.
    Dup,
    /// An aggregate of pointers with shadows and of values with tangents or cotangents.
    Both,
}

impl ResultActivity {
    /// Returns true if values in the result have tangents or cotangents.
    pub fn is_active(self) -> bool {
        matches!(self, ResultActivity::Active | ResultActivity::Both)
    }
}

/// Aliasing assumption of a derivative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Versions {
    /// A run-time alias check chooses between the other two versions, if profitable.
    #[default]
    RuntimeCheck,
    /// The pointers that the check compares point to disjoint memory.
    Disjoint,
    /// No assumption.
    Plain,
}

/// What forward mode propagates beside each float.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tangents {
    /// Tangents.
    #[default]
    Numbers,
    /// Dependency sets: the inputs on which the float depends, as bits.
    Dependencies,
}

/// Owner of the tape of a split derivative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TapeOwner {
    /// Another derivative, which calls both augmented primal and reverse pass.
    #[default]
    Derivative,
    /// The program: it receives the tape and passes it to the reverse pass.
    Program,
    /// The program, which also provides the memory of the first block.
    UserMemory,
}

/// The key of a derivative.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// The primal.
    pub func: FuncId,
    /// Mode.
    pub mode: Mode,
    /// Number of tangents or cotangents in a batch; at least 1.
    pub width: u32,
    /// Activity per parameter of the primal.
    pub args: Vec<ArgActivity>,
    /// Activity of the result.
    pub result: ResultActivity,
    /// True if the derivative also returns the primal's result.
    pub primal_result: bool,
    /// Per parameter: true if other code may overwrite the memory behind the parameter between forward pass
    /// and reverse pass. Relevant to split mode only.
    pub overwritten: Vec<bool>,
    /// Owner of the tape. Relevant to split mode only.
    pub tape: TapeOwner,
    /// Aliasing assumption. Relevant to derivatives with a reverse pass only.
    pub versions: Versions,
    /// True if adjoint products are strong: zero times anything is zero.
    pub strong_zero: bool,
    /// Relevant to forward mode only.
    pub tangents: Tangents,
    /// True if several runs may add to the same shadow memory concurrently: adds to memory that is not
    /// private to the run are atomic. Relevant to derivatives with a reverse pass only.
    pub concurrent: bool,
    /// True if the program itself calls the derivative: shadows of global variables then start as zero.
    pub outermost: bool,
}

/// Role of a derivative's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamRole {
    /// Parameter of the primal, by index.
    Primal(usize),
    /// Shadow or tangent of a primal parameter, for one batch element.
    Shadow(usize, u32),
    /// Cotangent of the result, for one batch element.
    Cotangent(u32),
    /// The tape.
    Tape,
}

/// Role of a member of a derivative's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultRole {
    /// The tape.
    Tape,
    /// The primal's result.
    Primal,
    /// Shadow or tangent of the result, for one batch element.
    Shadow(u32),
    /// Adjoint of a primal parameter, for one batch element.
    Adjoint(usize, u32),
}

/// Signature of a derivative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Parameters in order.
    pub params: Vec<(ParamRole, TypeId)>,
    /// Members of the result in order. The result type is `void` for no member, the member's type for one
    /// member, and a struct for several members.
    pub results: Vec<(ResultRole, TypeId)>,
    /// Function type.
    pub ty: TypeId,
}

impl Variant {
    /// Returns the signature of the variant.
    pub fn signature(&self, unit: &mut Unit) -> Signature {
        let primal_ty = unit.functions[self.func].ty;
        let primal_result = unit
            .result_type(primal_ty)
            .filter(|ty| !unit.types.is_void(*ty));
        let primal_params = unit.param_types(primal_ty).to_vec();
        let params = self.params(unit, &primal_params, primal_result);
        let results = self.results(unit, &primal_params, primal_result);
        let result_ty = match results.as_slice() {
            [] => unit.types.void(),
            [(_, ty)] => *ty,
            several => {
                let fields = several.iter().map(|(_, ty)| *ty).collect();
                unit.types.tuple(fields)
            }
        };
        let mut ty = unit
            .types
            .func(result_ty, params.iter().map(|(_, ty)| *ty).collect());
        if self.takes_further_args(unit) {
            ty = unit.types.with_varargs(ty);
        }
        Signature {
            params,
            results,
            ty,
        }
    }

    /// Returns true if the derivative takes the primal's variadic arguments: if it has a forward pass.
    pub(crate) fn takes_further_args(&self, unit: &Unit) -> bool {
        unit.types.is_variadic(unit.functions[self.func].ty) && self.mode != Mode::Reverse
    }

    /// Returns true if the derivative may begin with a run-time check that chooses between two versions.
    pub(crate) fn may_have_runtime_check(&self, unit: &Unit) -> bool {
        match self.mode {
            _ if self.takes_further_args(unit) => false,
            Mode::Forward => false,
            Mode::Combined => true,
            Mode::Augmented | Mode::Reverse => self.tape == TapeOwner::Derivative,
        }
    }

    /// Returns true for an augmented primal whose tape begins in memory that the program provides.
    fn writes_to_user_tape(&self) -> bool {
        self.mode == Mode::Augmented && self.tape == TapeOwner::UserMemory
    }

    fn params(
        &self,
        unit: &mut Unit,
        primal_params: &[TypeId],
        primal_result: Option<TypeId>,
    ) -> Vec<(ParamRole, TypeId)> {
        let lanes = 0..self.width;
        let mut params = Vec::new();
        for (i, (&ty, activity)) in primal_params.iter().zip(&self.args).enumerate() {
            params.push((ParamRole::Primal(i), ty));
            let shadowed = match activity {
                ArgActivity::Const => false,
                ArgActivity::Dup | ArgActivity::MaybeDup | ArgActivity::DupNoNeed => true,
                ArgActivity::Active => self.mode == Mode::Forward,
            };
            if shadowed {
                params.extend(lanes.clone().map(|lane| (ParamRole::Shadow(i, lane), ty)));
            }
        }
        let returns = matches!(self.mode, Mode::Combined | Mode::Reverse);
        if let (true, true, Some(ty)) = (returns, self.result.is_active(), primal_result) {
            params.extend(lanes.map(|lane| (ParamRole::Cotangent(lane), ty)));
        }
        if self.mode == Mode::Reverse || self.writes_to_user_tape() {
            params.push((ParamRole::Tape, unit.types.ptr()));
        }
        params
    }

    fn results(
        &self,
        unit: &mut Unit,
        primal_params: &[TypeId],
        primal_result: Option<TypeId>,
    ) -> Vec<(ResultRole, TypeId)> {
        let lanes = 0..self.width;
        let mut results = Vec::new();
        if self.mode == Mode::Augmented && !self.writes_to_user_tape() {
            results.push((ResultRole::Tape, unit.types.ptr()));
        }
        if let Some(ty) = primal_result {
            if self.primal_result && self.mode != Mode::Reverse {
                results.push((ResultRole::Primal, ty));
            }
            let shadow = match self.result {
                ResultActivity::Const => false,
                ResultActivity::Active => self.mode == Mode::Forward,
                ResultActivity::Dup | ResultActivity::Both => self.mode != Mode::Reverse,
            };
            if shadow {
                results.extend(lanes.clone().map(|lane| (ResultRole::Shadow(lane), ty)));
            }
        }
        if matches!(self.mode, Mode::Combined | Mode::Reverse) {
            for (i, &ty) in primal_params.iter().enumerate() {
                if self.args.get(i) == Some(&ArgActivity::Active) {
                    results.extend(lanes.clone().map(|lane| (ResultRole::Adjoint(i, lane), ty)));
                }
            }
        }
        results
    }

    /// Returns the symbol of the derivative: the encoded key and the primal's name.
    pub fn symbol(&self, unit: &Unit) -> String {
        let mode = match self.mode {
            Mode::Forward if self.tangents == Tangents::Dependencies => "dep",
            Mode::Forward => "jvp",
            Mode::Combined => "vjp",
            Mode::Augmented => "aug",
            Mode::Reverse => "ret",
        };
        let args: String = self.args.iter().map(|a| activity_letter(*a)).collect();
        let result = match self.result {
            ResultActivity::Const => 'c',
            ResultActivity::Active => 'a',
            ResultActivity::Dup => 'd',
            ResultActivity::Both => 'b',
        };
        let primal = if self.primal_result { "p" } else { "" };
        let zero = if self.strong_zero { "z" } else { "" };
        let concurrent = if self.concurrent { "k" } else { "" };
        let outermost = if self.outermost { "o" } else { "" };
        let overwritten: String = self
            .overwritten
            .iter()
            .map(|o| if *o { '1' } else { '0' })
            .collect();
        let tape = match self.tape {
            TapeOwner::Derivative => "",
            TapeOwner::Program => "t",
            TapeOwner::UserMemory => "g",
        };
        let name = &unit.functions[self.func].name;
        let versions = match self.versions {
            Versions::RuntimeCheck => "",
            Versions::Disjoint => "f",
            Versions::Plain => "s",
        };
        format!(
            "__gradus1_{mode}{}_{args}_{result}{primal}{zero}{concurrent}{outermost}{tape}{versions}{overwritten}_{name}",
            self.width
        )
    }

    /// Returns the function of the variant, and declares the function if it is new.
    pub fn declare(&self, unit: &mut Unit) -> FuncId {
        let symbol = self.symbol(unit);
        if let Some(func) = unit.function(&symbol) {
            return func;
        }
        let signature = self.signature(unit);
        let func = unit.declare(&symbol, signature.ty, gradus_ir::AttrSet::default());
        let primal = &unit.functions[self.func];
        let (convention, span, source_name) = (
            0,
            primal.span.clone(),
            primal.source_name.clone().or(Some(primal.name.clone())),
        );
        let param_names = self.param_names(primal, &signature);
        let function = &mut unit.functions[func];
        function.param_names = param_names;
        function.convention = convention;
        function.linkage = gradus_ir::Linkage::Internal;
        function.derived_from = Some(self.func);
        function.span = span;
        function.source_name = source_name;
        func
    }

    /// Returns the parameter names for debuggers: the primal's names, with `_adj`, `_tan` or `_shadow`
    /// appended for shadows.
    fn param_names(&self, primal: &Function, signature: &Signature) -> Vec<Option<String>> {
        let beside = match self.mode {
            Mode::Forward if self.tangents == Tangents::Dependencies => "_dep",
            Mode::Forward => "_tan",
            Mode::Combined | Mode::Reverse => "_adj",
            Mode::Augmented => "_shadow",
        };
        let named = |number: usize| primal.param_names.get(number).cloned().flatten();
        let name = |role: &ParamRole| match *role {
            ParamRole::Primal(number) => named(number),
            ParamRole::Shadow(number, 0) => named(number).map(|name| name + beside),
            ParamRole::Shadow(number, lane) => {
                named(number).map(|name| format!("{name}{beside}{lane}"))
            }
            ParamRole::Cotangent(_) => Some("result_adj".to_string()),
            ParamRole::Tape => Some("tape".to_string()),
        };
        signature
            .params
            .iter()
            .map(|(role, _)| name(role))
            .collect()
    }
}

fn activity_letter(activity: ArgActivity) -> char {
    match activity {
        ArgActivity::Const => 'c',
        ArgActivity::Dup => 'd',
        ArgActivity::MaybeDup => 'm',
        ArgActivity::DupNoNeed => 'n',
        ArgActivity::Active => 'a',
    }
}

/// Returns true if values of a type can carry a derivative: floats, and vectors and aggregates of floats.
pub fn carries_float(unit: &Unit, ty: TypeId) -> bool {
    let mut stack = vec![ty];
    while let Some(ty) = stack.pop() {
        match unit.types.get(ty) {
            Type::Float(_) => return true,
            Type::Vector { elem, .. } | Type::Array { elem, .. } => stack.push(*elem),
            Type::Struct { fields, .. } => stack.extend(fields),
            _ => {}
        }
    }
    false
}
