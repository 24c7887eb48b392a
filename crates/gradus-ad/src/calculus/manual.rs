//! Formulas as text: the manual's table of derivatives.

use super::formulas::{Function, RuleInputs};
use crate::calculus::expr::{Formula, FormulaBuilder, Node};
use gradus_ir::externals::MathFn;
use gradus_ir::{BinaryOp, FloatPredicate};
use std::fmt::Write;

/// Precedence of a piece of text: sum, product, or atom.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Precedence {
    Sum,
    Product,
    One,
}

const ARGS: [&str; 4] = ["a", "b", "c", "e"];

/// Returns the manual's page of derivatives in Markdown: one row per function and argument.
pub fn manual() -> String {
    let mut text = String::from(
        "# Derivatives\n\n\
         Reverse mode adds one term to the adjoint of each argument. `a b c` are the arguments in\n\
         order, `y` is the result, and `d` is the adjoint of the result. In forward mode `d` is the\n\
         tangent of the argument, and the sum of the terms is the tangent of the result.\n\n\
         | function | argument | term |\n|---|---|---|\n",
    );
    for (name, function, args) in operators() {
        rows(&mut text, &name, function, args);
    }
    for &f in MathFn::ALL {
        let name = f.c_name().or(f.intrinsic()).unwrap_or_default();
        let list = ARGS[..f.params().len()].join(", ");
        let name = format!("{name}({list})");
        rows(&mut text, &name, Function::Math(f), f.params());
    }
    text
}

/// Returns the ops that are no library functions, with the types of the arguments.
fn operators() -> Vec<(String, Function, &'static str)> {
    let infix = |op: BinaryOp| match op {
        BinaryOp::FAdd => "a + b".to_string(),
        BinaryOp::FSub => "a − b".to_string(),
        BinaryOp::FMul => "a · b".to_string(),
        BinaryOp::FDiv => "a / b".to_string(),
        _ => format!("{}(a, b)", op.name()),
    };
    let floats = BinaryOp::ALL.iter().filter(|op| op.is_float());
    floats
        .map(|op| (infix(*op), Function::Binary(*op), "ff"))
        .chain([("−a".to_string(), Function::Neg, "f")])
        .collect()
}

fn rows(text: &mut String, name: &str, function: Function, params: &str) {
    for (i, _) in params.char_indices().filter(|(_, c)| *c == 'f') {
        let page = FormulaBuilder::default();
        let given = RuleInputs {
            args: (0..params.len()).map(|k| page.put(Node::Arg(k))).collect(),
            results: vec![page.put(Node::Result(0))],
            seed: page.put(Node::Seed),
        };
        let Some(root) = function.times_partial(i, 0, &given) else {
            continue;
        };
        let formula = page.finish(root);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {name} | {} | {} |", ARGS[i], read(&formula));
    }
}

fn read(formula: &Formula) -> String {
    let mut texts: Vec<(String, Precedence)> = Vec::with_capacity(formula.nodes.len());
    for (id, node) in formula.nodes.iter().enumerate() {
        texts.push(match formula.live[id] {
            true => step(node, &texts),
            false => (String::new(), Precedence::One),
        });
    }
    texts[formula.root].0.clone()
}

/// Returns the text of a node and its precedence, from the texts of its operands.
// table
fn step(node: &Node, texts: &[(String, Precedence)]) -> (String, Precedence) {
    let at = |id: usize, least: Precedence| match &texts[id] {
        (text, bond) if *bond >= least => text.clone(),
        (text, _) => format!("({text})"),
    };
    let int = |k: usize, plus: i32| match plus {
        0 => ARGS[k].to_string(),
        p if p < 0 => format!("{} − {}", ARGS[k], -p),
        p => format!("{} + {p}", ARGS[k]),
    };
    let name = |f: MathFn| f.c_name().or(f.intrinsic()).unwrap_or_default();
    match node {
        Node::Num(x) => (
            format!("{x}"),
            if *x < 0.0 {
                Precedence::Sum
            } else {
                Precedence::One
            },
        ),
        Node::Arg(k) | Node::FloatOf(k) => (ARGS[*k].into(), Precedence::One),
        Node::Result(_) => ("y".into(), Precedence::One),
        Node::Seed => ("d".into(), Precedence::One),
        Node::Add(l, r) => (
            format!("{} + {}", at(*l, Precedence::Sum), at(*r, Precedence::Sum)),
            Precedence::Sum,
        ),
        Node::Sub(l, r) => (
            format!(
                "{} − {}",
                at(*l, Precedence::Sum),
                at(*r, Precedence::Product)
            ),
            Precedence::Sum,
        ),
        Node::Mul(l, r) => (
            format!(
                "{} · {}",
                at(*l, Precedence::Product),
                at(*r, Precedence::One)
            ),
            Precedence::Product,
        ),
        Node::Div(l, r) => (
            format!(
                "{} / {}",
                at(*l, Precedence::Product),
                at(*r, Precedence::One)
            ),
            Precedence::Product,
        ),
        Node::Neg(a) => (format!("−{}", at(*a, Precedence::Product)), Precedence::Sum),
        Node::Call(f, args) => {
            let args: Vec<String> = args.iter().map(|id| at(*id, Precedence::Sum)).collect();
            (
                format!("{}({})", name(*f), args.join(", ")),
                Precedence::One,
            )
        }
        Node::CallInt(f, a, k, plus) => (
            format!(
                "{}({}, {})",
                name(*f),
                at(*a, Precedence::Sum),
                int(*k, *plus)
            ),
            Precedence::One,
        ),
        Node::IntCall(f, k, plus, a) => (
            format!(
                "{}({}, {})",
                name(*f),
                int(*k, *plus),
                at(*a, Precedence::Sum)
            ),
            Precedence::One,
        ),
        Node::Digamma(a) => (
            format!("digamma({})", at(*a, Precedence::Sum)),
            Precedence::One,
        ),
        Node::Select(p, [l, r, then, otherwise]) => {
            let sign = match p {
                FloatPredicate::Oeq => "=",
                FloatPredicate::Ogt => ">",
                FloatPredicate::Olt => "<",
                _ => "?",
            };
            let [l, r, then, otherwise] =
                [*l, *r, *then, *otherwise].map(|id| at(id, Precedence::Sum));
            (
                format!("({l} {sign} {r} ? {then} : {otherwise})"),
                Precedence::One,
            )
        }
    }
}
