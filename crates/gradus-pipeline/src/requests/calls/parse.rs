//! Parses a differentiation call: from tokens to a variant and a value for each of the derivative's
//! parameters.
//!
//! The arguments of the call are markers and values. An argument of the source may be several of the call
//! (a structure in registers): parameters of equal names form a group, and a marker applies to the whole
//! group. Without a marker a float is `out` in reverse mode and `dup` in forward mode, a pointer is `dup`,
//! an integer `const`. A call that does not fit the function is refused at its line.

mod conflicts;
mod split;

use crate::requests::calls::activity_markers::{Origin, origin, unknown_name};
use crate::requests::source_arguments;
use gradus_ad::{ArgActivity, Mode, ResultActivity, TapeOwner, Variant, carries_float};
use gradus_ir::externals::Marker;
use gradus_ir::{AttrValue, Body, CastOp, Code, Diagnostic, FuncId, Op, Type, TypeId, Unit, Value};
use std::ops::Range;

/// The source of a value for a parameter of the derivative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ArgumentSource {
    /// An argument of the call, converted back from C's default argument promotions.
    Direct(Value),
    /// A load at an offset in bytes from a pointer: the call passes a structure in memory, and the function
    /// takes it in registers.
    At(Value, i64),
    /// The pointer, moved by batch index × stride bytes.
    Strided(Value, Value, u32),
    /// The address of a copy of the structure at this address.
    CopyOf(Value, TypeId),
    /// Fresh memory for a value of this type, never read.
    Scratch(TypeId),
}

/// A parsed differentiation call.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The requested derivative.
    pub variant: Variant,
    /// The value for each parameter of the primal.
    pub primal: Vec<ArgumentSource>,
    /// The shadow or tangent of each parameter of the primal, by batch index.
    pub shadows: Vec<Vec<ArgumentSource>>,
    /// Address and type of the result, if the call returns a structure in memory.
    pub result_place: Option<(Value, TypeId)>,
    /// The cotangents of the result, by batch index; empty means ones.
    pub cotangents: Vec<ArgumentSource>,
    /// The tape argument.
    pub tape: Option<Value>,
    /// The size in bytes of the tape's memory, as stated by the call.
    pub allocated: Option<Value>,
}

/// The kind of request of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestKind {
    /// The derivative.
    pub mode: Mode,
    /// True if the call requests the tape's size instead.
    pub size_only: bool,
}

/// A differentiation call to be parsed.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub unit: &'a Unit,
    pub body: &'a Body,
    pub op: Op,
    pub site: FuncId,
}

impl Call<'_> {
    /// Returns an error at the line of the call.
    pub(crate) fn error(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        let site = &self.unit.functions[self.site];
        let name = site.display_name();
        Diagnostic::error(code, message)
            .in_function(name)
            .at(self.unit.span(self.body.ops[self.op].loc), "requested here")
    }

    /// Returns the type in attribute `name` of argument `index` of the call.
    fn type_attr(&self, index: usize, name: &str) -> Option<TypeId> {
        let attrs = self.body.kind(self.op).call_info()?.attrs?;
        match self.unit.attrs(attrs).param(index, name) {
            Some(AttrValue::Type(ty)) => Some(*ty),
            _ => None,
        }
    }

    /// Returns the arguments, and the address for a structure returned in memory.
    pub(crate) fn arguments(&self) -> (Vec<(usize, Value)>, Option<(Value, TypeId)>) {
        let args = self.unit.call_args(self.body, self.op);
        let numbered = args.iter().copied().enumerate();
        match self.type_attr(0, "sret") {
            Some(ty) if !args.is_empty() => (numbered.skip(1).collect(), Some((args[0], ty))),
            _ => (numbered.collect(), None),
        }
    }
}

/// The diagnostics' word for the argument, in contrast to the shadow.
const ARGUMENT: &str = "the argument";

/// An argument of a call.
#[derive(Clone, Copy)]
enum Token {
    Marker(Marker),
    /// A value, with the size in bytes of the pointee for a structure passed by value in memory.
    Value(Value, Option<u64>),
}

/// Returns the conversion from a promoted argument's type to a parameter's type.
pub(crate) fn conversion(unit: &Unit, from: TypeId, to: TypeId) -> Option<Option<CastOp>> {
    if from == to {
        return Some(None);
    }
    match (unit.types.get(from), unit.types.get(to)) {
        (Type::Float(a), Type::Float(b)) if a.bits() > b.bits() => Some(Some(CastOp::FPTrunc)),
        (Type::Int(32), Type::Int(bits)) if *bits < 32 => Some(Some(CastOp::Trunc)),
        _ => None,
    }
}

struct Parser<'a> {
    call: Call<'a>,
    primal: FuncId,
    reverse: bool,
    asks: RequestKind,
    tokens: Vec<Token>,
    next: usize,
    variant: Variant,
    passed: Vec<ArgumentSource>,
    shadows: Vec<Vec<ArgumentSource>>,
    result_place: Option<(Value, TypeId)>,
    /// The result words of the call.
    on_result: Vec<Marker>,
    /// The words with a value of the call.
    with_value: Vec<Marker>,
    interleaved: bool,
    /// True if an argument was read.
    begun: bool,
    not_overwritten: bool,
    by_reference: Option<u64>,
    cotangents: Vec<ArgumentSource>,
    tape: Option<Value>,
    allocated: Option<Value>,
}

/// Parses the call of `primal`'s derivative. `args` are the arguments after the function.
///
/// # Errors
/// A call that does not fit the function.
pub(crate) fn parse(
    call: Call<'_>,
    primal: FuncId,
    asks: RequestKind,
    args: &[(usize, Value)],
    result_place: Option<(Value, TypeId)>,
) -> Result<Parsed, Diagnostic> {
    let mut parser = Parser {
        call,
        primal,
        reverse: asks.mode != Mode::Forward,
        asks,
        tokens: Vec::new(),
        next: 0,
        variant: Variant {
            func: primal,
            mode: asks.mode,
            width: 1,
            args: Vec::new(),
            result: ResultActivity::Const,
            primal_result: false,
            overwritten: Vec::new(),
            tape: TapeOwner::Derivative,
            versions: Default::default(),
            strong_zero: false,
            tangents: Default::default(),
            concurrent: false,
            outermost: false,
        },
        passed: Vec::new(),
        shadows: Vec::new(),
        result_place,
        on_result: Vec::new(),
        with_value: Vec::new(),
        interleaved: false,
        begun: false,
        not_overwritten: false,
        by_reference: None,
        cotangents: Vec::new(),
        tape: None,
        allocated: None,
    };
    parser.read_tokens(args)?;
    parser.result_parameter()?;
    match asks.size_only && parser.has_no_values() {
        true => parser.read_bare_activities()?,
        false => parser.arguments()?,
    }
    parser.result()?;
    parser.read_after_arguments()?;
    if parser.param_type_attr(0, "sret").is_some() && parser.variant.primal_result {
        return Err(parser.error(
            "`primal_return` does not support a function that returns a structure in memory",
        ));
    }
    Ok(Parsed {
        variant: parser.variant,
        primal: parser.passed,
        shadows: parser.shadows,
        result_place: parser.result_place,
        cotangents: parser.cotangents,
        tape: parser.tape,
        allocated: parser.allocated,
    })
}

impl<'a> Parser<'a> {
    fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.call.error(Code::BadRequest, message)
    }

    fn name(&self) -> &'a str {
        let function = &self.call.unit.functions[self.primal];
        function.display_name()
    }

    fn params(&self) -> &'a [TypeId] {
        let unit = self.call.unit;
        unit.param_types(unit.functions[self.primal].ty)
    }

    /// Returns the type in attribute `name` of parameter `index` of the primal.
    fn param_type_attr(&self, index: usize, name: &str) -> Option<TypeId> {
        let unit = self.call.unit;
        match unit
            .attrs(unit.functions[self.primal].attrs)
            .param(index, name)
        {
            Some(AttrValue::Type(ty)) => Some(*ty),
            _ => None,
        }
    }

    fn param_name(&self, index: usize) -> String {
        let names = &self.call.unit.functions[self.primal].param_names;
        let known = names.get(index).and_then(Clone::clone);
        known.unwrap_or_else(|| format!("arg{index}"))
    }

    /// Returns the names of the function's parameters.
    fn param_list(&self) -> String {
        let names: Vec<String> = (0..self.params().len())
            .map(|i| self.param_name(i))
            .collect();
        match names.is_empty() {
            true => "none".to_string(),
            false => names.join(", "),
        }
    }

    fn read_tokens(&mut self, args: &[(usize, Value)]) -> Result<(), Diagnostic> {
        for &(index, value) in args {
            let token = match origin(self.call.unit, self.call.body, value) {
                Origin::Marker(marker) => Token::Marker(marker),
                Origin::Value => {
                    if let Some(name) = unknown_name(self.call.unit, self.call.body, value) {
                        return Err(unknown_marker(&self.call, name));
                    }
                    let structure = self.call.type_attr(index, "byval");
                    Token::Value(value, structure.map(|ty| self.size_bytes(ty)))
                }
                Origin::Mixed => {
                    let message = format!("argument {index} is a marker on some paths only");
                    return Err(self
                        .error(message)
                        .help("write each marker in the call itself"));
                }
            };
            self.tokens.push(token);
        }
        Ok(())
    }

    /// Handles a structure returned in memory by the primal: the first parameter.
    fn result_parameter(&mut self) -> Result<(), Diagnostic> {
        let Some(ty) = self.param_type_attr(0, "sret") else {
            // Not an error: the function returns no structure in memory.
            return Ok(());
        };
        if self.reverse {
            let message = format!(
                "reverse mode does not support the structure that `{}` returns",
                self.name()
            );
            let help =
                "write the structure through a pointer argument, and pass the pointer as `dup`";
            return Err(self.error(message).help(help));
        }
        let Some((place, _)) = self.result_place.take() else {
            let message = format!(
                "`{}` returns a structure, but the call does not",
                self.name()
            );
            return Err(self.error(message));
        };
        self.passed.push(ArgumentSource::Scratch(ty));
        self.shadows.push(vec![ArgumentSource::Direct(place)]);
        self.variant.args.push(ArgActivity::Dup);
        self.variant.overwritten.push(true);
        Ok(())
    }

    fn arguments(&mut self) -> Result<(), Diagnostic> {
        let mut waiting = Vec::new();
        let mut between = None;
        for argument in source_arguments(self.call.unit, self.primal) {
            if argument.params.start < self.passed.len() {
                continue;
            }
            let marker = self.markers()?;
            let ahead = &self.tokens[self.next..];
            let is_word = |token: &Token| matches!(token, Token::Marker(Marker::Interleave));
            let between = *between.get_or_insert(!self.interleaved && ahead.iter().any(is_word));
            self.interleaved |= between;
            self.begun = true;
            let group = argument.params.clone();
            if self.argument(argument.params, marker)? {
                waiting.push(group);
            }
        }
        if between == Some(true) {
            self.read_interleave()?;
        }
        for group in waiting {
            let lane = self.read_group("the shadow of", &group)?;
            for (index, passed) in group.zip(lane) {
                self.shadows[index] = vec![passed];
            }
        }
        Ok(())
    }

    /// Reads the word between the arguments and the shadows.
    fn read_interleave(&mut self) -> Result<(), Diagnostic> {
        if let Some(Token::Marker(Marker::Interleave)) = self.tokens.get(self.next) {
            self.next += 1;
            return Ok(());
        }
        let message = format!(
            "`interleave` is missing between the arguments of `{}` and the shadows",
            self.name()
        );
        let help = "pass all arguments, `enzyme_interleave`, then all shadows; or pass `enzyme_interleave` before the first argument";
        Err(self.error(message).help(help))
    }

    /// Reads the flags at this position. Returns the activity marker of the next argument, if any.
    fn markers(&mut self) -> Result<Option<Marker>, Diagnostic> {
        let mut activity = None;
        while let Some(&Token::Marker(marker)) = self.tokens.get(self.next) {
            self.next += 1;
            self.record_word(marker)?;
            match marker {
                Marker::Width => self.width()?,
                Marker::PrimalReturn => self.variant.primal_result = true,
                Marker::StrongZero => self.variant.strong_zero = true,
                Marker::Interleave if !self.begun => self.interleaved = true,
                Marker::Interleave => {
                    let message = "`interleave` is between two arguments";
                    let help = "pass `enzyme_interleave` before all arguments, or between the arguments and the shadows";
                    return Err(self.error(message).help(help));
                }
                Marker::NotOverwritten => self.not_overwritten = true,
                Marker::Tape => self.tape = Some(self.tape_value()?),
                Marker::Allocated => self.allocated = Some(self.number("allocated")?),
                Marker::ByReference => {
                    let bytes = self.number("byref")?;
                    let bytes = self.call.body.as_int(self.call.unit, bytes);
                    let bytes = bytes.and_then(|n| u64::try_from(n).ok());
                    self.by_reference =
                        Some(bytes.ok_or_else(|| self.error("`byref` requires a constant"))?);
                }
                Marker::NoFree if self.asks.mode == Mode::Reverse => {
                    let message =
                        "the reverse pass consumes the tape and does not support `nofree`";
                    let help = "remove `nofree`, and call `__enzyme_augmentfwd` again before another reverse pass";
                    return Err(self.call.error(Code::SplitMode, message).help(help));
                }
                Marker::ConstReturn
                | Marker::DupReturn
                | Marker::ActiveReturn
                | Marker::NoReturn => {}
                Marker::NoEffect | Marker::NoFree => {}
                Marker::Unsupported(name) => {
                    let message = format!("the marker `enzyme_{name}` is not supported");
                    let help = "remove the marker; `docs/reference/interface-words.md` lists the supported names";
                    return Err(self
                        .call
                        .error(Code::UnsupportedKeyword, message)
                        .help(help));
                }
                _ if activity.is_some() => {
                    return Err(self.error("two activity markers precede one argument"));
                }
                _ => activity = Some(marker),
            }
        }
        Ok(activity)
    }

    /// Reads the integer after a marker.
    fn number(&mut self, marker: &str) -> Result<Value, Diagnostic> {
        let token = self.tokens.get(self.next).copied();
        self.next += 1;
        match token {
            Some(Token::Value(value, None)) => {
                let ty = self.call.body.ty(value);
                match self.call.unit.types.int_bits(ty) {
                    Some(32 | 64) => Ok(value),
                    _ => Err(self.error(format!("`{marker}` requires a number of bytes"))),
                }
            }
            _ => Err(self.error(format!("`{marker}` requires a number of bytes"))),
        }
    }

    fn width(&mut self) -> Result<(), Diagnostic> {
        let lanes = match self.tokens.get(self.next) {
            Some(Token::Value(value, _)) => self.call.body.as_int(self.call.unit, *value),
            _ => None,
        };
        self.next += 1;
        match lanes.and_then(|n| u32::try_from(n).ok()) {
            Some(lanes @ 1..=64) if self.shadows.iter().all(Vec::is_empty) => {
                self.variant.width = lanes;
                Ok(())
            }
            Some(1..=64) => Err(self.error("`width` follows an argument with a shadow")),
            _ => Err(self.error("`width` requires a constant from 1 to 64")),
        }
    }

    /// Reads the next value.
    fn value(&mut self, what: &str, index: usize) -> Result<(Value, Option<u64>), Diagnostic> {
        let token = self.tokens.get(self.next).copied();
        self.next += 1;
        match token {
            Some(Token::Value(value, by_value)) => Ok((value, by_value)),
            Some(Token::Marker(marker)) => {
                let name = self.param_name(index);
                let message = format!(
                    "expected {what} `{name}`, found the word `{}`",
                    marker.word()
                );
                Err(self.error(message).help(
                    "`gradus_dup` stands before an argument and its shadow: `gradus_dup, x, x_shadow`",
                ))
            }
            None => {
                let message = format!(
                    "{what} `{}` of `{}` is missing",
                    self.param_name(index),
                    self.name()
                );
                Err(self.error(message).help(match what {
                    ARGUMENT => format!(
                        "the arguments of `{}` are {}",
                        self.name(),
                        self.param_list()
                    ),
                    _ => "pass the shadow after the pointer: a pointer without a marker is `dup`"
                        .to_string(),
                }))
            }
        }
    }

    /// Reads an argument. Returns true if the shadow follows later.
    fn argument(
        &mut self,
        group: Range<usize>,
        marker: Option<Marker>,
    ) -> Result<bool, Diagnostic> {
        let strided = matches!(marker, Some(Marker::DupStrided | Marker::DupNoNeedStrided));
        let stride = match strided {
            true => Some(self.value("the stride of the shadows of", group.start)?.0),
            false => None,
        };
        let values = self.read_group(ARGUMENT, &group)?;
        let marker = match marker {
            Some(marker) => marker,
            None => self.default_marker(&group)?,
        };
        let activities = self.activities(&group, marker)?;
        let has_shadow = !matches!(marker, Marker::Const | Marker::Out);
        let mut lanes: Vec<Vec<ArgumentSource>> = Vec::new();
        let later = has_shadow && self.interleaved;
        if later && (stride.is_some() || self.variant.width > 1) {
            return Err(self.error("`interleave` requires exactly one shadow per argument"));
        }
        if later {
            // All shadows follow after all arguments.
        } else if let Some(stride) = stride {
            let base = self.read_group("the shadow of", &group)?;
            let pointer = self.call.unit.types.is_ptr(self.params()[group.start]);
            let (true, [ArgumentSource::Direct(base)]) = (pointer, &base[..]) else {
                return Err(self.error("`dupv` requires a pointer"));
            };
            let base = *base;
            let lane = |lane| vec![ArgumentSource::Strided(base, stride, lane)];
            lanes.extend((0..self.variant.width).map(lane));
        } else if has_shadow {
            for _ in 0..self.variant.width {
                let lane = self.read_group("the shadow of", &group)?;
                if self.reverse && lane.iter().any(|p| matches!(p, ArgumentSource::CopyOf(..))) {
                    let message = format!(
                        "the shadow of `{}` is passed by value",
                        self.param_name(group.start)
                    );
                    return Err(self.error(message).help("pass the address of the shadow"));
                }
                lanes.push(lane);
            }
        }
        for (at, activity) in activities.into_iter().enumerate() {
            let shadowed = match activity {
                ArgActivity::Const => false,
                ArgActivity::Active => !self.reverse,
                _ => true,
            };
            self.passed.push(values[at]);
            self.shadows.push(match shadowed {
                true => lanes.iter().map(|lane| lane[at]).collect(),
                false => Vec::new(),
            });
            self.variant.args.push(activity);
            self.variant.overwritten.push(!self.not_overwritten);
        }
        self.not_overwritten = false;
        self.by_reference = None;
        Ok(later)
    }

    /// Reads a value of fitting type for each parameter of a group.
    fn read_group(
        &mut self,
        what: &str,
        group: &Range<usize>,
    ) -> Result<Vec<ArgumentSource>, Diagnostic> {
        let mut values = Vec::new();
        for index in group.clone() {
            let to = self.params()[index];
            let (value, by_value) = self.value(what, index)?;
            let from = self.call.body.ty(value);
            let taken = self.param_type_attr(index, "byval");
            // The shadow of a structure in memory is given by its address in any case.
            let referred = self.by_reference;
            let by_value = by_value.or(referred.filter(|_| what == ARGUMENT || taken.is_none()));
            if let (Some(given), true) = (referred, what == ARGUMENT) {
                self.check_byref_size(given, group, taken)?;
            }
            values.push(match (by_value, taken) {
                (Some(bytes), Some(taken)) if bytes == self.size_bytes(taken) => {
                    ArgumentSource::CopyOf(value, taken)
                }
                (Some(_), None) if index == group.start && !self.call.unit.types.is_ptr(to) => {
                    let part = |i| ArgumentSource::At(value, 8 * i as i64);
                    return Ok((0..group.len()).map(part).collect());
                }
                (None, Some(_)) if what == ARGUMENT => {
                    return Err(self.misfit(what, index, from, to));
                }
                (None, _) if conversion(self.call.unit, from, to).is_some() => {
                    ArgumentSource::Direct(value)
                }
                _ => return Err(self.misfit(what, index, from, to)),
            });
        }
        Ok(values)
    }

    fn size_bytes(&self, ty: TypeId) -> u64 {
        self.call.unit.layout.size_bytes(self.call.unit, ty)
    }

    fn misfit(&self, what: &str, index: usize, from: TypeId, to: TypeId) -> Diagnostic {
        let unit = self.call.unit;
        let message = format!(
            "{what} `{}` of `{}` has the wrong type: found {}, expected {}",
            self.param_name(index),
            self.name(),
            describe(unit, from),
            describe(unit, to),
        );
        let finding = self
            .error(message)
            .help("cast the argument to the parameter's type in the call");
        // A marker that the program defines as a constant arrives as a number.
        match unit.types.int_bits(from) {
            Some(_) => finding.note(
                "a marker such as `enzyme_dup` is a variable, declared as `extern int enzyme_dup;`",
            ),
            None => finding,
        }
    }

    fn default_marker(&self, group: &Range<usize>) -> Result<Marker, Diagnostic> {
        let unit = self.call.unit;
        let types = &self.params()[group.clone()];
        let floats = types.iter().any(|ty| carries_float(unit, *ty));
        let pointers = types.iter().any(|ty| unit.types.is_ptr(*ty));
        match (floats, pointers) {
            (false, false) => Ok(Marker::Const),
            (true, false) if self.reverse => Ok(Marker::Out),
            (true, true) if self.reverse => {
                let name = self.param_name(group.start);
                Err(self.error(format!(
                    "`{name}` holds pointers and floats and requires an activity marker"
                )))
            }
            _ => Ok(Marker::Dup),
        }
    }

    fn activities(
        &self,
        group: &Range<usize>,
        marker: Marker,
    ) -> Result<Vec<ArgActivity>, Diagnostic> {
        let of_one = |index| self.activity(index, marker, group.len() > 1);
        group.clone().map(of_one).collect()
    }

    fn activity(
        &self,
        index: usize,
        marker: Marker,
        part: bool,
    ) -> Result<ArgActivity, Diagnostic> {
        let unit = self.call.unit;
        let ty = self.params()[index];
        let (float, pointer) = (carries_float(unit, ty), unit.types.is_ptr(ty));
        let name = self.param_name(index);
        match marker {
            Marker::Const => Ok(ArgActivity::Const),
            Marker::Out if !self.reverse => {
                Err(self.error(format!("`out` marks `{name}` in forward mode, which requires `dup`")))
            }
            Marker::Out if float => Ok(ArgActivity::Active),
            Marker::Out if pointer => {
                Err(self.error(format!("`out` marks the pointer `{name}`, which requires `dup`")))
            }
            _ if !float && !pointer && part => Ok(ArgActivity::Const),
            _ if !float && !pointer => {
                Err(self.error(format!("`{name}` is an integer without a derivative and requires `const`")))
            }
            Marker::DupNoNeed | Marker::DupNoNeedStrided if pointer => Ok(ArgActivity::DupNoNeed),
            _ if pointer => Ok(ArgActivity::Dup),
            _ if self.reverse => Err(self.error(format!(
                "`dup` marks the number `{name}` in reverse mode, which requires `out` and returns the adjoint"
            ))),
            _ => Ok(ArgActivity::Active),
        }
    }

    fn result(&mut self) -> Result<(), Diagnostic> {
        let unit = self.call.unit;
        let Some(ty) = unit.result_type(unit.functions[self.primal].ty) else {
            unreachable!("the type of a function is a function type");
        };
        self.record_trailing_words()?;
        self.words_fit_result(ty)?;
        if self.on_result.contains(&Marker::ConstReturn) || unit.types.is_void(ty) {
            return Ok(());
        }
        let dup_return = self.on_result.contains(&Marker::DupReturn);
        let scalar = matches!(unit.types.get(ty), Type::Float(_));
        self.variant.result = match (carries_float(unit, ty), unit.types.is_ptr(ty)) {
            (true, _) if self.reverse && !scalar => {
                let message = format!(
                    "reverse mode does not support the structure that `{}` returns",
                    self.name()
                );
                let help =
                    "write the structure through a pointer argument, and pass the pointer as `dup`";
                return Err(self.error(message).help(help));
            }
            (true, _) => ResultActivity::Active,
            (false, true) if !self.reverse || dup_return => ResultActivity::Dup,
            _ => ResultActivity::Const,
        };
        Ok(())
    }
}

/// Returns the diagnostic on an argument with a marker's prefix that is not a marker.
fn unknown_marker(call: &Call<'_>, name: &str) -> Diagnostic {
    let message = format!("`{name}` is not a marker of the call interface");
    call.error(Code::UnsupportedKeyword, message)
        .help("correct the name; `docs/reference/interface-words.md` lists the supported names")
}

/// Returns a type's name for diagnostics.
fn describe(unit: &Unit, ty: TypeId) -> String {
    match unit.types.get(ty) {
        Type::Int(1) => "a boolean".to_string(),
        Type::Int(bits) => format!("an integer of {bits} bits"),
        Type::Float(kind) => format!("a floating-point number of {} bits", kind.bits()),
        Type::Ptr(_) => "a pointer".to_string(),
        Type::Vector { .. } => "a vector".to_string(),
        _ => "a structure".to_string(),
    }
}
