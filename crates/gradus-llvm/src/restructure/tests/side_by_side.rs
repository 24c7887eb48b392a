//! Interprets a graph and its tree with equal decisions and compares every block and every value read.
//!
//! A block's decision is a hash of the block and its visit count. Values are hashes of their inputs. The
//! tree is interpreted by the importer's rules. An arm sees the bindings from before its node; after a node
//! only the results are rebound. A loop's body sees the bindings from before the loop, and the carried
//! variables.

use super::super::scope::{Flow, Scope, Var};
use super::super::{Cfg, Kind, NodeId, RepeatCondition, SelectorId, SeqId, Tree, TreeNode};
use std::collections::HashMap;

/// An event of a run: a block with the values read, or an edge with the values assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Block(usize, Vec<u64>),
    Branch(usize, Vec<u64>),
    End(Vec<u64>),
}

pub(super) fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, part| {
        let hash = (hash ^ part).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ (hash >> 29)
    })
}

/// Decisions and computations shared by both interpreters.
struct Machine<'a> {
    cfg: &'a Cfg,
    flow: &'a Flow,
    seed: u64,
    fuel: usize,
    visits: Vec<u64>,
    events: Vec<Event>,
}

type Env = HashMap<Var, u64>;

impl<'a> Machine<'a> {
    fn new(cfg: &'a Cfg, flow: &'a Flow, seed: u64, fuel: usize) -> Machine<'a> {
        Machine {
            cfg,
            flow,
            seed,
            fuel,
            visits: vec![0; cfg.nodes.len()],
            events: Vec::new(),
        }
    }
    fn value(&self, env: &Env, value: u32) -> u64 {
        // A value without a definition is equal in both runs.
        *env.get(&Var::Value(value))
            .unwrap_or(&mix(&[self.seed, u64::from(value)]))
    }
    fn block(&mut self, env: &mut Env, block: usize) {
        self.visits[block] += 1;
        let flow = &self.flow.blocks[block];
        let read: Vec<u64> = flow.reads.iter().map(|v| self.value(env, *v)).collect();
        self.define(env, block, &flow.defines, &read);
        self.events.push(Event::Block(block, read));
    }
    fn define(&self, env: &mut Env, block: usize, values: &[u32], read: &[u64]) {
        for &value in values {
            let hash = mix(&[
                mix(read),
                block as u64,
                u64::from(value),
                self.visits[block],
            ]);
            env.insert(Var::Value(value), hash);
        }
    }
    /// Returns the successor that a block branches to.
    fn decide(&mut self, env: &Env, block: usize) -> usize {
        let flow = &self.flow.blocks[block];
        let read: Vec<u64> = flow
            .branch_reads
            .iter()
            .map(|v| self.value(env, *v))
            .collect();
        self.events.push(Event::Branch(block, read));
        let hash = mix(&[self.seed, block as u64, self.visits[block]]);
        hash as usize % self.cfg.nodes[block].successors.len()
    }
    fn edge(&self, env: &mut Env, block: usize, slot: usize, keep: impl Fn(u32) -> bool) {
        let assigned = self.flow.blocks[block]
            .edges
            .get(slot)
            .map_or(&[][..], |edge| edge);
        let read: Vec<u64> = assigned
            .iter()
            .map(|(_, from)| from.map_or(7, |from| self.value(env, from)))
            .collect();
        for ((phi, _), read) in assigned.iter().zip(read) {
            if keep(*phi) {
                env.insert(Var::Value(*phi), read);
            }
        }
    }
    fn end(&mut self, env: &Env) {
        let read = self
            .flow
            .live_out
            .iter()
            .map(|v| self.value(env, *v))
            .collect();
        self.events.push(Event::End(read));
    }
}

/// Returns the events of a run over the graph, until it ends or `fuel` blocks were visited.
pub(super) fn run_graph(cfg: &Cfg, flow: &Flow, seed: u64, fuel: usize) -> Vec<Event> {
    let mut machine = Machine::new(cfg, flow, seed, fuel);
    let mut env = Env::new();
    let mut block = cfg.entry;
    while machine.fuel > 0 {
        machine.fuel -= 1;
        machine.block(&mut env, block);
        let node = &cfg.nodes[block];
        if node.kind == Kind::Return {
            machine.edge(&mut env, block, 0, |_| true);
            machine.end(&env);
            break;
        }
        if node.kind.ends() {
            break;
        }
        let distinct = node.successors.iter().any(|s| *s != node.successors[0]);
        let slot = if distinct {
            machine.decide(&env, block)
        } else {
            0
        };
        if node.kind == Kind::Invoke && slot == 0 {
            let values = &flow.blocks[block].branch_defines;
            machine.define(&mut env, block, values, &[]);
        }
        let first = node
            .successors
            .iter()
            .position(|s| *s == node.successors[slot]);
        machine.edge(&mut env, block, first.unwrap_or(slot), |_| true);
        block = node.successors[slot];
    }
    machine.events
}

/// A sequence in progress: the position, and the environment to restore afterwards.
struct Frame {
    seq: SeqId,
    next: usize,
    /// The environment before the node that owns the sequence.
    before: Env,
}

/// Returns the events of a run over the tree, until it ends or `fuel` blocks were visited.
pub(super) fn run_tree(
    cfg: &Cfg,
    flow: &Flow,
    tree: &Tree,
    scope: &Scope,
    seed: u64,
    fuel: usize,
) -> Vec<Event> {
    let mut machine = Machine::new(cfg, flow, seed, fuel);
    let mut env = Env::new();
    let mut frames = vec![Frame {
        seq: tree.root(),
        next: 0,
        before: Env::new(),
    }];
    while let Some(frame) = frames.last_mut() {
        let Some(&id) = tree.seq(frame.seq).get(frame.next) else {
            assert!(
                !tree.never_completes(frame.seq),
                "ran out of a sequence that ends"
            );
            let round = tree
                .owner(frame.seq)
                .map(|owner| leave(&mut machine, tree, scope, owner, &mut env, frame));
            match round {
                Some(true) => frame.next = 0,
                Some(false) => drop(frames.pop()),
                None => {
                    machine.end(&env);
                    break;
                }
            }
            continue;
        };
        frame.next += 1;
        match tree.node(id) {
            TreeNode::Block { block } => {
                if machine.fuel == 0 {
                    break;
                }
                machine.fuel -= 1;
                machine.block(&mut env, *block);
                if cfg.nodes[*block].kind.ends() {
                    break;
                }
            }
            TreeNode::Edge { block, slot, .. } => {
                machine.edge(&mut env, *block, *slot, |phi| scope.is_read(phi));
            }
            TreeNode::Assign {
                selector, value, ..
            } => {
                env.insert(Var::Selector(*selector), u64::from(*value));
            }
            TreeNode::Branch {
                block,
                arms,
                arm_of,
            } => {
                let slot = machine.decide(&env, *block);
                frames.push(enter(arms[arm_of[slot]], &env));
                if cfg.nodes[*block].kind == Kind::Invoke && slot == 0 {
                    machine.define(&mut env, *block, &flow.blocks[*block].branch_defines, &[]);
                }
            }
            TreeNode::Select {
                selector,
                values,
                arms,
            } => {
                let selected = read_selector(&env, *selector);
                let arm = values
                    .iter()
                    .position(|value| u64::from(*value) == selected);
                frames.push(enter(arms[arm.unwrap_or(arms.len() - 1)], &env));
            }
            TreeNode::Loop { body, .. } => frames.push(enter(*body, &env)),
            TreeNode::Never => panic!("control came behind a loop that never ends"),
        }
    }
    machine.events
}

fn enter(seq: SeqId, env: &Env) -> Frame {
    Frame {
        seq,
        next: 0,
        before: env.clone(),
    }
}

fn read_selector(env: &Env, selector: SelectorId) -> u64 {
    *env.get(&Var::Selector(selector))
        .expect("the selector is set and in scope")
}

/// Leaves a sequence of a node: returns whether to repeat it, and rebinds the results.
fn leave(
    machine: &mut Machine,
    tree: &Tree,
    scope: &Scope,
    owner: NodeId,
    env: &mut Env,
    frame: &Frame,
) -> bool {
    let rebind = |vars: &[Var], end: &Env| {
        let mut env = frame.before.clone();
        for var in vars {
            match end.get(var) {
                Some(value) => env.insert(*var, *value),
                None => env.remove(var),
            };
        }
        env
    };
    let mut next = env.clone();
    let again = match tree.node(owner) {
        TreeNode::Loop { again, .. } => match again {
            RepeatCondition::Forever => true,
            RepeatCondition::Selector { selector, value } => {
                read_selector(env, *selector) == u64::from(*value)
            }
            RepeatCondition::Block { block, slot } => {
                machine.edge(&mut next, *block, *slot, |phi| scope.is_read(phi));
                machine.decide(env, *block) == *slot
            }
        },
        _ => false,
    };
    *env = if again {
        rebind(scope.carried(owner), &next)
    } else {
        rebind(scope.results(owner), env)
    };
    again
}
