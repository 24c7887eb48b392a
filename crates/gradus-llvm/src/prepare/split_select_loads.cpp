// Splits loads of pointers through a select or phi of addresses in a structure. See chosen_loads.rs.
#include "llvm-c/Core.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <vector>
using namespace llvm;

// Returns whether the addresses have one base and differ in their constant offsets.
static bool are_of_one(ArrayRef<Value *> places, const DataLayout &layout) {
  const Value *base = nullptr;
  APInt first;
  bool differ = false;
  for (const Value *place : places) {
    APInt offset(layout.getIndexTypeSizeInBits(place->getType()), 0);
    const Value *of = place->stripAndAccumulateConstantOffsets(layout, offset, true);
    if (base && of != base) return false;
    if (!base) first = offset;
    differ |= offset != first;
    base = of;
  }
  return differ;
}

static LoadInst *part(LoadInst *load, Value *place, Instruction *before) {
  auto *made = cast<LoadInst>(load->clone());
  made->setOperand(0, place);
  made->insertBefore(before->getIterator());
  return made;
}

static void replace(LoadInst *load, PHINode *loaded) {
  auto *choice = cast<Instruction>(load->getPointerOperand());
  loaded->setDebugLoc(load->getDebugLoc());
  load->replaceAllUsesWith(loaded);
  load->eraseFromParent();
  if (choice->use_empty()) choice->eraseFromParent();
}

static void part_select(LoadInst *load, SelectInst *choice) {
  Value *places[2] = {choice->getTrueValue(), choice->getFalseValue()};
  if (!choice->getCondition()->getType()->isIntegerTy(1) || !are_of_one(places, load->getDataLayout())) return;
  Instruction *ends[2];
  SplitBlockAndInsertIfThenElse(choice->getCondition(), load->getIterator(), &ends[0], &ends[1]);
  // The load is the first instruction of its block after the split.
  auto *loaded = PHINode::Create(load->getType(), 2, "", load->getIterator());
  for (int side = 0; side < 2; side++) loaded->addIncoming(part(load, places[side], ends[side]), ends[side]->getParent());
  replace(load, loaded);
}

// Emits a load in each predecessor, if no instruction with side effects precedes the load in its block.
static void part_phi(LoadInst *load, PHINode *choice) {
  BasicBlock *block = load->getParent();
  SmallVector<Value *, 4> places(choice->incoming_values());
  auto before = make_range(block->begin(), load->getIterator());
  if (choice->getParent() != block || any_of(before, [](Instruction &i) { return i.mayHaveSideEffects(); }) ||
      any_of(places, [&](Value *place) { return place == choice; }) || !are_of_one(places, load->getDataLayout()))
    return;
  for (BasicBlock *from : predecessors(block))
    if (!isa<BranchInst>(from->getTerminator()) || is_contained(places, from->getTerminator())) return;
  SmallVector<BasicBlock *, 4> all(predecessors(block));
  for (BasicBlock *from : all)
    if (from->getTerminator()->getNumSuccessors() > 1) SplitEdge(from, block);
  auto *loaded = PHINode::Create(load->getType(), choice->getNumIncomingValues(), "", block->begin());
  for (unsigned i = 0; i < choice->getNumIncomingValues(); i++) {
    BasicBlock *from = choice->getIncomingBlock(i);
    loaded->addIncoming(part(load, choice->getIncomingValue(i), from->getTerminator()), from);
  }
  replace(load, loaded);
}

extern "C" void gr_part_chosen_loads(LLVMValueRef function) {
  std::vector<LoadInst *> loads;
  for (Instruction &i : instructions(*unwrap<Function>(function)))
    if (auto *load = dyn_cast<LoadInst>(&i); load && load->isSimple() && load->getType()->isPointerTy()) loads.push_back(load);
  for (LoadInst *load : loads) {
    if (auto *choice = dyn_cast<SelectInst>(load->getPointerOperand())) part_select(load, choice);
    else if (auto *choice = dyn_cast<PHINode>(load->getPointerOperand())) part_phi(load, choice);
  }
}
