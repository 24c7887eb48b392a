//! Expression graph of a formula: numbers, arguments, result and seed, combined by arithmetic and functions.
//!
//! A [`FormulaBuilder`] collects nodes while a formula is written; a [`Formula`] is the finished page. Nodes are in
//! topological order: each reading (number, uses, code, text) is one loop. Construction folds constants and
//! products by one.

use gradus_ir::FloatPredicate;
use gradus_ir::externals::MathFn;
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Index of a node on its page.
pub(super) type NodeId = usize;

/// A node of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// A number.
    Num(f64),
    /// Argument `i`.
    Arg(usize),
    /// The result, or member `j` of a struct result.
    Result(usize),
    /// The seed: a tangent or an adjoint.
    Seed,
    Add(NodeId, NodeId),
    Sub(NodeId, NodeId),
    Mul(NodeId, NodeId),
    Div(NodeId, NodeId),
    Neg(NodeId),
    /// A math function of floats.
    Call(MathFn, Vec<NodeId>),
    /// A math function of a float and of an integer argument plus a constant (`ldexp`, `powi`).
    CallInt(MathFn, NodeId, usize, i32),
    /// A math function of an integer argument plus a constant, and of a float (`jn`).
    IntCall(MathFn, usize, i32, NodeId),
    /// An integer argument, converted to a float.
    FloatOf(usize),
    /// The digamma function.
    Digamma(NodeId),
    /// `l predicate r ? then : else`.
    Select(FloatPredicate, [NodeId; 4]),
}

impl Node {
    /// Returns the operand nodes.
    pub(super) fn inputs(&self) -> Vec<NodeId> {
        match self {
            Node::Num(_) | Node::Arg(_) | Node::Result(_) | Node::Seed | Node::FloatOf(_) => {
                Vec::new()
            }
            Node::Add(a, b) | Node::Sub(a, b) | Node::Mul(a, b) | Node::Div(a, b) => vec![*a, *b],
            Node::Neg(a)
            | Node::Digamma(a)
            | Node::CallInt(_, a, _, _)
            | Node::IntCall(_, _, _, a) => vec![*a],
            Node::Call(_, args) => args.clone(),
            Node::Select(_, all) => all.to_vec(),
        }
    }
    /// Returns the integer argument that the node reads.
    pub(super) fn int_arg(&self) -> Option<usize> {
        match self {
            Node::CallInt(_, _, i, _) | Node::IntCall(_, i, _, _) | Node::FloatOf(i) => Some(*i),
            _ => None,
        }
    }
}

/// A page under construction.
#[derive(Debug, Default)]
pub(super) struct FormulaBuilder {
    nodes: RefCell<Vec<Node>>,
}

impl FormulaBuilder {
    pub(super) fn put(&self, node: Node) -> Expr<'_> {
        let mut nodes = self.nodes.borrow_mut();
        let id = match nodes.iter().position(|n| *n == node) {
            Some(id) => id,
            None => {
                nodes.push(node);
                nodes.len() - 1
            }
        };
        Expr { page: self, id }
    }
    pub(super) fn num(&self, x: f64) -> Expr<'_> {
        self.put(Node::Num(x))
    }
    /// Finishes the page as a formula with the value `root`.
    pub(super) fn finish(&self, root: Expr<'_>) -> Formula {
        let nodes = self.nodes.borrow().clone();
        let mut live = vec![false; nodes.len()];
        live[root.id] = true;
        for id in (0..=root.id).rev().filter(|&id| nodes[id] != Node::Seed) {
            if live[id] {
                nodes[id].inputs().iter().for_each(|&i| live[i] = true);
            }
        }
        Formula {
            nodes,
            live,
            root: root.id,
        }
    }
}

/// An expression on a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expr<'p> {
    page: &'p FormulaBuilder,
    id: NodeId,
}

impl<'p> Expr<'p> {
    fn value(self) -> Option<f64> {
        match self.page.nodes.borrow()[self.id] {
            Node::Num(x) => Some(x),
            _ => None,
        }
    }
    /// Returns the number of a constant expression.
    pub(super) fn constant(self) -> Option<f64> {
        self.value()
    }
    pub(super) fn num(self, x: f64) -> Expr<'p> {
        self.page.num(x)
    }
    /// Returns `f(self)`.
    pub(super) fn call(self, f: MathFn) -> Expr<'p> {
        self.page.put(Node::Call(f, vec![self.id]))
    }
    /// Returns `f(self, b)`.
    pub(super) fn call2(self, f: MathFn, b: Expr<'p>) -> Expr<'p> {
        self.page.put(Node::Call(f, vec![self.id, b.id]))
    }
    /// Returns `f(self, integer argument + plus)`.
    pub(super) fn call_int(self, f: MathFn, argument: usize, plus: i32) -> Expr<'p> {
        self.page.put(Node::CallInt(f, self.id, argument, plus))
    }
    /// Returns `f(integer argument + plus, self)`.
    pub(super) fn int_call(self, f: MathFn, argument: usize, plus: i32) -> Expr<'p> {
        self.page.put(Node::IntCall(f, argument, plus, self.id))
    }
    /// Returns the integer argument as a float.
    pub(super) fn float_of(self, argument: usize) -> Expr<'p> {
        self.page.put(Node::FloatOf(argument))
    }
    pub(super) fn digamma(self) -> Expr<'p> {
        self.page.put(Node::Digamma(self.id))
    }
    /// Returns `self predicate r ? then : otherwise`.
    pub(super) fn select(
        self,
        p: FloatPredicate,
        r: Expr<'p>,
        then: Expr<'p>,
        otherwise: Expr<'p>,
    ) -> Expr<'p> {
        if let (Some(l), Some(r)) = (self.value(), r.value()) {
            let holds = match p {
                FloatPredicate::Oeq => Some(l == r),
                FloatPredicate::Ogt => Some(l > r),
                FloatPredicate::Olt => Some(l < r),
                _ => None,
            };
            if let Some(holds) = holds {
                return if holds { then } else { otherwise };
            }
        }
        self.page
            .put(Node::Select(p, [self.id, r.id, then.id, otherwise.id]))
    }
}

impl<'p> Add for Expr<'p> {
    type Output = Expr<'p>;
    fn add(self, b: Expr<'p>) -> Expr<'p> {
        match (self.value(), b.value()) {
            (Some(x), Some(y)) => self.page.num(x + y),
            _ => self.page.put(Node::Add(self.id, b.id)),
        }
    }
}

impl<'p> Sub for Expr<'p> {
    type Output = Expr<'p>;
    fn sub(self, b: Expr<'p>) -> Expr<'p> {
        match (self.value(), b.value()) {
            (Some(x), Some(y)) => self.page.num(x - y),
            _ => self.page.put(Node::Sub(self.id, b.id)),
        }
    }
}

impl<'p> Mul for Expr<'p> {
    type Output = Expr<'p>;
    fn mul(self, b: Expr<'p>) -> Expr<'p> {
        match (self.value(), b.value()) {
            (Some(x), Some(y)) => self.page.num(x * y),
            (Some(1.0), None) => b,
            (None, Some(1.0)) => self,
            (Some(-1.0), None) => -b,
            (None, Some(-1.0)) => -self,
            _ => self.page.put(Node::Mul(self.id, b.id)),
        }
    }
}

impl<'p> Div for Expr<'p> {
    type Output = Expr<'p>;
    fn div(self, b: Expr<'p>) -> Expr<'p> {
        match (self.value(), b.value()) {
            (Some(x), Some(y)) => self.page.num(x / y),
            (None, Some(1.0)) => self,
            _ => self.page.put(Node::Div(self.id, b.id)),
        }
    }
}

impl<'p> Neg for Expr<'p> {
    type Output = Expr<'p>;
    fn neg(self) -> Expr<'p> {
        let node = self.page.nodes.borrow()[self.id].clone();
        match node {
            Node::Num(x) => self.page.num(-x),
            Node::Neg(inner) => Expr {
                page: self.page,
                id: inner,
            },
            _ => self.page.put(Node::Neg(self.id)),
        }
    }
}

macro_rules! with_numbers {
    ($($op:ident $method:ident),*) => { $(
        impl<'p> $op<Expr<'p>> for f64 {
            type Output = Expr<'p>;
            fn $method(self, b: Expr<'p>) -> Expr<'p> {
                b.page.num(self).$method(b)
            }
        }
        impl<'p> $op<f64> for Expr<'p> {
            type Output = Expr<'p>;
            fn $method(self, b: f64) -> Expr<'p> {
                self.$method(self.page.num(b))
            }
        }
    )* };
}
with_numbers!(Add add, Sub sub, Mul mul, Div div);

/// A finished formula.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    /// Nodes in topological order.
    pub(super) nodes: Vec<Node>,
    /// Per node: true if the value depends on the node.
    pub(super) live: Vec<bool>,
    /// The node of the value.
    pub(super) root: NodeId,
}

impl Formula {
    /// Returns the nodes on which the value depends, in order.
    pub(super) fn live_nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(id, _)| self.live[*id])
    }
    /// Returns true if the formula consists of sums, products and selects of finite numbers, arguments and
    /// seed.
    pub(super) fn is_polynomial(&self) -> bool {
        self.live_nodes().all(|(_, node)| {
            use Node::*;
            match node {
                Num(x) => x.is_finite(),
                Arg(_) | Seed | Add(..) | Sub(..) | Mul(..) | Neg(_) | Select(..) => true,
                _ => false,
            }
        })
    }
    /// Returns true if the formula is zero for all seeds.
    pub(super) fn is_zero(&self) -> bool {
        self.nodes[self.root] == Node::Num(0.0)
    }
}
