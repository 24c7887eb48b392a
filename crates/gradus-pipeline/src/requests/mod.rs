//! Requests for derivatives, read from differentiation calls inside bodies ([`calls`]) or made by name
//! ([`grad`]).
//!
//! Each request becomes a root: a variant with a declared function, callable before its body exists. Roots
//! of different functions or activities rest on different facts, as do the required variants of callees:
//! roots share no bodies. A root's function therefore has a unique symbol, and takes the variant's symbol
//! only while its body is emitted ([`Roots::take_variant_symbol`], [`Roots::release_variant_symbols`]).

pub(crate) mod abi;
pub(crate) mod c_layout;
pub(crate) mod c_names;
pub(crate) mod calls;
pub(crate) mod custom_derivatives;
pub(crate) mod grad;
pub(crate) mod header;
pub(crate) mod in_kernels;
pub(crate) mod library_rules;
pub(crate) mod symbol_lookup;

use gradus_ad::{Mode, Variant};
use gradus_ir::{Code, Diagnostic, FuncId, SourceSpan, Unit};
use std::collections::BTreeMap;
use std::ops::Range;

/// A requested derivative.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// The variant.
    pub variant: Variant,
    /// The declared function.
    pub func: FuncId,
    /// The source location of the first request.
    pub span: Option<SourceSpan>,
}

/// All requested derivatives, in order, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    /// The derivatives.
    pub list: Vec<Root>,
    /// Notes and warnings.
    pub notes: Vec<Diagnostic>,
    /// The functions that return tape sizes.
    pub sizes: calls::Sizes,
    /// The tape sizes stated by the program.
    pub allocated: Vec<calls::StatedTapeSize>,
    strong_zero: bool,
    known: BTreeMap<Variant, FuncId>,
}

impl Roots {
    /// Creates an empty list. With `strong_zero`, products are strong in all roots.
    pub(crate) fn new(strong_zero: bool) -> Self {
        Roots {
            strong_zero,
            ..Roots::default()
        }
    }

    /// Returns the function of a root, and declares it if new.
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
        rename_uniquely(unit, func);
        self.known.insert(variant.clone(), func);
        self.list.push(Root {
            variant,
            func,
            span,
        });
        func
    }

    /// Refuses reverse functions without `strong_zero` whose augmented primal has `strong_zero`: the flag
    /// determines the products of the reverse pass.
    pub(crate) fn strong_zero_mismatches(&self, unit: &Unit) -> Vec<Diagnostic> {
        let key = |variant: &Variant| {
            let args = variant.args.clone();
            (variant.func, variant.width, args, variant.result)
        };
        let of_mode = |mode: Mode, strong: bool| {
            let roots = self.list.iter();
            roots
                .filter(move |root| root.variant.mode == mode && root.variant.strong_zero == strong)
        };
        let weaker = of_mode(Mode::Reverse, false).filter(|root| {
            let own = key(&root.variant);
            let pairs = |mode, strong| of_mode(mode, strong).any(|r| key(&r.variant) == own);
            pairs(Mode::Augmented, true)
                && !pairs(Mode::Augmented, false)
                && !pairs(Mode::Reverse, true)
        });
        let refuse = |root: &Root| {
            let function = &unit.functions[root.variant.func];
            let name = function.display_name();
            let message = format!(
                "the augmented primal of `{name}` has `strong_zero`, but the reverse pass does not"
            );
            Diagnostic::error(Code::BadRequest, message)
                .in_function(name)
                .at(root.span.clone(), "requested here")
                .help("pass `strong_zero` to `__enzyme_reverse`, too")
        };
        weaker.map(refuse).collect()
    }

    /// Renames a root's function to the symbol of its variant, for lookup.
    pub(crate) fn take_variant_symbol(unit: &mut Unit, root: &Root) {
        let symbol = root.variant.symbol(unit);
        unit.rename(root.func, symbol);
    }

    /// Renames all functions emitted for a root, so that lookup of a variant no longer finds them.
    pub(crate) fn release_variant_symbols(unit: &mut Unit, made: &[FuncId]) {
        for &func in made {
            rename_uniquely(unit, func);
        }
        // Functions for calls through pointers are renamed too, since they refer to these variants.
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

/// Renames a function to a symbol that no lookup finds.
fn rename_uniquely(unit: &mut Unit, func: FuncId) {
    let name = unit.fresh_name(&unit.functions[func].name);
    unit.rename(func, name);
}

/// An argument of the source: a parameter, or the several parameters of a structure in registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceArgument {
    /// The name; `arg0` … if the source name is unknown.
    pub name: String,
    /// The parameters.
    pub params: Range<usize>,
}

/// Returns the arguments of a function: consecutive parameters of equal names form an argument.
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
