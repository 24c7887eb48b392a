//! The derivative function of a request.

use crate::activity::{Activity, Mode};
use crate::request::{Parameter, Request, is_memory};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{FnArg, GenericParam, PointerMutability, Type, TypeReference};

/// Returns the derivative function.
///
/// The function is not inlined: the passes analyse the function that holds a request, and a caller may catch panics or
/// run other code.
pub fn tokens(request: &Request) -> TokenStream {
    let function = &request.function;
    let (name, visibility) = (&request.name, &function.vis);
    let conditions = function.attrs.iter().filter(|a| a.path().is_ident("cfg"));
    let (_, _, bounds) = function.sig.generics.split_for_impl();
    let generics = &function.sig.generics.params;
    let parts: Vec<Part> = request
        .parameters
        .iter()
        .map(|p| part(request, p))
        .collect();
    let declared = declared_parameters(request, &parts);
    let seed = seed(request);
    let output = output(request, &parts);
    let documentation = format!(
        "Derivative of `{}`, by `{}`.",
        function.sig.ident,
        request.mode.attribute()
    );
    let generics = match generics.is_empty() {
        true => quote! {},
        false => quote! { <#generics> },
    };
    let parameters = declared.iter().chain(&seed);
    let body = body(request, &parts);
    quote! {
        #[doc = #documentation]
        #(#conditions)*
        #[allow(clippy::all, unused_mut, unused_variables)]
        #[inline(never)]
        #visibility fn #name #generics (#(#parameters),*) -> #output #bounds {
            #body
        }
    }
}

/// What a parameter contributes to the derivative.
struct Part {
    /// The parameter of the shadow.
    shadow: Option<TokenStream>,
    /// Statements before the request.
    before: TokenStream,
    /// The argument with the shadow.
    pair: Option<TokenStream>,
    /// The parameter of the closure.
    inner: Option<TokenStream>,
    /// The argument of the function.
    passed: TokenStream,
    /// The adjoint to return, and the type.
    returned: Option<(TokenStream, TokenStream)>,
}

fn part(request: &Request, parameter: &Parameter) -> Part {
    let (name, ty) = (&parameter.name, &parameter.ty);
    let span = name.span();
    let text = name.to_string();
    let shadow = shadow_name(request, &text, span);
    let inside = format_ident!("inner_{}", text, span = span);
    match parameter.activity {
        Activity::Const => {
            let passed = match ty {
                Type::Reference(r) if r.mutability.is_some() => quote! { &mut *#name },
                Type::Reference(_) => quote! { #name },
                _ => quote_spanned! { span => ::gradus::internal::copied(&#name) },
            };
            Part {
                shadow: None,
                before: quote! {},
                pair: None,
                inner: None,
                passed,
                returned: None,
            }
        }
        _ if !is_memory(ty) => number(request, parameter, &shadow, &inside),
        _ => {
            let tangent = shadow_type(request, ty);
            let length = match (vector_like(ty), &request.width) {
                (true, None) => {
                    quote! { ::gradus::internal::same_length(#text, #name.len(), #shadow.len()); }
                }
                _ => quote! {},
            };
            let pair = match &request.width {
                Some(width) => {
                    quote! { ::gradus::internal::batch(#text, #name, #shadow, #width) }
                }
                None => quote! { ::gradus::internal::pair(#text, #name, #shadow) },
            };
            Part {
                shadow: Some(quote! { #shadow: #tangent }),
                before: length,
                pair: Some(pair),
                inner: Some(quote! { #inside: #ty }),
                passed: quote! { #inside },
                returned: None,
            }
        }
    }
}

/// Returns the part of a float by value: the request passes the address.
fn number(request: &Request, parameter: &Parameter, shadow: &Ident, inside: &Ident) -> Part {
    let (name, ty) = (&parameter.name, &parameter.ty);
    let (span, text) = (name.span(), name.to_string());
    let zero = quote_spanned! { span => <#ty as ::gradus::internal::Output>::ZERO };
    let is_float = quote_spanned! { span => ::gradus::internal::is_float::<#ty>(); };
    let inner = Some(quote! { #inside: &#ty });
    let passed = quote! { *#inside };
    match (request.mode, &request.width) {
        (Mode::Reverse, _) => Part {
            shadow: None,
            before: quote! { #is_float let mut #shadow = #zero; },
            pair: Some(quote! { ::gradus::internal::pair(#text, &#name, &mut #shadow) }),
            inner,
            passed,
            returned: Some((quote! { #shadow }, quote! { #ty })),
        },
        (Mode::Forward, None) => Part {
            shadow: Some(quote! { #shadow: #ty }),
            before: is_float,
            pair: Some(quote! { ::gradus::internal::pair(#text, &#name, &#shadow) }),
            inner,
            passed,
            returned: None,
        },
        (Mode::Forward, Some(width)) => Part {
            shadow: Some(quote! { #shadow: [#ty; #width] }),
            before: is_float,
            pair: Some(quote! { ::gradus::internal::batch(#text, &#name, &#shadow[..], #width) }),
            inner,
            passed,
            returned: None,
        },
    }
}

/// Returns the name of a parameter's shadow: `d` and the name, unless taken.
fn shadow_name(request: &Request, name: &str, span: Span) -> Ident {
    let mut shadow = format!("d{name}");
    let taken = |text: &str| text == "dret" || request.parameters.iter().any(|p| p.name == text);
    while taken(&shadow) {
        shadow.push('_');
    }
    Ident::new(&shadow, span)
}

/// Returns the type of a shadow: mutable in reverse mode, without the argument's lifetime; a slice for a batch.
fn shadow_type(request: &Request, ty: &Type) -> TokenStream {
    match ty {
        Type::Reference(TypeReference {
            mutability, elem, ..
        }) => {
            let mutable = match (request.mode, mutability) {
                (Mode::Forward, None) => quote! {},
                _ => quote! { mut },
            };
            match (&request.width, &**elem) {
                (None, _) | (Some(_), Type::Slice(_)) => quote! { &#mutable #elem },
                (Some(_), _) => quote! { &#mutable [#elem] },
            }
        }
        Type::Ptr(pointer) => {
            let elem = &pointer.elem;
            match (
                request.mode,
                matches!(pointer.mutability, PointerMutability::Mut(_)),
            ) {
                (Mode::Forward, false) => quote! { *const #elem },
                _ => quote! { *mut #elem },
            }
        }
        other => quote! { #other },
    }
}

/// Returns true for a reference to a vector.
fn vector_like(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else {
        return false;
    };
    match &*reference.elem {
        Type::Path(path) => (path.path.segments.last()).is_some_and(|last| last.ident == "Vec"),
        _ => false,
    }
}

/// Returns the parameters of the derivative without the seed.
fn declared_parameters(request: &Request, parts: &[Part]) -> Vec<TokenStream> {
    let mut declared = Vec::new();
    let inputs = request.function.sig.inputs.iter();
    for ((input, parameter), part) in inputs.zip(&request.parameters).zip(parts) {
        let name = &parameter.name;
        declared.push(match (input, &parameter.declared) {
            (FnArg::Receiver(receiver), _) => {
                let mut receiver = receiver.clone();
                receiver.attrs.clear();
                quote! { #receiver }
            }
            (_, Some(ty)) => quote! { #name: #ty },
            (_, None) => unreachable!("only `self` has no declared type"),
        });
        declared.extend(part.shadow.clone());
    }
    declared
}

/// Returns the parameter of the result's adjoint.
fn seed(request: &Request) -> Option<TokenStream> {
    match &request.result {
        Some((Activity::Active | Activity::ActiveOnly, ty)) => Some(quote! { dret: #ty }),
        _ => None,
    }
}

/// Returns the type of the derivative's result.
fn output(request: &Request, parts: &[Part]) -> TokenStream {
    let mut types = Vec::new();
    if let Some((activity, ty)) = &request.result {
        let tangent = match &request.width {
            Some(width) => quote! { [#ty; #width] },
            None => quote! { #ty },
        };
        match activity {
            Activity::ActiveOnly => {}
            Activity::DualOnly => types.push(tangent),
            Activity::Dual => types.extend([quote! { #ty }, tangent]),
            _ => types.push(quote! { #ty }),
        }
    }
    types.extend(
        parts
            .iter()
            .filter_map(|p| Some(p.returned.as_ref()?.1.clone())),
    );
    one_or_tuple(&types)
}

fn one_or_tuple(list: &[TokenStream]) -> TokenStream {
    match list {
        [one] => quote! { #one },
        _ => quote! { (#(#list),*) },
    }
}

/// Returns the body: the request, with the function in a closure, and the results.
fn body(request: &Request, parts: &[Part]) -> TokenStream {
    let before = parts.iter().map(|p| &p.before);
    let pairs = parts.iter().filter_map(|p| p.pair.as_ref());
    let inner = parts.iter().filter_map(|p| p.inner.as_ref());
    let call = call(request, parts);
    let span = request.name.span();
    let closure = quote! { &mut |#(#inner),*| #call };
    let arguments = quote! { (#(#pairs,)*) };
    let trait_path = quote_spanned! { span => ::gradus::internal::Differentiate };
    let adjoints = parts
        .iter()
        .filter_map(|p| Some(p.returned.as_ref()?.0.clone()));
    let mut results: Vec<TokenStream> = Vec::new();
    let request_call = match (request.mode, &request.width) {
        (Mode::Reverse, _) => {
            let seed = match &request.result {
                Some((Activity::Active | Activity::ActiveOnly, _)) => quote! { dret },
                Some((_, ty)) => quote! { <#ty as ::gradus::internal::Output>::ZERO },
                None => quote! { () },
            };
            let is_returned =
                matches!(&request.result, Some((activity, _)) if *activity != Activity::ActiveOnly);
            results.extend(is_returned.then(|| quote! { value }));
            quote! { let value = #trait_path::reverse(#arguments, #closure, #seed); }
        }
        (Mode::Forward, width) => {
            match &request.result {
                Some((Activity::Dual, _)) => results.extend([quote! { value }, quote! { tangent }]),
                Some((Activity::DualOnly, _)) => results.push(quote! { tangent }),
                Some(_) => results.push(quote! { value }),
                None => {}
            }
            match width {
                Some(width) => quote! {
                    let (value, tangent) = #trait_path::forward_batch::<#width>(#arguments, #closure);
                },
                None => {
                    quote! { let (value, tangent) = #trait_path::forward(#arguments, #closure); }
                }
            }
        }
    };
    results.extend(adjoints);
    let result = one_or_tuple(&results);
    quote! { #(#before)* #request_call #result }
}

/// Returns the call of the function.
fn call(request: &Request, parts: &[Part]) -> TokenStream {
    let signature = &request.function.sig;
    let function = &signature.ident;
    let passed = parts.iter().map(|p| &p.passed);
    let named: Vec<TokenStream> = signature
        .generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(ty) => Some(&ty.ident),
            GenericParam::Const(constant) => Some(&constant.ident),
            GenericParam::Lifetime(_) => None,
        })
        .map(|name| quote! { #name })
        .collect();
    let has_impl = signature.inputs.iter().any(|input| {
        matches!(input, FnArg::Typed(typed) if quote! { #typed }.to_string().contains("impl "))
    });
    let generics = match named.is_empty() || has_impl {
        true => quote! {},
        false => quote! { ::<#(#named),*> },
    };
    match request.is_method {
        true => quote! { Self::#function #generics (#(#passed),*) },
        false => quote! { #function #generics (#(#passed),*) },
    }
}
