//! The attributes `gradus::reverse` and `gradus::forward`: a derivative function beside a function.
//!
//! [`request`] reads the attribute's arguments and the function, and reports mistakes. [`derivative`] writes the
//! derivative: a call of `gradus::internal` with the active arguments, their shadows, and a closure that calls the
//! function.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod activity;
mod derivative;
mod request;

use activity::Mode;
use proc_macro::TokenStream;
use request::Request;
use std::sync::atomic::{AtomicBool, Ordering};

/// Adds a function that computes the adjoints of the arguments: `#[gradus::reverse(NAME, ACTIVITY …, ACTIVITY)]`.
///
/// Each parameter has one activity, and a result has one, last:
///
/// | activity | of | the derivative has |
/// |---|---|---|
/// | `Const` | any parameter, the result | |
/// | `Active` | a float by value | the adjoint, in the returned tuple |
/// | `Duplicated` | a reference, a slice, a pointer | a shadow after the parameter; the adjoint is added |
/// | `DuplicatedOnly` | as `Duplicated` | the same; the contents afterwards are unspecified |
/// | `Active` | the result | the parameter `dret`, the adjoint of the result; the result comes first in the tuple |
/// | `ActiveOnly` | the result | the same, without the result |
///
/// ```ignore
/// #[gradus::reverse(d_energy, Const, Duplicated, Active)]
/// fn energy(stiffness: &[f64], x: &[f64]) -> f64 { … }
///
/// fn d_energy(stiffness: &[f64], x: &[f64], dx: &mut [f64], dret: f64) -> f64
/// ```
#[proc_macro_attribute]
pub fn reverse(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(Mode::Reverse, arguments, item)
}

/// Adds a function that computes tangents: `#[gradus::forward(NAME, ACTIVITY …, ACTIVITY)]`.
///
/// Each parameter has one activity, and a result has one, last:
///
/// | activity | of | the derivative has |
/// |---|---|---|
/// | `Const` | any parameter, the result | |
/// | `Dual` | a float, a reference, a slice, a pointer | the tangent after the parameter |
/// | `DualOnly` | as `Dual` | the same; the contents afterwards are unspecified |
/// | `Dual` | the result | the tuple of the result and the tangent |
/// | `DualOnly` | the result | the tangent alone |
///
/// A number after the name is a width, for several tangents at once: `#[gradus::forward(NAME, 4, Dualv, Dual)]`. The
/// tangent of a float is then an array `[f64; 4]`, and a reference or slice is `Dualv`: one slice holds the tangents one
/// after the other.
#[proc_macro_attribute]
pub fn forward(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(Mode::Forward, arguments, item)
}

fn expand(mode: Mode, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    match Request::read(mode, arguments.into(), item.clone()) {
        Ok(request) => {
            let derivative = derivative::tokens(&request);
            let check = requires_gradus(&request);
            quote::quote! { #item #check #derivative }.into()
        }
        Err(error) => {
            let error = error.to_compile_error();
            quote::quote! { #item #error }.into()
        }
    }
}

/// Returns the error of a build without Gradus, in front of the first free function of a crate. Methods have no place for
/// it: there, the bodies of the derivatives report the build.
fn requires_gradus(request: &Request) -> Option<proc_macro2::TokenStream> {
    static IS_WRITTEN: AtomicBool = AtomicBool::new(false);
    if request.is_method || IS_WRITTEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    let span = request.name.span();
    Some(quote::quote_spanned! { span => ::gradus::__requires_gradus! {} })
}
