//! Textures: a kernel's fetch reads a descriptor, filled here from a description or by binding. The header
//! `gradus/textures.h` implements the fetches, in the kernel's own code.

use super::Status;
use super::arrays;
use super::error::{Error, api_call};
use super::memory::store_result;
use super::types::{Array, Format, Resource, Texture, TextureDesc};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaResourceType`.
const ARRAY: i32 = 0;
const LINEAR: i32 = 2;
const PITCH_2D: i32 = 3;
/// `cudaChannelFormatKind`: floating point.
const FLOAT: i32 = 2;
/// `cudaFilterModeLinear`, `cudaReadModeNormalizedFloat`.
const LINEAR_FILTER: i32 = 1;
const FRACTIONS: i32 = 1;

/// The resource of a texture object, for `cudaGetTextureObjectResourceDesc`.
struct ObjectResource(Resource);
// SAFETY: the contained pointer is only returned to the program, never dereferenced on another thread.
unsafe impl Send for ObjectResource {}

/// Texture objects by handle, with the resource of each.
fn objects() -> MutexGuard<'static, BTreeMap<u64, ObjectResource>> {
    static ALL: Mutex<BTreeMap<u64, ObjectResource>> = Mutex::new(BTreeMap::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Texture {
    /// Binds `width` by `height` elements of memory.
    fn bind_memory(&mut self, base: *const c_void, width: usize, height: usize, pitch: usize) {
        self.base = base.cast();
        (self.width, self.height, self.depth) = (width, height, 1);
        (self.pitch, self.slice) = (pitch, 0);
    }

    fn bind_array(&mut self, array: &Array) {
        self.base = array.data;
        self.width = array.width;
        self.height = array.height.max(1);
        self.depth = array.depth.max(1);
        (self.pitch, self.slice) = (array.pitch, array.slice);
    }

    /// Binds a resource.
    ///
    /// # Safety
    /// The resource's array is valid.
    unsafe fn bind_resource(&mut self, resource: &Resource) -> Result<(), Error> {
        match resource.kind {
            ARRAY => {
                // SAFETY: promised by the caller.
                let array = unsafe { arrays::array_at(resource.pointer)? };
                self.format = array.format;
                self.bind_array(array);
            }
            LINEAR => {
                self.format = resource.format;
                let element = self.format.bytes().ok_or(Error::InvalidChannelDescriptor)?;
                self.bind_memory(resource.pointer, resource.sizes[0] / element, 1, 0);
            }
            PITCH_2D => {
                self.format = resource.format;
                let [width, height, pitch] = resource.sizes;
                let element = self.format.bytes().ok_or(Error::InvalidChannelDescriptor)?;
                if width * element > pitch {
                    return Err(Error::InvalidPitchValue);
                }
                self.bind_memory(resource.pointer, width, height, pitch);
            }
            _ => return Err(Error::NotSupported),
        }
        match self.base.is_null() {
            true => Err(Error::InvalidValue),
            false => Ok(()),
        }
    }
}

/// A texture with the sampling mode of a description, unbound.
fn unbound_texture(texture: &TextureDesc) -> Texture {
    Texture {
        normalized: i32::from(texture.normalized != 0),
        filter: texture.filter,
        address: texture.address,
        format: Format::default(),
        srgb: texture.srgb,
        anisotropy: texture.anisotropy,
        mipmap_filter: texture.mipmap_filter,
        mipmap: texture.mipmap,
        trilinear: texture.trilinear,
        fractions: i32::from(texture.read == FRACTIONS),
        border: texture.border,
        base: std::ptr::null(),
        width: 0,
        height: 0,
        depth: 0,
        pitch: 0,
        slice: 0,
    }
}

/// Checks that the sampling mode suits the elements.
fn check_sampling_mode(texture: &Texture, resource: i32) -> Result<(), Error> {
    let float = texture.format.f == FLOAT;
    if texture.fractions != 0 && !float && texture.format.x > 16 {
        return Err(Error::InvalidNormSetting);
    }
    // Linear memory is fetched by element, without a filter.
    if texture.filter == LINEAR_FILTER && !float && texture.fractions == 0 && resource != LINEAR {
        return Err(Error::InvalidFilterSetting);
    }
    if texture.srgb != 0 {
        return Err(Error::NotSupported);
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaCreateTextureObject(
    to: *mut u64,
    resource: *const Resource,
    texture: *const TextureDesc,
    view: *const c_void,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let (resource, texture) = unsafe { (resource.as_ref(), texture.as_ref()) };
        let (Some(resource), Some(texture)) = (resource, texture) else {
            return Err(Error::InvalidValue);
        };
        if to.is_null() {
            return Err(Error::InvalidValue);
        }
        // Filtering stops at the edges of a cube's face.
        let seams = texture.seamless == 0 || texture.filter != LINEAR_FILTER;
        if !view.is_null() || !seams {
            return Err(Error::NotSupported);
        }
        let mut made = unbound_texture(texture);
        // SAFETY: promised by the caller.
        unsafe { made.bind_resource(resource)? };
        check_sampling_mode(&made, resource.kind)?;
        let handle = Box::into_raw(Box::new(made)) as u64;
        objects().insert(handle, ObjectResource(*resource));
        // SAFETY: promised by the caller.
        unsafe { store_result(to, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDestroyTextureObject(object: u64) -> Status {
    api_call(|| {
        if object == 0 {
            return Ok(());
        }
        objects().remove(&object).ok_or(Error::InvalidValue)?;
        // SAFETY: the texture came from `cudaCreateTextureObject` and is no longer registered.
        drop(unsafe { Box::from_raw(object as *mut Texture) });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetTextureObjectResourceDesc(to: *mut Resource, object: u64) -> Status {
    api_call(|| {
        let resource = objects().get(&object).ok_or(Error::InvalidValue)?.0;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, resource) }
    })
}

/// The variable of a texture reference, for binding.
///
/// # Safety
/// `reference` is null or a texture reference without a concurrent user.
unsafe fn reference_variable<'a>(reference: *const Texture) -> Result<&'a mut Texture, Error> {
    // SAFETY: promised by the caller; the interface takes a const pointer, and writes.
    unsafe { reference.cast_mut().as_mut() }.ok_or(Error::InvalidTexture)
}

/// Checks that code compiled for texels of one format reads texels of another: the channels have equal widths,
/// or are floating-point numbers of 16 and 32 bits. Fetches from linear memory convert no numbers. A reference
/// without a format accepts every format.
fn check_format(compiled: &Format, bound: &Format, resource: i32) -> Result<(), Error> {
    let channels = |format: &Format| [format.x, format.y, format.z, format.w];
    let (own, new) = (channels(compiled), channels(bound));
    let is_number = |format: &Format| {
        let used = channels(format).into_iter().filter(|bits| *bits != 0);
        format.f == FLOAT && used.into_iter().all(|bits| bits == 16 || bits == 32)
    };
    let promotes = resource != LINEAR
        && is_number(compiled)
        && is_number(bound)
        && own.map(|bits| bits != 0) == new.map(|bits| bits != 0);
    match own == new || own == [0; 4] || promotes {
        true => Ok(()),
        false => Err(Error::InvalidChannelDescriptor),
    }
}

/// Binds rows of memory with texels of a format. An error leaves the reference unchanged.
///
/// # Safety
/// `reference` is null or a texture reference without a concurrent user; `format` is null or readable.
unsafe fn bind_reference(
    reference: *const Texture,
    format: *const Format,
    resource: i32,
    bind: impl FnOnce(&mut Texture, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    // SAFETY: promised by the caller.
    let (texture, format) = unsafe { (reference_variable(reference)?, format.as_ref()) };
    let format = format.ok_or(Error::InvalidValue)?;
    let element = format.bytes().ok_or(Error::InvalidChannelDescriptor)?;
    check_format(&texture.format, format, resource)?;
    let mut bound = texture.clone();
    bound.format = *format;
    bind(&mut bound, element)?;
    check_sampling_mode(&bound, resource)?;
    *texture = bound;
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaBindTexture(
    offset: *mut usize,
    reference: *const Texture,
    memory: *const c_void,
    format: *const Format,
    size: usize,
) -> Status {
    let bind = |texture: &mut Texture, element: usize| {
        if memory.is_null() {
            return Err(Error::InvalidValue);
        }
        // The default size covers all memory after the address.
        let known = super::memory::owner(memory).map_or(size, |(_, left)| size.min(left));
        texture.bind_memory(memory, known / element, 1, 0);
        Ok(())
    };
    api_call(|| {
        // SAFETY: promised by the caller.
        unsafe { bind_reference(reference, format, LINEAR, bind)? };
        if !offset.is_null() {
            // SAFETY: promised by the caller.
            unsafe { offset.write(0) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaBindTexture2D(
    offset: *mut usize,
    reference: *const Texture,
    memory: *const c_void,
    format: *const Format,
    width: usize,
    height: usize,
    pitch: usize,
) -> Status {
    let bind = |texture: &mut Texture, element: usize| {
        let row = width.checked_mul(element);
        if memory.is_null() || row.is_none_or(|row| row > pitch) {
            return Err(Error::InvalidValue);
        }
        texture.bind_memory(memory, width, height, pitch);
        Ok(())
    };
    api_call(|| {
        // SAFETY: promised by the caller.
        unsafe { bind_reference(reference, format, PITCH_2D, bind)? };
        if !offset.is_null() {
            // SAFETY: promised by the caller.
            unsafe { offset.write(0) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaBindTextureToArray(
    reference: *const Texture,
    array: *const Array,
    format: *const Format,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let (array, stated) = unsafe { (arrays::array_at(array.cast())?, format.as_ref()) };
        // The texels have the array's format; another interpretation is not implemented.
        if stated.is_some_and(|format| *format != array.format) {
            return Err(Error::InvalidChannelDescriptor);
        }
        let bind = |texture: &mut Texture, _: usize| {
            texture.bind_array(array);
            Ok(())
        };
        // SAFETY: promised by the caller.
        unsafe { bind_reference(reference, &raw const array.format, ARRAY, bind) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaUnbindTexture(reference: *const Texture) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        unsafe { reference_variable(reference)? }.bind_memory(std::ptr::null(), 0, 0, 0);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetTextureAlignmentOffset(
    to: *mut usize,
    reference: *const Texture,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let bound = unsafe { reference_variable(reference)? };
        if bound.base.is_null() {
            return Err(Error::InvalidTextureBinding);
        }
        // SAFETY: promised by the caller.
        unsafe { store_result(to, 0) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(bits: [i32; 4], kind: i32) -> Format {
        let [x, y, z, w] = bits;
        Format {
            x,
            y,
            z,
            w,
            f: kind,
        }
    }

    #[test]
    fn a_bound_format_is_the_format_of_fetches() {
        const SIGNED: i32 = 0;
        let float = format([32, 0, 0, 0], FLOAT);
        let half = format([16, 0, 0, 0], FLOAT);
        let mut texture = unbound_texture(&TextureDesc::default());
        texture.format = float;
        let texture = &raw mut texture;
        let memory = [0_u32; 8];
        // The status, the bits of the bound format's first channel, and the number of texels.
        let bind = |format: &Format| unsafe {
            let start = memory.as_ptr().cast();
            let status = cudaBindTexture(std::ptr::null_mut(), texture, start, format, 32);
            (status, (*texture).format.x, (*texture).width)
        };
        assert_eq!(bind(&float), (0, 32, 8));
        for wrong in [
            half,
            format([8, 0, 0, 0], SIGNED),
            format([16, 0, 0, 0], SIGNED),
            format([32, 32, 0, 0], FLOAT),
        ] {
            let refused = Error::InvalidChannelDescriptor as Status;
            assert_eq!(bind(&wrong), (refused, 32, 8));
        }
        // Words of equal width are read by their bits.
        assert_eq!(bind(&format([32, 0, 0, 0], SIGNED)), (0, 32, 8));
        assert_eq!(bind(&float), (0, 32, 8));
        let (none, start) = (std::ptr::null_mut(), memory.as_ptr().cast());
        // SAFETY: the memory holds two rows of 16 bytes.
        let rows = unsafe { cudaBindTexture2D(none, texture, start, &raw const half, 8, 2, 16) };
        // SAFETY: the texture is a local variable.
        let bound = unsafe { ((*texture).format.x, (*texture).width) };
        assert_eq!((rows, bound), (0, (16, 8)));
    }
}
