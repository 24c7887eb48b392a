//! Call graph of a request: reachable bodies, call sites, and a bottom-up order for summaries.
//!
//! Steps:
//!
//! 1. From the roots, follow direct calls and every mention of a function, in bodies and in the
//!    initializers of mentioned globals.
//! 2. An indirect call may reach any address-taken function of its type in the unit, because objects may
//!    come from outside the call graph.
//! 3. Strongly connected components by Tarjan's algorithm (SIAM J. Comput. 1, 1972) with an explicit stack,
//!    for call chains of any length. Callees come before their callers. Indirect calls go through one node
//!    per function type, which keeps the number of edges linear.

use gradus_ir::{Body, ConstId, ConstKind, Definition, FuncId, GlobalId, Op, Symbol, TypeId, Unit};
use std::collections::{HashMap, HashSet};

/// The callee of a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A function with a body in the call graph.
    Inside(FuncId),
    /// An external function: no body in the unit.
    Outside(FuncId),
    /// A function pointer. Possible callees are [`CallGraph::candidates`] of the function type and external
    /// functions.
    Indirect(TypeId),
    /// A callee that only the host understands: inline assembly, an alias.
    Foreign,
}

/// A `call` or `invoke`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The calling function.
    pub caller: FuncId,
    /// The op.
    pub op: Op,
    /// The callee.
    pub callee: Callee,
}

/// A strongly connected component of the call graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// The functions of the component.
    pub functions: Vec<FuncId>,
    /// True if the functions call themselves or each other.
    pub recursive: bool,
}

/// The call graph of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph {
    roots: Vec<FuncId>,
    functions: Vec<FuncId>,
    position: HashMap<FuncId, usize>,
    components: Vec<Component>,
    sites: Vec<Vec<CallSite>>,
    callers: HashMap<FuncId, Vec<CallSite>>,
    taken_functions: Vec<FuncId>,
    candidates: HashMap<TypeId, Vec<FuncId>>,
    globals: Vec<GlobalId>,
}

impl CallGraph {
    /// Builds the call graph of `roots`. Roots without a body are skipped.
    pub fn of(unit: &Unit, roots: &[FuncId]) -> CallGraph {
        let mut closure = CallGraph {
            roots: roots.to_vec(),
            ..CallGraph::default()
        };
        Discovery::new(unit, &mut closure).run();
        for &func in &closure.taken_functions {
            let ty = unit.functions[func].ty;
            closure.candidates.entry(ty).or_default().push(func);
        }
        for site in closure.sites.iter().flatten() {
            if let Callee::Inside(func) | Callee::Outside(func) = site.callee {
                closure.callers.entry(func).or_default().push(*site);
            }
        }
        closure.find_components();
        closure
    }

    /// Returns the roots.
    pub fn roots(&self) -> &[FuncId] {
        &self.roots
    }
    /// Returns all functions with a body, in order of discovery.
    pub fn functions(&self) -> &[FuncId] {
        &self.functions
    }
    /// Iterates over the functions and their bodies.
    pub fn bodies<'u>(&self, unit: &'u Unit) -> impl Iterator<Item = (FuncId, &'u Body)> {
        self.functions
            .iter()
            .filter_map(|&func| Some((func, unit.functions[func].body.as_deref()?)))
    }
    /// Returns true if the body of `func` is in the call graph.
    pub fn contains(&self, func: FuncId) -> bool {
        self.position.contains_key(&func)
    }
    /// Returns the index of `func` in [`CallGraph::functions`].
    pub fn position(&self, func: FuncId) -> Option<usize> {
        self.position.get(&func).copied()
    }
    /// Returns the strongly connected components, callees before callers.
    pub fn components(&self) -> &[Component] {
        &self.components
    }
    /// Returns the calls in the body of `func`, in program order.
    pub fn calls_in(&self, func: FuncId) -> &[CallSite] {
        self.position(func).map_or(&[], |i| &self.sites[i])
    }
    /// Returns the direct calls of `func`.
    pub fn calls_of(&self, func: FuncId) -> &[CallSite] {
        self.callers.get(&func).map_or(&[], Vec::as_slice)
    }
    /// Returns the address-taken functions of the call graph, with or without a body.
    pub fn address_taken(&self) -> &[FuncId] {
        &self.taken_functions
    }
    /// Returns the address-taken functions of type `signature` in the call graph.
    pub fn candidates(&self, signature: TypeId) -> &[FuncId] {
        self.candidates.get(&signature).map_or(&[], Vec::as_slice)
    }
    /// Returns the globals mentioned in bodies or, transitively, in initializers.
    pub fn globals(&self) -> &[GlobalId] {
        &self.globals
    }
    /// Returns the callee of an op of `func`; `None` if the op is no call.
    pub fn callee(&self, unit: &Unit, body: &Body, op: Op) -> Option<Callee> {
        let info = body.kind(op).call_info()?;
        Some(match body.as_const(body.operand(op, 0)) {
            None => Callee::Indirect(info.signature),
            Some(id) => match unit.constant(id).kind {
                ConstKind::Func(func) if self.contains(func) => Callee::Inside(func),
                ConstKind::Func(func) => Callee::Outside(func),
                ConstKind::Foreign(_) => Callee::Foreign,
                _ => Callee::Indirect(info.signature),
            },
        })
    }

    /// Returns the functions on a cycle of direct calls.
    pub(crate) fn directly_recursive(&self) -> HashSet<FuncId> {
        let inside = |site: &CallSite| match site.callee {
            Callee::Inside(func) => Some(self.position[&func]),
            Callee::Indirect(_) | Callee::Outside(_) | Callee::Foreign => None,
        };
        let callees = |sites: &Vec<CallSite>| sites.iter().filter_map(inside).collect();
        let edges: Vec<Vec<usize>> = self.sites.iter().map(callees).collect();
        let is_cycle = |members: &Vec<usize>| {
            members.len() > 1 || members.iter().any(|&node| edges[node].contains(&node))
        };
        let cycles = tarjan(&edges).into_iter().filter(is_cycle);
        cycles.flatten().map(|node| self.functions[node]).collect()
    }

    fn find_components(&mut self) {
        let mut nodes: HashMap<TypeId, usize> = HashMap::new();
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); self.functions.len()];
        for (from, sites) in self.sites.iter().enumerate() {
            for site in sites {
                match site.callee {
                    Callee::Inside(func) => edges[from].push(self.position[&func]),
                    Callee::Indirect(ty) => {
                        let next = self.functions.len() + nodes.len();
                        edges[from].push(*nodes.entry(ty).or_insert(next));
                    }
                    Callee::Outside(_) | Callee::Foreign => {}
                }
            }
        }
        edges.resize(self.functions.len() + nodes.len(), Vec::new());
        for (ty, node) in nodes {
            let inside = self.candidates(ty).iter();
            edges[node] = inside.filter_map(|f| self.position(*f)).collect();
        }
        for members in tarjan(&edges) {
            let recursive =
                members.len() > 1 || members.iter().any(|&node| edges[node].contains(&node));
            let functions: Vec<FuncId> = members
                .iter()
                .filter_map(|&node| self.functions.get(node).copied())
                .collect();
            if functions.is_empty() {
                continue;
            }
            self.components.push(Component {
                functions,
                recursive,
            });
        }
    }
}

/// Returns the strongly connected components of the graph `edges`, successors first; members ascend.
fn tarjan(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const UNVISITED: usize = usize::MAX;
    let mut index = vec![UNVISITED; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut open = vec![false; edges.len()];
    let (mut stack, mut found, mut count) = (Vec::new(), Vec::new(), 0);
    for root in 0..edges.len() {
        if index[root] != UNVISITED {
            continue;
        }
        let mut path: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some(&mut (node, ref mut at)) = path.last_mut() {
            if index[node] == UNVISITED {
                (index[node], low[node], open[node]) = (count, count, true);
                count += 1;
                stack.push(node);
            }
            if let Some(&next) = edges[node].get(*at) {
                *at += 1;
                if index[next] == UNVISITED {
                    path.push((next, 0));
                } else if open[next] {
                    low[node] = low[node].min(index[next]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == index[node] {
                let start = stack.iter().rposition(|&n| n == node).unwrap_or(0);
                let mut members: Vec<usize> = stack.drain(start..).collect();
                members.iter().for_each(|&n| open[n] = false);
                members.sort_unstable();
                found.push(members);
            }
        }
    }
    found
}

/// The search of step 1.
struct Discovery<'a> {
    unit: &'a Unit,
    closure: &'a mut CallGraph,
    next: usize,
    consts: Vec<ConstId>,
    seen_consts: std::collections::HashSet<ConstId>,
    seen_globals: std::collections::HashSet<GlobalId>,
    seen_taken: std::collections::HashSet<FuncId>,
    /// The address-taken functions of the whole unit, by type; computed on first use.
    unit_address_taken: Option<HashMap<TypeId, Vec<FuncId>>>,
}

impl<'a> Discovery<'a> {
    fn new(unit: &'a Unit, closure: &'a mut CallGraph) -> Self {
        Discovery {
            unit,
            closure,
            next: 0,
            consts: Vec::new(),
            seen_consts: Default::default(),
            seen_globals: Default::default(),
            seen_taken: Default::default(),
            unit_address_taken: None,
        }
    }

    fn run(&mut self) {
        for func in self.closure.roots.clone() {
            self.add_function(func);
        }
        while let Some(&func) = self.closure.functions.get(self.next) {
            self.next += 1;
            if let Some(body) = self.unit.functions[func].body.as_deref() {
                self.scan_body(func, body);
            }
        }
        for at in 0..self.closure.sites.len() {
            for site in 0..self.closure.sites[at].len() {
                let callee = self.closure.sites[at][site].callee;
                if let Callee::Outside(func) = callee
                    && self.closure.contains(func)
                {
                    self.closure.sites[at][site].callee = Callee::Inside(func);
                }
            }
        }
    }

    /// Adds a function with a body. Functions of the tape's stack are modelled by their effect, not their
    /// body.
    fn add_function(&mut self, func: FuncId) {
        let seen = self.unit.functions[func].body.is_some() && !self.unit.is_tape_function(func);
        if seen && !self.closure.contains(func) {
            let position = self.closure.functions.len();
            self.closure.position.insert(func, position);
            self.closure.functions.push(func);
            self.closure.sites.push(Vec::new());
        }
    }

    fn scan_body(&mut self, caller: FuncId, body: &Body) {
        let mut sites = Vec::new();
        for op in body.walk(body.root()) {
            let mut skip = 0;
            if let Some(callee) = self.closure.callee(self.unit, body, op) {
                if let Callee::Inside(func) | Callee::Outside(func) = callee {
                    self.add_function(func);
                    skip = 1;
                }
                if let Callee::Indirect(signature) = callee {
                    self.add_all_address_taken(signature);
                }
                sites.push(CallSite { caller, op, callee });
            }
            for value in body.operands(op).skip(skip) {
                if let Definition::Const(id) = body.values[value].def {
                    self.visit_constant(id);
                }
            }
        }
        let position = self.closure.position[&caller];
        self.closure.sites[position] = sites;
    }

    fn visit_constant(&mut self, id: ConstId) {
        self.consts.push(id);
        while let Some(id) = self.consts.pop() {
            match &self.unit.constant(id).kind {
                ConstKind::Func(func) => self.add_address_taken(*func),
                ConstKind::Global { global, .. } => self.visit_global(*global),
                ConstKind::Aggregate(parts) if self.seen_consts.insert(id) => {
                    self.consts.extend(parts);
                }
                _ => {}
            }
        }
    }

    fn add_address_taken(&mut self, func: FuncId) {
        if self.seen_taken.insert(func) {
            self.closure.taken_functions.push(func);
            self.add_function(func);
        }
    }

    /// Adds every address-taken function of a type in the unit.
    fn add_all_address_taken(&mut self, signature: TypeId) {
        let unit = self.unit;
        let anywhere = self
            .unit_address_taken
            .get_or_insert_with(|| address_taken_functions(unit));
        for func in anywhere.remove(&signature).unwrap_or_default() {
            self.add_address_taken(func);
        }
    }

    fn visit_global(&mut self, global: GlobalId) {
        let mut work = vec![global];
        while let Some(global) = work.pop() {
            if !self.seen_globals.insert(global) {
                continue;
            }
            self.closure.globals.push(global);
            for symbol in self.unit.globals[global].initial_symbols() {
                match symbol {
                    Symbol::Func(func) => self.add_address_taken(func),
                    Symbol::Global(target) => work.push(target),
                }
            }
        }
    }
}

/// Returns the functions of a unit whose address bodies or initializers mention, by type.
pub fn address_taken_functions(unit: &Unit) -> HashMap<TypeId, Vec<FuncId>> {
    let mut found: HashMap<TypeId, Vec<FuncId>> = HashMap::new();
    let mut seen = std::collections::HashSet::new();
    let mut take = |func: FuncId| {
        let function = &unit.functions[func];
        if function.derived_from.is_none() && seen.insert(func) {
            found.entry(function.ty).or_default().push(func);
        }
    };
    let sources = unit.functions.iter().map(|(_, function)| function);
    for function in sources.filter(|function| function.derived_from.is_none()) {
        let Some(body) = function.body.as_deref() else {
            continue;
        };
        for op in body.walk(body.root()) {
            let skip = usize::from(unit.callee(body, op).is_some());
            let mut consts: Vec<ConstId> = (body.operands(op).skip(skip))
                .filter_map(|value| body.as_const(value))
                .collect();
            while let Some(id) = consts.pop() {
                match &unit.constant(id).kind {
                    ConstKind::Func(func) => take(*func),
                    ConstKind::Aggregate(parts) => consts.extend(parts),
                    _ => {}
                }
            }
        }
    }
    for (_, global) in unit.globals.iter() {
        for symbol in global.initial_symbols() {
            if let Symbol::Func(func) = symbol {
                take(func);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_ir::{AttrSet, Builder};

    /// Defines `void name(void)` that calls `callees`.
    fn define(unit: &mut Unit, name: &str, callees: &[FuncId]) -> FuncId {
        let void = unit.types.void();
        let ty = unit.types.func(void, vec![]);
        let func = unit.declare(name, ty, AttrSet::default());
        let mut body = Body::new(&[]);
        let mut build = Builder::new(unit, &mut body);
        for &callee in callees {
            build.call(callee, &[]);
        }
        build.return_(None);
        unit.functions[func].body = Some(Box::new(body));
        func
    }

    #[test]
    fn callees_come_first_in_a_long_chain() {
        let mut unit = Unit::default();
        let mut last = define(&mut unit, "f0", &[]);
        for n in 1..5000 {
            last = define(&mut unit, &format!("f{n}"), &[last]);
        }
        let closure = CallGraph::of(&unit, &[last]);
        assert_eq!(closure.components().len(), 5000);
        assert_eq!(closure.components()[4999].functions, [last]);
        assert!(closure.components().iter().all(|c| !c.recursive));
    }

    #[test]
    fn mutual_recursion_is_one_component() {
        let mut unit = Unit::default();
        let odd = define(&mut unit, "odd", &[]);
        let even = define(&mut unit, "even", &[odd]);
        unit.functions[odd].body = None;
        let odd = define(&mut unit, "odd", &[even]);
        let root = define(&mut unit, "root", &[even, odd]);
        let closure = CallGraph::of(&unit, &[root]);
        assert_eq!(closure.components().len(), 2);
        assert_eq!(closure.components()[0].functions.len(), 2);
        assert!(closure.components()[0].recursive && !closure.components()[1].recursive);
        assert_eq!(closure.calls_of(even).len(), 2);
    }

    #[test]
    fn an_indirect_call_reaches_what_is_mentioned_with_its_type() {
        let mut unit = Unit::default();
        let target = define(&mut unit, "target", &[]);
        let other = define(&mut unit, "other", &[]);
        let (void, ptr) = (unit.types.void(), unit.types.ptr());
        let signature = unit.functions[target].ty;
        let ty = unit.types.func(void, vec![ptr]);
        let root = unit.declare("root", ty, AttrSet::default());
        let mut body = Body::new(&[ptr]);
        let mut build = Builder::new(&mut unit, &mut body);
        let table = build.func(target);
        let place = build.body.params()[0];
        build.store(table, place);
        let callee = build.load(ptr, place);
        build.call_with(gradus_ir::CallInfo::plain(signature), callee, &[]);
        build.return_(None);
        unit.functions[root].body = Some(Box::new(body));
        let closure = CallGraph::of(&unit, &[root]);
        assert_eq!(closure.candidates(signature), &[target]);
        assert!(closure.contains(target) && !closure.contains(other));
        assert_eq!(closure.components()[0].functions, [target]);
        assert_eq!(closure.components()[1].functions, [root]);
    }
}
