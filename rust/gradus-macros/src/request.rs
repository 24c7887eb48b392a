//! The attribute's arguments and the function, with all checks that need no types.

use crate::activity::{self, Activity, Mode};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    FnArg, Ident, ItemFn, LitInt, Pat, Receiver, ReceiverKind, ReturnType, Safety, Signature,
    Token, TraitItemFn, Type,
};

/// A request of a derivative.
pub struct Request {
    /// The mode.
    pub mode: Mode,
    /// The derivative's name.
    pub name: Ident,
    /// The number of tangents at once, if given.
    pub width: Option<LitInt>,
    /// The function.
    pub function: ItemFn,
    /// The parameters with activities.
    pub parameters: Vec<Parameter>,
    /// The activity and the type of the result; `None` without a result.
    pub result: Option<(Activity, Type)>,
    /// True for a function that is called through `Self`.
    pub is_method: bool,
}

/// A parameter.
pub struct Parameter {
    /// The name in the derivative.
    pub name: Ident,
    /// The type; `None` for `self`.
    pub declared: Option<Type>,
    /// The type of the argument, with `Self` for `self`.
    pub ty: Type,
    /// The activity.
    pub activity: Activity,
}

/// The arguments of an attribute.
struct Arguments {
    name: Ident,
    width: Option<LitInt>,
    words: Vec<Ident>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let expected =
            "the first argument is the name of the derivative: `NAME, Duplicated, Active`";
        if input.is_empty() {
            return Err(syn::Error::new(Span::call_site(), expected));
        }
        let name: Ident = input
            .parse()
            .map_err(|e| syn::Error::new(e.span(), expected))?;
        let (mut width, mut words) = (None, Vec::new());
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if input.peek(LitInt) && words.is_empty() && width.is_none() {
                width = Some(input.parse()?);
                continue;
            }
            words.push(input.parse().map_err(|e| {
                syn::Error::new(
                    e.span(),
                    "expected an activity, such as `Const` or `Duplicated`",
                )
            })?);
        }
        Ok(Arguments { name, width, words })
    }
}

impl Request {
    /// Reads an attribute and the item below.
    ///
    /// # Errors
    /// A mistake, with its place and the remedy.
    pub fn read(mode: Mode, arguments: TokenStream, item: TokenStream) -> syn::Result<Request> {
        let Arguments { name, width, words } = syn::parse2(arguments)?;
        let function = function(mode, item)?;
        check_signature(&function.sig)?;
        check_width(mode, width.as_ref())?;
        let types = parameters(&function.sig)?;
        let result = match &function.sig.output {
            ReturnType::Type(_, ty) if !is_unit(ty) => Some((**ty).clone()),
            _ => None,
        };
        check_count(&function.sig, &name, &words, types.len(), result.is_some())?;
        let mut activities = Vec::new();
        for word in &words {
            activities.push((activity::read(word, mode)?, word));
        }
        let of_result = result.is_some().then(|| activities.pop()).flatten();
        let mut parameters = Vec::new();
        for ((name, declared, ty), (activity, word)) in types.into_iter().zip(activities) {
            check_parameter(mode, width.is_some(), &ty, activity, word)?;
            parameters.push(Parameter {
                name,
                declared,
                ty,
                activity,
            });
        }
        if parameters.iter().all(|p| p.activity == Activity::Const) {
            let message = format!(
                "no parameter of `{}` has a derivative: mark one as `{}` (a float) or `{}` (memory)",
                function.sig.ident,
                mode.of_number(),
                mode.of_memory()
            );
            return Err(syn::Error::new(name.span(), message));
        }
        let result = match (result, of_result) {
            (Some(ty), Some((activity, word))) => {
                check_result(mode, &ty, activity, word)?;
                Some((activity, ty))
            }
            _ => None,
        };
        let is_method = function.sig.receiver().is_some() || mentions_self(&function.sig);
        Ok(Request {
            mode,
            name,
            width,
            function,
            parameters,
            result,
            is_method,
        })
    }
}

/// Returns the function of an item.
fn function(mode: Mode, item: TokenStream) -> syn::Result<ItemFn> {
    if let Ok(function) = syn::parse2::<ItemFn>(item.clone()) {
        return Ok(function);
    }
    if let Ok(declared) = syn::parse2::<TraitItemFn>(item.clone()) {
        let message = format!(
            "`{}` has no body: write the attribute at a free function that calls it",
            declared.sig.ident
        );
        return Err(syn::Error::new(declared.sig.ident.span(), message));
    }
    let name = mode.attribute();
    let message = format!("`{name}` belongs to a function: write it in front of `fn`");
    Err(syn::Error::new(Span::call_site(), message))
}

/// Refuses kinds of functions without derivatives.
fn check_signature(signature: &Signature) -> syn::Result<()> {
    let wrong = |tokens: &dyn ToTokens, message: &str| {
        Err(syn::Error::new(tokens.to_token_stream().span(), message))
    };
    if let Some(word) = &signature.asyncness {
        return wrong(
            word,
            "an `async` function has no derivative: differentiate a synchronous function that it calls",
        );
    }
    if let Safety::Unsafe(word) = &signature.safety {
        return wrong(
            word,
            "an `unsafe` function has no derivative: differentiate a safe function that calls it",
        );
    }
    if let Some(dots) = &signature.variadic {
        return wrong(
            dots,
            "a variadic function has no derivative: differentiate a function that calls it",
        );
    }
    Ok(())
}

fn check_width(mode: Mode, width: Option<&LitInt>) -> syn::Result<()> {
    let Some(width) = width else {
        // Not an error: one tangent.
        return Ok(());
    };
    if mode == Mode::Reverse {
        let message = "`gradus::reverse` has no width: call the derivative once per adjoint";
        return Err(syn::Error::new(width.span(), message));
    }
    match width.base10_parse::<u32>() {
        Ok(1..=64) => Ok(()),
        _ => Err(syn::Error::new(
            width.span(),
            "the width is a number from 1 to 64",
        )),
    }
}

/// Name, declared type and type of a parameter.
type Declared = (Ident, Option<Type>, Type);

fn parameters(signature: &Signature) -> syn::Result<Vec<Declared>> {
    let mut found = Vec::new();
    for (index, parameter) in signature.inputs.iter().enumerate() {
        found.push(match parameter {
            FnArg::Receiver(receiver) => {
                let name = Ident::new("self", receiver.self_token.span);
                (name, None, receiver_type(receiver))
            }
            FnArg::Typed(typed) => {
                let name = match &*typed.pat {
                    // The parameter would hide the function.
                    Pat::Ident(pattern) if pattern.ident == signature.ident => {
                        Ident::new(&format!("{}_", pattern.ident), pattern.ident.span())
                    }
                    Pat::Ident(pattern) => pattern.ident.clone(),
                    other => Ident::new(&format!("argument{index}"), other.span()),
                };
                (name, Some((*typed.ty).clone()), (*typed.ty).clone())
            }
        });
    }
    Ok(found)
}

/// Returns the type of `self`.
fn receiver_type(receiver: &Receiver) -> Type {
    let span = receiver.self_token.span;
    let own = quote::quote_spanned! { span => Self };
    let tokens = match &receiver.kind {
        ReceiverKind::Reference(and, _, mutability) => quote::quote! { #and #mutability #own },
        ReceiverKind::Typed(_, ty) => quote::quote! { #ty },
        _ => own,
    };
    syn::parse2(tokens.clone()).unwrap_or(Type::Verbatim(tokens))
}

/// Refuses a wrong number of activities.
fn check_count(
    signature: &Signature,
    name: &Ident,
    words: &[Ident],
    parameters: usize,
    has_result: bool,
) -> syn::Result<()> {
    let wanted = parameters + usize::from(has_result);
    if words.len() == wanted {
        return Ok(());
    }
    let function = &signature.ident;
    let s = |count: usize| if count == 1 { "" } else { "s" };
    let result = match has_result {
        true => "and a result",
        false => "and no result",
    };
    let activities = match wanted {
        1 => "activity".to_string(),
        _ => "activities".to_string(),
    };
    let message = format!(
        "`{function}` has {parameters} parameter{} {result}: expected {wanted} {activities} after the name, found {}",
        s(parameters),
        words.len()
    );
    // The first superfluous word, or the last word before the gap.
    let place = words.get(wanted).or(words.last()).unwrap_or(name);
    Err(syn::Error::new(place.span(), message))
}

/// Refuses an activity that a parameter's type cannot have.
fn check_parameter(
    mode: Mode,
    is_batch: bool,
    ty: &Type,
    activity: Activity,
    word: &Ident,
) -> syn::Result<()> {
    let wrong = |message: String| Err(syn::Error::new(word.span(), message));
    let shown = shown_type(ty);
    let is_memory = is_memory(ty);
    let by_value = "is passed by value: pass a reference to it, and mark the reference";
    match activity {
        Activity::Const => Ok(()),
        Activity::ActiveOnly | Activity::DualOnly if activity == Activity::ActiveOnly => {
            wrong("`ActiveOnly` belongs to a result: use `Active`".into())
        }
        Activity::Active if is_memory => wrong(format!(
            "`Active` is for `f32` and `f64` by value: use `Duplicated` for `{shown}`"
        )),
        Activity::Duplicated if !is_memory && may_be_number(ty) => wrong(format!(
            "`{word}` is for memory behind a reference: use `Active` for `{shown}`, or pass a reference"
        )),
        Activity::Active | Activity::Duplicated if !is_memory && !may_be_number(ty) => {
            wrong(format!("`{shown}` {by_value} `Duplicated`"))
        }
        Activity::Dual | Activity::DualOnly | Activity::DualBatch
            if !is_memory && !may_be_number(ty) =>
        {
            wrong(format!("`{shown}` {by_value} `{}`", mode.of_memory()))
        }
        Activity::DualBatch if !is_batch => wrong(format!(
            "`{word}` requires a width: `#[gradus::forward(NAME, 4, {word} …)]`"
        )),
        Activity::DualBatch if !is_memory => {
            wrong(format!("`{word}` is for memory: use `Dual` for `{shown}`"))
        }
        Activity::Dual | Activity::DualOnly if is_batch && is_memory => wrong(format!(
            "with a width, `{shown}` is `Dualv`: one slice holds the tangents one after the other"
        )),
        _ => match unsized_target(ty) {
            Some(what) => wrong(format!(
                "{what} cannot have a shadow: use a generic parameter `&T`, or `Const`"
            )),
            None => Ok(()),
        },
    }
}

/// Returns a type as people write it: without the spaces between all tokens.
fn shown_type(ty: &Type) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (spaced, plain) in [
        (" :: ", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ;", ";"),
        (" ,", ","),
    ] {
        text = text.replace(spaced, plain);
    }
    text
}

/// Refuses an activity or a type of the result.
fn check_result(mode: Mode, ty: &Type, activity: Activity, word: &Ident) -> syn::Result<()> {
    if !may_be_number(ty) {
        let message = format!(
            "the result of a differentiated function is `f32`, `f64` or nothing: write other results through `&mut`, as `{}`",
            mode.of_memory()
        );
        return Err(syn::Error::new(ty.span(), message));
    }
    match activity {
        Activity::Duplicated => Err(syn::Error::new(
            word.span(),
            format!("`{word}` is for parameters: mark the result `Active` or `Const`"),
        )),
        Activity::DualBatch => Err(syn::Error::new(
            word.span(),
            format!("`{word}` is for parameters: mark the result `Dual` or `Const`"),
        )),
        _ => Ok(()),
    }
}

/// Returns true for a reference or pointer.
pub fn is_memory(ty: &Type) -> bool {
    match ty {
        Type::Reference(_) | Type::Ptr(_) => true,
        Type::Paren(inner) => is_memory(&inner.elem),
        Type::Group(inner) => is_memory(&inner.elem),
        _ => false,
    }
}

/// Returns true for a type that may name a float: a path without arguments that is not of the standard library.
fn may_be_number(ty: &Type) -> bool {
    const OTHERS: [&str; 15] = [
        "bool", "char", "String", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32",
        "i64", "i128", "isize",
    ];
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            last.arguments.is_empty() && !OTHERS.iter().any(|other| last.ident == other)
        }),
        Type::Paren(inner) => may_be_number(&inner.elem),
        Type::Group(inner) => may_be_number(&inner.elem),
        _ => false,
    }
}

/// Returns the description of a reference's target that has neither size nor elements.
fn unsized_target(ty: &Type) -> Option<&'static str> {
    let Type::Reference(reference) = ty else {
        return None;
    };
    match &*reference.elem {
        Type::TraitObject(_) => Some("a trait object"),
        Type::ImplTrait(_) => Some("`impl Trait`"),
        Type::Path(path) if path.path.is_ident("str") => Some("a string"),
        _ => None,
    }
}

fn is_unit(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// Returns true if a signature names `Self`: the function is in an `impl`.
fn mentions_self(signature: &Signature) -> bool {
    fn any(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(name) => name == "Self",
            proc_macro2::TokenTree::Group(group) => any(group.stream()),
            _ => false,
        })
    }
    any(signature.to_token_stream())
}
