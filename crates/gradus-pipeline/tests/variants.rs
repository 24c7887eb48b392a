//! A function required in very many variants: variants beyond the cap share a general variant.

use crate::support::{CHECK, bitcode, calls, findings, link_and_run, run};
use gradus_pipeline::{Level, OutputKind};

#[test]
fn many_activities_of_one_function_are_right() {
    // Each call makes a different set of g's seven pointers active; the derivative of each is known.
    let call = |mask: usize| {
        let args: Vec<String> = (0..7)
            .map(|i| match mask >> i & 1 {
                1 => format!("x + {i}"),
                _ => format!("c + {i}"),
            })
            .collect();
        format!("    s += {} * g({}, x[7]);\n", mask, args.join(", "))
    };
    let masks: Vec<usize> = (1..128).step_by(2).chain([2, 4, 64]).collect();
    let calls_text: String = masks.iter().map(|mask| call(*mask)).collect();
    let source = format!(
        "{CHECK}
        extern int enzyme_dup, enzyme_const;
        extern void __enzyme_autodiff(void *, ...);
        extern double __enzyme_fwddiff(void *, ...);
        __attribute__((noinline)) double g(double *a, double *b, double *c, double *d, double *e, double *f, double *h, double s)
        {{
            double old = *a, r = 0;
            *a = *a * 1.0;
            r = s * (old * *b + sin(*c) * *d + *e * *e * *f + *h);
            return r;
        }}
        double f(double *x, double *c)
        {{
            double s = 0;
        {calls_text}    return s;
        }}
        int main(void)
        {{
            double x[8] = {{1, 0.5, 2, -1, 3, 0.25, 4, 1.5}}, c[7] = {{2, 3, 1, 0.5, -2, 1, 7}}, dx[8] = {{0}};
            __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, c);
            for (int i = 0; i < 8; i++) {{
                double tangent[8] = {{0}};
                tangent[i] = 1;
                double forward = __enzyme_fwddiff((void *)f, enzyme_dup, x, tangent, enzyme_const, c);
                double start = x[i];
                double slope = SLOPE(t, start, (x[i] = t, f(x, c)));
                x[i] = start;
                NEAR(forward / 1000, slope / 1000);
                NEAR(dx[i], forward);
            }}
            return 0;
        }}"
    );
    let emit = [OutputKind::Object];
    let flags = ["-O1", "-fno-inline"];
    let reply = run(bitcode(&source, &flags), calls(), Level::O1, &emit);
    let object = reply.output(OutputKind::Object);
    let object = object.unwrap_or_else(|| panic!("{}", findings(&reply)));
    if let Err(why) = link_and_run(object, &[], &[]) {
        panic!("{why}");
    }
}
