//! Requests: what is to be differentiated, found in calls inside bodies ([`calls`]) or asked for by name
//! ([`grad`]).
//!
//! Each becomes a root: a variant with a declared function that others can call before its body exists.
//! Roots of different functions or activities rest on different facts, and so do the variants of callees
//! that they need: between roots no body is shared. A root's function therefore has a symbol of its own,
//! and lends itself the variant's symbol only while its body is made ([`Roots::begin`], [`Roots::end`]).

pub(crate) mod abi;
pub(crate) mod c_layout;
pub(crate) mod c_names;
pub(crate) mod calls;
pub(crate) mod grad;
pub(crate) mod header;
pub(crate) mod rules;

use gradus_ad::{Mode, Variant};
use gradus_ir::{Code, Diagnostic, FuncId, SourceSpan, Unit};
use std::collections::BTreeMap;
use std::ops::Range;

/// A derivative that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// Which.
    pub variant: Variant,
    /// Its function.
    pub func: FuncId,
    /// Where it was asked for first.
    pub span: Option<SourceSpan>,
}

/// All derivatives asked for, in order; equal ones are one.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    /// The derivatives.
    pub list: Vec<Root>,
    /// Findings that are no errors.
    pub notes: Vec<Diagnostic>,
    /// The functions that give the sizes of tapes.
    pub sizes: calls::Sizes,
    /// The sizes of tapes that the program states.
    pub allocated: Vec<calls::Allocated>,
    strong_zero: bool,
    known: BTreeMap<Variant, FuncId>,
}

impl Roots {
    /// No root yet; with `strong_zero`, products are strong in all that will come.
    pub(crate) fn new(strong_zero: bool) -> Self {
        Roots {
            strong_zero,
            ..Roots::default()
        }
    }

    /// The function of a root, declared where it is new.
    pub(crate) fn root(
        &mut self,
        unit: &mut Unit,
        variant: &Variant,
        span: Option<SourceSpan>,
    ) -> FuncId {
        let mut variant = variant.clone();
        variant.strong_zero |= self.strong_zero;
        variant.outermost = true;
        if let Some(&known) = self.known.get(&variant) {
            return known;
        }
        let func = variant.declare(unit);
        set_aside(unit, func);
        self.known.insert(variant.clone(), func);
        self.list.push(Root {
            variant,
            func,
            span,
        });
        func
    }

    /// Refuses return sweeps without `strong_zero` whose augmented run has the word: it says how the return sweep
    /// multiplies.
    pub(crate) fn weaker_sweeps(&self, unit: &Unit) -> Vec<Diagnostic> {
        let key = |variant: &Variant| {
            let args = variant.args.clone();
            (variant.func, variant.width, args, variant.result)
        };
        let of_mode = |mode: Mode, strong: bool| {
            let roots = self.list.iter();
            roots
                .filter(move |root| root.variant.mode == mode && root.variant.strong_zero == strong)
        };
        let weaker = of_mode(Mode::Return, false).filter(|root| {
            let own = key(&root.variant);
            let pairs = |mode, strong| of_mode(mode, strong).any(|r| key(&r.variant) == own);
            pairs(Mode::Augmented, true)
                && !pairs(Mode::Augmented, false)
                && !pairs(Mode::Return, true)
        });
        let refuse = |root: &Root| {
            let function = &unit.functions[root.variant.func];
            let name = function.source_name.as_ref().unwrap_or(&function.name);
            let message = format!(
                "`strong_zero` in the augmented run of `{name}`, and not in its return sweep"
            );
            Diagnostic::error(Code::BadRequest, message)
                .in_function(name)
                .at(root.span.clone(), "asked for here")
                .help("give the word to `__enzyme_reverse`, too")
        };
        weaker.map(refuse).collect()
    }

    /// Lends a root's function the symbol under which its variant is looked up.
    pub(crate) fn begin(unit: &mut Unit, root: &Root) {
        let symbol = root.variant.symbol(unit);
        unit.rename(root.func, symbol);
    }

    /// Takes the variants' symbols off all functions made for a root.
    pub(crate) fn end(unit: &mut Unit, made: &[FuncId]) {
        for &func in made {
            set_aside(unit, func);
        }
        // So do the functions that calls through pointers go by: they lead to these variants.
        let leads = |name: &str| name.starts_with(gradus_ad::CALL_PREFIX);
        let by_address: Vec<FuncId> = (unit.functions.iter())
            .filter(|(_, function)| leads(&function.name))
            .map(|(func, _)| func)
            .collect();
        for func in by_address {
            let name =
                unit.functions[func]
                    .name
                    .replacen(gradus_ad::CALL_PREFIX, "__gradus1_called_", 1);
            let name = unit.fresh_name(&name);
            unit.rename(func, name);
        }
    }
}

/// Gives a function a symbol that no variant is looked up under.
fn set_aside(unit: &mut Unit, func: FuncId) {
    let name = unit.fresh_name(&unit.functions[func].name);
    unit.rename(func, name);
}

/// An argument of the source: one parameter, or several that a structure in registers takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceArgument {
    /// Its name, `arg0` … where the source's is not known.
    pub name: String,
    /// Its parameters.
    pub params: Range<usize>,
}

/// The arguments of a function: parameters of one name in a row belong together.
pub(crate) fn source_arguments(unit: &Unit, func: FuncId) -> Vec<SourceArgument> {
    let function = &unit.functions[func];
    let name = |i: usize| function.param_names.get(i).and_then(Option::as_ref);
    let mut arguments: Vec<SourceArgument> = Vec::new();
    for i in 0..unit.param_types(function.ty).len() {
        match arguments.last_mut() {
            Some(last) if name(i).is_some() && name(i) == name(last.params.start) => {
                last.params.end = i + 1;
            }
            _ => arguments.push(SourceArgument {
                name: name(i).cloned().unwrap_or_else(|| format!("arg{i}")),
                params: i..i + 1,
            }),
        }
    }
    arguments
}
