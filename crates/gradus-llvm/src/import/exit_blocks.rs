//! Exit-block duplication: each landing pad gets a private copy of the blocks on the path out of the
//! function.
//!
//! Compilers share clean-up code with a final `resume`: many calls jump to one chain of destructors.
//! Restructuring the shared chain would require a sequence of selectors around non-throwing code. A copy
//! for each landing pad makes every handler a region that leaves the function.
//!
//! An exit pad is a landing pad that reaches no return. Steps, before restructuring:
//!
//! 1. Find the blocks that reach a return.
//! 2. Find the exit pads that control reaches without passing another exit pad.
//! 3. Copy the blocks reachable from each exit pad, with fresh value numbers, if an earlier pad reaches any
//!    of the blocks.
//!
//! The number of copies is limited; the remaining pads share their blocks.

use crate::import::cfg_reader::{Block, End, Inst, Ref, Source};
use crate::restructure::Kind;
use std::collections::HashMap;

/// The most copied blocks: a multiple of the function's blocks, plus a constant.
const COPIES_PER_BLOCK_MAX: usize = 4;
const COPIES_BASE_MAX: usize = 4096;

/// Copies the exit blocks that several landing pads share.
pub(super) fn duplicate_exit_blocks(source: &mut Source) {
    let count = source.blocks.len();
    let comes_back = can_return(source);
    let leads_out = |source: &Source, pad: usize| {
        source.cfg.nodes[pad].pad
            && source.cfg.nodes[pad]
                .successors
                .iter()
                .all(|b| !comes_back[*b])
    };
    let (mut taken, pads) = reachable_without_exit_pads(source, &leads_out);
    let mut left = COPIES_BASE_MAX + COPIES_PER_BLOCK_MAX * count;
    for pad in pads {
        let Some(&entry) = source.cfg.nodes[pad].successors.first() else {
            continue;
        };
        let blocks = reachable_from(source, entry);
        let shared = blocks.iter().any(|block| taken[*block]);
        if !shared {
            blocks.iter().for_each(|block| taken[*block] = true);
        } else if blocks.len() <= left {
            left -= blocks.len();
            copy_exit_blocks(source, pad, &blocks);
        }
    }
}

/// Returns the blocks from which control may reach a return.
fn can_return(source: &Source) -> Vec<bool> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); source.blocks.len()];
    let mut work = Vec::new();
    for (block, node) in source.cfg.nodes.iter().enumerate() {
        for &to in &node.successors {
            before[to].push(block);
        }
        if matches!(node.kind, Kind::Return | Kind::MustTailReturn) {
            work.push(block);
        }
    }
    let mut found = vec![false; source.blocks.len()];
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut found[block], true) {
            work.extend(&before[block]);
        }
    }
    found
}

/// Returns the blocks reachable without passing an exit pad, and the reachable exit pads.
fn reachable_without_exit_pads(
    source: &Source,
    leads_out: &dyn Fn(&Source, usize) -> bool,
) -> (Vec<bool>, Vec<usize>) {
    let mut seen = vec![false; source.blocks.len()];
    let mut pads = Vec::new();
    let mut work = vec![source.cfg.entry];
    while let Some(block) = work.pop() {
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        match leads_out(source, block) {
            true => pads.push(block),
            false => work.extend(&source.cfg.nodes[block].successors),
        }
    }
    pads.sort_unstable();
    (seen, pads)
}

fn reachable_from(source: &Source, entry: usize) -> Vec<usize> {
    let mut seen = std::collections::HashSet::new();
    let mut found = Vec::new();
    let mut work = vec![entry];
    while let Some(block) = work.pop() {
        if seen.insert(block) {
            found.push(block);
            work.extend(&source.cfg.nodes[block].successors);
        }
    }
    found.sort_unstable();
    found
}

/// Redirects a landing pad to copies of `blocks`, its reachable blocks.
fn copy_exit_blocks(source: &mut Source, pad: usize, blocks: &[usize]) {
    let first = source.blocks.len();
    let place: HashMap<usize, usize> = (blocks.iter().enumerate())
        .map(|(at, block)| (*block, first + at))
        .collect();
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    for &block in blocks {
        for number in defined_values(source, block) {
            let ty = source.types[number as usize];
            numbers.entry(number).or_insert_with(|| {
                source.types.push(ty);
                source.types.len() as u32 - 1
            });
        }
    }
    // Targets of assignments on inner edges and on the entering edge.
    let assigned = blocks.iter().chain([&pad]);
    let targets: Vec<u32> = assigned
        .flat_map(|block| source.blocks[*block].edges.iter().flatten())
        .map(|(to, _)| *to)
        .collect();
    for number in targets {
        let ty = source.types[number as usize];
        numbers.entry(number).or_insert_with(|| {
            source.types.push(ty);
            source.types.len() as u32 - 1
        });
    }
    for &block in blocks {
        let new = renumber_block(&source.blocks[block], &numbers);
        let mut node = source.cfg.nodes[block].clone();
        for to in &mut node.successors {
            *to = place[&*to];
        }
        source.blocks.push(new);
        source.cfg.nodes.push(node);
    }
    for to in &mut source.cfg.nodes[pad].successors {
        *to = place[&*to];
    }
    for (to, _) in source.blocks[pad].edges.iter_mut().flatten() {
        *to = numbers[&*to];
    }
}

/// Returns the values that a block's instructions and its terminator define.
fn defined_values(source: &Source, block: usize) -> Vec<u32> {
    let block = &source.blocks[block];
    let mut found: Vec<u32> = block.insts.iter().filter_map(|inst| inst.result).collect();
    if let End::Invoke(inst) | End::Stop(inst) = &block.end {
        found.extend(inst.result);
    }
    found
}

fn renumber_block(block: &Block, numbers: &HashMap<u32, u32>) -> Block {
    let number = |n: u32| numbers.get(&n).copied().unwrap_or(n);
    let of = |r: Ref| match r {
        Ref::Local(n) => Ref::Local(number(n)),
        Ref::Const(id) => Ref::Const(id),
    };
    let inst = |i: &Inst| Inst {
        operands: i.operands.iter().map(|r| of(*r)).collect(),
        result: i.result.map(number),
        ..i.clone()
    };
    Block {
        insts: block.insts.iter().map(inst).collect(),
        end: match &block.end {
            End::Branch { condition, cases } => End::Branch {
                condition: condition.map(of),
                cases: cases.clone(),
            },
            End::Invoke(i) => End::Invoke(Box::new(inst(i))),
            End::Stop(i) => End::Stop(Box::new(inst(i))),
            End::Return => End::Return,
        },
        terminator: block.terminator,
        edges: (block.edges.iter())
            .map(|edge| edge.iter().map(|(to, r)| (number(*to), of(*r))).collect())
            .collect(),
    }
}
