//! Device variables by name, as supported by CUDA up to version 4. A file whose host code uses names
//! registers its variables.

use super::Status;
use super::error::{Error, api_call};
use super::memory::store_result;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Variables by address: name and size.
type Symbols = BTreeMap<usize, (&'static CStr, usize)>;

fn symbols() -> MutexGuard<'static, Symbols> {
    static ALL: Mutex<Symbols> = Mutex::new(BTreeMap::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a variable.
///
/// # Safety
/// `name` is a C string that lives until program end.
#[unsafe(no_mangle)]
unsafe extern "C" fn __gr_symbol_register(variable: *const c_void, name: *const c_char, size: i64) {
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    symbols().insert(
        variable as usize,
        (name, usize::try_from(size).unwrap_or(0)),
    );
}

/// The variable at address `text`, or with name `text`; null if neither exists.
///
/// # Safety
/// `text` is a registered variable or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn __gr_symbol(text: *const c_char) -> *const c_void {
    let all = symbols();
    if text.is_null() || all.contains_key(&(text as usize)) {
        return text.cast();
    }
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(text) };
    let found = all.iter().find(|(_, row)| row.0 == name);
    found.map_or(std::ptr::null(), |(&at, _)| at as *const c_void)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetSymbolSize(to: *mut usize, symbol: *const c_void) -> Status {
    api_call(|| {
        let known = symbols().get(&(symbol as usize)).map(|row| row.1);
        // SAFETY: promised by the caller.
        unsafe { store_result(to, known.ok_or(Error::InvalidSymbol)?) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_by_address_and_name() {
        static VARIABLE: [c_char; 4] = [1; 4];
        let at = VARIABLE.as_ptr();
        unsafe {
            __gr_symbol_register(at.cast(), c"table".as_ptr(), 4);
            assert_eq!(__gr_symbol(at), at.cast());
            assert_eq!(__gr_symbol(c"table".as_ptr()), at.cast());
            assert!(__gr_symbol(c"none".as_ptr()).is_null());
            let mut size = 0;
            assert_eq!(cudaGetSymbolSize(&mut size, at.cast()), 0);
            assert_eq!(size, 4);
        }
    }
}
