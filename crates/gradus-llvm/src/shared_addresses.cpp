// Addresses in shared memory, which a GPU computes in 32 bits. See shared_addresses.rs.
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include <vector>
using namespace llvm;

// The search stops after this number of steps.
static const unsigned MOST_STEPS = 64;

// Returns true if a pointer leads to shared memory on all paths.
static bool is_shared(const Value *pointer) {
  SmallVector<const Value *, 8> objects;
  getUnderlyingObjects(pointer, objects, nullptr, MOST_STEPS);
  bool found = false;
  for (const Value *object : objects) {
    if (isa<UndefValue>(object) || isa<ConstantPointerNull>(object)) continue;
    const auto *variable = dyn_cast<GlobalVariable>(object);
    if (!variable || !variable->getName().starts_with("__gr_shared")) return false;
    found = true;
  }
  return found;
}

// Returns true if a 64-bit number is made from a 32-bit number that counts as unsigned and may have its highest bit
// set.
static bool may_wrap(const Value *number, const DataLayout &layout) {
  std::vector<const Value *> open{number};
  SmallPtrSet<const Value *, 16> seen;
  while (!open.empty()) {
    const Value *at = open.back();
    open.pop_back();
    if (!seen.insert(at).second || seen.size() > MOST_STEPS) continue;
    if (const auto *wider = dyn_cast<ZExtInst>(at)) {
      const Value *narrow = wider->getOperand(0);
      if (narrow->getType()->isIntegerTy(32) && !wider->hasNonNeg() &&
          !isKnownNonNegative(narrow, SimplifyQuery(layout, wider)))
        return true;
      continue;
    }
    const auto *op = dyn_cast<Operator>(at);
    if (!op) continue;
    switch (op->getOpcode()) {
    case Instruction::Add: case Instruction::Sub: case Instruction::Mul: case Instruction::Shl: case Instruction::Or:
    case Instruction::PHI: case Instruction::Freeze:
      open.insert(open.end(), op->operand_values().begin(), op->operand_values().end());
      break;
    case Instruction::Select:
      open.push_back(op->getOperand(1));
      open.push_back(op->getOperand(2));
      break;
    default: break;
    }
  }
  return false;
}

// Returns the number with its lower half sign-extended.
static Value *signed_half(IRBuilder<> &builder, Value *number) {
  auto *half = builder.getInt32Ty();
  if (auto *wider = dyn_cast<ZExtInst>(number); wider && wider->getOperand(0)->getType() == half)
    return builder.CreateSExt(wider->getOperand(0), number->getType());
  return builder.CreateSExt(builder.CreateTrunc(number, half), number->getType());
}

extern "C" void gr_wrap_shared_addresses(LLVMValueRef function) {
  auto &F = *unwrap<Function>(function);
  const DataLayout &layout = F.getDataLayout();
  for (Instruction &at : instructions(F)) {
    auto *place = dyn_cast<GetElementPtrInst>(&at);
    if (!place || !place->getType()->isPointerTy()) continue;
    bool shared = false;
    for (Use &index : place->indices()) {
      Value *number = index.get();
      if (!number->getType()->isIntegerTy(64) || !may_wrap(number, layout)) continue;
      if (!shared && !is_shared(place->getPointerOperand())) break;
      shared = true;
      IRBuilder<> builder(place);
      index.set(signed_half(builder, number));
      place->setNoWrapFlags(GEPNoWrapFlags::none());
    }
  }
}
