//! cuRAND's host interface: a generator fills memory with numbers of a distribution, and continues where the
//! last call ended.
//!
//! The order of numbers follows cuRAND's manual ([`crate::cuda::random::host_order`]). XORWOW takes numbers from 4096
//! subsequences in round-robin order, MRG32k3a from 81920 (legacy order: 4096), Philox from 65536 with four
//! numbers each.

use super::mrg32k3a::Mrg32k3a;
use super::philox::philox;
use super::xorwow::Xorwow;
use crate::cuda::random::host_order::RoundRobin;
use std::f32::consts::TAU;
use std::ffi::{c_int, c_uint, c_void};

type Status = c_int;
const NOT_INITIALIZED: Status = 101;
const TYPE_ERROR: Status = 103;
const OUT_OF_RANGE: Status = 104;
const LENGTH_NOT_MULTIPLE: Status = 105;

/// `CURAND_ORDERING_PSEUDO_LEGACY`.
const LEGACY: c_int = 103;
/// Factors that map [1, 2^32 - 209] to (0, 1], and to 32 bits.
const MRG_UNIT: f64 = 2.328_306_549_837_828_8e-10;
const MRG_BITS: f64 = 1.000_000_048_662;
/// 2^-32 and 2^-53.
const UNIT: f32 = 2.328_306_4e-10;
const UNIT_DOUBLE: f64 = 1.110_223_024_625_156_5e-16;

/// Greatest mean for which Poisson numbers are products of uniform numbers; the time is proportional to the
/// mean. Beyond, cuRAND uses the normal approximation, too.
const PRODUCT_MEAN_MAX: f64 = 4000.0;

/// State of a generator's algorithm.
enum Source {
    Xorwow(RoundRobin<Xorwow>),
    Mrg32k3a(RoundRobin<Mrg32k3a>),
    /// Position of the next number, and the group of four that contains it.
    Philox {
        place: u64,
        four: [u32; 4],
    },
}

/// A generator.
struct Generator {
    kind: c_int,
    order: c_int,
    seed: u64,
    offset: u64,
    /// Created at the first number.
    source: Option<Source>,
}

/// The group of four Philox numbers at a position.
fn four(place: u64, seed: u64) -> [u32; 4] {
    let (turn, round) = (place / 4 % 65536, place / 4 / 65536);
    philox(u128::from(turn) << 64 | u128::from(round), seed)
}

impl Source {
    fn new(kind: c_int, order: c_int, seed: u64, offset: u64) -> Source {
        match kind {
            121 => {
                let count = if order == LEGACY { 4096 } else { 81920 };
                Source::Mrg32k3a(RoundRobin::new(count, offset, |ahead| {
                    let mut state = Mrg32k3a::new(seed);
                    state.skip(0, ahead);
                    state
                }))
            }
            161 => Source::Philox {
                place: offset,
                four: four(offset, seed),
            },
            _ => Source::Xorwow(RoundRobin::new(4096, offset, |ahead| {
                let mut state = Xorwow::new(seed);
                state.skip(0, ahead);
                state
            })),
        }
    }
}

impl Generator {
    fn source(&mut self) -> &mut Source {
        let (kind, order, seed, offset) = (self.kind, self.order, self.seed, self.offset);
        self.source
            .get_or_insert_with(|| Source::new(kind, order, seed, offset))
    }

    /// 32 random bits of the current subsequence; for MRG32k3a a number in [1, 2^32 - 209].
    fn bits(&mut self) -> u32 {
        let seed = self.seed;
        match self.source() {
            Source::Xorwow(states) => states.next(),
            Source::Mrg32k3a(states) => states.next(),
            Source::Philox { place, four: all } => {
                let found = all[(*place % 4) as usize];
                *place += 1;
                if place.is_multiple_of(4) {
                    *all = four(*place, seed);
                }
                found
            }
        }
    }

    /// An element, or a pair, computed from numbers of a single subsequence.
    fn from_one_subsequence<T>(&mut self, made: impl FnOnce(&mut Generator) -> T) -> T {
        let element = made(self);
        match self.source() {
            Source::Xorwow(states) => states.advance(),
            Source::Mrg32k3a(states) => states.advance(),
            Source::Philox { .. } => {}
        }
        element
    }

    fn is_mrg(&self) -> bool {
        self.kind == 121
    }

    fn integer(&mut self) -> u32 {
        let bits = self.bits();
        match self.is_mrg() {
            true => (f64::from(bits) * MRG_BITS) as u32,
            false => bits,
        }
    }

    /// Uniform in (0, 1].
    fn uniform(&mut self) -> f32 {
        let bits = self.bits();
        match self.is_mrg() {
            true => (f64::from(bits) * MRG_UNIT) as f32,
            false => bits as f32 * UNIT + UNIT / 2.0,
        }
    }

    /// Uniform in (0, 1].
    fn uniform_double(&mut self) -> f64 {
        if self.is_mrg() {
            return f64::from(self.bits()) * MRG_UNIT;
        }
        let (low, high) = (u64::from(self.bits()), u64::from(self.bits()));
        let bits = low ^ (high << 21);
        bits as f64 * UNIT_DOUBLE + UNIT_DOUBLE / 2.0
    }

    /// Two numbers of the standard normal distribution (Box and Muller 1958).
    fn normals(&mut self) -> [f32; 2] {
        let u = self.uniform();
        let angle = match self.is_mrg() {
            true => self.uniform() * TAU,
            false => self.bits() as f32 * (UNIT * TAU) + UNIT * TAU / 2.0,
        };
        let (sine, cosine) = angle.sin_cos();
        let radius = (-2.0 * u.ln()).sqrt();
        [radius * sine, radius * cosine]
    }

    fn normal_doubles(&mut self) -> [f64; 2] {
        let (u, v) = (self.uniform_double(), self.uniform_double());
        let (sine, cosine) = (v * std::f64::consts::TAU).sin_cos();
        let radius = (-2.0 * u.ln()).sqrt();
        [radius * sine, radius * cosine]
    }

    fn poisson(&mut self, mean: f64) -> u32 {
        if mean > PRODUCT_MEAN_MAX {
            let [normal, _] = self.normal_doubles();
            // The conversion saturates.
            return mean.sqrt().mul_add(normal, mean + 0.5) as u32;
        }
        // The normal approximation is inaccurate for small means. The product method underflows for large
        // means; the mean is therefore split.
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

/// Fills memory by the generator of a handle.
///
/// # Safety
/// The handle is null or a generator; `out` holds `count` elements.
unsafe fn fill_memory<T>(
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

/// Fills memory with pairs of normal numbers, each mapped by `made`.
fn fill_pairs<T>(
    generator: &mut Generator,
    out: &mut [T],
    two: impl Fn(&mut Generator) -> [T; 2],
    made: impl Fn(T) -> T,
) -> Result<(), Status> {
    if !out.len().is_multiple_of(2) {
        return Err(LENGTH_NOT_MULTIPLE);
    }
    for pair in out.chunks_exact_mut(2) {
        let [a, b] = generator.from_one_subsequence(&two);
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
        order: 101,
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
    // SAFETY: the generator came from `curandCreateGenerator` and is freed once.
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

/// Changes the initial state of a generator, and restarts the generator.
///
/// # Safety
/// The handle is null or a generator.
unsafe fn restart_with(handle: *mut c_void, change: impl FnOnce(&mut Generator)) -> Status {
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
    unsafe { restart_with(handle, |generator| generator.seed = seed) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandSetGeneratorOffset(handle: *mut c_void, offset: u64) -> Status {
    // SAFETY: promised by the caller.
    unsafe { restart_with(handle, |generator| generator.offset = offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn curandSetGeneratorOrdering(handle: *mut c_void, order: c_int) -> Status {
    match order {
        // SAFETY: promised by the caller.
        100 | 101 | LEGACY => unsafe { restart_with(handle, |generator| generator.order = order) },
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
        fill_memory(handle, out, count, |generator, out| {
            out.fill_with(|| generator.from_one_subsequence(|g| g.integer()));
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
        fill_memory(handle, out, count, |generator, out| {
            out.fill_with(|| generator.from_one_subsequence(|g| g.uniform()));
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
        fill_memory(handle, out, count, |generator, out| {
            out.fill_with(|| generator.from_one_subsequence(|g| g.uniform_double()));
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
    // Only 64-bit quasi-random generators support this call.
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
    let made = |x: f32| x * deviation + mean;
    // SAFETY: promised by the caller.
    unsafe {
        fill_memory(handle, out, count, |generator, out| {
            fill_pairs(generator, out, Generator::normals, made)
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
        fill_memory(handle, out, count, |generator, out| {
            fill_pairs(generator, out, Generator::normal_doubles, made)
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
    let made = |x: f32| (x * deviation + mean).exp();
    // SAFETY: promised by the caller.
    unsafe {
        fill_memory(handle, out, count, |generator, out| {
            fill_pairs(generator, out, Generator::normals, made)
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
        fill_memory(handle, out, count, |generator, out| {
            fill_pairs(generator, out, Generator::normal_doubles, made)
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
    // The result is a 32-bit number. A NaN is no mean either.
    if !(mean > 0.0 && mean <= f64::from(u32::MAX)) {
        return OUT_OF_RANGE;
    }
    // SAFETY: promised by the caller.
    unsafe {
        fill_memory(handle, out, count, |generator, out| {
            out.fill_with(|| generator.from_one_subsequence(|g| g.poisson(mean)));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::random::host_order::Sequence;

    fn made(kind: c_int, seed: u64, offset: u64) -> *mut c_void {
        let mut handle = std::ptr::null_mut();
        unsafe {
            assert_eq!(curandCreateGenerator(&mut handle, kind), 0);
            assert_eq!(curandSetPseudoRandomGeneratorSeed(handle, seed), 0);
            assert_eq!(curandSetGeneratorOffset(handle, offset), 0);
        }
        handle
    }

    /// cuRAND's numbers for the seed 1234, as published with many programs.
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

    /// The orders of cuRAND's manual, computed from the device sequences.
    #[test]
    fn subsequences_are_round_robin() {
        let mut out = vec![0_u32; 90_000];
        let fill = |kind, order, out: &mut Vec<u32>| unsafe {
            let handle = made(kind, 7, 0);
            assert_eq!(curandSetGeneratorOrdering(handle, order), 0);
            assert_eq!(curandGenerate(handle, out.as_mut_ptr(), out.len()), 0);
            curandDestroyGenerator(handle);
        };
        let of_mrg = |subsequence, number| {
            let mut state = Mrg32k3a::new(7);
            state.skip(subsequence, number);
            (f64::from(state.next()) * 1.000_000_048_662) as u32
        };
        fill(121, 101, &mut out);
        assert_eq!(out[..2], [of_mrg(0, 0), of_mrg(1, 0)]);
        assert_eq!(
            out[81_919..81_922],
            [of_mrg(81_919, 0), of_mrg(0, 1), of_mrg(1, 1)]
        );
        fill(121, 103, &mut out);
        assert_eq!(out[4095..4097], [of_mrg(4095, 0), of_mrg(0, 1)]);
        let mut far = vec![0_u32; 4 * 65536 + 8];
        fill(161, 101, &mut far);
        assert_eq!(far[4..8], philox(1 << 64, 7));
        assert_eq!(far[4 * 65536..4 * 65537], philox(1, 7));
    }

    /// A double takes two numbers of a single subsequence.
    #[test]
    fn double_uses_one_subsequence() {
        let (handle, mut out) = (made(101, 7, 0), [0.0; 2]);
        let mut state = Xorwow::new(7);
        state.skip(1, 0);
        let (low, high) = (u64::from(state.next()), u64::from(state.next()));
        let expected = (low ^ high << 21) as f64 * 2_f64.powi(-53) + 2_f64.powi(-54);
        unsafe {
            assert_eq!(curandGenerateUniformDouble(handle, out.as_mut_ptr(), 2), 0);
            curandDestroyGenerator(handle);
        }
        assert_eq!(out[1], expected);
    }

    /// An offset skips the given number of values.
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

    /// A mean that is no number of the result's type is an error; the time does not depend on a large mean.
    #[test]
    fn poisson_numbers_of_large_means() {
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut out = vec![0_u32; 20_000];
            let handle = made(161, 3, 0);
            let mut fill = |mean: f64| unsafe {
                let status = curandGeneratePoisson(handle, out.as_mut_ptr(), out.len(), mean);
                let sum: f64 = out.iter().map(|x| f64::from(*x)).sum();
                (status, sum / out.len() as f64)
            };
            for mean in [f64::INFINITY, f64::NAN, -1.0, 0.0, 5e9, 1e300] {
                assert_eq!(fill(mean).0, OUT_OF_RANGE, "{mean}");
            }
            for mean in [3999.0, 4001.0, 4e9] {
                let (status, found) = fill(mean);
                // Five standard deviations of the average.
                let bound = 5.0 * (mean / 20_000.0).sqrt();
                assert!(
                    status == 0 && (found - mean).abs() < bound,
                    "{mean}: {found}"
                );
            }
            done.send(()).expect("the test waits");
        });
        let ended = wait.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(ended, Ok(()), "a mean does not end, or is wrong");
    }
}
