// What LLVM's C API lacks and import, export and the host need: debug records, flags of globals,
// bitcode of sections, constant ranges. Every function is a thin call; ownership stays with LLVM.
#include "llvm-c/Core.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
using namespace llvm;

extern "C" {
// Puts copies of the debug records before `from` before `to` (which must have no copies yet).
void gr_clone_debug_records(LLVMValueRef from, LLVMValueRef to) {
  unwrap<Instruction>(to)->cloneDebugInfoFrom(unwrap<Instruction>(from));
}
void gr_set_dso_local(LLVMValueRef global, int local) {
  unwrap<GlobalValue>(global)->setDSOLocal(local != 0);
}
int gr_is_dso_local(LLVMValueRef global) { return unwrap<GlobalValue>(global)->isDSOLocal(); }

// Reports the source's name of each IR parameter: from the debug records of the function's own
// variables that stand for it or for the stack slot it is stored to, else by position when the source
// has as many parameters as the IR.
void gr_argument_names(LLVMValueRef f, void (*sink)(void *, unsigned, const char *, size_t), void *data) {
  auto &F = *unwrap<Function>(f);
  auto *SP = F.getSubprogram();
  if (!SP || F.isDeclaration())
    return;
  SmallVector<DILocalVariable *, 8> params;
  auto seen = [&](DILocalVariable *v) {
    if (!v || !v->getArg() || v->getScope()->getSubprogram() != SP)
      return false;
    if (params.size() < v->getArg())
      params.resize(v->getArg(), nullptr);
    params[v->getArg() - 1] = v;
    return true;
  };
  auto tell = [&](unsigned i, DILocalVariable *v) { sink(data, i, v->getName().data(), v->getName().size()); };
  for (auto *n : SP->getRetainedNodes())
    seen(dyn_cast<DILocalVariable>(n));
  for (auto &B : F)
    for (auto &I : B)
      for (DbgVariableRecord &R : filterDbgVars(I.getDbgRecordRange())) {
        if (R.getDebugLoc().getInlinedAt() || !seen(R.getVariable()) || R.hasArgList())
          continue;
        Value *v = R.getVariableLocationOp(0);
        if (auto *a = dyn_cast_or_null<Argument>(v))
          tell(a->getArgNo(), R.getVariable());
        else if (auto *slot = dyn_cast_or_null<AllocaInst>(v))
          for (auto *u : slot->users())
            if (auto *s = dyn_cast<StoreInst>(u))
              if (auto *from = dyn_cast<Argument>(s->getValueOperand()))
                tell(from->getArgNo(), R.getVariable());
      }
  if (params.size() == F.arg_size())
    for (unsigned i = 0; i < params.size(); ++i)
      if (params[i])
        tell(i, params[i]);
}
}
