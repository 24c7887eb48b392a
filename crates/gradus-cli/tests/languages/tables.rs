//! Energies by trait objects: through references, and in boxes of types with and without a destructor.
trait Law {
    fn energy(&self, stretch: f64) -> f64;
}
struct Linear(f64);
struct Cubic(f64);
struct Table(Vec<f64>);
impl Law for Linear {
    fn energy(&self, stretch: f64) -> f64 {
        self.0 * stretch * stretch
    }
}
impl Law for Cubic {
    fn energy(&self, stretch: f64) -> f64 {
        self.0 * stretch.powi(3)
    }
}
impl Law for Table {
    fn energy(&self, stretch: f64) -> f64 {
        self.0.iter().map(|a| (a * stretch).sin()).sum()
    }
}
fn boxed(x: &[f64], more: bool) -> f64 {
    let law = |i: usize| -> Box<dyn Law> {
        match i % 3 {
            0 => Box::new(Linear(2.0)),
            1 => Box::new(Cubic(x[i])),
            _ if more => Box::new(Table(x.to_vec())),
            _ => Box::new(Linear(x[0])),
        }
    };
    let laws: Vec<Box<dyn Law>> = (0..x.len()).map(law).collect();
    laws.iter().zip(x).map(|(law, v)| law.energy(*v)).sum()
}
fn plain(x: &[f64]) -> f64 {
    let laws: Vec<Box<dyn Law>> = (0..x.len())
        .map(|i| match i % 2 {
            0 => Box::new(Linear(2.0)) as Box<dyn Law>,
            _ => Box::new(Cubic(x[i])),
        })
        .collect();
    laws.iter().zip(x).map(|(law, v)| law.energy(*v)).sum()
}
fn by_reference(x: &[f64]) -> f64 {
    let (linear, cubic) = (Linear(x[0]), Cubic(2.0));
    let laws: [&dyn Law; 2] = [&linear, &cubic];
    x.iter().enumerate().map(|(i, v)| laws[i % 2].energy(*v)).sum()
}
#[unsafe(no_mangle)]
pub extern "C" fn energy(x: *const f64, n: usize) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    boxed(x, n > 3) + plain(x) + by_reference(x)
}
