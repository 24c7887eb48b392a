//! Variants: which derivative of which function, and how it is called.
//!
//! A variant is a key. Its signature follows from the key alone, so that a call can be made before
//! the derivative's body exists.

use gradus_ir::{FuncId, Function, Type, TypeId, Unit};

/// What a derivative does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// JVP: primal and tangents together.
    Forward,
    /// VJP: forward sweep and return sweep in one function.
    Combined,
    /// The forward sweep alone; leaves a tape.
    Augmented,
    /// The return sweep alone; takes the tape.
    Return,
}

/// What an argument is to a derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArgActivity {
    /// Inactive.
    Const,
    /// A pointer with a shadow.
    Dup,
    /// A pointer whose shadow may be the pointer itself, which then is inactive.
    Maybe,
    /// A pointer with a shadow, whose primal contents nobody reads afterwards.
    DupNoNeed,
    /// A value: with a tangent in forward mode, its adjoint is returned in reverse mode.
    Active,
}

/// What the result is to a derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResultActivity {
    /// Inactive, or there is none.
    Const,
    /// A value with a tangent or cotangent.
    Active,
    /// A pointer with a shadow.
    Dup,
    /// An aggregate of both: pointers with shadows, and values with tangents or cotangents.
    Both,
}

impl ResultActivity {
    /// Whether values in it have tangents or cotangents.
    pub fn is_active(self) -> bool {
        matches!(self, ResultActivity::Active | ResultActivity::Both)
    }
}

/// Which assumption about memory a derivative is made under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Versions {
    /// A test at run time picks between the other two, where that pays.
    #[default]
    Test,
    /// The pointers that the test tells apart point to disjoint memory.
    Disjoint,
    /// None.
    Plain,
}

/// In whose hands the tape of a split derivative is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TapeOwner {
    /// In those of another derivative, which calls both sweeps.
    #[default]
    Derivative,
    /// In the program's: it is handed the tape and hands it on.
    Program,
    /// In the program's, which also gives the memory of its first block.
    ProgramsMemory,
}

/// The key of a derivative.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// The primal.
    pub func: FuncId,
    /// What the derivative does.
    pub mode: Mode,
    /// How many tangents or cotangents go along at once; at least 1.
    pub width: u32,
    /// One for each parameter of the primal.
    pub args: Vec<ArgActivity>,
    /// What the result is.
    pub result: ResultActivity,
    /// Whether the derivative returns the primal's result too.
    pub primal_result: bool,
    /// Per parameter: whether the memory behind it may be overwritten between the forward and the
    /// return sweep by somebody else. Matters to split variants only.
    pub overwritten: Vec<bool>,
    /// In whose hands the tape is. Matters to split variants only.
    pub tape: TapeOwner,
    /// Which assumption it is made under; matters to derivatives with a return sweep only.
    pub versions: Versions,
    /// Whether adjoint products are strong: zero times anything is zero.
    pub strong_zero: bool,
    /// Whether several runs of it may add to the same shadow memory at once: adds to memory that is not
    /// its own are atomic. Matters to derivatives with a return sweep only.
    pub concurrent: bool,
    /// Whether the program itself calls it: shadows of global variables then begin as zero.
    pub outermost: bool,
}

/// What a parameter of a derivative is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamRole {
    /// Parameter so-and-so of the primal.
    Primal(usize),
    /// The shadow or tangent of a primal's parameter, in a lane.
    Shadow(usize, u32),
    /// The cotangent of the result, in a lane.
    Cotangent(u32),
    /// The tape.
    Tape,
}

/// A part of what a derivative returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultRole {
    /// The tape.
    Tape,
    /// The primal's result.
    Primal,
    /// The shadow or tangent of the result, in a lane.
    Shadow(u32),
    /// The adjoint of a primal's parameter, in a lane.
    Adjoint(usize, u32),
}

/// How a derivative is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its parameters in order.
    pub params: Vec<(ParamRole, TypeId)>,
    /// The parts of its result in order: none makes `void`, one stands alone, several form a
    /// structure.
    pub results: Vec<(ResultRole, TypeId)>,
    /// The function type.
    pub ty: TypeId,
}

impl Variant {
    /// The signature that follows from this key.
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
            ty = unit.types.with_further_args(ty);
        }
        Signature {
            params,
            results,
            ty,
        }
    }

    /// Whether it takes the primal's further arguments: where it has a forward sweep.
    pub(crate) fn takes_further_args(&self, unit: &Unit) -> bool {
        unit.types.takes_further_args(unit.functions[self.func].ty) && self.mode != Mode::Return
    }

    /// Whether it may begin with a test that decides between two versions of it.
    pub(crate) fn may_test(&self, unit: &Unit) -> bool {
        match self.mode {
            _ if self.takes_further_args(unit) => false,
            Mode::Forward => false,
            Mode::Combined => true,
            Mode::Augmented | Mode::Return => self.tape == TapeOwner::Derivative,
        }
    }

    /// Whether it is an augmented run whose tape begins in memory that the program gives.
    fn fills_given_memory(&self) -> bool {
        self.mode == Mode::Augmented && self.tape == TapeOwner::ProgramsMemory
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
                ArgActivity::Dup | ArgActivity::Maybe | ArgActivity::DupNoNeed => true,
                ArgActivity::Active => self.mode == Mode::Forward,
            };
            if shadowed {
                params.extend(lanes.clone().map(|lane| (ParamRole::Shadow(i, lane), ty)));
            }
        }
        let returns = matches!(self.mode, Mode::Combined | Mode::Return);
        if let (true, true, Some(ty)) = (returns, self.result.is_active(), primal_result) {
            params.extend(lanes.map(|lane| (ParamRole::Cotangent(lane), ty)));
        }
        if self.mode == Mode::Return || self.fills_given_memory() {
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
        if self.mode == Mode::Augmented && !self.fills_given_memory() {
            results.push((ResultRole::Tape, unit.types.ptr()));
        }
        if let Some(ty) = primal_result {
            if self.primal_result && self.mode != Mode::Return {
                results.push((ResultRole::Primal, ty));
            }
            let shadow = match self.result {
                ResultActivity::Const => false,
                ResultActivity::Active => self.mode == Mode::Forward,
                ResultActivity::Dup | ResultActivity::Both => self.mode != Mode::Return,
            };
            if shadow {
                results.extend(lanes.clone().map(|lane| (ResultRole::Shadow(lane), ty)));
            }
        }
        if matches!(self.mode, Mode::Combined | Mode::Return) {
            for (i, &ty) in primal_params.iter().enumerate() {
                if self.args.get(i) == Some(&ArgActivity::Active) {
                    results.extend(lanes.clone().map(|lane| (ResultRole::Adjoint(i, lane), ty)));
                }
            }
        }
        results
    }

    /// The symbol of the derivative: the primal's name and what tells variants apart.
    pub fn symbol(&self, unit: &Unit) -> String {
        let mode = match self.mode {
            Mode::Forward => "jvp",
            Mode::Combined => "vjp",
            Mode::Augmented => "aug",
            Mode::Return => "ret",
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
            TapeOwner::ProgramsMemory => "g",
        };
        let name = &unit.functions[self.func].name;
        let versions = match self.versions {
            Versions::Test => "",
            Versions::Disjoint => "f",
            Versions::Plain => "s",
        };
        format!(
            "__gradus1_{mode}{}_{args}_{result}{primal}{zero}{concurrent}{outermost}{tape}{versions}{overwritten}_{name}",
            self.width
        )
    }

    /// The function of this variant: declared under its symbol where it is new.
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

    /// What a debugger calls the parameters: the primal's names, and these with `_adj`, `_tan` or
    /// `_shadow`.
    fn param_names(&self, primal: &Function, signature: &Signature) -> Vec<Option<String>> {
        let beside = match self.mode {
            Mode::Forward => "_tan",
            Mode::Combined | Mode::Return => "_adj",
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
        ArgActivity::Maybe => 'm',
        ArgActivity::DupNoNeed => 'n',
        ArgActivity::Active => 'a',
    }
}

/// Whether values of a type can carry a derivative by themselves: floats, and vectors and
/// aggregates of them.
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
