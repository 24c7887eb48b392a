//! Text functions: strings, bytes, conversions of text to numbers, and the bucket policy of hashed
//! containers. No text function carries a derivative.

use super::{Effects, ExternalFn, Row};

/// A string or byte function.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TextFn {
    Memcmp,
    Memchr,
    Strlen,
    Strnlen,
    Strcmp,
    Strncmp,
    Strchr,
    Strrchr,
    Strstr,
    /// Spans of characters: `strspn`, `strcspn`, `strpbrk`.
    Span,
    Strcpy,
    Strncpy,
    Strcat,
    Strncat,
    Strtok,
    /// Text to a float: `strtod`, `atof`.
    ToFloat,
    /// Text to an integer: `strtol`, `atoi`.
    ToInt,
    /// The message of an error number.
    Strerror,
    /// `bytes, count, seed → hash`.
    Hash,
    /// libstdc++'s `policy, numbers…`: the number of buckets of a hashed container.
    Buckets,
}

const TWO: Effects = Effects::PURE.reading(&[0, 1]).inactive();
const ONE: Effects = Effects::PURE.reading(&[0]).inactive();
const COPY: Effects = Effects::PURE
    .reading(&[0, 1])
    .writing(&[0])
    .returning_argument(0)
    .inactive();
const PARSE: Effects = Effects::PURE
    .reading(&[0])
    .writing(&[1])
    .errno()
    .inaccessible()
    .capturing(&[0])
    .inactive();

// table
pub(super) const ROWS: &[Row] = &[
    row(&["memcmp", "bcmp"], TextFn::Memcmp, TWO),
    row(
        &["memchr", "memrchr", "rawmemchr"],
        TextFn::Memchr,
        ONE.returning_argument(0),
    ),
    row(
        &["_ZSt11_Hash_bytesPKvmm", "_ZSt15_Fnv_hash_bytesPKvmm"],
        TextFn::Hash,
        ONE,
    ),
    row(
        &[
            "_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm",
            "_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm",
        ],
        TextFn::Buckets,
        Effects::PURE.reading(&[0]).writing(&[0]).inactive(),
    ),
    row(&["strlen"], TextFn::Strlen, ONE),
    row(&["strnlen"], TextFn::Strnlen, ONE),
    row(&["strcmp", "strcasecmp", "strcoll"], TextFn::Strcmp, TWO),
    row(&["strncmp", "strncasecmp"], TextFn::Strncmp, TWO),
    row(
        &["strchr", "strchrnul"],
        TextFn::Strchr,
        ONE.returning_argument(0),
    ),
    row(&["strrchr"], TextFn::Strrchr, ONE.returning_argument(0)),
    row(
        &["strstr", "strcasestr"],
        TextFn::Strstr,
        TWO.returning_argument(0),
    ),
    row(&["strspn", "strcspn"], TextFn::Span, TWO),
    row(&["strpbrk"], TextFn::Strstr, TWO.returning_argument(0)),
    row(&["strcpy", "__strcpy_chk"], TextFn::Strcpy, COPY),
    row(&["stpcpy", "__stpcpy_chk"], TextFn::Strcpy, COPY),
    row(
        &["strncpy", "__strncpy_chk", "stpncpy"],
        TextFn::Strncpy,
        COPY,
    ),
    row(&["strcat", "__strcat_chk"], TextFn::Strcat, COPY),
    row(&["strncat", "__strncat_chk"], TextFn::Strncat, COPY),
    row(
        &["strtok", "strtok_r"],
        TextFn::Strtok,
        Effects::PURE
            .reading(&[0, 1, 2])
            .writing(&[0, 2])
            .inaccessible()
            .capturing(&[0])
            .inactive(),
    ),
    row(&["strtod", "strtof", "strtold"], TextFn::ToFloat, PARSE),
    row(&["atof"], TextFn::ToFloat, ONE.inaccessible()),
    row(
        &[
            "strtol",
            "strtoul",
            "strtoll",
            "strtoull",
            "strtoimax",
            "strtoumax",
            "__isoc23_strtol",
            "__isoc23_strtoul",
            "__isoc23_strtoll",
            "__isoc23_strtoull",
        ],
        TextFn::ToInt,
        PARSE,
    ),
    row(
        &["atoi", "atol", "atoll"],
        TextFn::ToInt,
        ONE.inaccessible(),
    ),
    row(
        &["strerror"],
        TextFn::Strerror,
        Effects::PURE.inaccessible().inactive(),
    ),
];

const fn row(names: &'static [&'static str], id: TextFn, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::Text(id),
        effects,
    }
}
