// Computed gotos as switches. See computed_gotos.rs.
#include "llvm-c/Core.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include <vector>
using namespace llvm;

// Replaces a jump to one of several labels by a switch on their numbers.
static void replace_jump(IndirectBrInst &jump, const DenseMap<BasicBlock *, ConstantInt *> &numbers) {
  BasicBlock *block = jump.getParent();
  Function &function = *block->getParent();
  auto *elsewhere = BasicBlock::Create(function.getContext(), "", &function);
  new UnreachableInst(function.getContext(), elsewhere);
  IRBuilder<> builder(&jump);
  IntegerType *type = builder.getInt64Ty();
  Value *number = builder.CreatePtrToInt(jump.getAddress(), type);
  SwitchInst *choice = builder.CreateSwitch(number, elsewhere, jump.getNumDestinations());
  SmallPtrSet<BasicBlock *, 16> seen;
  for (BasicBlock *target : jump.successors()) {
    auto found = numbers.find(target);
    if (found != numbers.end() && seen.insert(target).second)
      choice->addCase(found->second, target);
    else
      target->removePredecessor(block, /*KeepOneInputPHIs=*/true);
  }
  jump.eraseFromParent();
}

// Numbers the labels of a function whose addresses are taken, and replaces its computed gotos. Zero is the null pointer.
static void expand(Function &function) {
  std::vector<IndirectBrInst *> jumps;
  for (BasicBlock &block : function)
    if (auto *jump = dyn_cast<IndirectBrInst>(block.getTerminator())) jumps.push_back(jump);
  if (jumps.empty()) return;
  IntegerType *type = Type::getInt64Ty(function.getContext());
  DenseMap<BasicBlock *, ConstantInt *> numbers;
  for (BasicBlock &block : function) {
    BlockAddress *address = BlockAddress::lookup(&block);
    if (!address) continue;
    auto *number = ConstantInt::get(type, numbers.size() + 1);
    numbers[&block] = number;
    address->replaceAllUsesWith(ConstantExpr::getIntToPtr(number, address->getType()));
    address->destroyConstant();
  }
  for (IndirectBrInst *jump : jumps) replace_jump(*jump, numbers);
}

extern "C" void gr_expand_computed_gotos(LLVMModuleRef module) {
  for (Function &function : *unwrap(module)) expand(function);
}
