// Canonical spelling of constant addresses: a symbol plus a byte offset.
//
// In LLVM, nested `getelementptr` and different source types may denote one address. The unit has a single
// constant for each address, so import and export change the spelling, and comparisons must ignore it.

#include "llvm-c/Core.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include <map>

using namespace llvm;

namespace {

using Known = std::map<Constant *, Constant *>;

Constant *plain(Constant *constant, const DataLayout &layout, Known &known) {
  if (isa<GlobalValue>(constant) || constant->getNumOperands() == 0)
    return constant;
  auto found = known.find(constant);
  if (found != known.end())
    return found->second;
  Constant *result = constant;
  auto *address = dyn_cast<GEPOperator>(constant);
  if (address && constant->getType()->isPointerTy()) {
    APInt bytes(layout.getIndexTypeSizeInBits(constant->getType()), 0);
    auto *base = cast<Constant>(constant->stripAndAccumulateConstantOffsets(layout, bytes, true));
    if (base != constant) {
      base = plain(base, layout, known);
      LLVMContext &context = constant->getContext();
      result = bytes.isZero() ? base
                              : ConstantExpr::getGetElementPtr(Type::getInt8Ty(context), base,
                                                               ConstantInt::get(context, bytes));
    }
  } else if (auto *expression = dyn_cast<ConstantExpr>(constant)) {
    SmallVector<Constant *> operands;
    for (Use &use : expression->operands())
      operands.push_back(plain(cast<Constant>(use), layout, known));
    result = expression->getWithOperands(operands);
  }
  known[constant] = result;
  return result;
}

// Returns the pointer behind a `ptrtoint` constant that a plain store writes, else null. The import stores the pointer.
Constant *stored_address(Instruction &instruction, const DataLayout &layout) {
  auto *store = dyn_cast<StoreInst>(&instruction);
  if (!store || !store->isSimple()) return nullptr;
  auto *number = dyn_cast<ConstantExpr>(store->getValueOperand());
  if (!number || number->getOpcode() != Instruction::PtrToInt) return nullptr;
  Constant *pointer = number->getOperand(0);
  return layout.getTypeStoreSize(pointer->getType()) == layout.getTypeStoreSize(number->getType()) ? pointer : nullptr;
}

} // namespace

extern "C" void gr_plain_addresses(LLVMModuleRef module) {
  Module &all = *unwrap(module);
  const DataLayout &layout = all.getDataLayout();
  Known known;
  for (Function &function : all)
    for (BasicBlock &block : function)
      for (Instruction &instruction : block) {
        if (Constant *pointer = stored_address(instruction, layout)) instruction.setOperand(0, pointer);
        for (Use &use : instruction.operands())
          if (auto *constant = dyn_cast<Constant>(use.get()))
            if (constant->getType()->isPointerTy() || isa<ConstantExpr>(constant))
              use.set(plain(constant, layout, known));
      }
}
