//! Facts about single calls: formats, variable arguments.

pub(crate) mod printf_formats;
pub(crate) mod varargs;
