//! Memory effects: summaries, aliases, clobbers, synchronisation points.

pub(crate) mod alias;
pub(crate) mod clobbers;
pub(crate) mod distance;
pub(crate) mod effects;
pub(crate) mod external_effects;
pub(crate) mod local_points_to;
pub(crate) mod summaries;
pub(crate) mod summary_reuse;
pub(crate) mod sync_points;
pub(crate) mod tbaa_conflicts;
pub(crate) mod value_accesses;
