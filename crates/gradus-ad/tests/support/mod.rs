//! End-to-end derivatives of C functions: clang, import, both modes, export, execution in this process.
#![allow(dead_code)]

use gradus_ad::{
    ArgActivity, Mode, Options, ProgramFacts, ResultActivity, Root, Variant, differentiate,
};
use gradus_analysis::Analyses;
use gradus_ir::{Diagnostic, FuncId, Unit};
use gradus_llvm::host::jit::{Arg, Jit};
use gradus_llvm::{Host, OptLevel, Pipeline};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

/// Compiles a C program to bitcode.
pub fn bitcode(source: &str, flags: &[&str]) -> Vec<u8> {
    let mut child = Command::new("clang-22")
        .args(["-x", "c", "-", "-c", "-emit-llvm", "-o", "-", "-g"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("clang-22 runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(source.as_bytes())
        .expect("written");
    let output = child.wait_with_output().expect("clang-22 ends");
    assert!(output.status.success(), "clang-22 failed on {source}");
    output.stdout
}

/// Clang flags under which each source is tested.
pub const CLANG_ROUTES: &[&[&str]] = &[
    &["-O0"],
    &[
        "-O2",
        "-Xclang",
        "-disable-llvm-passes",
        "-fno-discard-value-names",
    ],
    &["-O1"],
    &["-O3"],
];

/// A compiled program with both derivatives of one function.
pub struct Compiled {
    pub jit: Jit,
    pub vjp: String,
    pub jvp: String,
}

/// Builds the JVP and the VJP of `name`.
pub fn derive(
    source: &str,
    flags: &[&str],
    name: &str,
    args: &[ArgActivity],
    result: ResultActivity,
) -> Result<Compiled, Vec<Diagnostic>> {
    derive_with(source, flags, name, args, result, &Options::default())
}

/// Builds the derivatives of [`derive`] with options.
pub fn derive_with(
    source: &str,
    flags: &[&str],
    name: &str,
    args: &[ArgActivity],
    result: ResultActivity,
    options: &Options,
) -> Result<Compiled, Vec<Diagnostic>> {
    let mut host = Host::parse(&bitcode(source, flags), "test.bc").map_err(|d| vec![d])?;
    host.mark_differentiated(name);
    host.run(Pipeline::EarlySerial).map_err(|d| vec![d])?;
    let mut unit = host.import(&[name]).map_err(|d| vec![d])?.unit;
    for func in unit.functions.ids() {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_ad::calculus::legalize_calls(&mut unit, &mut body);
            gradus_ad::expand_by_value(&mut unit, func, &mut body);
            gradus_edit::loops_to_fors(&mut unit, &mut body);
            gradus_edit::expose_exit_conditions(&mut unit, &mut body);
            gradus_edit::expose_final_values(&unit, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
    let func = unit.function(name).expect("the function is imported");
    let facts = ProgramFacts::of(
        &unit,
        &mut Analyses::default(),
        &Root {
            func,
            args: args.to_vec(),
            result,
        },
    )?;
    let variant = |mode| Variant {
        func,
        mode,
        width: 1,
        args: args.to_vec(),
        result,
        primal_result: false,
        overwritten: Vec::new(),
        tape: Default::default(),
        versions: Default::default(),
        strong_zero: false,
        tangents: Default::default(),
        concurrent: false,
        outermost: false,
    };
    let roots = [variant(Mode::Combined), variant(Mode::Forward)];
    let names: Vec<String> = roots.iter().map(|v| v.symbol(&unit)).collect();
    let made = differentiate_all(&mut unit, &facts, &roots, options)?;
    for &func in &made {
        let findings = gradus_ir::verify_function(&unit, func);
        let text = gradus_ir::print_function(&unit, func);
        assert!(findings.is_empty(), "{findings:#?}\n{text}");
    }
    for &func in &made[..2] {
        unit.functions[func].linkage = gradus_ir::Linkage::External;
    }
    if std::env::var_os("GRADUS_TEST_DUMP").is_some() {
        std::fs::write(format!("/tmp/{name}.gir"), gradus_ir::print(&unit)).expect("written");
    }
    let with_bodies: Vec<FuncId> = unit
        .functions
        .iter()
        .filter(|(_, f)| f.body.is_some() && !f.defined)
        .map(|(id, _)| id)
        .collect();
    host.export(&unit, &with_bodies).map_err(|d| vec![d])?;
    host.verify().map_err(|d| vec![d])?;
    host.run(Pipeline::Late(OptLevel::O2))
        .map_err(|d| vec![d])?;
    if std::env::var_os("GRADUS_TEST_DUMP").is_some() {
        std::fs::write(format!("/tmp/{name}.ll"), host.to_text()).expect("written");
    }
    let jit = Jit::new(host, &[name, &names[0], &names[1]]).map_err(|d| vec![d])?;
    Ok(Compiled {
        jit,
        vjp: names[0].clone(),
        jvp: names[1].clone(),
    })
}

/// Builds variants and all variants that they require. Returns the functions, with those of `roots` first.
pub fn differentiate_all(
    unit: &mut Unit,
    facts: &ProgramFacts,
    roots: &[Variant],
    options: &Options,
) -> Result<Vec<FuncId>, Vec<Diagnostic>> {
    let mut work: Vec<Variant> = roots.to_vec();
    let mut seen: BTreeSet<Variant> = roots.iter().cloned().collect();
    let mut made = Vec::new();
    let mut next = 0;
    while next < work.len() {
        let derived = differentiate(unit, facts, &work[next], options)?;
        made.push(derived.func);
        for need in derived.required_variants {
            if seen.insert(need.clone()) {
                work.push(need);
            }
        }
        next += 1;
    }
    Ok(made)
}

/// Checks `double f(int n, double *x, double s)` three ways at one point: forward mode against reverse mode,
/// and against central differences.
pub fn check_three_ways(source: &str, n: usize) {
    for flags in CLANG_ROUTES {
        check_route(source, flags, n, &Options::default());
    }
}

/// Checks one route of [`check_three_ways`].
pub fn check_route(source: &str, flags: &[&str], n: usize, options: &Options) {
    let active = ResultActivity::Active;
    let compiled = match derive_with(source, flags, "f", &STANDARD, active, options) {
        Ok(compiled) => compiled,
        Err(findings) => panic!("refused at {flags:?}: {findings:#?}\n{source}"),
    };
    let (x, s) = point(n);
    let call = |x: &[f64], s: f64| {
        let mut x = x.to_vec();
        let result = compiled.jit.call(
            "f",
            &mut [Arg::Int(n as i64), Arg::F64s(&mut x), Arg::F64(s)],
        );
        result.expect("runs").f64()
    };
    let (mut primal, mut adjoint) = (x.clone(), vec![0.0; n]);
    let s_adj = compiled
        .jit
        .call(
            &compiled.vjp,
            &mut [
                Arg::Int(n as i64),
                Arg::F64s(&mut primal),
                Arg::F64s(&mut adjoint),
                Arg::F64(s),
                Arg::F64(1.0),
            ],
        )
        .expect("runs")
        .f64();
    for k in 0..=n {
        let mut direction = vec![0.0; n];
        let mut s_tan = 0.0;
        match k < n {
            true => direction[k] = 1.0,
            false => s_tan = 1.0,
        }
        let h = 1e-6;
        let moved = |t: f64| {
            let x: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + t * d).collect();
            call(&x, s + t * s_tan)
        };
        let difference = (moved(h) - moved(-h)) / (2.0 * h);
        let (mut primal, mut tangent) = (x.clone(), direction.clone());
        let forward = compiled
            .jit
            .call(
                &compiled.jvp,
                &mut [
                    Arg::Int(n as i64),
                    Arg::F64s(&mut primal),
                    Arg::F64s(&mut tangent),
                    Arg::F64(s),
                    Arg::F64(s_tan),
                ],
            )
            .expect("runs")
            .f64();
        let reverse = if k < n { adjoint[k] } else { s_adj };
        let scale = 1.0 + forward.abs();
        assert!(
            (forward - reverse).abs() <= 1e-11 * scale,
            "at {flags:?}, input {k}: forward {forward} reverse {reverse} difference {difference}\n{source}"
        );
        assert!(
            (forward - difference).abs() <= 2e-6 * scale,
            "at {flags:?}, input {k}: forward {forward} difference {difference}\n{source}"
        );
    }
}

/// Checks `REAL f(int n, REAL *x, REAL s)` on every route. In double precision, the check is three-way. In
/// single precision, forward mode is compared with reverse mode (1e-5) and with the double-precision
/// derivative (1e-4). Both tolerances are relative to the largest entry of the gradient, at least to 1,
/// because rounding to 24 bits changes small entries by an amount proportional to the largest entries.
pub fn check_single_precision(source: &str, n: usize) {
    for flags in CLANG_ROUTES {
        let of = |real| [flags, &[real][..]].concat();
        check_route(source, &of("-DREAL=double"), n, &Options::default());
        let wide = gradient_f64(source, &of("-DREAL=double"), n);
        let (reverse, forward) = gradients_f32(source, &of("-DREAL=float"), n);
        let scale = wide.iter().fold(1.0f64, |max, d| max.max(d.abs()));
        for (k, wide) in wide.iter().enumerate() {
            let (r, f) = (f64::from(reverse[k]), f64::from(forward[k]));
            assert!(
                (r - f).abs() <= 1e-5 * scale,
                "at {flags:?}, input {k}: forward {f} reverse {r} in double {wide}\n{source}"
            );
            assert!(
                (r - wide).abs() <= 1e-4 * scale,
                "at {flags:?}, input {k}: reverse {r} in double {wide}\n{source}"
            );
        }
    }
}

const STANDARD: [ArgActivity; 3] = [ArgActivity::Const, ArgActivity::Dup, ArgActivity::Active];

/// Returns the point at which functions are checked, and `s`.
fn point(n: usize) -> (Vec<f64>, f64) {
    let entry = |i: usize| 0.4 + 0.37 * ((i * 7 + 3) % 5) as f64;
    ((0..n).map(entry).collect(), 0.8)
}

fn derive_standard(source: &str, flags: &[&str]) -> Compiled {
    match derive(source, flags, "f", &STANDARD, ResultActivity::Active) {
        Ok(compiled) => compiled,
        Err(findings) => panic!("refused at {flags:?}: {findings:#?}\n{source}"),
    }
}

/// Returns the gradient by `x`, then by `s`, in reverse mode.
fn gradient_f64(source: &str, flags: &[&str], n: usize) -> Vec<f64> {
    let compiled = derive_standard(source, flags);
    let (mut x, s) = point(n);
    let mut adjoint = vec![0.0; n];
    let call = &mut [
        Arg::Int(n as i64),
        Arg::F64s(&mut x),
        Arg::F64s(&mut adjoint),
        Arg::F64(s),
        Arg::F64(1.0),
    ];
    let s_adj = compiled.jit.call(&compiled.vjp, call).expect("runs").f64();
    adjoint.push(s_adj);
    adjoint
}

/// Returns the single-precision gradients by `x`, then by `s`, in reverse mode and in forward mode.
fn gradients_f32(source: &str, flags: &[&str], n: usize) -> (Vec<f32>, Vec<f32>) {
    let compiled = derive_standard(source, flags);
    let (x, s) = point(n);
    let x: Vec<f32> = x.iter().map(|v| *v as f32).collect();
    let s = s as f32;
    let (mut primal, mut reverse) = (x.clone(), vec![0.0f32; n]);
    let call = &mut [
        Arg::Int(n as i64),
        Arg::F32s(&mut primal),
        Arg::F32s(&mut reverse),
        Arg::F32(s),
        Arg::F32(1.0),
    ];
    let s_adj = compiled.jit.call(&compiled.vjp, call).expect("runs").f32();
    reverse.push(s_adj);
    let mut forward = Vec::new();
    for k in 0..=n {
        let (mut primal, mut tangent) = (x.clone(), vec![0.0f32; n]);
        if k < n {
            tangent[k] = 1.0;
        }
        let call = &mut [
            Arg::Int(n as i64),
            Arg::F32s(&mut primal),
            Arg::F32s(&mut tangent),
            Arg::F32(s),
            Arg::F32(if k < n { 0.0 } else { 1.0 }),
        ];
        forward.push(compiled.jit.call(&compiled.jvp, call).expect("runs").f32());
    }
    (reverse, forward)
}
