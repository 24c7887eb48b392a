//! Names of GPU builtins in the merged module.

/// Returns the new name of a builtin, with `@`.
pub(super) fn builtin_name(symbol: &str) -> Option<&'static str> {
    let found = BUILTIN_NAMES.iter().find(|(old, _)| *old == &symbol[1..]);
    found.map(|(_, new)| *new)
}

// table
const BUILTIN_NAMES: &[(&str, &str)] = &[
    ("llvm.nvvm.read.ptx.sreg.tid.x", "@__gr_tid_x"),
    ("llvm.nvvm.read.ptx.sreg.tid.y", "@__gr_tid_y"),
    ("llvm.nvvm.read.ptx.sreg.tid.z", "@__gr_tid_z"),
    ("llvm.nvvm.read.ptx.sreg.ntid.x", "@__gr_ntid_x"),
    ("llvm.nvvm.read.ptx.sreg.ntid.y", "@__gr_ntid_y"),
    ("llvm.nvvm.read.ptx.sreg.ntid.z", "@__gr_ntid_z"),
    ("llvm.nvvm.read.ptx.sreg.ctaid.x", "@__gr_ctaid_x"),
    ("llvm.nvvm.read.ptx.sreg.ctaid.y", "@__gr_ctaid_y"),
    ("llvm.nvvm.read.ptx.sreg.ctaid.z", "@__gr_ctaid_z"),
    ("llvm.nvvm.read.ptx.sreg.nctaid.x", "@__gr_nctaid_x"),
    ("llvm.nvvm.read.ptx.sreg.nctaid.y", "@__gr_nctaid_y"),
    ("llvm.nvvm.read.ptx.sreg.nctaid.z", "@__gr_nctaid_z"),
    ("llvm.nvvm.read.ptx.sreg.warpsize", "@__gr_warpsize"),
    ("llvm.nvvm.read.ptx.sreg.laneid", "@__gr_laneid"),
    ("llvm.nvvm.barrier.cta.sync.aligned.all", "@__gr_barrier"),
    (
        "llvm.nvvm.barrier.cta.red.popc.aligned.all",
        "@__gr_barrier_count",
    ),
    (
        "llvm.nvvm.barrier.cta.red.and.aligned.all",
        "@__gr_barrier_and",
    ),
    (
        "llvm.nvvm.barrier.cta.red.or.aligned.all",
        "@__gr_barrier_or",
    ),
    ("llvm.nvvm.bar.warp.sync", "@__gr_syncwarp"),
    ("llvm.nvvm.activemask", "@__gr_activemask"),
    ("llvm.nvvm.shfl.sync.idx.i32", "@__gr_shfl_idx_i32"),
    ("llvm.nvvm.shfl.sync.idx.f32", "@__gr_shfl_idx_f32"),
    ("llvm.nvvm.shfl.sync.up.i32", "@__gr_shfl_up_i32"),
    ("llvm.nvvm.shfl.sync.up.f32", "@__gr_shfl_up_f32"),
    ("llvm.nvvm.shfl.sync.down.i32", "@__gr_shfl_down_i32"),
    ("llvm.nvvm.shfl.sync.down.f32", "@__gr_shfl_down_f32"),
    ("llvm.nvvm.shfl.sync.bfly.i32", "@__gr_shfl_bfly_i32"),
    ("llvm.nvvm.shfl.sync.bfly.f32", "@__gr_shfl_bfly_f32"),
    ("llvm.nvvm.vote.all.sync", "@__gr_vote_all"),
    ("llvm.nvvm.vote.any.sync", "@__gr_vote_any"),
    ("llvm.nvvm.vote.uni.sync", "@__gr_vote_uni"),
    ("llvm.nvvm.vote.ballot.sync", "@__gr_vote_ballot"),
    ("llvm.nvvm.match.any.sync.i32", "@__gr_match_any_i32"),
    ("llvm.nvvm.match.any.sync.i64", "@__gr_match_any_i64"),
    ("llvm.nvvm.membar.cta", "@__gr_fence"),
    ("llvm.nvvm.membar.gl", "@__gr_fence"),
    ("llvm.nvvm.membar.sys", "@__gr_fence"),
    ("llvm.nvvm.read.ptx.sreg.clock", "@__gr_clock"),
    ("llvm.nvvm.read.ptx.sreg.clock64", "@__gr_clock64"),
    ("llvm.nvvm.read.ptx.sreg.globaltimer", "@__gr_globaltimer"),
    ("llvm.nvvm.nanosleep", "@__gr_nanosleep"),
    ("vprintf", "@__gr_vprintf"),
    ("__assertfail", "@__gr_assertfail"),
];

/// Definitions of builtins that expand to a few instructions.
pub(super) const HELPERS: &str = "
define internal void @__gr_fence() alwaysinline nounwind {
  fence seq_cst
  ret void
}
define internal i32 @__gr_warpsize() alwaysinline nounwind {
  ret i32 32
}
";
