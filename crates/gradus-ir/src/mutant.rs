//! Seeded faults: what tells whether the checks of derivatives would notice a fault of that kind.
//!
//! A place in the compiler where a fault is easily made asks [`planted`]; the fuzzer plants one
//! ([`plant`]) and counts the programs until it is told. In a release build the answer is `false` at
//! compile time, [`plant`] does not exist, and nothing of this is left. The planted fault is a thread's
//! own: the one piece of state outside plain options, and none that a user can reach.
//!
//! To seed another: a line in the table below, and `if planted(Mutant::Name)` at the place.

/// The random programs that tell a seeded fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldBy {
    /// Wide programs of the text form.
    Wide,
    /// C programs.
    C,
    /// Kernels.
    Kernels,
    /// Fork-join programs.
    ForkJoin,
    /// Call graphs of regions and of what shares their work.
    Shares,
    /// None: it is a race, which ThreadSanitizer tells.
    Threads,
}

macro_rules! mutants {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// A seeded fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant { $($(#[doc = $doc])* $name),* }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Mutant] = &[$(Mutant::$name),*];
            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Mutant::$name => stringify!($name)),* }
            }
            /// Programs that tell it.
            pub fn told_by(self) -> ToldBy {
                use Mutant::*;
                match self {
                    NeighboursAcrossParts | LanesInTurnSwapped | SignsChooseOther
                    | ExtremeOfAllLanes
                    | StaticRegistrationsLost
                    | OtherSignDropped
                    | NotesFollowed => ToldBy::C,
                    LaunchesMeetUnasked | ThreadsMeetUnseen | LoadsPassLaunches | StepsMeetLate
                    | StepsMeetEarly | StretchAnywhere | StretchBySome | MultiplesFromZero
                    | LastMultipleLost | WrappingMadeLong => ToldBy::Kernels,
                    LoopsMeetUnasked | SomeWritesForAll | BranchesPassWrites | ListsChangeUnseen => {
                        ToldBy::ForkJoin
                    }
                    CallersTeamForgotten => ToldBy::Shares,
                    SharedAddPlain => ToldBy::Threads,
                    _ => ToldBy::Wide,
                }
            }
            /// What is wrong in one line.
            pub fn fault(self) -> &'static str {
                match self { $(Mutant::$name => concat!($($doc),*).trim_ascii()),* }
            }
        }
    };
}

// table
mutants! {
    /// The adjoint of a loaded value replaces what is in shadow memory.
    LoadReplacesAdjoint,
    /// A store that is undone leaves its adjoint in shadow memory.
    StoreKeepsAdjoint,
    /// A fill that is undone leaves the adjoints of what it overwrote.
    FillKeepsAdjoints,
    /// A copy that is undone leaves the copy's adjoints.
    CopyKeepsAdjoints,
    /// A copy that is undone replaces the original's adjoints.
    CopyReplacesAdjoints,
    /// A copy onto itself is undone number by number.
    OverlapForgotten,
    /// Shadow blocks are not freed.
    ShadowNotFreed,
    /// A free that waits for the return sweep is never made.
    DeferredFreeLost,
    /// The lanes that a masked load does not read lose their adjoints.
    MaskedOthersLost,
    /// An arithmetic op is not undone, and its adjoint goes nowhere.
    UndoForgotten,
    /// A merge of the return sweep is not closed.
    MergeLeftOpen,
    /// Nothing runs beside the computation of an address.
    CompanionForgotten,
    /// The return sweep takes the other arm of an `if`.
    ArmsSwapped,
    /// The return sweep counts a `for` upwards.
    IndexNotReversed,
    /// What an iteration adds to a carried value that runs backwards is not taken away.
    StepNotTakenAway,
    /// The return sweep leaves out one iteration of a loop with an exit.
    IterationLost,
    /// The adjoints of values outside a loop do not leave it.
    OuterAdjointLost,
    /// The adjoints of a loop's initial values are dropped.
    InitialAdjointLost,
    /// The adjoint of a loop's result goes into every iteration.
    ResultInEveryIteration,
    /// If-converted code has no guards.
    GuardLost,
    /// Guards of a select's other side are not negated.
    GuardNotNegated,
    /// A quotient grows with its denominator.
    QuotientSign,
    /// The partials of a product are exchanged.
    ProductPartialsSwapped,
    /// The derivative of tanh has the wrong sign inside.
    TanhPartial,
    /// An extracted element's adjoint goes to lane 0.
    ExtractedLaneZero,
    /// An element that was replaced keeps its adjoint.
    InsertKeepsLane,
    /// A lane that a shuffle takes twice gets one adjoint.
    ShuffleTakenOnce,
    /// The sign that masks copy from another number, or flip by it, is dropped.
    OtherSignDropped,
    /// Float lanes in integers are shifted back the same way.
    LanesShiftedOn,
    /// Loads are done again although their memory is overwritten.
    OverwrittenLoadRedone,
    /// Calls are redone although what they read is overwritten.
    OverwrittenCallRedone,
    /// What a call read behind its arguments is read again although it is overwritten after the call.
    OverwrittenBehindCall,
    /// Iterations that read what earlier ones left in scratch memory are run again, too.
    ScratchOfEarlierIterations,
    /// A snapshot for several loops holds what the last one reads that runs, and nothing of the others.
    SnapshotOfLastLoop,
    /// Iterations work on the tape although they write to it after what is read of it again.
    TapeWrittenLate,
    /// A carried value that is read again is read where the next iteration's stands.
    CarriedReadOneOn,
    /// A carried value is read again although its memory is overwritten.
    CarriedReadPastStores,
    /// Kept values are indexed by all their loops but the innermost.
    KeptWithoutInnermost,
    /// The tape's arrays are written with their indices in another order.
    TapeIndicesReversed,
    /// Shadow blocks on the heap are not zeroed.
    HeapShadowNotZeroed,
    /// Shadow arrays on the stack are not zeroed.
    StackShadowNotZeroed,
    /// Forward mode stores no tangents.
    TangentNotStored,
    /// The shadow of a stored pointer is not stored.
    ShadowPointerNotStored,
    /// Addresses noted in blocks that global variables keep are noted in shadows of these blocks, too.
    NotesFollowed,
    /// It is not asked at run time whether a pointer is its own shadow.
    ActivityNotAsked,
    /// A write earlier in a loop's body is not seen from a read later in it.
    LoopsNotUnioned,
    /// What happens to memory after a callee's end is forgotten.
    AfterEndForgotten,
    /// Accesses at offsets that are not known are taken as apart.
    OffsetsApart,
    /// What an argument points to is taken as apart from all that other pointers point to.
    ArgumentsNeverMeet,
    /// Pointers of unknown origin are taken as apart from memory whose address got out.
    EscapeForgotten,
    /// A loop that becomes a `for` runs once less often.
    CountedOnceLess,
    /// The inductions of a loop that becomes a `for` all start at zero.
    InductionFromZero,
    /// A promoted slot has, after an `if` without a store in one arm, what its first arm left.
    PromotedArmLeaks,
    /// Loads are replaced by what was stored before another store.
    ForwardedPastStores,
    /// `a - -b` becomes `a - b`.
    DoubleMinus,
    /// Loads leave loops that write what they read.
    HoistedPastStores,
    /// Memory is taken as only updated although what is read of it is stored elsewhere.
    UpdatedReadElsewhere,
    /// A power of two that is moved to the seed stays in the factor, too.
    PowerTakenTwice,
    /// A comparison whose operands are exchanged keeps its sense.
    ComparisonNotSwapped,
    /// Whether a loop may read a copy is not asked of what it writes.
    ListsMeetUnasked,
    /// A copy of what a list reaches ends where its last place begins.
    ListCopyTooShort,
    /// A list that a loop changes is read ahead of it.
    ListTakenAsSteady,
    /// Parallel loops become one whatever they write.
    LoopsMeetUnasked,
    /// What some iterations of a parallel loop write counts as what each of them writes.
    SomeWritesForAll,
    /// Branches on one condition come together past what stands between them.
    BranchesPassWrites,
    /// Lists that parallel loops change lead to the same places in both.
    ListsChangeUnseen,
    /// Neighbours are taken from all of a vector, and not from each 128 bits.
    NeighboursAcrossParts,
    /// Of lanes with even and odd numbers the others are taken.
    LanesInTurnSwapped,
    /// Signs choose the other vector.
    SignsChooseOther,
    /// The least of two numbers in the first lanes is taken in all lanes.
    ExtremeOfAllLanes,
    /// Registrations that are visible in their file alone are not read.
    StaticRegistrationsLost,
    /// Launches become one although it is not asked whether their arrays lie apart.
    LaunchesMeetUnasked,
    /// What threads of two launches touch in one array is taken as each thread's own.
    ThreadsMeetUnseen,
    /// What the host reads between two launches is read before both.
    LoadsPassLaunches,
    /// Threads that go in step meet behind a volatile store only.
    StepsMeetLate,
    /// Threads that go in step meet before a volatile store only.
    StepsMeetEarly,
    /// A stretch of elements that is looked at as a whole begins anywhere.
    StretchAnywhere,
    /// A search passes a stretch in which it goes on after the last element.
    StretchBySome,
    /// Of threads of which every so many-th does something the first is taken for one of them.
    MultiplesFromZero,
    /// Of threads of which every so many-th does something the last one is lost.
    LastMultipleLost,
    /// Places that may wrap in 32 bits are computed in 64.
    WrappingMadeLong,
    /// A function that shares work and is called in its own file only is taken to stand in no team.
    CallersTeamForgotten,
    /// Iterations of a parallel loop add to memory that others add to without an atomic operation.
    SharedAddPlain,
}

/// Whether this fault is planted.
#[cfg(debug_assertions)]
pub fn planted(mutant: Mutant) -> bool {
    state::PLANTED.get() == Some(mutant)
}

/// Whether this fault is planted: never in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn planted(_: Mutant) -> bool {
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

    /// Plants a fault in what this thread compiles from now on, or takes it out.
    pub fn plant(mutant: Option<Mutant>) {
        PLANTED.set(mutant);
    }
}
