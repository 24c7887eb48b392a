// Pristine copies of functions outside their module, and their restoration. LLVM does not allow uses of a
// module's symbols from outside, so copies refer to each other and to placeholders.
#include "llvm-c/Core.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include <string>
#include <vector>
using namespace llvm;

namespace {
// A copy and its function, null if the function was deleted.
struct Original {
  Function *copy;
  WeakTrackingVH made_of;
  Comdat *comdat;
  std::string name;
  bool stays; // The present function is not replaced.
};
// A placeholder for a symbol of the module that is not copied.
struct StandIn {
  GlobalObject *value;
  WeakTrackingVH symbol;
};
struct Originals {
  std::vector<Original> functions;
  std::vector<StandIn> others;
};
} // namespace

// Adds the functions whose code uses a symbol.
static void users(GlobalValue *symbol, SmallPtrSetImpl<Function *> &found) {
  SmallVector<User *, 16> pending(symbol->users());
  SmallPtrSet<User *, 16> seen;
  while (!pending.empty()) {
    User *user = pending.pop_back_val();
    if (!seen.insert(user).second)
      continue;
    if (auto *instruction = dyn_cast<Instruction>(user))
      found.insert(instruction->getFunction());
    else if (auto *function = dyn_cast<Function>(user))
      found.insert(function);
    else
      pending.append(user->user_begin(), user->user_end());
  }
}

static GlobalObject *stand_in(GlobalValue &symbol) {
  unsigned space = symbol.getAddressSpace();
  if (auto *type = dyn_cast<FunctionType>(symbol.getValueType()))
    return Function::Create(type, GlobalValue::ExternalLinkage, space);
  Type *byte = Type::getInt8Ty(symbol.getContext());
  return new GlobalVariable(byte, false, GlobalValue::ExternalLinkage, nullptr, "", GlobalValue::NotThreadLocal,
                            space);
}

extern "C" {
// Copies functions in their present state.
void *gr_copy_apart(LLVMModuleRef of, const LLVMValueRef *functions, size_t count) {
  Module &module = *unwrap(of);
  auto *originals = new Originals;
  ValueToValueMapTy map;
  for (size_t i = 0; i < count; ++i) {
    auto *from = unwrap<Function>(functions[i]);
    auto *to = Function::Create(from->getFunctionType(), from->getLinkage(), from->getAddressSpace());
    originals->functions.push_back({to, from, from->getComdat(), from->getName().str(), false});
    map[from] = to;
  }
  for (GlobalValue &symbol : module.global_values())
    if (!map.count(&symbol)) {
      originals->others.push_back({stand_in(symbol), &symbol});
      map[&symbol] = originals->others.back().value;
    }
  // Metadata is shared, because only one of the two bodies survives. Assignment ids are remapped, because
  // they tie debug records to the stores of their own function.
  const RemapFlags flags = RF_NoModuleLevelChanges | RF_IgnoreMissingLocals;
  for (Original &original : originals->functions) {
    auto *from = cast<Function>(original.made_of);
    Function *to = original.copy;
    to->copyAttributesFrom(from);
    to->copyMetadata(from, 0);
    for (Use &constant : to->operands())
      constant.set(MapValue(constant.get(), map, flags));
    for (auto pair : zip(from->args(), to->args())) {
      std::get<1>(pair).setName(std::get<0>(pair).getName());
      map[&std::get<0>(pair)] = &std::get<1>(pair);
    }
    for (BasicBlock &block : *from)
      map[&block] = CloneBasicBlock(&block, map, "", to, nullptr, false);
    DenseMap<DIAssignID *, DIAssignID *> assignments;
    for (BasicBlock &block : *to)
      for (Instruction &instruction : block) {
        at::remapAssignID(assignments, instruction);
        RemapDbgRecordRange(&module, instruction.getDbgRecordRange(), map, flags);
        RemapInstruction(&instruction, map, flags);
      }
  }
  return originals;
}

// Deletes the copies that are not in the module, and the placeholders.
void gr_delete_copies(void *copies) {
  auto *originals = static_cast<Originals *>(copies);
  for (Original &original : originals->functions)
    if (!original.copy->getParent())
      original.copy->dropAllReferences();
  for (Original &original : originals->functions)
    if (!original.copy->getParent())
      delete original.copy;
  for (StandIn &other : originals->others) {
    if (auto *function = dyn_cast<Function>(other.value))
      delete function;
    else
      delete cast<GlobalVariable>(other.value);
  }
  delete originals;
}

// Excludes the function with the given number from restoration.
void gr_leave_copy(void *copies, size_t number) {
  static_cast<Originals *>(copies)->functions[number].stays = true;
}

// Replaces functions by their copies, except excluded functions and functions that refer to deleted
// symbols.
void gr_put_copies_back(LLVMModuleRef into, void *copies) {
  auto *originals = static_cast<Originals *>(copies);
  auto &functions = originals->functions;
  SmallPtrSet<Function *, 16> without;
  for (StandIn &other : originals->others)
    if (!isa_and_nonnull<GlobalValue>(other.symbol))
      users(other.value, without);
  for (bool more = true; more;) {
    more = false;
    for (Original &original : functions)
      if (original.stays && !original.made_of)
        users(original.copy, without);
    for (Original &original : functions)
      if (!original.stays && without.count(original.copy))
        original.stays = more = true;
  }
  auto &list = unwrap(into)->getFunctionList();
  auto at = list.begin();
  for (Original &original : functions) {
    auto *now = cast_or_null<Function>(original.made_of);
    Function *copy = original.copy;
    if (original.stays) {
      if (now) {
        copy->replaceAllUsesWith(now);
        at = std::next(now->getIterator());
      }
      continue;
    }
    copy->setComdat(original.comdat);
    if (!now) {
      list.insert(at, copy);
      copy->setName(original.name);
      continue;
    }
    list.insert(now->getIterator(), copy);
    copy->takeName(now);
    at = std::next(now->getIterator());
    original.made_of = nullptr;
    now->replaceAllUsesWith(copy);
    now->eraseFromParent();
  }
  for (StandIn &other : originals->others)
    if (other.symbol)
      other.value->replaceAllUsesWith(other.symbol);
  gr_delete_copies(copies);
}
}
