//! Seeded faults (mutation testing): check whether the derivative checks detect a fault of a given kind.
//!
//! Error-prone code in the compiler queries [`is_planted`]. The fuzzer plants one fault with [`plant`] and
//! counts the generated programs until detection. In a release build [`is_planted`] is the constant `false` and
//! [`plant`] does not exist. The planted fault is thread-local: the only state outside plain options, and out
//! of the user's reach.
//!
//! To add a fault: one line in the table below, and `if is_planted(Mutant::Name)` in the code.

/// The program generator that detects a seeded fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectedBy {
    /// Wide programs in the text form of the IR.
    Wide,
    /// C programs.
    C,
    /// CUDA kernels.
    Kernels,
    /// Fork-join programs.
    ForkJoin,
    /// Call graphs of parallel regions and worksharing functions.
    Shares,
    /// Gradients of OpenMP programs.
    Gradients,
    /// Memory programs, for the points-to analyses.
    PointsTo,
    /// None: a test plants the fault in a program that the generators do not emit, or detects a data race by
    /// ThreadSanitizer.
    Tests,
}

macro_rules! mutants {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// A seeded fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant { $($(#[doc = $doc])* $name),* }

        impl Mutant {
            /// All seeded faults.
            pub const ALL: &[Mutant] = &[$(Mutant::$name),*];
            /// Returns the variant's name.
            pub fn name(self) -> &'static str {
                match self { $(Mutant::$name => stringify!($name)),* }
            }
            /// Returns the program generator that detects the fault.
            pub fn detected_by(self) -> DetectedBy {
                use Mutant::*;
                match self {
                    AdjacentAcrossHalves | EvenOddLanesSwapped | SignBlendSwapped
                    | ScalarMinInAllLanes
                    | StaticRegistrationsLost
                    | OtherSignDropped
                    | WriteOnlyBlocksShadowed
                    | FreeInEmptyLoopCounted
                    | ExternalGlobalsDisjoint
                    | SharedBlocksDisjoint
                    | UnknownCalleesCaptureNothing
                    | NumbersThroughTextUnnoticed
                    | ShadowPointerNotCleared
                    | PointerStoreKeepsShadow
                    | WordCopyKeepsAdjoints
                    | WordCopyLosesAddresses
                    | AddressWordKeepsShadow
                    | AddressDistanceLost => DetectedBy::C,
                    LaunchFusionUnchecked | FusedThreadConflictMissed | HostLoadMovedOverLaunch | LockstepBarrierOnlyAfter
                    | LockstepBarrierOnlyBefore | SearchRangeUnaligned | SearchTestsLastOnly | SparseLoopFromZero
                    | SparseLoopLastLost | WrappingIndexWidened | DynamicSharedSizeIgnored => DetectedBy::Kernels,
                    LoopFusionUnchecked | ConditionalWriteAsUnconditional | BranchMergeAcrossWrites | FusedIndexArraysChange => {
                        DetectedBy::ForkJoin
                    }
                    CallerTeamIgnored | NumThreadsBeforeBranchMissed => DetectedBy::Shares,
                    LevelQueryAccepted => DetectedBy::Gradients,
                    ArraysOfLaterStructuresLost | EscapedCellsKept | EndOfWalkLost | NeighboursOfElementsLost
                    | ReceivedPointersLost => DetectedBy::PointsTo,
                    SharedAddPlain | IndirectOutputsWithoutShadow | NarrowConstantsTruncated | IdleShareWraps
                    | ChecksSkipped => {
                        DetectedBy::Tests
                    },
                    _ => DetectedBy::Wide,
                }
            }
            /// Returns a one-line description of the fault (the variant's doc comment).
            pub fn fault(self) -> &'static str {
                match self { $(Mutant::$name => concat!($($doc),*).trim_ascii()),* }
            }
        }
    };
}

// table
mutants! {
    /// A load's adjoint overwrites shadow memory instead of accumulating.
    LoadReplacesAdjoint,
    /// The adjoint of a store does not zero the shadow memory.
    StoreKeepsAdjoint,
    /// A float stored over a pointer keeps the shadow pointer as its adjoint.
    ShadowPointerNotCleared,
    /// The reversed store of a pointer keeps the shadow pointer where a float was before.
    PointerStoreKeepsShadow,
    /// The adjoint of a memset does not zero the shadows of the overwritten numbers.
    FillKeepsAdjoints,
    /// The adjoint of a memcpy does not zero the destination's shadow.
    CopyKeepsAdjoints,
    /// The adjoint of a memcpy overwrites the source's shadow instead of accumulating.
    CopyReplacesAdjoints,
    /// The adjoint of a copy of words of run-time kind does not zero the destination's shadow.
    WordCopyKeepsAdjoints,
    /// A copy of words of run-time kind does not copy the shadows of addresses.
    WordCopyLosesAddresses,
    /// The adjoint of an overlapping copy runs element by element.
    OverlappingCopyElementwise,
    /// Shadow blocks are not freed.
    ShadowNotFreed,
    /// An integer stored over an address keeps the shadow of the address.
    AddressWordKeepsShadow,
    /// A sum with an address in an integer has the shadow of the address.
    AddressDistanceLost,
    /// A free deferred to the reverse pass is never emitted.
    DeferredFreeLost,
    /// Inactive lanes of a masked load lose the adjoints of the pass-through value.
    MaskedPassThroughLost,
    /// The adjoint of an arithmetic op is not emitted.
    AdjointNotEmitted,
    /// A merge of the reverse pass is not closed.
    MergeLeftOpen,
    /// No shadow address accompanies the primal address computation.
    ShadowAddressMissing,
    /// The reverse pass runs the wrong arm of an `if`.
    ArmsSwapped,
    /// The reverse pass counts a `for` upwards.
    IndexNotReversed,
    /// An inverted induction is not decremented by the iteration's step.
    InductionNotInverted,
    /// The reverse pass skips one iteration of a loop with an exit.
    IterationLost,
    /// Adjoints of values defined outside a loop do not leave the loop.
    OuterAdjointLost,
    /// The adjoints of a loop's initial values are dropped.
    InitialAdjointLost,
    /// The adjoint of a loop's result enters every iteration.
    ResultInEveryIteration,
    /// If-converted code has no guards.
    GuardLost,
    /// Guards of a select's false operand are not negated.
    GuardNotNegated,
    /// A quotient grows with the denominator.
    QuotientSign,
    /// The partials of a product are exchanged.
    ProductPartialsSwapped,
    /// The derivative of tanh has the wrong sign inside.
    TanhPartial,
    /// An extracted element's adjoint goes to lane 0.
    ExtractedLaneZero,
    /// The adjoint of a replaced vector element is not zeroed.
    InsertKeepsElementAdjoint,
    /// A lane that a shuffle selects twice receives one adjoint.
    DuplicatedLaneOnce,
    /// The sign that masks copy or flip from another number is dropped.
    OtherSignDropped,
    /// Float bit ranges in integers are shifted back in the wrong direction.
    BitRangeShiftedWrongWay,
    /// Loads from clobbered memory are recomputed.
    ClobberedLoadRecomputed,
    /// Calls that read clobbered memory are recomputed.
    ClobberedCallRecomputed,
    /// Memory read by a call through pointers in the arguments' memory is read again although clobbered after
    /// the call.
    ClobberedAfterCallReread,
    /// Iterations that read scratch memory of earlier iterations are recomputed.
    CrossIterationScratchRecomputed,
    /// A snapshot for several loops holds only the memory read by the last loop.
    SnapshotOfLastLoop,
    /// Iterations work on the tape in place although later writes clobber required cells.
    LateWriteToInPlaceTape,
    /// A carried value is reloaded from the location of the next iteration's value.
    CarriedReloadOffByOne,
    /// A carried value is reloaded from clobbered memory.
    ClobberedCarriedReloaded,
    /// Saved values are indexed by all enclosing loops except the innermost.
    TapeIndexWithoutInnermost,
    /// The tape's arrays are written with reversed index order.
    TapeIndicesReversed,
    /// Shadow blocks on the heap are not zeroed.
    HeapShadowNotZeroed,
    /// Shadow arrays on the stack are not zeroed.
    StackShadowNotZeroed,
    /// Forward mode stores no tangents.
    TangentNotStored,
    /// The shadow of a stored pointer is not stored.
    ShadowPointerNotStored,
    /// Addresses stored in write-only blocks of global variables are also stored in the blocks' shadows.
    WriteOnlyBlocksShadowed,
    /// The runtime check for a pointer equal to its shadow is missing.
    RuntimeActivityCheckMissing,
    /// Clobbers by earlier ops of a loop body, reached through the back edge, are missed.
    BackEdgeClobbersMissed,
    /// Clobbers after a callee's return are forgotten.
    AfterEndForgotten,
    /// Array members of the second and later structures in an array are no arrays.
    ArraysOfLaterStructuresLost,
    /// Byte copies do not reach the cells that a program names after the copy was first seen.
    ReceivedPointersLost,
    /// Unknown code stores no pointers in escaped memory.
    EscapedCellsKept,
    /// A pointer incremented in a loop never reaches the member behind its array.
    EndOfWalkLost,
    /// A constant movement of some element of an array stays in the array.
    NeighboursOfElementsLost,
    /// Accesses at unknown offsets count as disjoint.
    UnknownOffsetsDisjoint,
    /// An argument's pointee counts as disjoint from the pointees of all other pointers.
    ArgumentsNeverAlias,
    /// Pointers of unknown origin count as disjoint from escaped memory.
    EscapeForgotten,
    /// A loop converted to a `for` runs one iteration less.
    TripCountOffByOne,
    /// All inductions of a loop converted to a `for` start at zero.
    InductionFromZero,
    /// After an `if` with a store in one arm only, a promoted slot has the value of the first arm.
    PromotedArmLeaks,
    /// Load forwarding ignores intervening stores.
    ForwardedPastStores,
    /// `a - -b` becomes `a - b`.
    DoubleMinus,
    /// LICM hoists loads out of loops that clobber the loaded memory.
    HoistedPastStores,
    /// Memory counts as update-only although a loaded value is stored elsewhere.
    UpdatedReadElsewhere,
    /// A power of two moved to the seed also stays in the factor.
    PowerOfTwoAppliedTwice,
    /// A comparison with exchanged operands keeps the predicate.
    ComparisonNotSwapped,
    /// The clobber check of a loop that reads a copied index array is missing.
    IndexCopyClobberUnchecked,
    /// The copy of the memory reached by an index array ends at the start of the last element.
    IndirectCopyTooShort,
    /// An index array that a loop changes is read before the loop.
    IndexArrayAssumedInvariant,
    /// Parallel loops are fused regardless of the written memory.
    LoopFusionUnchecked,
    /// A write by some iterations of a parallel loop counts as a write by every iteration.
    ConditionalWriteAsUnconditional,
    /// Branches on one condition are merged across intervening writes.
    BranchMergeAcrossWrites,
    /// Index arrays changed by parallel loops are taken to select equal locations in both loops.
    FusedIndexArraysChange,
    /// Adjacent elements are taken across the whole vector instead of within each 128 bits.
    AdjacentAcrossHalves,
    /// Even and odd lanes are exchanged.
    EvenOddLanesSwapped,
    /// Sign bits select the other vector.
    SignBlendSwapped,
    /// A scalar minimum applies to all lanes instead of the first lane.
    ScalarMinInAllLanes,
    /// Registrations with internal linkage are ignored.
    StaticRegistrationsLost,
    /// Launches are fused without a check that the arrays are disjoint.
    LaunchFusionUnchecked,
    /// Accesses to one array by threads of two launches count as thread-private.
    FusedThreadConflictMissed,
    /// Host loads between two launches move before both launches.
    HostLoadMovedOverLaunch,
    /// Warp lockstep synchronises only after a volatile store.
    LockstepBarrierOnlyAfter,
    /// Warp lockstep synchronises only before a volatile store.
    LockstepBarrierOnlyBefore,
    /// A range of elements that is tested as a whole may begin at any element.
    SearchRangeUnaligned,
    /// A speculative search tests only the last element of a range before skipping the range.
    SearchTestsLastOnly,
    /// A sparse thread loop always starts at thread 0.
    SparseLoopFromZero,
    /// The last active thread of a sparse thread loop is dropped.
    SparseLoopLastLost,
    /// Indices that may wrap in 32 bits are computed in 64 bits.
    WrappingIndexWidened,
    /// A worksharing function with callers in one file only is taken to run outside of teams.
    CallerTeamIgnored,
    /// Iterations of a parallel loop add non-atomically to memory shared with other iterations.
    SharedAddPlain,
    /// A free in a loop that may run zero times counts as a free of every block.
    FreeInEmptyLoopCounted,
    /// Two globals with external linkage count as pointers to disjoint blocks.
    ExternalGlobalsDisjoint,
    /// Two globals that hold one allocation count as pointers to disjoint blocks.
    SharedBlocksDisjoint,
    /// Unknown callees retain no address that they receive.
    UnknownCalleesCaptureNothing,
    /// Numbers that the program writes as text and reads again are not reported.
    NumbersThroughTextUnnoticed,
    /// Constants of binary16 and bfloat16 are truncated instead of rounded.
    NarrowConstantsTruncated,
    /// Shared memory whose size the launch gives holds one element.
    DynamicSharedSizeIgnored,
    /// A number of threads that is pushed before the branch of an `if` clause is dropped.
    NumThreadsBeforeBranchMissed,
    /// Computed bounds of a static loop wrap for a rank without iterations.
    IdleShareWraps,
    /// `omp_get_level` is accepted in differentiated code.
    LevelQueryAccepted,
    /// Outputs that an argument reaches through pointers in memory have no shadow.
    IndirectOutputsWithoutShadow,
    /// No check of gradus-analysis runs.
    ChecksSkipped,
}

/// Returns whether `mutant` is planted.
#[cfg(debug_assertions)]
pub fn is_planted(mutant: Mutant) -> bool {
    state::PLANTED.get() == Some(mutant)
}

/// Returns whether the fault is planted: always false in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn is_planted(_: Mutant) -> bool {
    false
}

#[cfg(debug_assertions)]
pub use state::plant;

#[cfg(debug_assertions)]
mod state {
    use super::Mutant;
    use std::cell::Cell;

    thread_local! {
        pub(super) static PLANTED: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Plants a fault for the current thread's compilations, or removes the fault.
    pub fn plant(mutant: Option<Mutant>) {
        PLANTED.set(mutant);
    }
}
