//! The reasons of GRD0008, each with the remedy that fits.

/// The conflict of a refused op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Integer arithmetic makes a float of the bits of an active float.
    Arithmetic,
    /// A value is converted to a float, and depends on the fraction bits of an active float (approximate logarithms).
    FractionConverted,
    /// An integer that depends on an active float by a conversion becomes fraction bits (approximate exponentials).
    NumberInFraction,
    /// An integer from a word of run-time kind is converted to a float, and no test tells the integer from a float.
    IntegerOfUnion,
    /// A word that is an address or a float at different times is moved as an integer.
    WordAsInteger,
    /// Different paths leave a float or an address in one integer.
    FloatOrAddress,
    /// An integer is stored over an active float, and the derivative cannot tell whether the float is read again.
    IntegerOverFloat,
    /// The bits of an active float are stored under the name of an integer, where the caller accesses the memory.
    FloatUnderIntegerName,
    /// An active float is read in part, or in a format that the program never stores at the location.
    OtherFormat,
}

impl Reason {
    /// Returns the message.
    pub(super) fn message(self) -> &'static str {
        match self {
            Reason::Arithmetic => {
                "integer arithmetic on the bits of an active floating-point number"
            }
            Reason::FractionConverted => {
                "the fraction bits of an active floating-point number are converted to a number"
            }
            Reason::NumberInFraction => {
                "an integer converted from an active number becomes the fraction bits of another number"
            }
            Reason::IntegerOfUnion => {
                "an integer of a union with active numbers is converted to a number, and may be the bits of an active number"
            }
            Reason::WordAsInteger => {
                "a word that holds an active number or an address is moved as an integer"
            }
            Reason::FloatOrAddress => {
                "an integer holds an active number on one path and an address on another"
            }
            Reason::IntegerOverFloat => "an integer is stored over an active floating-point number",
            Reason::FloatUnderIntegerName => {
                "the bits of an active floating-point number are stored as an integer, in memory that the caller also accesses"
            }
            Reason::OtherFormat => {
                "an active floating-point number is read in part, or in another format than it was stored"
            }
        }
    }

    /// Returns the remedy.
    pub(super) fn help(self) -> &'static str {
        match self {
            Reason::Arithmetic => {
                "compute with floating-point operations, or register a derivative for the function"
            }
            Reason::FractionConverted => {
                "compute with `log2` or `frexp`, or register a derivative for the function"
            }
            Reason::NumberInFraction => {
                "compute with `exp2` or `ldexp`, or register a derivative for the function"
            }
            Reason::IntegerOfUnion => {
                "convert the integer to a number before any arithmetic, or keep the integer in a structure member of its own instead of the union"
            }
            Reason::WordAsInteger => {
                "copy the whole union or structure by assignment or `memcpy`, or give the number and the address members of their own"
            }
            Reason::FloatOrAddress => {
                "keep the number and the address in separate variables; in Rust, call the function without `catch_unwind`"
            }
            Reason::IntegerOverFloat => {
                "keep the integer in a structure member of its own, or copy floating-point numbers as floating-point numbers"
            }
            Reason::FloatUnderIntegerName => {
                "store the number in an array or a member of a floating-point type, or in memory that only the function accesses"
            }
            Reason::OtherFormat => {
                "convert the number by a cast between the formats, and copy whole numbers"
            }
        }
    }
}
