//! Enumerations whose variants have a keyword in the text form: one line per variant.

/// Declares an enumeration with `ALL`, `name` and `from_name`.
macro_rules! keywords {
    (
        $(#[$attr:meta])*
        pub enum $ty:ident {
            $($(#[$variant_attr:meta])* $variant:ident = $keyword:literal),* $(,)?
        }
    ) => {
        $(#[$attr])*
        pub enum $ty {
            $($(#[$variant_attr])* $variant),*
        }

        impl $ty {
            /// All variants, in order.
            pub const ALL: &[$ty] = &[$($ty::$variant),*];
            /// Returns the keyword in the text form.
            pub fn name(self) -> &'static str {
                match self { $($ty::$variant => $keyword),* }
            }
            /// Returns the variant with the given keyword.
            pub fn from_name(name: &str) -> Option<$ty> {
                match name { $($keyword => Some($ty::$variant),)* _ => None }
            }
        }
    };
}
pub(crate) use keywords;
