//! Copies and fills: host and device share memory, and each copy is a `memmove` per row, after CUDA's
//! argument checks.

use super::Status;
use super::error::{Error, api_call};
use super::memory::{self, Owner};
use super::profile::{self, Activity};
use super::types::{Array, Copy3D, Extent, Pitched};
use std::ffi::{c_int, c_void};

/// Direction of a copy: `cudaMemcpyKind`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Direction {
    from_device: Option<bool>,
    to_device: Option<bool>,
}

impl Direction {
    pub(super) fn new(kind: c_int) -> Result<Direction, Error> {
        let (from_device, to_device) = match kind {
            0 => (Some(false), Some(false)),
            1 => (Some(false), Some(true)),
            2 => (Some(true), Some(false)),
            3 => (Some(true), Some(true)),
            4 => (None, None),
            _ => return Err(Error::InvalidMemcpyDirection),
        };
        Ok(Direction {
            from_device,
            to_device,
        })
    }

    pub(super) fn activity(self) -> Activity {
        match (self.from_device, self.to_device) {
            (Some(false), Some(true)) => Activity::HostToDevice,
            (Some(true), Some(false)) => Activity::DeviceToHost,
            _ => Activity::DeviceToDevice,
        }
    }
}

/// Checks that `count` bytes at `pointer` may be the device end (or host end) of a copy. Memory not
/// allocated by the runtime (variables, the host's own memory) passes every check.
pub(super) fn check_end(
    pointer: *const c_void,
    count: usize,
    device: Option<bool>,
) -> Result<(), Error> {
    if pointer.is_null() || pointer.addr().checked_add(count).is_none() {
        return Err(Error::InvalidValue);
    }
    match memory::owner(pointer) {
        Some((_, left)) if left < count => Err(Error::InvalidValue),
        Some((Owner::Device, _)) if device == Some(false) => Err(Error::InvalidValue),
        _ => Ok(()),
    }
}

/// Checks both ends of a copy.
pub(super) fn check_ends(
    to: *const c_void,
    from: *const c_void,
    count: usize,
    direction: Direction,
) -> Result<(), Error> {
    check_end(to, count, direction.to_device)?;
    check_end(from, count, direction.from_device)
}

/// An end of a copy: start, bytes per row, bytes per slice.
#[derive(Clone, Copy)]
struct CopyEnd {
    start: *mut u8,
    pitch: usize,
    slice: usize,
}

/// Returns the bytes from the start of an end to the end of its last row. `extent` has no zero, and its width is
/// in bytes.
///
/// # Errors
/// Overlapping rows or slices, and a size beyond the address space.
fn span_bytes(rows: CopyEnd, extent: Extent) -> Result<usize, Error> {
    if extent.height > 1 && rows.pitch < extent.width {
        return Err(Error::InvalidPitchValue);
    }
    let lines = (extent.height - 1).checked_mul(rows.pitch);
    let slice = lines.and_then(|lines| lines.checked_add(extent.width));
    let slice = slice.ok_or(Error::InvalidValue)?;
    if extent.depth > 1 && rows.slice < slice {
        return Err(Error::InvalidValue);
    }
    let slices = (extent.depth - 1).checked_mul(rows.slice);
    let span = slices.and_then(|slices| slices.checked_add(slice));
    span.ok_or(Error::InvalidValue)
}

/// Checks that a row of `width` bytes fits into each pitch of a two-dimensional copy or fill, of any height.
fn check_pitches(pitches: &[usize], width: usize) -> Result<(), Error> {
    match pitches.iter().all(|pitch| width <= *pitch) {
        true => Ok(()),
        false => Err(Error::InvalidPitchValue),
    }
}

/// Copies `extent` (width in bytes).
fn copy_block(
    to: CopyEnd,
    from: CopyEnd,
    extent: Extent,
    direction: Direction,
) -> Result<(), Error> {
    let Extent {
        width,
        height,
        depth,
    } = extent;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(());
    }
    let (to_span, from_span) = (span_bytes(to, extent)?, span_bytes(from, extent)?);
    check_end(to.start.cast(), to_span, direction.to_device)?;
    check_end(from.start.cast(), from_span, direction.from_device)?;
    profile::run_timed_activity(direction.activity(), || {
        for z in 0..depth {
            for y in 0..height {
                let at = |rows: CopyEnd| rows.start.wrapping_add(z * rows.slice + y * rows.pitch);
                // SAFETY: the caller may access both spans; the spans in memory known to the runtime were
                // checked.
                unsafe { libc::memmove(at(to).cast(), at(from).cast(), width) };
            }
        }
    });
    Ok(())
}

/// Copies `count` bytes.
fn copy_bytes(
    to: *mut c_void,
    from: *const c_void,
    count: usize,
    kind: c_int,
) -> Result<(), Error> {
    let direction = Direction::new(kind)?;
    let rows = |start: *mut c_void| CopyEnd {
        start: start.cast(),
        pitch: 0,
        slice: 0,
    };
    let extent = Extent {
        width: count,
        height: 1,
        depth: 1,
    };
    copy_block(rows(to), rows(from.cast_mut()), extent, direction)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy(
    to: *mut c_void,
    from: *const c_void,
    count: usize,
    kind: c_int,
) -> Status {
    api_call(|| copy_bytes(to, from, count, kind))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyPeer(
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    count: usize,
) -> Status {
    api_call(|| {
        if to_device != 0 || from_device != 0 {
            return Err(Error::InvalidDevice);
        }
        copy_bytes(to, from, count, 3)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2D(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Status {
    api_call(|| {
        let direction = Direction::new(kind)?;
        check_pitches(&[to_pitch, from_pitch], width)?;
        let rows = |start: *mut c_void, pitch| CopyEnd {
            start: start.cast(),
            pitch,
            slice: 0,
        };
        let extent = Extent {
            width,
            height,
            depth: 1,
        };
        copy_block(
            rows(to, to_pitch),
            rows(from.cast_mut(), from_pitch),
            extent,
            direction,
        )
    })
}

/// Returns the offset of a place in rows and slices of memory, with x steps of `element` bytes.
fn offset_bytes(
    place: super::types::Place,
    element: usize,
    pitch: usize,
    slice: usize,
) -> Result<usize, Error> {
    let parts = [(place.x, element), (place.y, pitch), (place.z, slice)];
    let offset = (parts.into_iter()).try_fold(0_usize, |sum, (steps, bytes)| {
        sum.checked_add(steps.checked_mul(bytes)?)
    });
    offset.ok_or(Error::InvalidValue)
}

/// Checks that `extent`, in elements, lies inside of an array.
fn check_array_range(
    array: &Array,
    place: super::types::Place,
    extent: Extent,
) -> Result<(), Error> {
    let ranges = [
        (place.x, extent.width, array.width),
        (place.y, extent.height, array.height.max(1)),
        (place.z, extent.depth, array.depth.max(1)),
    ];
    let fits = |(first, count, size): (usize, usize, usize)| {
        first.checked_add(count).is_some_and(|end| end <= size)
    };
    match ranges.into_iter().all(fits) {
        true => Ok(()),
        false => Err(Error::InvalidValue),
    }
}

/// An end of a three-dimensional copy, in an array or else in pitched memory. Returns the rows and the size
/// of an x step: the element size in an array, else 1.
///
/// # Safety
/// `array` is null or an array.
unsafe fn array_or_pitched_end(
    array: *mut Array,
    memory: &Pitched,
    place: super::types::Place,
    extent: Extent,
) -> Result<(CopyEnd, usize), Error> {
    // SAFETY: promised by the caller.
    if let Some(array) = unsafe { array.as_ref() } {
        check_array_range(array, place, extent)?;
        let offset = offset_bytes(place, array.element, array.pitch, array.slice)?;
        let end = CopyEnd {
            start: array.data.wrapping_add(offset),
            pitch: array.pitch,
            slice: array.slice,
        };
        return Ok((end, array.element));
    }
    if memory.ptr.is_null() {
        return Err(Error::InvalidValue);
    }
    let slice = memory.pitch.checked_mul(memory.ysize);
    let slice = slice.ok_or(Error::InvalidValue)?;
    let offset = offset_bytes(place, 1, memory.pitch, slice)?;
    let end = CopyEnd {
        start: memory.ptr.cast::<u8>().wrapping_add(offset),
        pitch: memory.pitch,
        slice,
    };
    Ok((end, 1))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpy3D(copy: *const Copy3D) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let copy = unsafe { copy.as_ref() }.ok_or(Error::InvalidValue)?;
        let direction = Direction::new(copy.kind)?;
        let mut extent = copy.extent;
        // SAFETY: promised by the caller.
        let (to, to_element) =
            unsafe { array_or_pitched_end(copy.dst_array, &copy.dst, copy.dst_pos, extent)? };
        // SAFETY: promised by the caller.
        let (from, from_element) =
            unsafe { array_or_pitched_end(copy.src_array, &copy.src, copy.src_pos, extent)? };
        // With an array the width counts the array's elements, else bytes.
        let width = extent.width.checked_mul(to_element.max(from_element));
        extent.width = width.ok_or(Error::InvalidValue)?;
        copy_block(to, from, extent, direction)
    })
}

/// Fills `extent` with a byte.
fn fill(to: CopyEnd, value: c_int, extent: Extent) -> Result<(), Error> {
    let Extent {
        width,
        height,
        depth,
    } = extent;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(());
    }
    check_end(to.start.cast(), span_bytes(to, extent)?, None)?;
    profile::run_timed_activity(Activity::Fill, || {
        for z in 0..depth {
            for y in 0..height {
                let start = to.start.wrapping_add(z * to.slice + y * to.pitch);
                // SAFETY: the caller may write the span; a span in memory known to the runtime was checked.
                unsafe { libc::memset(start.cast(), value, width) };
            }
        }
    });
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset(to: *mut c_void, value: c_int, count: usize) -> Status {
    let rows = CopyEnd {
        start: to.cast(),
        pitch: 0,
        slice: 0,
    };
    let extent = Extent {
        width: count,
        height: 1,
        depth: 1,
    };
    api_call(|| fill(rows, value, extent))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset2D(
    to: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> Status {
    let rows = CopyEnd {
        start: to.cast(),
        pitch,
        slice: 0,
    };
    api_call(|| {
        check_pitches(&[pitch], width)?;
        fill(
            rows,
            value,
            Extent {
                width,
                height,
                depth: 1,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset3D(to: Pitched, value: c_int, extent: Extent) -> Status {
    api_call(|| {
        let slice = to.pitch.checked_mul(to.ysize);
        let rows = CopyEnd {
            start: to.ptr.cast(),
            pitch: to.pitch,
            slice: slice.ok_or(Error::InvalidValue)?,
        };
        fill(rows, value, extent)
    })
}

/// The address of a symbol: host and device share the variable.
fn symbol_address(symbol: *const c_void, offset: usize) -> Result<*mut c_void, Error> {
    if symbol.is_null() {
        return Err(Error::InvalidSymbol);
    }
    match symbol.addr().checked_add(offset) {
        Some(_) => Ok(symbol.cast_mut().wrapping_byte_add(offset)),
        None => Err(Error::InvalidValue),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyToSymbol(
    to: *const c_void,
    from: *const c_void,
    count: usize,
    offset: usize,
    kind: c_int,
) -> Status {
    api_call(|| match kind {
        1 | 3 | 4 => copy_bytes(symbol_address(to, offset)?, from, count, kind),
        _ => Err(Error::InvalidMemcpyDirection),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyFromSymbol(
    to: *mut c_void,
    from: *const c_void,
    count: usize,
    offset: usize,
    kind: c_int,
) -> Status {
    api_call(|| match kind {
        2..=4 => copy_bytes(to, symbol_address(from, offset)?, count, kind),
        _ => Err(Error::InvalidMemcpyDirection),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetSymbolAddress(to: *mut *mut c_void, from: *const c_void) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { memory::store_result(to, symbol_address(from, 0)?) })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyToArray(
    to: *mut Array,
    x: usize,
    y: usize,
    from: *const c_void,
    count: usize,
    kind: c_int,
) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { copy_array_rows(to, [x, y], from.cast_mut().cast(), count, kind, true) })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyFromArray(
    to: *mut c_void,
    from: *const Array,
    x: usize,
    y: usize,
    count: usize,
    kind: c_int,
) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { copy_array_rows(from.cast_mut(), [x, y], to.cast(), count, kind, false) })
}

/// Copies `count` bytes between memory and the rows of an array, starting at byte `x` of row `y`.
///
/// # Safety
/// `array` is null or an array.
unsafe fn copy_array_rows(
    array: *mut Array,
    [x, y]: [usize; 2],
    memory: *mut u8,
    count: usize,
    kind: c_int,
    into: bool,
) -> Result<(), Error> {
    let direction = Direction::new(kind)?;
    // SAFETY: promised by the caller.
    let array = unsafe { array.as_ref() }.ok_or(Error::InvalidValue)?;
    let width = array.width * array.element;
    let first = y.checked_mul(width).and_then(|rows| rows.checked_add(x));
    let end = first.and_then(|first| first.checked_add(count));
    if x > width || end.is_none_or(|end| end > width * array.height.max(1)) {
        return Err(Error::InvalidValue);
    }
    let (mut done, mut column, mut row) = (0, x, y);
    while done < count {
        let part = (width - column).min(count - done);
        let start = array.data.wrapping_add(row * array.pitch + column);
        let inside = CopyEnd {
            start,
            pitch: 0,
            slice: 0,
        };
        let outside = CopyEnd {
            start: memory.wrapping_add(done),
            pitch: 0,
            slice: 0,
        };
        let extent = Extent {
            width: part,
            height: 1,
            depth: 1,
        };
        match into {
            true => copy_block(inside, outside, extent, direction)?,
            false => copy_block(outside, inside, extent, direction)?,
        }
        (done, column, row) = (done + part, 0, row + 1);
    }
    Ok(())
}

/// A rectangle of an array, starting at byte `x` of row `y`.
///
/// # Safety
/// `array` is null or an array.
unsafe fn rectangle(
    array: *mut Array,
    [x, y]: [usize; 2],
    width: usize,
    height: usize,
) -> Result<CopyEnd, Error> {
    // SAFETY: promised by the caller.
    let array = unsafe { array.as_ref() }.ok_or(Error::InvalidValue)?;
    let right = x.checked_add(width);
    let bottom = y.checked_add(height);
    if right.is_none_or(|right| right > array.width * array.element)
        || bottom.is_none_or(|bottom| bottom > array.height.max(1))
    {
        return Err(Error::InvalidValue);
    }
    let start = array.data.wrapping_add(y * array.pitch + x);
    Ok(CopyEnd {
        start,
        pitch: array.pitch,
        slice: array.slice,
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2DToArray(
    to: *mut Array,
    x: usize,
    y: usize,
    from: *const c_void,
    pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Status {
    api_call(|| {
        let direction = Direction::new(kind)?;
        check_pitches(&[pitch], width)?;
        // SAFETY: promised by the caller.
        let to = unsafe { rectangle(to, [x, y], width, height)? };
        let from = CopyEnd {
            start: from.cast_mut().cast(),
            pitch,
            slice: 0,
        };
        copy_block(
            to,
            from,
            Extent {
                width,
                height,
                depth: 1,
            },
            direction,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2DFromArray(
    to: *mut c_void,
    pitch: usize,
    from: *const Array,
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Status {
    api_call(|| {
        let direction = Direction::new(kind)?;
        check_pitches(&[pitch], width)?;
        // SAFETY: promised by the caller.
        let from = unsafe { rectangle(from.cast_mut(), [x, y], width, height)? };
        let to = CopyEnd {
            start: to.cast(),
            pitch,
            slice: 0,
        };
        copy_block(
            to,
            from,
            Extent {
                width,
                height,
                depth: 1,
            },
            direction,
        )
    })
}

/// Defines the copies and fills with a stream argument: the work of every stream is complete when the call
/// returns.
macro_rules! on_a_stream {
    ($($name:ident = $plain:ident($($arg:ident: $ty:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty,)* _stream: *mut c_void) -> Status {
            $plain($($arg),*)
        }
    )*};
}

on_a_stream! {
    cudaMemcpyAsync = cudaMemcpy(to: *mut c_void, from: *const c_void, count: usize, kind: c_int);
    cudaMemcpyPeerAsync = cudaMemcpyPeer(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, count: usize);
    cudaMemcpy2DAsync = cudaMemcpy2D(to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_int);
    cudaMemsetAsync = cudaMemset(to: *mut c_void, value: c_int, count: usize);
    cudaMemset2DAsync = cudaMemset2D(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize);
    cudaMemset3DAsync = cudaMemset3D(to: Pitched, value: c_int, extent: Extent);
    cudaMemcpyToSymbolAsync = cudaMemcpyToSymbol(to: *const c_void, from: *const c_void, count: usize, offset: usize, kind: c_int);
    cudaMemcpyFromSymbolAsync = cudaMemcpyFromSymbol(to: *mut c_void, from: *const c_void, count: usize, offset: usize, kind: c_int);
    cudaMemcpyToArrayAsync = cudaMemcpyToArray(to: *mut Array, x: usize, y: usize, from: *const c_void, count: usize, kind: c_int);
    cudaMemcpy2DToArrayAsync = cudaMemcpy2DToArray(to: *mut Array, x: usize, y: usize, from: *const c_void, pitch: usize, width: usize, height: usize, kind: c_int);
    cudaMemcpy2DFromArrayAsync = cudaMemcpy2DFromArray(to: *mut c_void, pitch: usize, from: *const Array, x: usize, y: usize, width: usize, height: usize, kind: c_int);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpy3DAsync(copy: *const Copy3D, _stream: *mut c_void) -> Status {
    // SAFETY: promised by the caller.
    unsafe { cudaMemcpy3D(copy) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::memory::{Owner, allocate};
    use std::ptr::{null, null_mut};

    #[test]
    fn wrong_copies_have_cudas_codes() {
        let device = allocate(64, Owner::Device, 0).unwrap();
        let mut host = [1_u8; 64];
        let at: *mut c_void = host.as_mut_ptr().cast();
        assert_eq!(cudaMemcpy(device, at, 64, 1), 0);
        assert_eq!(cudaMemcpy(device, at, 65, 1), Error::InvalidValue as Status);
        assert_eq!(
            cudaMemcpy(null_mut(), at, 4, 1),
            Error::InvalidValue as Status
        );
        assert_eq!(
            cudaMemcpy(device, null(), 4, 1),
            Error::InvalidValue as Status
        );
        assert_eq!(cudaMemcpy(null_mut(), null(), 0, 1), 0);
        assert_eq!(
            cudaMemcpy(device, at, 4, 7),
            Error::InvalidMemcpyDirection as Status
        );
        assert_eq!(cudaMemcpy(at, device, 4, 1), Error::InvalidValue as Status);
        assert_eq!(cudaMemcpy(device, at, 4, 2), Error::InvalidValue as Status);
        assert_eq!(cudaMemset(device, 3, 65), Error::InvalidValue as Status);
    }

    #[test]
    fn pitched_copies_preserve_padding() {
        let from: Vec<u8> = (0..12).collect();
        let mut to = [99_u8; 15];
        let at = to.as_mut_ptr().cast();
        assert_eq!(cudaMemcpy2D(at, 5, from.as_ptr().cast(), 4, 3, 3, 0), 0);
        assert_eq!(to, [0, 1, 2, 99, 99, 4, 5, 6, 99, 99, 8, 9, 10, 99, 99]);
        assert_eq!(cudaMemset2D(at, 5, 7, 2, 2), 0);
        assert_eq!(to, [7, 7, 2, 99, 99, 7, 7, 6, 99, 99, 8, 9, 10, 99, 99]);
        let pitch = cudaMemcpy2D(at, 2, from.as_ptr().cast(), 4, 3, 3, 0);
        assert_eq!(pitch, Error::InvalidPitchValue as Status);
    }

    #[test]
    fn sizes_beyond_rows_and_addresses_are_errors() {
        let (mut from, mut to) = ([1_u8; 64], [9_u8; 64]);
        let (source, at) = (from.as_mut_ptr().cast(), to.as_mut_ptr().cast());
        let pitch = Error::InvalidPitchValue as Status;
        let value = Error::InvalidValue as Status;
        let half = usize::MAX / 2 + 2;
        assert_eq!(cudaMemset2D(at, 2, 7, 3, 2), pitch);
        assert_eq!(cudaMemset2D(at, 2, 7, 3, 1), pitch);
        assert_eq!(cudaMemcpy2D(at, 3, source, 2, 3, 1, 0), pitch);
        assert_eq!(cudaMemset2D(at, half, 7, 3, 3), value);
        assert_eq!(cudaMemcpy2D(at, half, source, half, 3, 3, 0), value);
        assert_eq!(cudaMemset(at, 7, usize::MAX), value);
        let box_of = |width, height, depth| Extent {
            width,
            height,
            depth,
        };
        let memory = |pitch, ysize| Pitched {
            ptr: at,
            pitch,
            xsize: pitch,
            ysize,
        };
        assert_eq!(cudaMemset3D(memory(2, 4), 7, box_of(3, 2, 1)), pitch);
        assert_eq!(cudaMemset3D(memory(4, 1), 7, box_of(3, 2, 2)), value);
        assert_eq!(cudaMemset3D(memory(half, 2), 7, box_of(3, 1, 1)), value);
        assert_eq!(to, [9; 64], "an error changes no memory");
        assert_eq!(cudaMemset3D(memory(4, 2), 7, box_of(3, 2, 2)), 0);
        assert_eq!(to[..16], [7, 7, 7, 9, 7, 7, 7, 9, 7, 7, 7, 9, 7, 7, 7, 9]);
    }
}
