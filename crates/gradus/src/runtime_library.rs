//! The embedded runtime library of parallel programs: the object, the archive, and the linker's options.
//!
//! [`crate::driver`] adds the object to a link. An installation holds the archive, for links by other compilers.

use crate::objects::archive;
use object::{Object, ObjectSymbol};

/// The library as a relocatable object. Its symbols are the `gr_*` entries, the CUDA runtime, and, for each
/// wrapped function `f` of OpenMP's library, `__wrap_f` and `f`.
pub(crate) const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gradus_rt.o"));

/// The library without the entries that only CUDA programs call: other programs export no name of CUDA's, which another
/// library of the process may define.
pub(crate) const WITHOUT_CUDA: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/gradus_rt_without_cuda.o"));

/// Returns the library as an archive.
pub fn archive() -> Vec<u8> {
    archive::create(&[("gradus_rt.o".to_string(), OBJECT.to_vec())])
}

/// Returns the linker options that redirect calls of OpenMP functions to the wrappers.
pub fn wrap_options() -> Vec<String> {
    let Ok(file) = object::File::parse(OBJECT) else {
        unreachable!("the build wrote an object");
    };
    let names = file.symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?.strip_prefix("__wrap_")?;
        symbol.is_global().then(|| format!("--wrap={name}"))
    });
    names.collect()
}
