//! Layout of the structures in the CUDA headers and in the runtime: clang compares offsets and sizes.

use gradus_rt::cuda::types::{
    Array, Copy3D, DeviceProperties, FunctionAttributes, PointerAttributes, Resource, Texture,
    TextureDesc,
};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// C assertions: for each structure the size, for each listed field the offset.
macro_rules! layouts {
    ($($name:literal = $ty:ty { $($field:literal = $own:ident),* $(,)? })*) => {{
        let mut text = String::new();
        $(
            let size = size_of::<$ty>();
            writeln!(text, "_Static_assert(sizeof(struct {}) == {size}, \"{} size\");", $name, $name).unwrap();
            $(
                let place = offset_of!($ty, $own);
                writeln!(
                    text,
                    "_Static_assert(__builtin_offsetof(struct {}, {}) == {place}, \"{}.{}\");",
                    $name, $field, $name, $field
                )
                .unwrap();
            )*
        )*
        text
    }};
}

fn assertions() -> String {
    layouts! {
        "cudaDeviceProp" = DeviceProperties {
            "totalGlobalMem" = total_memory, "warpSize" = warp, "memPitch" = max_pitch,
            "maxThreadsDim" = max_block, "maxGridSize" = max_grid, "clockRate" = clock_khz,
            "totalConstMem" = constant_memory, "major" = major, "textureAlignment" = texture_alignment,
            "multiProcessorCount" = processors, "computeMode" = compute_mode, "maxTexture1D" = textures,
            "maxSurface1D" = surfaces, "surfaceAlignment" = surface_alignment, "pciBusID" = pci,
            "asyncEngineCount" = async_engines, "memoryClockRate" = memory_clock_khz, "l2CacheSize" = l2,
            "maxThreadsPerMultiProcessor" = threads_per_processor, "managedMemory" = managed,
            "sharedMemPerMultiprocessor" = shared_per_processor,
            "singleToDoublePrecisionPerfRatio" = double_ratio, "cooperativeLaunch" = cooperative,
            "sharedMemPerBlockOptin" = shared_per_block_optin,
            "maxBlocksPerMultiProcessor" = blocks_per_processor, "memoryPoolsSupported" = pools,
        }
        "cudaFuncAttributes" = FunctionAttributes {
            "maxThreadsPerBlock" = max_threads, "maxDynamicSharedSizeBytes" = max_dynamic_shared,
        }
        "cudaPointerAttributes" = PointerAttributes { "hostPointer" = host_pointer }
        "cudaMemcpy3DParms" = Copy3D {
            "srcPos" = src_pos, "srcPtr" = src, "dstArray" = dst_array, "dstPtr" = dst, "extent" = extent, "kind" = kind,
        }
        "cudaResourceDesc" = Resource {
            "res.linear.devPtr" = pointer, "res.linear.desc" = format, "res.linear.sizeInBytes" = sizes,
            "res.pitch2D.width" = sizes, "res.array.array" = pointer,
        }
        "cudaTextureDesc" = TextureDesc {
            "filterMode" = filter, "borderColor" = border, "normalizedCoords" = normalized,
            "disableTrilinearOptimization" = trilinear,
        }
        "textureReference" = Texture {
            "addressMode" = address, "channelDesc" = format, "mipmapLevelBias" = mipmap,
            "gr_fractions" = fractions, "gr_border" = border, "gr_base" = base, "gr_width" = width,
            "gr_pitch" = pitch, "gr_slice" = slice,
        }
        "cudaArray" = Array {
            "format" = format, "width" = width, "element" = element, "pitch" = pitch, "flags" = flags,
        }
    }
}

#[test]
fn headers_and_runtime_agree() {
    let text = assertions();
    assert!(text.lines().count() > 50);
    // Arrays are declared for kernels only.
    let text = format!("#define _Static_assert static_assert\n{text}int main() {{ return 0; }}\n");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda_layouts.cu");
    std::fs::write(&file, text).expect("written");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/cuda");
    let clang = std::env::var_os("GRADUS_CLANG").unwrap_or("clang-22".into());
    let output = Command::new(clang)
        .args(["-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib"])
        .args([
            "-Xclang",
            "-target-sdk-version=12.0",
            "-std=gnu++17",
            "-fsyntax-only",
        ])
        .arg("-isystem")
        .arg(include)
        .args(["-include", "cuda_runtime.h"])
        .arg(&file)
        .output()
        .expect("clang runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
