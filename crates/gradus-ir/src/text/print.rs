//! The printer of units: layout, types, facts, globals and functions, in the order of the unit.

use super::lex::quoted;
use super::print_const::{TypePrinter, offset_text, sigil};
use super::print_op::{OpPrinter, attrs_number};
use crate::{
    Attr, AttrSet, AttrValue, Entity, FloatKind, FuncId, Function, Global, GlobalId, Initializer,
    Layout, Linkage, SourceSpan, Symbol, Type, TypeId, Unit,
};

/// Returns the text of a unit; [`super::parse()`] is the inverse.
pub fn print(unit: &Unit) -> String {
    let mut out = String::new();
    let types = TypePrinter::new(unit);
    if unit.layout != Layout::default() {
        out.push_str(&format!("layout {}\n", quoted(unit.layout.text())));
    }
    print_types(&mut out, unit, &types);
    print_facts(&mut out, unit, &types);
    for (id, _) in unit.globals.iter() {
        out.push_str(&global_text(unit, &types, id));
    }
    for (id, function) in unit.functions.iter() {
        if function.body.is_some() && !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&print_function(unit, id));
    }
    out
}

/// Returns the text of one function; numbers refer to the unit's facts.
pub fn print_function(unit: &Unit, id: FuncId) -> String {
    let function = &unit.functions[id];
    match &function.body {
        Some(body) => {
            let printer = OpPrinter::new(unit, body, &function.param_names);
            let params: Vec<String> = body.params().iter().map(|p| printer.param(*p)).collect();
            let types: Vec<TypeId> = body.params().iter().map(|p| body.ty(*p)).collect();
            let mut out = String::from("func ");
            let head = head_text(unit, printer.types(), function, &params, &types);
            out.push_str(&head);
            out.push_str(" {\n");
            body_text(&mut out, &printer);
            out
        }
        None => {
            let types = TypePrinter::new(unit);
            let own = unit.param_types(function.ty);
            let params: Vec<String> = own
                .iter()
                .enumerate()
                .map(|(i, ty)| match function.param_names.get(i) {
                    Some(Some(name)) => format!("{}: {}", sigil('%', name), types.text(*ty)),
                    _ => types.text(*ty),
                })
                .collect();
            let head = head_text(unit, &types, function, &params, own);
            format!("declare {head}\n")
        }
    }
}

fn body_text(out: &mut String, printer: &OpPrinter) {
    printer.body(out);
    out.push_str("}\n");
}

/// Returns name, parameters, result and properties of a function.
fn head_text(
    unit: &Unit,
    types: &TypePrinter,
    function: &Function,
    params: &[String],
    param_types: &[TypeId],
) -> String {
    let (result, variadic) = match unit.types.get(function.ty) {
        Type::Func {
            result, variadic, ..
        } => (types.text(*result), *variadic),
        _ => (String::from("void"), false),
    };
    let mut params = params.to_vec();
    params.extend(variadic.then(|| String::from("...")));
    let name = sigil('@', &function.name);
    let mut out = format!("{name}({}) -> {result}", params.join(", "));
    if unit.param_types(function.ty) != param_types {
        out.push_str(&format!(" type {}", types.text(function.ty)));
    }
    out.push_str(linkage_text(function.linkage));
    if function.defined != function.body.is_some() {
        out.push_str(if function.defined { " hosted" } else { " new" });
    }
    if function.convention != 0 {
        out.push_str(&format!(" cc {}", function.convention));
    }
    if let Some(number) = attrs_number(unit, function.attrs) {
        out.push_str(&format!(" #{number}"));
    }
    if let Some(from) = function.derived_from {
        let name = sigil('@', &unit.functions[from].name);
        out.push_str(&format!(" from {name}"));
    }
    if let Some(name) = &function.source_name {
        out.push_str(&format!(" source {}", quoted(name)));
    }
    if let Some(span) = &function.span {
        out.push_str(&format!(" at {}", span_text(span)));
    }
    out
}

fn linkage_text(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::External => "",
        Linkage::Internal => " internal",
        Linkage::LinkOnceOdr => " linkonce_odr",
        Linkage::Interposable => " interposable",
    }
}

fn span_text(span: &SourceSpan) -> String {
    format!("{}:{}:{}", quoted(&span.file), span.line, span.column)
}

fn print_types(out: &mut String, unit: &Unit, types: &TypePrinter) {
    for (id, ty) in unit.types.iter() {
        if let Type::Struct {
            name: Some(_),
            fields,
            packed,
        } = ty
        {
            out.push_str(&format!("type {} = ", types.text(id)));
            types.write_fields(out, fields, *packed);
            out.push('\n');
        }
    }
}

fn print_facts(out: &mut String, unit: &Unit, types: &TypePrinter) {
    let host = |number: Option<u32>| number.map_or(String::new(), |n| format!(" host {n}"));
    for (id, ty) in unit.tbaa_types.iter() {
        let members: Vec<String> = ty
            .members
            .iter()
            .map(|(offset, member)| format!("{offset}: {}", member.index()))
            .collect();
        out.push_str(&format!(
            "tbaa {} = {} ({}){}\n",
            id.index(),
            quoted(&ty.name),
            members.join(", "),
            host(ty.host)
        ));
    }
    for (id, scope) in unit.scopes.iter() {
        out.push_str(&format!(
            "scope {} = {} in {}{}\n",
            id.index(),
            quoted(&scope.name),
            quoted(&scope.domain),
            host(scope.host)
        ));
    }
    for (id, location) in unit.locations.iter() {
        let inlined = location
            .inlined_at
            .map_or(String::new(), |at| format!(" at {}", at.index()));
        out.push_str(&format!(
            "loc {} = {} in {}{inlined}{}\n",
            id.index(),
            span_text(&location.span),
            quoted(&location.function),
            host(location.host)
        ));
    }
    for (id, set) in unit.attr_sets() {
        if let Some(number) = attrs_number(unit, id) {
            out.push_str(&format!("attrs {number} ={}\n", attrs_text(types, set)));
        }
    }
}

fn attrs_text(types: &TypePrinter, set: &AttrSet) -> String {
    let mut out = String::new();
    for (word, list) in [("fn", &set.function), ("result", &set.result)] {
        if !list.is_empty() {
            out.push_str(&format!(" {word}({})", attr_list(types, list)));
        }
    }
    for list in &set.params {
        out.push_str(&format!(" param({})", attr_list(types, list)));
    }
    out
}

fn attr_list(types: &TypePrinter, list: &[Attr]) -> String {
    let texts: Vec<String> = list
        .iter()
        .map(|attr| {
            let name = match super::names::is_attribute_word(&attr.name) {
                true => attr.name.clone(),
                false => quoted(&attr.name),
            };
            match &attr.value {
                AttrValue::Flag => name,
                AttrValue::Int(n) => format!("{name} = {n}"),
                AttrValue::Text(text) => format!("{name} = {}", quoted(text)),
                AttrValue::Type(ty) => format!("{name} = type {}", types.text(*ty)),
                AttrValue::Host(n) => format!("{name} = host {n}"),
            }
        })
        .collect();
    texts.join(", ")
}

// ---- globals -------------------------------------------------------------------------------

fn global_text(unit: &Unit, types: &TypePrinter, id: GlobalId) -> String {
    let global = &unit.globals[id];
    let name = sigil('@', &global.name);
    let mut out = format!("global {name}: {}", types.text(global.ty));
    out.push_str(linkage_text(global.linkage));
    for (set, word) in [
        (!global.defined, " extern"),
        (global.constant, " const"),
        (global.thread_local, " thread_local"),
    ] {
        if set {
            out.push_str(word);
        }
    }
    if u64::from(global.align_bytes) != unit.layout.align_bytes(unit, global.ty) {
        out.push_str(&format!(" align {}", global.align_bytes));
    }
    if let Some(from) = global.derived_from {
        let name = sigil('@', &unit.globals[from].name);
        out.push_str(&format!(" from {name}"));
    }
    if !global.unparsed_symbols.is_empty() {
        let names: Vec<String> = (global.unparsed_symbols.iter())
            .map(|symbol| symbol_text(unit, *symbol))
            .collect();
        out.push_str(&format!(" unread({})", names.join(", ")));
    }
    if global.room_bytes > 0 {
        out.push_str(&format!(" room {}", global.room_bytes));
    }
    if let Some(init) = &global.init {
        out.push_str(&format!(" = {}", init_text(unit, global, init)));
    }
    out.push('\n');
    out
}

fn symbol_text(unit: &Unit, symbol: Symbol) -> String {
    let name = match symbol {
        Symbol::Func(func) => &unit.functions[func].name,
        Symbol::Global(global) => &unit.globals[global].name,
    };
    sigil('@', name)
}

fn init_text(unit: &Unit, global: &Global, init: &Initializer) -> String {
    let mut out = bytes_text(unit, global.ty, &init.bytes);
    if !init.relocations.is_empty() {
        let texts: Vec<String> = init
            .relocations
            .iter()
            .map(|r| {
                let name = symbol_text(unit, r.target);
                format!("{}: {name}{}", r.offset_bytes, offset_text(r.addend))
            })
            .collect();
        out.push_str(&format!(" relocations({})", texts.join(", ")));
    }
    out
}

/// Returns the text of initial bytes: numbers for numeric types, hexadecimal otherwise.
fn bytes_text(unit: &Unit, ty: TypeId, bytes: &[u8]) -> String {
    if bytes.iter().all(|b| *b == 0) {
        return format!("zero {}", bytes.len());
    }
    if let Some(texts) = numbers(unit, ty, bytes) {
        return format!("[{}]", texts.join(", "));
    }
    let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("hex {}", quoted(&digits))
}

/// Returns the numbers in the bytes of a scalar or scalar array; `None` if numbers would lose information.
fn numbers(unit: &Unit, ty: TypeId, bytes: &[u8]) -> Option<Vec<String>> {
    let (elem, count) = super::parse::number_array(unit, ty)?;
    let size = unit.layout.store_bytes(unit, elem) as usize;
    if !unit.layout.little_endian || bytes.len() as u64 != count.checked_mul(size as u64)? {
        return None;
    }
    bytes
        .chunks_exact(size)
        .map(|chunk| {
            let mut word = [0u8; 8];
            word[..size].copy_from_slice(chunk);
            let bits = u64::from_le_bytes(word);
            match unit.types.get(elem) {
                Type::Float(FloatKind::F64) => finite(f64::from_bits(bits)),
                Type::Float(FloatKind::F32) => {
                    let x = f32::from_bits(bits as u32);
                    x.is_finite().then(|| format!("{x:?}"))
                }
                _ => {
                    let unused = 64 - 8 * size as u32;
                    Some((((bits << unused) as i64) >> unused).to_string())
                }
            }
        })
        .collect()
}

fn finite(x: f64) -> Option<String> {
    x.is_finite().then(|| format!("{x:?}"))
}
