// Selects loops with small trip counts that index small stack arrays, for unrolling, so that SROA can
// promote the arrays. See local_loops.rs.
#include "llvm-c/Core.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include <vector>
using namespace llvm;

namespace {
const char *const FULL = "llvm.loop.unroll.full";
// Marks FULL as added by Gradus.
const char *const OURS = "gradus.local-array";

struct Limits {
  uint64_t runs, instructions, bytes;
};

struct Places {
  ScalarEvolution &SE;
  LoopInfo &LI;
  SmallPtrSet<const Loop *, 16> small;

  // Adds to `moving` the loops in which an array address varies; returns false if the address is not
  // constant after unrolling of the small loops.
  bool varies(Value *pointer, AllocaInst *array, Instruction *at, SmallPtrSetImpl<const Loop *> &moving) {
    const SCEV *offset = SE.getMinusSCEV(SE.getSCEVAtScope(pointer, LI.getLoopFor(at->getParent())), SE.getSCEV(array));
    if (isa<SCEVCouldNotCompute>(offset)) return false;
    return !SCEVExprContains(offset, [&](const SCEV *part) {
      if (auto *rec = dyn_cast<SCEVAddRecExpr>(part)) {
        if (!small.contains(rec->getLoop()) || !rec->getLoop()->contains(at)) return true;
        moving.insert(rec->getLoop());
        return false;
      }
      return isa<SCEVUnknown>(part);
    });
  }
};
} // namespace

// Returns whether an instruction may be duplicated: no calls of unknown functions.
static bool can_be_copied(const Instruction &i, const TargetLibraryInfo &TLI) {
  auto *call = dyn_cast<CallBase>(&i);
  if (!call) return !i.isTerminator() || isa<BranchInst>(i);
  LibFunc known;
  return !call->cannotDuplicate() && !call->isConvergent() &&
         (isa<IntrinsicInst>(call) || (call->getCalledFunction() && TLI.getLibFunc(*call->getCalledFunction(), known)));
}

// Finds the small loops of a function: small trip counts, and few instructions after unrolling.
static void find_small(LoopInfo &LI, ScalarEvolution &SE, const TargetLibraryInfo &TLI, const Limits &limits,
                       SmallPtrSetImpl<const Loop *> &small) {
  DenseMap<const Loop *, uint64_t> copies;
  SmallVector<Loop *, 8> loops = LI.getLoopsInPreorder();
  for (Loop *loop : reverse(loops)) {
    uint64_t size = 0;
    bool fits = loop->isLoopSimplifyForm() && !loop->isAnnotatedParallel();
    for (Loop *inner : loop->getSubLoops()) {
      fits &= small.contains(inner);
      size += copies.lookup(inner);
    }
    for (BasicBlock *block : loop->blocks())
      for (Instruction &i : *block) {
        fits &= can_be_copied(i, TLI);
        size += LI.getLoopFor(block) == loop && !i.isDebugOrPseudoInst();
      }
    uint64_t runs = fits ? SE.getSmallConstantTripCount(loop) : 0;
    if (runs == 0 || runs > limits.runs || size * runs > limits.instructions) continue;
    copies[loop] = size * runs;
    small.insert(loop);
  }
}

// Adds the loops whose unrolling promotes a stack array: the address does not escape, and all accesses are
// at constant offsets after unrolling.
static void loops_of_array(AllocaInst *array, Places &places, SmallPtrSetImpl<const Loop *> &chosen) {
  SmallVector<Value *, 16> work{array};
  SmallPtrSet<const Loop *, 8> moving;
  while (!work.empty()) {
    Value *pointer = work.pop_back_val();
    for (User *user : pointer->users()) {
      auto *i = cast<Instruction>(user);
      if (isa<GetElementPtrInst>(i)) {
        work.push_back(i);
        continue;
      }
      if (auto *call = dyn_cast<IntrinsicInst>(i)) {
        auto *set = dyn_cast<MemIntrinsic>(call);
        bool whole = set && !set->isVolatile() && isa<ConstantInt>(set->getLength());
        if (call->isLifetimeStartOrEnd() || (whole && places.varies(pointer, array, i, moving))) continue;
        return;
      }
      auto *load = dyn_cast<LoadInst>(i);
      auto *store = dyn_cast<StoreInst>(i);
      bool plain = load ? load->isSimple() : store && store->isSimple() && store->getValueOperand() != pointer;
      if (!plain || !places.varies(pointer, array, i, moving)) return;
    }
  }
  chosen.insert(moving.begin(), moving.end());
}

static void name_loop(Loop *loop) {
  LLVMContext &context = loop->getHeader()->getContext();
  SmallVector<Metadata *, 4> parts{nullptr};
  if (MDNode *old = loop->getLoopID()) parts.append(old->op_begin() + 1, old->op_end());
  for (const char *name : {FULL, OURS}) parts.push_back(MDNode::get(context, MDString::get(context, name)));
  MDNode *id = MDNode::getDistinct(context, parts);
  id->replaceOperandWith(0, id);
  loop->setLoopID(id);
}

static bool is_named(const Metadata *part, const char *name) {
  auto *node = dyn_cast_or_null<MDNode>(part);
  auto *text = node && node->getNumOperands() == 1 ? dyn_cast<MDString>(node->getOperand(0)) : nullptr;
  return text && text->getString() == name;
}

extern "C" {
/// Requests the unrolling of the loops of a function that prevent promotion of small stack arrays.
void gr_ask_for_unrolling(LLVMValueRef function, uint64_t runs, uint64_t instructions, uint64_t bytes) {
  auto &F = *unwrap<Function>(function);
  if (F.isDeclaration()) return;
  DominatorTree DT(F);
  LoopInfo LI(DT);
  if (LI.empty()) return;
  AssumptionCache AC(F);
  TargetLibraryInfoImpl impl(F.getParent()->getTargetTriple());
  TargetLibraryInfo TLI(impl, &F);
  ScalarEvolution SE(F, TLI, AC, DT, LI);
  Places places{SE, LI, {}};
  find_small(LI, SE, TLI, {runs, instructions, bytes}, places.small);
  if (places.small.empty()) return;
  SmallPtrSet<const Loop *, 16> chosen;
  for (Instruction &i : llvm::instructions(F))
    if (auto *array = dyn_cast<AllocaInst>(&i)) {
      auto size = array->getAllocationSize(F.getDataLayout());
      if (size && !size->isScalable() && size->getFixedValue() <= bytes) loops_of_array(array, places, chosen);
    }
  for (Loop *loop : LI.getLoopsInPreorder())
    if (chosen.contains(loop)) name_loop(loop);
}

/// Removes the requests of `gr_ask_for_unrolling` that LLVM did not satisfy.
void gr_stop_asking(LLVMValueRef function) {
  for (BasicBlock &block : *unwrap<Function>(function)) {
    MDNode *old = block.getTerminator()->getMetadata(LLVMContext::MD_loop);
    if (!old || none_of(old->operands(), [](const MDOperand &part) { return is_named(part, OURS); })) continue;
    SmallVector<Metadata *, 4> parts{nullptr};
    for (const MDOperand &part : drop_begin(old->operands()))
      if (!is_named(part, OURS) && !is_named(part, FULL)) parts.push_back(part);
    MDNode *id = MDNode::getDistinct(block.getContext(), parts);
    id->replaceOperandWith(0, id);
    block.getTerminator()->setMetadata(LLVMContext::MD_loop, id);
  }
}
}
