//! NumPy arrays as memory: types, shapes, addresses and new arrays.

use crate::plan::Dtype;
use numpy::npyffi::flags::{
    NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_F_CONTIGUOUS, NPY_ARRAY_WRITEABLE,
};
use numpy::prelude::*;
use numpy::{IxDyn, PyArray, PyUntypedArray};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ffi::c_void;

/// The greatest number of dimensions of an array.
pub(crate) const RANK_MAX: usize = 8;

/// Memory of an array that a live Python object owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// The address of the first element.
    pub(crate) data: *mut c_void,
    /// The number of dimensions.
    pub(crate) rank: usize,
    /// The lengths of the dimensions.
    pub(crate) lengths: [usize; RANK_MAX],
    /// The size of all elements in bytes.
    pub(crate) bytes: usize,
}

impl Memory {
    /// The memory of no array.
    pub(crate) const NONE: Memory = Memory {
        data: std::ptr::null_mut(),
        rank: 0,
        lengths: [0; RANK_MAX],
        bytes: 0,
    };

    /// Returns the lengths of the dimensions.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.lengths[..self.rank]
    }

    /// Returns true if the two arrays share memory.
    pub(crate) fn overlaps(&self, other: &Memory) -> bool {
        let (a, b) = (self.data as usize, other.data as usize);
        a < b + other.bytes && b < a + self.bytes
    }
}

/// The requirements on an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The function and the parameter, for messages.
    pub(crate) function: &'a str,
    pub(crate) name: &'a str,
    /// The type of the elements.
    pub(crate) dtype: Dtype,
    /// True if the function writes into the array.
    pub(crate) is_written: bool,
    /// True if the first index must run fastest.
    pub(crate) is_fortran: bool,
}

/// Returns the memory of a NumPy array; `None` for another object.
///
/// # Errors
/// `TypeError` for another element type, `ValueError` for an array that is not contiguous, not aligned, not writable
/// or of too many dimensions.
pub(crate) fn memory(object: &Bound<'_, PyAny>, wanted: &Wanted<'_>) -> PyResult<Option<Memory>> {
    let Ok(array) = object.cast::<PyUntypedArray>() else {
        // Not an error: the caller converts other objects.
        return Ok(None);
    };
    let found = array.dtype();
    let dtype = wanted.dtype;
    let is_native = matches!(found.byteorder(), b'=' | b'|');
    if found.kind() != dtype.kind() || found.itemsize() != dtype.size_bytes() || !is_native {
        return Err(wrong_type(array, wanted));
    }
    // SAFETY: `array` is a live NumPy array.
    let raw = unsafe { &*array.as_array_ptr() };
    let rank = array.ndim();
    let order = match wanted.is_fortran && rank > 1 {
        true => NPY_ARRAY_F_CONTIGUOUS,
        false => NPY_ARRAY_C_CONTIGUOUS,
    };
    let needed = order
        | NPY_ARRAY_ALIGNED
        | if wanted.is_written {
            NPY_ARRAY_WRITEABLE
        } else {
            0
        };
    if raw.fields.flags & needed != needed || rank > RANK_MAX {
        return Err(wrong_layout(raw.fields.flags, rank, order, wanted));
    }
    let mut lengths = [0; RANK_MAX];
    lengths[..rank].copy_from_slice(array.shape());
    Ok(Some(Memory {
        data: raw.fields.data.cast(),
        rank,
        lengths,
        bytes: array.len() * dtype.size_bytes(),
    }))
}

fn wrong_type(array: &Bound<'_, PyUntypedArray>, wanted: &Wanted<'_>) -> PyErr {
    let Wanted { function, name, .. } = wanted;
    let (needed, found) = (wanted.dtype.name(), array.dtype());
    PyTypeError::new_err(format!(
        "{function}: `{name}` has elements of type {found}, but the function takes {needed}; pass {name}.astype(\"{needed}\")"
    ))
}

fn wrong_layout(flags: i32, rank: usize, order: i32, wanted: &Wanted<'_>) -> PyErr {
    let Wanted { function, name, .. } = wanted;
    let lacks = |flag: i32| flags & flag == 0;
    PyValueError::new_err(if lacks(order) && order == NPY_ARRAY_F_CONTIGUOUS {
        format!("{function}: `{name}` is not in Fortran order; pass numpy.asfortranarray({name})")
    } else if lacks(order) {
        format!("{function}: `{name}` is not contiguous; pass numpy.ascontiguousarray({name})")
    } else if lacks(NPY_ARRAY_ALIGNED) {
        format!("{function}: `{name}` is not aligned; pass {name}.copy()")
    } else if rank > RANK_MAX {
        format!("{function}: `{name}` has {rank} dimensions, at most {RANK_MAX} are supported")
    } else {
        format!(
            "{function}: `{name}` is read-only, but the function writes into the array; pass {name}.copy()"
        )
    })
}

/// Allocates an array of zeros. Returns the array and its memory.
///
/// # Errors
/// `MemoryError` for an array that is too large.
pub(crate) fn zeros<'py>(
    py: Python<'py>,
    dtype: Dtype,
    lengths: &[usize],
    is_fortran: bool,
) -> PyResult<(Bound<'py, PyAny>, Memory)> {
    let count = lengths
        .iter()
        .try_fold(1usize, |all, n| all.checked_mul(*n));
    let bytes = count.and_then(|n| n.checked_mul(dtype.size_bytes()));
    let bytes = bytes.filter(|n| isize::try_from(*n).is_ok());
    let bytes = bytes.ok_or_else(|| PyMemoryError::new_err("an output array is too large"))?;
    let array = match dtype {
        Dtype::F64 => new::<f64>(py, lengths, is_fortran),
        Dtype::F32 => new::<f32>(py, lengths, is_fortran),
        Dtype::Signed(1) => new::<i8>(py, lengths, is_fortran),
        Dtype::Signed(2) => new::<i16>(py, lengths, is_fortran),
        Dtype::Signed(4) => new::<i32>(py, lengths, is_fortran),
        Dtype::Signed(_) => new::<i64>(py, lengths, is_fortran),
        Dtype::Unsigned(1) => new::<u8>(py, lengths, is_fortran),
        Dtype::Unsigned(2) => new::<u16>(py, lengths, is_fortran),
        Dtype::Unsigned(4) => new::<u32>(py, lengths, is_fortran),
        Dtype::Unsigned(_) => new::<u64>(py, lengths, is_fortran),
        Dtype::Bool => new::<bool>(py, lengths, is_fortran),
    };
    let mut memory = Memory {
        rank: lengths.len(),
        bytes,
        ..Memory::NONE
    };
    memory.lengths[..lengths.len()].copy_from_slice(lengths);
    // SAFETY: `array` is a live NumPy array of `bytes` bytes, which no other code refers to yet.
    unsafe {
        memory.data = (*array.as_array_ptr()).fields.data.cast();
        memory.data.cast::<u8>().write_bytes(0, bytes);
    }
    Ok((array.into_any(), memory))
}

/// Allocates an array with any contents.
fn new<'py, T: numpy::Element>(
    py: Python<'py>,
    lengths: &[usize],
    is_fortran: bool,
) -> Bound<'py, PyUntypedArray> {
    // SAFETY: `zeros` overwrites the contents before any use; the types have no invalid values.
    let array = unsafe { PyArray::<T, IxDyn>::new(py, lengths, is_fortran) };
    array.as_untyped().clone()
}
