//! The programs of `bench/parallel/cilk` in Rust, with rayon's `join` and `scope`: the rayon column of
//! `cargo xtask bench --parallel`.
//!
//! `rayon NAME` runs a program and prints the output of the C version. The first line has the name, and the
//! minimum wall time and processor time of three runs in microseconds. The second line has the result.
//! `RAYON_NUM_THREADS` sets the number of workers. Loops, leaf sizes and the order of operations equal those
//! of the C programs, and so do the results.

use rayon_core::{join, scope};
use std::ffi::{c_int, c_void};

/// Pointer to numbers shared by several tasks, each with its own part.
#[derive(Clone, Copy)]
struct At(*mut f64);

// SAFETY: each program passes disjoint or read-only parts to concurrent tasks.
unsafe impl Send for At {}
unsafe impl Sync for At {}

impl At {
    fn of(numbers: &mut [f64]) -> At {
        At(numbers.as_mut_ptr())
    }
    fn plus(self, n: usize) -> At {
        At(self.0.wrapping_add(n))
    }
    fn get(self, n: usize) -> f64 {
        // SAFETY: the programs stay within the allocated memory.
        unsafe { *self.0.add(n) }
    }
    fn set(self, n: usize, value: f64) {
        // SAFETY: as above.
        unsafe { *self.0.add(n) = value }
    }
    fn add(self, n: usize, value: f64) {
        self.set(n, self.get(n) + value);
    }
}

fn now(clock: libc::clockid_t) -> f64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills the structure.
    unsafe { libc::clock_gettime(clock, &raw mut t) };
    t.tv_sec as f64 * 1e6 + t.tv_nsec as f64 * 1e-3
}

/// Processor time of all threads; `bench/parallel/clocks.h` gives the reason for the sum.
fn worked() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let threads = tasks.filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
    threads.map(|thread| now(!thread << 3 | 6)).sum()
}

/// Deterministic pseudo-random numbers.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        Chance(88_172_645_463_325_252)
    }
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 * 2.0_f64.powi(-53)
    }
    fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.next() - 0.5).collect()
    }
}

/// Runs a program three times on the data of `setup`.
fn bench<D: Send>(name: &str, data: &mut D, setup: impl Fn(&mut D), run: impl Fn(&mut D) + Sync) {
    let (mut best, mut least) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        setup(data);
        let wall = now(libc::CLOCK_MONOTONIC);
        let cpu = worked();
        scope(|_| run(data));
        least = least.min(worked() - cpu);
        best = best.min(now(libc::CLOCK_MONOTONIC) - wall);
    }
    println!("{name} {best:.3} us {least:.3} us");
}

/// Formats like C's `%.12g`.
fn print(value: f64) {
    let mut text = [0_u8; 64];
    // SAFETY: the buffer is large enough for any number in this form.
    unsafe { libc::snprintf(text.as_mut_ptr().cast(), 64, c"%.12g".as_ptr(), value) };
    let end = text.iter().position(|c| *c == 0).unwrap_or(0);
    println!("{}", String::from_utf8_lossy(&text[..end]));
}

fn folded(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |sum, x| sum * 0.999 + x)
}

fn fib(n: i64) -> i64 {
    if n < 2 {
        return n;
    }
    let (x, y) = join(|| fib(n - 1), || fib(n - 2));
    x + y
}

// ---- nqueens -------------------------------------------------------------------------------------

fn fits(row: usize, column: usize, board: &[u8; 16]) -> bool {
    (0..row).all(|i| {
        let d = i64::from(board[i]) - column as i64;
        d != 0 && d != (row - i) as i64 && d != i as i64 - row as i64
    })
}

fn queens(n: usize, row: usize, board: &[u8; 16]) -> i64 {
    if row == n {
        return 1;
    }
    let mut counts = [0; 16];
    scope(|s| {
        for (column, count) in counts[..n].iter_mut().enumerate() {
            if fits(row, column, board) {
                s.spawn(move |_| {
                    let mut next = *board;
                    next[row] = column as u8;
                    *count = queens(n, row + 1, &next);
                });
            }
        }
    });
    counts.iter().sum()
}

// ---- cilksort ------------------------------------------------------------------------------------

extern "C" fn before(a: *const c_void, b: *const c_void) -> c_int {
    // SAFETY: `qsort` passes pointers to elements.
    let (x, y) = unsafe { (*a.cast::<i32>(), *b.cast::<i32>()) };
    c_int::from(x > y) - c_int::from(x < y)
}

fn merge<'a>(mut a: &'a [i32], mut b: &'a [i32], out: &mut [i32]) {
    if a.len() < b.len() {
        std::mem::swap(&mut a, &mut b);
    }
    if a.len() + b.len() < 1024 {
        let (mut i, mut j) = (0, 0);
        for place in out {
            let first = j == b.len() || i < a.len() && a[i] <= b[j];
            *place = if first { a[i] } else { b[j] };
            i += usize::from(first);
            j += usize::from(!first);
        }
        return;
    }
    let half = a.len() / 2;
    let lo = b.partition_point(|x| *x < a[half]);
    let (left, right) = out.split_at_mut(half + lo);
    let ((a1, a2), (b1, b2)) = (a.split_at(half), b.split_at(lo));
    join(|| merge(a1, b1, left), || merge(a2, b2, right));
}

fn sort(a: &mut [i32], t: &mut [i32]) {
    if a.len() < 512 {
        // SAFETY: the count and the element size match the memory.
        unsafe { libc::qsort(a.as_mut_ptr().cast(), a.len(), 4, Some(before)) };
        return;
    }
    let q = a.len() / 4;
    let (a12, a34) = a.split_at_mut(2 * q);
    let (t12, t34) = t.split_at_mut(2 * q);
    let ((a1, a2), (a3, a4)) = (a12.split_at_mut(q), a34.split_at_mut(q));
    let ((t1, t2), (t3, t4)) = (t12.split_at_mut(q), t34.split_at_mut(q));
    join(
        || join(|| sort(a1, t1), || sort(a2, t2)),
        || join(|| sort(a3, t3), || sort(a4, t4)),
    );
    join(|| merge(a1, a2, t12), || merge(a3, a4, t34));
    merge(t12, t34, a);
}

// ---- fft -----------------------------------------------------------------------------------------

type Complex = [f64; 2];

fn combine(lower: &mut [Complex], upper: &mut [Complex], w: &[Complex], stride: usize, lo: usize) {
    let n = lower.len();
    if n > 512 {
        let (l1, l2) = lower.split_at_mut(n / 2);
        let (u1, u2) = upper.split_at_mut(n / 2);
        join(
            || combine(l1, u1, w, stride, lo),
            || combine(l2, u2, w, stride, lo + n / 2),
        );
        return;
    }
    for (k, (e, o)) in std::iter::zip(lower, upper).enumerate() {
        let t = w[(lo + k) * stride];
        let (re, im) = (t[0] * o[0] - t[1] * o[1], t[0] * o[1] + t[1] * o[0]);
        *o = [e[0] - re, e[1] - im];
        *e = [e[0] + re, e[1] + im];
    }
}

fn fft(from: &[Complex], out: &mut [Complex], stride: usize, w: &[Complex]) {
    if let [one] = out {
        *one = from[0];
        return;
    }
    let half = out.len() / 2;
    let (lower, upper) = out.split_at_mut(half);
    join(
        || fft(from, lower, 2 * stride, w),
        || fft(&from[stride..], upper, 2 * stride, w),
    );
    combine(lower, upper, w, stride, 0);
}

// ---- heat ----------------------------------------------------------------------------------------

fn step(old: At, now: At, lo: usize, hi: usize, m: usize) {
    if hi - lo > 16 {
        let middle = usize::midpoint(lo, hi);
        join(
            || step(old, now, lo, middle, m),
            || step(old, now, middle, hi, m),
        );
        return;
    }
    for i in lo..hi {
        for j in 1..m - 1 {
            let p = i * m + j;
            let here = old.get(p);
            let across = old.get(p + 1) + old.get(p - 1) - 2.0 * here;
            let along = old.get(p + m) + old.get(p - m) - 2.0 * here;
            now.set(p, here + 0.1 * across + 0.1 * along);
        }
    }
}

// ---- products of matrices ------------------------------------------------------------------------

fn matmul(a: At, b: At, c: At, [m, n, k]: [usize; 3], s: usize) {
    if m <= 32 && n <= 32 && k <= 32 {
        for i in 0..m {
            for l in 0..k {
                for j in 0..n {
                    c.add(i * s + j, a.get(i * s + l) * b.get(l * s + j));
                }
            }
        }
    } else if m >= n && m >= k {
        let h = m / 2;
        join(
            || matmul(a, b, c, [h, n, k], s),
            || matmul(a.plus(h * s), b, c.plus(h * s), [m - h, n, k], s),
        );
    } else if n >= k {
        let h = n / 2;
        join(
            || matmul(a, b, c, [m, h, k], s),
            || matmul(a, b.plus(h), c.plus(h), [m, n - h, k], s),
        );
    } else {
        let h = k / 2;
        matmul(a, b, c, [m, n, h], s);
        matmul(a.plus(h), b.plus(h * s), c, [m, n, k - h], s);
    }
}

const SIDE: usize = 16;
const CELLS: usize = SIDE * SIDE;

fn block(a: At, b: At, c: At) -> f64 {
    let mut flops = 0.0;
    for i in 0..SIDE {
        for k in 0..SIDE {
            for j in 0..SIDE {
                c.add(i * SIDE + j, a.get(i * SIDE + k) * b.get(k * SIDE + j));
            }
            flops += (2 * SIDE) as f64;
        }
    }
    flops
}

/// Matrices with the given number of blocks per row.
#[derive(Clone, Copy)]
struct Blocks(At, usize);

impl Blocks {
    fn plus(self, n: usize) -> Blocks {
        Blocks(self.0.plus(n * CELLS), self.1)
    }
}

fn rectmul([x, y, z]: [usize; 3], a: Blocks, b: Blocks, c: Blocks) -> f64 {
    if x + y + z == 3 {
        return block(a.0, b.0, c.0);
    }
    let (first, second) = if x >= y && x >= z {
        let h = x / 2;
        join(
            || rectmul([h, y, z], a, b, c),
            || rectmul([x - h, y, z], a.plus(h * a.1), b, c.plus(h * c.1)),
        )
    } else if z > y {
        let h = z / 2;
        join(
            || rectmul([x, y, h], a, b, c),
            || rectmul([x, y, z - h], a, b.plus(h), c.plus(h)),
        )
    } else {
        let h = y / 2;
        let first = rectmul([x, h, z], a, b, c);
        (first, rectmul([x, y - h, z], a.plus(h), b.plus(h * b.1), c))
    };
    first + second
}

fn sum(n: usize, a: At, b: At, s: usize, sign: f64, c: At) {
    for i in 0..n {
        for j in 0..n {
            c.set(i * n + j, a.get(i * s + j) + sign * b.get(i * s + j));
        }
    }
}

fn strassen(n: usize, (a, sa): (At, usize), (b, sb): (At, usize), c: At) {
    if n <= 64 {
        (0..n * n).for_each(|i| c.set(i, 0.0));
        for i in 0..n {
            for k in 0..n {
                for j in 0..n {
                    c.add(i * n + j, a.get(i * sa + k) * b.get(k * sb + j));
                }
            }
        }
        return;
    }
    let (h, q) = (n / 2, n * n / 4);
    let (a12, a21, b12, b21) = (a.plus(h), a.plus(h * sa), b.plus(h), b.plus(h * sb));
    let (a22, b22) = (a21.plus(h), b21.plus(h));
    let mut room = vec![0.0; 17 * q];
    let m = At::of(&mut room);
    let s = |i: usize| m.plus((7 + i) * q);
    sum(h, a, a22, sa, 1.0, s(0));
    sum(h, b, b22, sb, 1.0, s(1));
    sum(h, a21, a22, sa, 1.0, s(2));
    sum(h, b12, b22, sb, -1.0, s(3));
    sum(h, b21, b, sb, -1.0, s(4));
    sum(h, a, a12, sa, 1.0, s(5));
    sum(h, a21, a, sa, -1.0, s(6));
    sum(h, b, b12, sb, 1.0, s(7));
    sum(h, a12, a22, sa, -1.0, s(8));
    sum(h, b21, b22, sb, 1.0, s(9));
    let pairs = [
        ((s(0), h), (s(1), h)),
        ((s(2), h), (b, sb)),
        ((a, sa), (s(3), h)),
        ((a22, sa), (s(4), h)),
        ((s(5), h), (b22, sb)),
        ((s(6), h), (s(7), h)),
        ((s(8), h), (s(9), h)),
    ];
    scope(|tasks| {
        for (i, (x, y)) in pairs.into_iter().enumerate() {
            tasks.spawn(move |_| strassen(h, x, y, m.plus(i * q)));
        }
    });
    for i in 0..h {
        for j in 0..h {
            let p = |k: usize| m.get(k * q + i * h + j);
            c.set(i * n + j, p(0) + p(3) - p(4) + p(6));
            c.set(i * n + j + h, p(2) + p(4));
            c.set((i + h) * n + j, p(1) + p(3));
            c.set((i + h) * n + j + h, p(0) - p(1) + p(2) + p(5));
        }
    }
}

// ---- factors of matrices -------------------------------------------------------------------------

fn rank(a: At, b: At, c: At, [n, m, k]: [usize; 3], s: usize, half: bool) {
    if n <= 32 && m <= 32 {
        for i in 0..n {
            for j in 0..if half { i + 1 } else { m } {
                let products = (0..k).map(|l| a.get(i * s + l) * b.get(j * s + l));
                c.add(i * s + j, -products.fold(0.0, |sum, x| sum + x));
            }
        }
        return;
    }
    let h = n / 2;
    let w = if half { h } else { m / 2 };
    scope(|tasks| {
        tasks.spawn(|_| rank(a, b, c, [h, w, k], s, half));
        if !half {
            tasks.spawn(|_| rank(a, b.plus(w * s), c.plus(w), [h, m - w, k], s, false));
        }
        tasks.spawn(|_| rank(a.plus(h * s), b, c.plus(h * s), [n - h, w, k], s, false));
        let (lower, right, corner) = (a.plus(h * s), b.plus(w * s), c.plus(h * s + w));
        rank(lower, right, corner, [n - h, m - w, k], s, half);
    });
}

fn solve(l: At, b: At, n: usize, k: usize, s: usize) {
    if n > 16 {
        let h = n / 2;
        join(
            || solve(l, b, h, k, s),
            || solve(l, b.plus(h * s), n - h, k, s),
        );
        return;
    }
    for i in 0..n {
        for j in 0..k {
            let mut sum = b.get(i * s + j);
            for m in 0..j {
                sum -= b.get(i * s + m) * l.get(j * s + m);
            }
            b.set(i * s + j, sum / l.get(j * s + j));
        }
    }
}

fn cholesky(a: At, n: usize, s: usize) {
    if n <= 16 {
        for j in 0..n {
            for k in 0..j {
                a.add(j * s + j, -(a.get(j * s + k) * a.get(j * s + k)));
            }
            a.set(j * s + j, a.get(j * s + j).sqrt());
            for i in j + 1..n {
                for k in 0..j {
                    a.add(i * s + j, -(a.get(i * s + k) * a.get(j * s + k)));
                }
                a.set(i * s + j, a.get(i * s + j) / a.get(j * s + j));
            }
        }
        return;
    }
    let h = n / 2;
    cholesky(a, h, s);
    solve(a, a.plus(h * s), n - h, h, s);
    let below = a.plus(h * s);
    rank(below, below, below.plus(h), [n - h, n - h, h], s, true);
    cholesky(below.plus(h), n - h, s);
}

fn factor(a: At, s: usize) {
    for k in 0..SIDE {
        for i in k + 1..SIDE {
            let f = a.get(i * s + k) / a.get(k * s + k);
            a.set(i * s + k, f);
            for j in k + 1..SIDE {
                a.add(i * s + j, -(f * a.get(k * s + j)));
            }
        }
    }
}

fn lower(l: At, b: At, s: usize) {
    for k in 0..SIDE {
        for i in k + 1..SIDE {
            for j in 0..SIDE {
                b.add(i * s + j, -(l.get(i * s + k) * b.get(k * s + j)));
            }
        }
    }
}

fn upper(u: At, b: At, s: usize) {
    for i in 0..SIDE {
        for k in 0..SIDE {
            b.set(i * s + k, b.get(i * s + k) / u.get(k * s + k));
            for j in k + 1..SIDE {
                b.add(i * s + j, -(b.get(i * s + k) * u.get(k * s + j)));
            }
        }
    }
}

fn less(a: At, b: At, c: At, s: usize) {
    for i in 0..SIDE {
        for k in 0..SIDE {
            for j in 0..SIDE {
                c.add(i * s + j, -(a.get(i * s + k) * b.get(k * s + j)));
            }
        }
    }
}

fn update(a: At, b: At, c: At, [n, m, k]: [usize; 3], s: usize) {
    if n == 1 && m == 1 {
        for i in 0..k {
            less(a.plus(i * SIDE), b.plus(i * SIDE * s), c, s);
        }
    } else if n >= m {
        let (h, far) = (n / 2, n / 2 * SIDE * s);
        join(
            || update(a, b, c, [h, m, k], s),
            || update(a.plus(far), b, c.plus(far), [n - h, m, k], s),
        );
    } else {
        let (h, far) = (m / 2, m / 2 * SIDE);
        join(
            || update(a, b, c, [n, h, k], s),
            || update(a, b.plus(far), c.plus(far), [n, m - h, k], s),
        );
    }
}

fn lowers(l: At, b: At, n: usize, m: usize, s: usize) {
    if m > 1 {
        let h = m / 2;
        join(
            || lowers(l, b, n, h, s),
            || lowers(l, b.plus(h * SIDE), n, m - h, s),
        );
        return;
    }
    for i in 0..n {
        let at = b.plus(i * SIDE * s);
        for k in 0..i {
            less(l.plus((i * s + k) * SIDE), b.plus(k * SIDE * s), at, s);
        }
        lower(l.plus(i * SIDE * (s + 1)), at, s);
    }
}

fn uppers(u: At, b: At, n: usize, m: usize, s: usize) {
    if m > 1 {
        let h = m / 2;
        join(
            || uppers(u, b, n, h, s),
            || uppers(u, b.plus(h * SIDE * s), n, m - h, s),
        );
        return;
    }
    for i in 0..n {
        let at = b.plus(i * SIDE);
        for k in 0..i {
            less(b.plus(k * SIDE), u.plus((k * s + i) * SIDE), at, s);
        }
        upper(u.plus(i * SIDE * (s + 1)), at, s);
    }
}

fn lu(a: At, n: usize, s: usize) {
    if n == 1 {
        return factor(a, s);
    }
    let h = n / 2;
    let (right, below) = (a.plus(h * SIDE), a.plus(h * SIDE * s));
    let rest = a.plus(h * SIDE * (s + 1));
    lu(a, h, s);
    join(
        || lowers(a, right, h, n - h, s),
        || uppers(a, below, h, n - h, s),
    );
    update(below, right, rest, [n - h, n - h, h], s);
    lu(rest, n - h, s);
}

// ---- the programs --------------------------------------------------------------------------------

fn run_fib() {
    let mut r = 0;
    let n = std::hint::black_box(34);
    bench("fib", &mut r, |_| (), |r| *r = fib(n));
    println!("{r}");
}

fn run_nqueens() {
    let mut r = 0;
    let n = std::hint::black_box(10);
    bench("nqueens", &mut r, |_| (), |r| *r = queens(n, 0, &[0; 16]));
    println!("{r}");
}

fn run_cilksort() {
    let mut chance = Chance::new();
    let given: Vec<i32> = (0..500_000).map(|_| (chance.next() * 1e9) as i32).collect();
    let mut data = (given.clone(), vec![0; given.len()]);
    let setup = |data: &mut (Vec<i32>, Vec<i32>)| data.0.copy_from_slice(&given);
    bench("cilksort", &mut data, setup, |(a, t)| sort(a, t));
    let fold = |h: u32, x: &i32| h.wrapping_mul(31).wrapping_add(x.cast_unsigned());
    let hash = data.0.iter().fold(0, fold);
    println!("{}", if data.0.is_sorted() { hash } else { 0 });
}

fn run_fft() {
    let n = 1 << 17;
    let numbers = Chance::new().numbers(2 * n);
    let x: Vec<Complex> = numbers.chunks(2).map(|c| [c[0], c[1]]).collect();
    let angle = |k: usize| -2.0 * std::f64::consts::PI * k as f64 / n as f64;
    let w: Vec<Complex> = (0..n / 2)
        .map(|k| [angle(k).cos(), angle(k).sin()])
        .collect();
    let mut y = vec![[0.0; 2]; n];
    bench("fft", &mut y, |_| (), |y| fft(&x, y, 1, &w));
    let mut s = 0.0;
    for [re, im] in y {
        s = s * 0.999 + re - im;
    }
    print(s);
}

fn run_heat() {
    let (n, m) = (512, 256);
    let mut data = (Chance::new().numbers(n * m), Vec::new());
    data.1.clone_from(&data.0);
    let run = |(a, b): &mut (Vec<f64>, Vec<f64>)| {
        let (a, b) = (At::of(a), At::of(b));
        for _ in 0..50 {
            step(a, b, 1, n - 1, m);
            step(b, a, 1, n - 1, m);
        }
    };
    bench("heat", &mut data, |_| (), run);
    print(folded(data.0));
}

fn run_matmul() {
    let n = 384;
    let mut chance = Chance::new();
    let (mut a, mut b) = (chance.numbers(n * n), chance.numbers(n * n));
    let (a, b) = (At::of(&mut a), At::of(&mut b));
    let mut c = vec![0.0; n * n];
    let run = |c: &mut Vec<f64>| matmul(a, b, At::of(c), [n; 3], n);
    bench("matmul", &mut c, |c| c.fill(0.0), run);
    print(folded(c));
}

fn run_rectmul() {
    let [x, y, z] = [20, 24, 28];
    let mut chance = Chance::new();
    let (mut a, mut b) = (chance.numbers(x * y * CELLS), chance.numbers(y * z * CELLS));
    let (a, b) = (Blocks(At::of(&mut a), y), Blocks(At::of(&mut b), z));
    let mut data = (vec![0.0; x * z * CELLS], 0.0);
    let run = |(c, flops): &mut (Vec<f64>, f64)| {
        *flops = rectmul([x, y, z], a, b, Blocks(At::of(c), z));
    };
    bench("rectmul", &mut data, |(c, _)| c.fill(0.0), run);
    print(data.0.iter().fold(data.1, |s, x| s * 0.999 + x));
}

fn run_strassen() {
    let n = 512;
    let mut chance = Chance::new();
    let (mut a, mut b) = (chance.numbers(n * n), chance.numbers(n * n));
    let (a, b) = (At::of(&mut a), At::of(&mut b));
    let mut c = vec![0.0; n * n];
    let run = |c: &mut Vec<f64>| strassen(n, (a, n), (b, n), At::of(c));
    bench("strassen", &mut c, |_| (), run);
    print(folded(c));
}

/// Factors a matrix by `run`.
fn factored(name: &str, n: usize, run: impl Fn(At) + Sync) -> Vec<f64> {
    let mut given = Chance::new().numbers(n * n);
    for i in 0..n {
        given[i * n + i] += n as f64;
    }
    let mut a = vec![0.0; n * n];
    let setup = |a: &mut Vec<f64>| a.copy_from_slice(&given);
    bench(name, &mut a, setup, |a| run(At::of(a)));
    a
}

fn run_cholesky() {
    let n = 512;
    let a = factored("cholesky", n, |a| cholesky(a, n, n));
    print(folded((0..n).flat_map(|i| a[i * n..=i * n + i].to_vec())));
}

fn run_lu() {
    let n = 384;
    print(folded(factored("lu", n, |a| lu(a, n / SIDE, n))));
}

// table
const PROGRAMS: [(&str, fn()); 10] = [
    ("cholesky", run_cholesky),
    ("cilksort", run_cilksort),
    ("fft", run_fft),
    ("fib", run_fib),
    ("heat", run_heat),
    ("lu", run_lu),
    ("matmul", run_matmul),
    ("nqueens", run_nqueens),
    ("rectmul", run_rectmul),
    ("strassen", run_strassen),
];

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    match PROGRAMS.iter().find(|(known, _)| *known == name) {
        Some((_, run)) => run(),
        None => {
            eprintln!("there are: {:?}", PROGRAMS.map(|(name, _)| name));
            std::process::exit(2);
        }
    }
}
