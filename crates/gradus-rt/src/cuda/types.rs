//! Structures shared by programs and the runtime, field by field as in the header.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Dim3 {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

/// `cudaExtent`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `cudaPos`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Place {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

/// `cudaPitchedPtr`: rows of `xsize` bytes every `pitch` bytes, `ysize` rows per slice.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Pitched {
    pub ptr: *mut c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Copy3D {
    pub src_array: *mut Array,
    pub src_pos: Place,
    pub src: Pitched,
    pub dst_array: *mut Array,
    pub dst_pos: Place,
    pub dst: Pitched,
    pub extent: Extent,
    pub kind: c_int,
}

/// `cudaChannelFormatDesc`: bits of each channel, and the kind of the channels.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Format {
    pub x: c_int,
    pub y: c_int,
    pub z: c_int,
    pub w: c_int,
    pub f: c_int,
}

impl Format {
    /// Size of an element in bytes; `None` if no whole number of bytes.
    pub fn bytes(&self) -> Option<usize> {
        let bits = [self.x, self.y, self.z, self.w].map(|bits| usize::try_from(bits).ok());
        let bits = bits.into_iter().sum::<Option<usize>>()?;
        (bits > 0 && bits.is_multiple_of(8)).then_some(bits / 8)
    }
}

/// `cudaArray`: rows of elements; a size of 0 means an absent dimension.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Array {
    pub data: *mut u8,
    pub format: Format,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub element: usize,
    pub pitch: usize,
    pub slice: usize,
    pub flags: c_uint,
}

/// `textureReference`: the bound memory and the sampling mode.
#[repr(C)]
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Texture {
    pub normalized: c_int,
    pub filter: c_int,
    pub address: [c_int; 3],
    pub format: Format,
    pub srgb: c_int,
    pub anisotropy: c_uint,
    pub mipmap_filter: c_int,
    pub mipmap: [f32; 3],
    pub trilinear: c_int,
    pub fractions: c_int,
    pub border: [f32; 4],
    pub base: *const u8,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub pitch: usize,
    pub slice: usize,
}

/// `cudaResourceDesc`. The words depend on the kind: an array; or a pointer, a format and sizes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Resource {
    pub kind: c_int,
    pub pointer: *mut c_void,
    pub format: Format,
    pub sizes: [usize; 3],
}

/// `cudaTextureDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct TextureDesc {
    pub address: [c_int; 3],
    pub filter: c_int,
    pub read: c_int,
    pub srgb: c_int,
    pub border: [f32; 4],
    pub normalized: c_int,
    pub anisotropy: c_uint,
    pub mipmap_filter: c_int,
    pub mipmap: [f32; 3],
    pub trilinear: c_int,
    pub seamless: c_int,
}

/// `cudaFuncAttributes`.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs)]
pub struct FunctionAttributes {
    pub shared: usize,
    pub constant: usize,
    pub local: usize,
    pub max_threads: c_int,
    pub registers: c_int,
    pub ptx: c_int,
    pub binary: c_int,
    pub cache_mode: c_int,
    pub max_dynamic_shared: c_int,
    pub carveout: c_int,
}

/// `cudaPointerAttributes`.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs)]
pub struct PointerAttributes {
    pub kind: c_int,
    pub device: c_int,
    pub device_pointer: *mut c_void,
    pub host_pointer: *mut c_void,
}

/// `cudaDeviceProp`.
#[repr(C)]
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct DeviceProperties {
    pub name: [c_char; 256],
    pub uuid: [u8; 16],
    pub luid: [c_char; 8],
    pub luid_mask: c_uint,
    pub total_memory: usize,
    pub shared_per_block: usize,
    pub registers_per_block: c_int,
    pub warp: c_int,
    pub max_pitch: usize,
    pub max_threads: c_int,
    pub max_block: [c_int; 3],
    pub max_grid: [c_int; 3],
    pub clock_khz: c_int,
    pub constant_memory: usize,
    pub major: c_int,
    pub minor: c_int,
    pub texture_alignment: usize,
    pub texture_pitch_alignment: usize,
    pub overlap: c_int,
    pub processors: c_int,
    pub timeout: c_int,
    pub integrated: c_int,
    pub maps_host: c_int,
    pub compute_mode: c_int,
    pub textures: [c_int; 26],
    pub surfaces: [c_int; 14],
    pub surface_alignment: usize,
    pub concurrent_kernels: c_int,
    pub ecc: c_int,
    pub pci: [c_int; 3],
    pub tcc: c_int,
    pub async_engines: c_int,
    pub unified: c_int,
    pub memory_clock_khz: c_int,
    pub memory_bus_bits: c_int,
    pub l2: c_int,
    pub l2_persisting: c_int,
    pub threads_per_processor: c_int,
    pub priorities: c_int,
    pub l1_global: c_int,
    pub l1_local: c_int,
    pub shared_per_processor: usize,
    pub registers_per_processor: c_int,
    pub managed: c_int,
    pub multi_board: c_int,
    pub multi_board_group: c_int,
    pub host_atomics: c_int,
    pub double_ratio: c_int,
    pub pageable: c_int,
    pub concurrent_managed: c_int,
    pub preemption: c_int,
    pub registered_pointers: c_int,
    pub cooperative: c_int,
    pub cooperative_multi: c_int,
    pub shared_per_block_optin: usize,
    pub host_page_tables: c_int,
    pub direct_managed: c_int,
    pub blocks_per_processor: c_int,
    pub window: c_int,
    pub shared_reserved: usize,
    pub host_register: c_int,
    pub pools: c_int,
}
