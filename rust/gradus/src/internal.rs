//! Requests of derivatives, for the attributes and for the functions on closures. Not a public interface.
//!
//! A request calls an undefined variadic function with an adapter's address, and Gradus replaces the call by the
//! derivative of the adapter. The adapter is generic, hence each instance of a generic function has an adapter of its
//! own. The adapter receives addresses only: the closure with all inactive arguments, each argument that has a shadow,
//! and the memory of the result.

/// Compile error of a build without Gradus.
#[cfg(not(any(gradus, feature = "stub")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __requires_gradus {
    () => {
        ::core::compile_error! {
            "derivatives require Gradus: run `cargo gradus build` in place of `cargo build` (likewise `run`, `test`, `check`)"
        }
    };
}

/// Nothing, in a build that may request derivatives.
#[cfg(any(gradus, feature = "stub"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __requires_gradus {
    () => {};
}

/// A closure in a build that may request derivatives.
#[diagnostic::on_unimplemented(
    message = "derivatives require Gradus: run `cargo gradus build` in place of `cargo build`",
    label = "a derivative is requested here",
    note = "the feature `stub` of the crate `gradus` compiles without Gradus, for documentation and editors"
)]
pub trait CompiledByGradus {}

#[cfg(any(gradus, feature = "stub"))]
impl<F> CompiledByGradus for F {}

/// A floating-point type: `f32` or `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point type",
    label = "expected `f32` or `f64`",
    note = "pass a structure or an array by reference, as `Duplicated` (reverse) or `Dual` (forward)"
)]
pub trait Float: Output {
    /// One: the seed of a gradient.
    const ONE: Self;
}

/// The result of a differentiated function: a number or nothing.
#[diagnostic::on_unimplemented(
    message = "a differentiated function returns `f32`, `f64` or nothing, not `{Self}`",
    note = "write other results through an argument `&mut T`, as `Duplicated` (reverse) or `Dual` (forward)"
)]
pub trait Output: Copy {
    /// Zero: the initial adjoint.
    const ZERO: Self;
}

impl Output for () {
    const ZERO: Self = ();
}
impl Output for f32 {
    const ZERO: Self = 0.0;
}
impl Output for f64 {
    const ZERO: Self = 0.0;
}
impl Float for f32 {
    const ONE: Self = 1.0;
}
impl Float for f64 {
    const ONE: Self = 1.0;
}

/// Compiles for floating-point types only.
#[inline(always)]
pub fn is_float<T: Float>() {}

/// An inactive argument by value.
#[diagnostic::on_unimplemented(
    message = "the inactive argument of type `{Self}` is passed by value, and the type is not `Copy`",
    note = "pass the argument by reference"
)]
pub trait Copied: Copy {}
impl<T: Copy> Copied for T {}

/// Returns an inactive argument.
#[inline(always)]
pub fn copied<T: Copied>(value: &T) -> T {
    *value
}

/// An argument that can have a shadow, as an address and a number of elements.
#[diagnostic::on_unimplemented(
    message = "an argument of type `{Self}` cannot have a shadow",
    note = "references to values of known size and to slices have shadows; mark other arguments `Const`"
)]
pub trait Shadowed: Sized {
    /// The type of an element.
    type Target;
    /// Returns the address and the number of elements.
    fn parts(self) -> (*mut Self::Target, usize);
    /// Returns the argument.
    ///
    /// # Safety
    /// The parts are those of an argument that is still valid.
    unsafe fn from_parts(address: *mut Self::Target, count: usize) -> Self;
}

impl<T> Shadowed for &T {
    type Target = T;
    #[inline(always)]
    fn parts(self) -> (*mut T, usize) {
        (std::ptr::from_ref(self).cast_mut(), 1)
    }
    #[inline(always)]
    unsafe fn from_parts(address: *mut T, _: usize) -> Self {
        // SAFETY: by the contract, the address is that of a reference.
        unsafe { &*address }
    }
}

impl<T> Shadowed for &mut T {
    type Target = T;
    #[inline(always)]
    fn parts(self) -> (*mut T, usize) {
        (std::ptr::from_mut(self), 1)
    }
    #[inline(always)]
    unsafe fn from_parts(address: *mut T, _: usize) -> Self {
        // SAFETY: by the contract, the address is that of a unique reference.
        unsafe { &mut *address }
    }
}

impl<T> Shadowed for &[T] {
    type Target = T;
    #[inline(always)]
    fn parts(self) -> (*mut T, usize) {
        (self.as_ptr().cast_mut(), self.len())
    }
    #[inline(always)]
    unsafe fn from_parts(address: *mut T, count: usize) -> Self {
        // SAFETY: by the contract, the parts are those of a slice.
        unsafe { &*std::ptr::slice_from_raw_parts(address, count) }
    }
}

impl<T> Shadowed for &mut [T] {
    type Target = T;
    #[inline(always)]
    fn parts(self) -> (*mut T, usize) {
        (self.as_mut_ptr(), self.len())
    }
    #[inline(always)]
    unsafe fn from_parts(address: *mut T, count: usize) -> Self {
        // SAFETY: by the contract, the parts are those of a unique slice.
        unsafe { &mut *std::ptr::slice_from_raw_parts_mut(address, count) }
    }
}

impl<T> Shadowed for *const T {
    type Target = T;
    #[inline(always)]
    fn parts(self) -> (*mut T, usize) {
        (self.cast_mut(), 1)
    }
    #[inline(always)]
    unsafe fn from_parts(address: *mut T, _: usize) -> Self {
        address
    }
}

impl<T> Shadowed for *mut T {
    type Target = T;
    #[inline(always)]
    fn parts(self) -> (*mut T, usize) {
        (self, 1)
    }
    #[inline(always)]
    unsafe fn from_parts(address: *mut T, _: usize) -> Self {
        address
    }
}

/// An argument with the shadow.
pub struct Pair<A: Shadowed> {
    address: *mut A::Target,
    count: usize,
    shadow: *mut A::Target,
}

/// Returns an argument with the shadow, which has the same number of elements.
///
/// # Panics
/// Panics if the numbers of elements differ. `name` is the argument's name.
#[inline(always)]
#[track_caller]
pub fn pair<A, S>(name: &str, argument: A, shadow: S) -> Pair<A>
where
    A: Shadowed,
    S: Shadowed<Target = A::Target>,
{
    batch(name, argument, shadow, 1)
}

/// Returns an argument with `width` shadows, one after the other.
///
/// # Panics
/// Panics if the number of elements of the shadows is not `width` times the argument's.
#[inline(always)]
#[track_caller]
pub fn batch<A, S>(name: &str, argument: A, shadow: S, width: usize) -> Pair<A>
where
    A: Shadowed,
    S: Shadowed<Target = A::Target>,
{
    let (address, count) = argument.parts();
    let (shadow, elements) = shadow.parts();
    if count.checked_mul(width) != Some(elements) {
        wrong_length(name, elements, count, width);
    }
    Pair {
        address,
        count,
        shadow,
    }
}

/// Panics unless two vectors have equal lengths.
#[inline(always)]
#[track_caller]
pub fn same_length(name: &str, count: usize, elements: usize) {
    if count != elements {
        wrong_length(name, elements, count, 1);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn wrong_length(name: &str, elements: usize, count: usize, width: usize) -> ! {
    let times = match width {
        1 => String::new(),
        _ => format!("{width} times "),
    };
    panic!("the shadow of `{name}` has {elements} elements, but `{name}` has {times}{count}")
}

/// Requests on tuples of arguments with shadows. The closure receives the arguments, and holds all others.
pub trait Differentiate<F, R> {
    /// Runs the function, adds the adjoints of the arguments to the shadows, and returns the result.
    fn reverse(self, function: &mut F, seed: R) -> R;
    /// Runs the function, sets the tangents behind mutable arguments, and returns the result and the tangent.
    fn forward(self, function: &mut F) -> (R, R);
    /// Like `forward`, with `N` tangents, from pairs made by [`batch`].
    fn forward_batch<const N: usize>(self, function: &mut F) -> (R, [R; N]);
}

/// The version of Gradus's compiler: Cargo compiles all dependent crates again if the variable changes.
#[cfg(gradus)]
const _: Option<&str> = option_env!("GRADUS_COMPILER");

#[cfg(gradus)]
unsafe extern "C-unwind" {
    fn __gradus_vjp_rust(adapter: *const (), ...);
    fn __gradus_jvp_rust(adapter: *const (), ...);
}

#[cfg(gradus)]
unsafe extern "C" {
    safe static gradus_const: i32;
    safe static gradus_dup: i32;
    safe static gradus_dupv: i32;
    safe static gradus_width: i32;
}

/// The adapter of a function with these arguments.
#[cfg(gradus)]
macro_rules! adapter {
    ($($A:ident $a:ident $n:ident),*) => {
        extern "C-unwind" fn adapter<F, R, $($A),*>(
            function: *mut F,
            $($a: *mut $A::Target, $n: usize,)*
            result: *mut R,
        )
        where
            F: FnMut($($A),*) -> R,
            $($A: Shadowed),*
        {
            // SAFETY: the request passes the closure, the parts of the arguments, and memory for the result.
            unsafe { *result = (*function)($($A::from_parts($a, $n)),*) }
        }
    };
}

/// Implements the requests for a number of arguments with shadows.
macro_rules! requests {
    ($($A:ident $a:ident $n:ident),*) => {
        #[cfg(gradus)]
        impl<F, R, $($A),*> Differentiate<F, R> for ($(Pair<$A>,)*)
        where
            F: FnMut($($A),*) -> R,
            R: Output,
            $($A: Shadowed),*
        {
            #[inline(always)]
            fn reverse(self, function: &mut F, mut seed: R) -> R {
                adapter!($($A $a $n),*);
                let ($($a,)*) = self;
                let mut result = R::ZERO;
                // SAFETY: Gradus replaces the call by the derivative of the adapter.
                unsafe {
                    __gradus_vjp_rust(
                        adapter::<F, R, $($A),*> as *const (),
                        &raw const gradus_const, std::ptr::from_mut(function),
                        $(&raw const gradus_dup, $a.address, $a.shadow, &raw const gradus_const, $a.count,)*
                        &raw const gradus_dup, &raw mut result, &raw mut seed,
                    );
                }
                result
            }
            #[inline(always)]
            fn forward(self, function: &mut F) -> (R, R) {
                adapter!($($A $a $n),*);
                let ($($a,)*) = self;
                let (mut result, mut tangent) = (R::ZERO, R::ZERO);
                // SAFETY: see `reverse`.
                unsafe {
                    __gradus_jvp_rust(
                        adapter::<F, R, $($A),*> as *const (),
                        &raw const gradus_const, std::ptr::from_mut(function),
                        $(&raw const gradus_dup, $a.address, $a.shadow, &raw const gradus_const, $a.count,)*
                        &raw const gradus_dup, &raw mut result, &raw mut tangent,
                    );
                }
                (result, tangent)
            }
            #[inline(always)]
            fn forward_batch<const N: usize>(self, function: &mut F) -> (R, [R; N]) {
                adapter!($($A $a $n),*);
                let ($($a,)*) = self;
                let (mut result, mut tangents) = (R::ZERO, [R::ZERO; N]);
                // SAFETY: see `reverse`; the shadows of a batch are `N` times as long.
                unsafe {
                    __gradus_jvp_rust(
                        adapter::<F, R, $($A),*> as *const (),
                        &raw const gradus_width, N,
                        &raw const gradus_const, std::ptr::from_mut(function),
                        $(
                            &raw const gradus_dupv, $a.count * size_of::<$A::Target>(), $a.address, $a.shadow,
                            &raw const gradus_const, $a.count,
                        )*
                        &raw const gradus_dupv, size_of::<R>(), &raw mut result, tangents.as_mut_ptr(),
                    );
                }
                (result, tangents)
            }
        }

        #[cfg(not(gradus))]
        impl<F, R, $($A),*> Differentiate<F, R> for ($(Pair<$A>,)*)
        where
            F: FnMut($($A),*) -> R,
            R: Output,
            $($A: Shadowed),*
        {
            fn reverse(self, function: &mut F, _: R) -> R {
                let ($($a,)*) = self;
                $(let _ = ($a.address, $a.count, $a.shadow);)*
                not_compiled(function)
            }
            fn forward(self, function: &mut F) -> (R, R) {
                not_compiled(function)
            }
            fn forward_batch<const N: usize>(self, function: &mut F) -> (R, [R; N]) {
                not_compiled(function)
            }
        }
    };
}

/// Ends a program that was compiled without Gradus.
#[cfg(not(gradus))]
fn not_compiled<F>(_: &mut F) -> ! {
    panic!("derivatives require Gradus: run `cargo gradus build` in place of `cargo build`")
}

requests!(A a na);
requests!(A a na, B b nb);
requests!(A a na, B b nb, C c nc);
requests!(A a na, B b nb, C c nc, D d nd);
requests!(A a na, B b nb, C c nc, D d nd, E e ne);
requests!(A a na, B b nb, C c nc, D d nd, E e ne, G g ng);
requests!(A a na, B b nb, C c nc, D d nd, E e ne, G g ng, H h nh);
requests!(A a na, B b nb, C c nc, D d nd, E e ne, G g ng, H h nh, I i ni);
