//! cuRAND's host interface: a generator fills memory with numbers of a distribution, going on where it was.
//!
//! XORWOW's default order deals 4096 subsequences out in turn: the number at place n is number n / 4096 of
//! subsequence n mod 4096, as cuRAND's manual says. The others go through one sequence.

use super::mrg32k3a::Mrg32k3a;
use super::philox::philox;
use super::xorwow::Xorwow;
use std::ffi::{c_int, c_uint, c_void};

type Status = c_int;
const NOT_INITIALIZED: Status = 101;
const TYPE_ERROR: Status = 103;
const OUT_OF_RANGE: Status = 104;
const LENGTH_NOT_MULTIPLE: Status = 105;

/// Subsequences that XORWOW's default order deals out.
const DEALT: usize = 4096;

/// Where the numbers come from.
enum Source {
    Xorwow { states: Vec<Xorwow>, turn: usize },
    Mrg32k3a(Mrg32k3a),
    Philox { block: u128, left: Vec<u32> },
}

/// A generator.
struct Generator {
    kind: c_int,
    seed: u64,
    offset: u64,
    /// Made at the first number.
    source: Option<Source>,
}

impl Source {
    fn new(kind: c_int, seed: u64, offset: u64) -> Source {
        match kind {
            121 => {
                let mut state = Mrg32k3a::new(seed);
                state.skip(0, offset);
                Source::Mrg32k3a(state)
            }
            161 => {
                let (block, place) = (u128::from(offset / 4), (offset % 4) as usize);
                let mut left = philox(block, seed)[place..].to_vec();
                left.reverse();
                Source::Philox {
                    block: block + 1,
                    left,
                }
            }
            _ => {
                let turn = (offset % DEALT as u64) as usize;
                let mut state = Xorwow::new(seed);
                state.skip(0, offset / DEALT as u64);
                let mut states = Vec::with_capacity(DEALT);
                for place in 0..DEALT {
                    let mut own = state;
                    if place < turn {
                        own.next();
                    }
                    states.push(own);
                    state.skip(1, 0);
                }
                Source::Xorwow { states, turn }
            }
        }
    }

    /// 32 random bits; of MRG32k3a its number in [1, 2^32 - 209].
    fn next(&mut self, seed: u64) -> u32 {
        match self {
            Source::Xorwow { states, turn } => {
                let state = &mut states[*turn];
                *turn = (*turn + 1) % DEALT;
                state.next()
            }
            Source::Mrg32k3a(state) => state.next(),
            Source::Philox { block, left } => {
                if left.is_empty() {
                    *left = philox(*block, seed).to_vec();
                    left.reverse();
                    *block += 1;
                }
                left.pop().unwrap_or_default()
            }
        }
    }
}

impl Generator {
    fn bits(&mut self) -> u32 {
        let Generator {
            kind,
            seed,
            offset,
            source,
        } = self;
        let source = source.get_or_insert_with(|| Source::new(*kind, *seed, *offset));
        source.next(*seed)
    }

    fn is_mrg(&self) -> bool {
        self.kind == 121
    }

    fn integer(&mut self) -> u32 {
        let bits = self.bits();
        match self.is_mrg() {
            true => (f64::from(bits) * (4_294_967_295.0 / 4_294_967_087.0)) as u32,
            false => bits,
        }
    }

    /// In (0, 1].
    fn uniform(&mut self) -> f32 {
        let bits = self.bits();
        match self.is_mrg() {
            true => (f64::from(bits) * 2.328_306_549_837_828_8e-10) as f32,
            false => bits as f32 * 2.328_306_4e-10 + 2.328_306_4e-10 / 2.0,
        }
    }

    /// In (0, 1].
    fn uniform_double(&mut self) -> f64 {
        if self.is_mrg() {
            return f64::from(self.bits()) * 2.328_306_549_837_828_8e-10;
        }
        let (low, high) = (u64::from(self.bits()), u64::from(self.bits()));
        let bits = low ^ (high << 21);
        bits as f64 * 1.110_223_024_625_156_5e-16 + 1.110_223_024_625_156_5e-16 / 2.0
    }

    /// Two numbers of the standard normal distribution (Box and Muller 1958).
    fn normal_pair(&mut self) -> [f64; 2] {
        let (u, v) = (self.uniform_double(), self.uniform_double());
        let (sine, cosine) = (v * std::f64::consts::TAU).sin_cos();
        let radius = (-2.0 * u.ln()).sqrt();
        [radius * sine, radius * cosine]
    }

    fn poisson(&mut self, mean: f64) -> u32 {
        // The normal approximation is too coarse for small means, the product too slow for large ones.
        let (mut whole, mut left) = (0_u32, mean);
        while left > 0.0 {
            let part = left.min(500.0);
            left -= part;
            let (limit, mut product) = ((-part).exp(), self.uniform_double());
            while product > limit {
                product *= self.uniform_double();
                whole = whole.saturating_add(1);
            }
        }
        whole
    }
}

/// The generator behind a handle, and the memory to fill.
///
/// # Safety
/// The handle is null or a generator; there is room for `count` elements.
unsafe fn fill<T>(
    handle: *mut c_void,
    out: *mut T,
    count: usize,
    work: impl FnOnce(&mut Generator, &mut [T]) -> Result<(), Status>,
) -> Status {
    // SAFETY: promised by the caller.
    let Some(generator) = (unsafe { handle.cast::<Generator>().as_mut() }) else {
        return NOT_INITIALIZED;
    };
    if count == 0 {
        return 0;
    }
    if out.is_null() {
        return OUT_OF_RANGE;
    }
    // SAFETY: promised by the caller.
    let out = unsafe { std::slice::from_raw_parts_mut(out, count) };
    match work(generator, out) {
        Ok(()) => 0,
        Err(status) => status,
    }
}

/// Fills with pairs of normal numbers, each put through `made`.
fn pairs<T>(
    generator: &mut Generator,
    out: &mut [T],
    made: impl Fn(f64) -> T,
) -> Result<(), Status> {
    if !out.len().is_multiple_of(2) {
        return Err(LENGTH_NOT_MULTIPLE);
    }
    for pair in out.chunks_exact_mut(2) {
        let [a, b] = generator.normal_pair();
        (pair[0], pair[1]) = (made(a), made(b));
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandCreateGenerator(to: *mut *mut c_void, kind: c_int) -> Status {
    let kind = match kind {
        100 | 101 => 101,
        121 | 161 => kind,
        _ => return TYPE_ERROR,
    };
    let generator = Box::new(Generator {
        kind,
        seed: 0,
        offset: 0,
        source: None,
    });
    // SAFETY: promised by the caller.
    unsafe { to.write(Box::into_raw(generator).cast()) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandCreateGeneratorHost(to: *mut *mut c_void, kind: c_int) -> Status {
    // SAFETY: promised by the caller.
    unsafe { curandCreateGenerator(to, kind) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandDestroyGenerator(handle: *mut c_void) -> Status {
    if handle.is_null() {
        return NOT_INITIALIZED;
    }
    // SAFETY: it was made by `curandCreateGenerator` and is given back once.
    drop(unsafe { Box::from_raw(handle.cast::<Generator>()) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGetVersion(to: *mut c_int) -> Status {
    // SAFETY: promised by the caller.
    unsafe { to.write(10_300) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandSetStream(handle: *mut c_void, _stream: *mut c_void) -> Status {
    if handle.is_null() { NOT_INITIALIZED } else { 0 }
}

/// Changes how a generator begins.
///
/// # Safety
/// The handle is null or a generator.
unsafe fn set(handle: *mut c_void, change: impl FnOnce(&mut Generator)) -> Status {
    // SAFETY: promised by the caller.
    let Some(generator) = (unsafe { handle.cast::<Generator>().as_mut() }) else {
        return NOT_INITIALIZED;
    };
    change(generator);
    generator.source = None;
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandSetPseudoRandomGeneratorSeed(handle: *mut c_void, seed: u64) -> Status {
    // SAFETY: promised by the caller.
    unsafe { set(handle, |generator| generator.seed = seed) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandSetGeneratorOffset(handle: *mut c_void, offset: u64) -> Status {
    // SAFETY: promised by the caller.
    unsafe { set(handle, |generator| generator.offset = offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandSetGeneratorOrdering(handle: *mut c_void, order: c_int) -> Status {
    match order {
        // SAFETY: promised by the caller.
        100 | 101 | 103 => unsafe { set(handle, |_| ()) },
        _ => OUT_OF_RANGE,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerateSeeds(handle: *mut c_void) -> Status {
    if handle.is_null() { NOT_INITIALIZED } else { 0 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerate(handle: *mut c_void, out: *mut c_uint, count: usize) -> Status {
    // SAFETY: promised by the caller.
    unsafe {
        fill(handle, out, count, |generator, out| {
            out.fill_with(|| generator.integer());
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerateUniform(
    handle: *mut c_void,
    out: *mut f32,
    count: usize,
) -> Status {
    // SAFETY: promised by the caller.
    unsafe {
        fill(handle, out, count, |generator, out| {
            out.fill_with(|| generator.uniform());
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerateUniformDouble(
    handle: *mut c_void,
    out: *mut f64,
    count: usize,
) -> Status {
    // SAFETY: promised by the caller.
    unsafe {
        fill(handle, out, count, |generator, out| {
            out.fill_with(|| generator.uniform_double());
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerateLongLong(
    _handle: *mut c_void,
    _out: *mut u64,
    _count: usize,
) -> Status {
    // Only quasi-random generators of 64 bits have this.
    TYPE_ERROR
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerateNormal(
    handle: *mut c_void,
    out: *mut f32,
    count: usize,
    mean: f32,
    deviation: f32,
) -> Status {
    let made = |x: f64| x as f32 * deviation + mean;
    // SAFETY: promised by the caller.
    unsafe {
        fill(handle, out, count, |generator, out| {
            pairs(generator, out, made)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerateNormalDouble(
    handle: *mut c_void,
    out: *mut f64,
    count: usize,
    mean: f64,
    deviation: f64,
) -> Status {
    let made = |x: f64| x * deviation + mean;
    // SAFETY: promised by the caller.
    unsafe {
        fill(handle, out, count, |generator, out| {
            pairs(generator, out, made)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerateLogNormal(
    handle: *mut c_void,
    out: *mut f32,
    count: usize,
    mean: f32,
    deviation: f32,
) -> Status {
    let made = |x: f64| (x as f32 * deviation + mean).exp();
    // SAFETY: promised by the caller.
    unsafe {
        fill(handle, out, count, |generator, out| {
            pairs(generator, out, made)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGenerateLogNormalDouble(
    handle: *mut c_void,
    out: *mut f64,
    count: usize,
    mean: f64,
    deviation: f64,
) -> Status {
    let made = |x: f64| (x * deviation + mean).exp();
    // SAFETY: promised by the caller.
    unsafe {
        fill(handle, out, count, |generator, out| {
            pairs(generator, out, made)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandGeneratePoisson(
    handle: *mut c_void,
    out: *mut c_uint,
    count: usize,
    mean: f64,
) -> Status {
    if mean.is_nan() || mean <= 0.0 {
        return OUT_OF_RANGE;
    }
    // SAFETY: promised by the caller.
    unsafe {
        fill(handle, out, count, |generator, out| {
            out.fill_with(|| generator.poisson(mean));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kind: c_int, seed: u64, offset: u64) -> *mut c_void {
        let mut handle = std::ptr::null_mut();
        unsafe {
            assert_eq!(curandCreateGenerator(&mut handle, kind), 0);
            assert_eq!(curandSetPseudoRandomGeneratorSeed(handle, seed), 0);
            assert_eq!(curandSetGeneratorOffset(handle, offset), 0);
        }
        handle
    }

    /// What cuRAND gives for the seed 1234, as published with many programs that print it.
    #[test]
    fn the_published_numbers() {
        let (handle, mut out) = (made(100, 1234, 0), [0.0_f32; 9]);
        assert_eq!(
            unsafe { curandGenerateUniform(handle, out.as_mut_ptr(), 9) },
            0
        );
        let text = out.map(|x| format!("{x:.4}")).join(" ");
        assert_eq!(
            text,
            "0.1455 0.8202 0.5504 0.2948 0.9147 0.8690 0.3219 0.7829 0.0113"
        );
        assert_eq!(unsafe { curandDestroyGenerator(handle) }, 0);
    }

    /// An offset leaves out as many numbers.
    #[test]
    fn offsets() {
        for kind in [101, 121, 161] {
            let (whole, later) = (made(kind, 9, 0), made(kind, 9, 4099));
            let (mut all, mut rest) = (vec![0; 4110], vec![0; 11]);
            unsafe {
                assert_eq!(curandGenerate(whole, all.as_mut_ptr(), all.len()), 0);
                assert_eq!(curandGenerate(later, rest.as_mut_ptr(), rest.len()), 0);
                curandDestroyGenerator(whole);
                curandDestroyGenerator(later);
            }
            assert_eq!(all[4099..], rest, "{kind}");
        }
    }

    #[test]
    fn distributions_have_their_moments() {
        let (handle, count) = (made(161, 3, 0), 10_000);
        let mut normal = vec![0.0_f64; count];
        let mut poisson = vec![0; count];
        unsafe {
            assert_eq!(
                curandGenerateNormalDouble(handle, normal.as_mut_ptr(), count, 2.0, 3.0),
                0
            );
            assert_eq!(
                curandGeneratePoisson(handle, poisson.as_mut_ptr(), count, 60.0),
                0
            );
            let odd = curandGenerateNormalDouble(handle, normal.as_mut_ptr(), 3, 2.0, 3.0);
            assert_eq!(odd, LENGTH_NOT_MULTIPLE);
            curandDestroyGenerator(handle);
        }
        let moments = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let square = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
            (mean, square / values.len() as f64)
        };
        let near = |(mean, variance): (f64, f64), m: f64, v: f64| {
            (mean - m).abs() < 0.03 * v.sqrt() && (variance / v - 1.0).abs() < 0.05
        };
        normal[..3].fill(2.0);
        assert!(near(moments(&normal), 2.0, 9.0), "{:?}", moments(&normal));
        let poisson: Vec<f64> = poisson.into_iter().map(f64::from).collect();
        assert!(
            near(moments(&poisson), 60.0, 60.0),
            "{:?}",
            moments(&poisson)
        );
    }
}
