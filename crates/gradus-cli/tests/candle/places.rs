//! Expected results of candle's convolutions, pools, scalings and indexing kernels.

use super::{BF16, Expected, F16, F32, F64, I64, Type, U8, U32};

/// An array of up to four dimensions, zero outside.
struct Array<'a> {
    values: &'a [f64],
    sizes: [usize; 4],
}

impl Array<'_> {
    fn at(&self, index: [i64; 4]) -> f64 {
        let mut place = 0;
        for (i, size) in index.into_iter().zip(self.sizes) {
            match usize::try_from(i) {
                Ok(i) if i < size => place = place * size + i,
                _ => return 0.0,
            }
        }
        self.values[place]
    }
}

/// Returns the values of a function over all indices, the last index fastest.
fn values_over(sizes: [usize; 4], f: impl Fn([i64; 4]) -> f64) -> Vec<f64> {
    let mut values = Vec::new();
    for place in 0..sizes.iter().product() {
        let mut rest: usize = place;
        let mut index = [0; 4];
        for (i, size) in index.iter_mut().zip(sizes).rev() {
            *i = (rest % size) as i64;
            rest /= size;
        }
        values.push(f(index));
    }
    values
}

/// The step of a window.
#[derive(Clone, Copy)]
struct Step {
    stride: i64,
    padding: i64,
    dilation: i64,
}

/// Convolves kernels (out, in, rows, columns) with images.
fn convolved(image: &Array, kernel: &Array, [height, width]: [usize; 2], rows: Step) -> Vec<f64> {
    let [batch, inputs, tall, _] = image.sizes;
    let [outputs, _, kernel_rows, kernel_columns] = kernel.sizes;
    // A line is an image of a single row: kernels do not move vertically.
    let up = if tall == 1 { 0 } else { rows.padding };
    values_over([batch, outputs, height, width], |[b, o, h, w]| {
        let taps = values_over([1, inputs, kernel_rows, kernel_columns], |[_, i, r, c]| {
            let row = h * rows.stride + r * rows.dilation - up;
            let column = w * rows.stride + c * rows.dilation - rows.padding;
            image.at([b, i, row, column]) * kernel.at([o, i, r, c])
        });
        taps.iter().sum()
    })
}

/// Transposed convolution with kernels (in, out, rows, columns): each element of an image adds a multiple
/// of a kernel.
fn transposed_convolution(
    image: &Array,
    kernel: &Array,
    [height, width]: [usize; 2],
    step: Step,
) -> Vec<f64> {
    let [batch, inputs, tall, wide] = image.sizes;
    let [_, outputs, kernel_rows, kernel_columns] = kernel.sizes;
    let up = if tall == 1 { 0 } else { step.padding };
    let mut values = vec![0.0; batch * outputs * height * width];
    let elements = values_over([batch, inputs, tall, wide], |_| 0.0).len();
    for place in 0..elements * outputs * kernel_rows * kernel_columns {
        let mut rest = place;
        let mut next = |size: usize| {
            let index = rest % size;
            rest /= size;
            index as i64
        };
        let (c, r, o) = (next(kernel_columns), next(kernel_rows), next(outputs));
        let (w, h, i, b) = (next(wide), next(tall), next(inputs), next(batch));
        let row = h * step.stride + r * step.dilation - up;
        let column = w * step.stride + c * step.dilation - step.padding;
        let inside = |x: i64, size: usize| (0..size as i64).contains(&x);
        if inside(row, height) && inside(column, width) {
            let to = ((b * outputs as i64 + o) * height as i64 + row) * width as i64 + column;
            values[to as usize] += image.at([b, i, h, w]) * kernel.at([i, o, r, c]);
        }
    }
    values
}

/// Returns the expectations for `conv.cu`.
pub fn conv() -> Vec<Expected> {
    let mut expected = Vec::new();
    for ty in [F32, F64, F16, BF16, U32] {
        let (pixels, weights) = (ty.input(252, 1), ty.input(72, 2));
        let array = |values: &'static str, sizes: [usize; 4]| Array {
            values: if values == "image" { &pixels } else { &weights },
            sizes,
        };
        let image = array("image", [2, 3, 6, 7]);
        let line = array("image", [2, 3, 1, 13]);
        let step = |dilation| Step {
            stride: 2,
            padding: 1,
            dilation,
        };
        let flat = array("kernel", [4, 3, 3, 2]);
        let thin = array("kernel", [4, 3, 1, 5]);
        expected.push(ty.expects("conv2d", convolved(&image, &flat, [3, 4], step(1))));
        expected.push(ty.expects("conv1d", convolved(&line, &thin, [1, 6], step(1))));
        let flat = array("kernel", [3, 4, 3, 2]);
        let thin = array("kernel", [3, 4, 1, 5]);
        let wide = transposed_convolution(&image, &flat, [13, 13], step(2));
        expected.push(ty.expects("conv_transpose2d", wide));
        let long = transposed_convolution(&line, &thin, [1, 31], step(2));
        expected.push(ty.expects("conv_transpose1d", long));
        pools(ty, &image, &mut expected);
        scalings(ty, &image, &mut expected);
        rearranged(ty, &image, &line, &mut expected);
    }
    expected
}

fn pools(ty: Type, image: &Array, expected: &mut Vec<Expected>) {
    let window = |[b, i, h, w]: [i64; 4]| {
        values_over([1, 1, 2, 3], |[_, _, r, c]| {
            image.at([b, i, 2 * h + r, 2 * w + c])
        })
    };
    let mean = values_over([2, 3, 3, 3], |index| {
        let mean = window(index).iter().sum::<f64>() / 6.0;
        if ty.is_integer() { mean.floor() } else { mean }
    });
    // A product with 1/6 in single precision, truncated for integers.
    let single = if ty.suffix == "f64" { 1e7 } else { 1.0 };
    let mean = ty.within("avg_pool2d", mean, single);
    expected.push(if ty.is_integer() {
        mean.or_one_off()
    } else {
        mean
    });
    let most = values_over([2, 3, 3, 3], |index| {
        window(index).into_iter().fold(f64::NEG_INFINITY, f64::max)
    });
    expected.push(ty.expects("max_pool2d", most));
}

fn scalings(ty: Type, image: &Array, expected: &mut Vec<Expected>) {
    let nearest = values_over([2, 3, 9, 14], |[b, i, h, w]| {
        image.at([b, i, (h as f64 * (6.0 / 9.0)) as i64, w / 2])
    });
    expected.push(ty.expects("upsample_nearest2d", nearest));
    let linear = values_over([2, 3, 9, 14], |[b, i, h, w]| {
        let place = |at: i64, scale: f64| ((at as f64 + 0.5) * scale - 0.5).max(0.0);
        let (row, column) = (place(h, 6.0 / 9.0), place(w, 0.5));
        let (low, left) = (row.floor(), column.floor());
        let (down, right) = ((low as i64 + 1).min(5), (left as i64 + 1).min(6));
        let between = |r: i64| {
            let (a, b) = (image.at([b, i, r, left as i64]), image.at([b, i, r, right]));
            a + (b - a) * (column - left)
        };
        let (a, b) = (between(low as i64), between(down));
        let value = a + (b - a) * (row - low);
        if ty.is_integer() {
            value.floor()
        } else {
            value
        }
    });
    let linear = ty.within("upsample_bilinear2d", linear, 2.0);
    expected.push(if ty.is_integer() {
        linear.or_one_off()
    } else {
        linear
    });
}

fn rearranged(ty: Type, image: &Array, line: &Array, expected: &mut Vec<Expected>) {
    let mut windows = Vec::new();
    for [b, h, w, i] in indices([2, 3, 4, 3]) {
        windows.extend(values_over([1, 1, 3, 2], |[_, _, r, c]| {
            image.at([b, i, 2 * h + r - 1, 2 * w + c - 1])
        }));
    }
    expected.push(ty.expects("im2col", windows));
    let windows = values_over([2, 6, 3, 5], |[b, l, i, k]| {
        line.at([b, i, 0, 2 * l + k - 1])
    });
    expected.push(ty.expects("im2col1d", windows));
    let pieces = Array {
        values: image.values,
        sizes: [2, 5, 3, 4],
    };
    let mut line = vec![0.0; 72];
    for [b, l, c, k] in indices([2, 5, 3, 4]) {
        line[((b * 3 + c) * 12 + 2 * l + k) as usize] += pieces.at([b, l, c, k]);
    }
    expected.push(ty.expects("col2im1d", line));
}

/// Returns all indices, the last index fastest.
fn indices(sizes: [usize; 4]) -> Vec<[i64; 4]> {
    let all = std::cell::RefCell::new(Vec::new());
    values_over(sizes, |index| {
        all.borrow_mut().push(index);
        0.0
    });
    all.into_inner()
}

/// Returns the expectations for `indexing.cu`: arrays (2, 5, 4), read and written at given middle indices.
pub fn indexing() -> Vec<Expected> {
    let mut expected = Vec::new();
    // The indices; `None` marks an ignored entry.
    let place = |i: usize| (i % 7 != 5).then_some(i * 3 % 5);
    for (ids, ty) in [
        ("i64", F32),
        ("u32", F64),
        ("u8", F16),
        ("i64", BF16),
        ("u8", U8),
        ("u32", I64),
        ("i64", U32),
    ] {
        let (x, from) = (ty.input(40, 1), ty.input(48, 2));
        let read = |place_of: &dyn Fn(usize, usize) -> Option<usize>| -> Vec<f64> {
            let at = |i: usize| {
                let (left, middle, right) = (i / 24, i / 4 % 6, i % 4);
                place_of(i, middle).map_or(0.0, |place| x[left * 20 + place * 4 + right])
            };
            (0..48).map(at).collect()
        };
        let named = |name: &str| format!("{name}_{ids}");
        expected.push(ty.expects(&named("is"), read(&|_, middle| place(middle))));
        expected.push(ty.expects(&named("gather"), read(&|i, _| place(i))));
        let written = |place_of: &dyn Fn(usize, usize) -> Option<usize>, added: bool| {
            let mut y = x.clone();
            for i in 0..48 {
                let (left, middle, right) = (i / 24, i / 4 % 6, i % 4);
                if let Some(place) = place_of(i, middle) {
                    let to = &mut y[left * 20 + place * 4 + right];
                    *to = from[i] + if added { *to } else { 0.0 };
                }
            }
            y
        };
        expected.push(ty.expects(&named("ia"), written(&|_, middle| place(middle), true)));
        expected.push(ty.expects(&named("sa"), written(&|i, _| place(i), true)));
        expected.push(ty.expects(&named("s"), written(&|i, _| place(i), false)));
    }
    expected
}
