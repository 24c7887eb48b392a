// Specialises functions that receive internal procedures (Fortran's `contains`, nested functions) as
// arguments. An internal procedure accesses its host's variables through a hidden argument, the host's
// frame, which compilers bind by a trampoline (`llvm.init.trampoline`). Each function that receives a
// trampoline gets a copy that takes the frame instead and calls the procedure by name; the rewrite
// continues through functions that forward the procedure, including recursion. If the procedure is stored,
// compared, or passed to an unknown callee, the code stays unchanged.
#include "llvm-c/Core.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <map>
#include <set>
#include <vector>
using namespace llvm;

namespace {
/// An argument of a function.
using Place = std::pair<Function *, unsigned>;

/// Copies of functions that take the frame of a procedure.
struct Copies {
  Function *procedure;
  std::map<Place, Function *> made;

  /// Returns whether a call matches the procedure's signature without the frame.
  static bool fits(CallInst *call, Function *procedure) {
    if (call->arg_size() + 1 != procedure->arg_size() || call->getType() != procedure->getReturnType())
      return false;
    unsigned from = 0, frames = 0;
    for (Argument &param : procedure->args()) {
      if (param.hasNestAttr())
        ++frames;
      else if (from == call->arg_size() || call->getArgOperand(from++)->getType() != param.getType())
        return false;
    }
    return frames == 1;
  }

  /// Returns whether a procedure is only called, or forwarded to functions that only call it.
  static bool isPlain(Value *handed, Function *procedure, std::set<Place> &seen) {
    for (Use &use : handed->uses()) {
      auto *call = dyn_cast<CallInst>(use.getUser());
      if (!call || call->isMustTailCall() || call->hasOperandBundles())
        return false;
      if (call->isCallee(&use)) {
        if (!fits(call, procedure))
          return false;
        continue;
      }
      Function *callee = call->getCalledFunction();
      if (!callee || callee->isDeclaration() || callee->isVarArg() || !callee->isStrongDefinitionForLinker())
        return false;
      Place place(callee, call->getArgOperandNo(&use));
      if (seen.insert(place).second && !isPlain(callee->getArg(place.second), procedure, seen))
        return false;
    }
    return true;
  }

  /// Replaces all uses of a procedure by uses of its name and the frame.
  void replace(Value *handed, Value *frame) {
    std::vector<Use *> uses;
    for (Use &use : handed->uses())
      uses.push_back(&use);
    for (Use *use : uses) {
      auto *call = cast<CallInst>(use->getUser());
      if (call->isCallee(use)) {
        callByName(call, frame);
        continue;
      }
      unsigned number = call->getArgOperandNo(use);
      Function *copy = copyFor({call->getCalledFunction(), number});
      call->setArgOperand(number, frame);
      call->setAttributes(call->getAttributes().removeParamAttributes(call->getContext(), number));
      call->setCalledFunction(copy);
      call->setTailCallKind(CallInst::TCK_None);
    }
  }

  void callByName(CallInst *call, Value *frame) {
    std::vector<Value *> args;
    std::vector<AttributeSet> stated;
    LLVMContext &context = call->getContext();
    AttributeSet nest = AttributeSet::get(context, {Attribute::get(context, Attribute::Nest)});
    AttributeList had = call->getAttributes();
    unsigned from = 0;
    for (Argument &param : procedure->args()) {
      stated.push_back(param.hasNestAttr() ? nest : had.getParamAttrs(from));
      args.push_back(param.hasNestAttr() ? frame : call->getArgOperand(from++));
    }
    auto *named = CallInst::Create(procedure->getFunctionType(), procedure, args, "", call->getIterator());
    named->copyMetadata(*call);
    named->setDebugLoc(call->getDebugLoc());
    named->setCallingConv(procedure->getCallingConv());
    named->setAttributes(AttributeList::get(context, had.getFnAttrs(), had.getRetAttrs(), stated));
    if (isa<FPMathOperator>(named) && isa<FPMathOperator>(call))
      named->copyFastMathFlags(call);
    call->replaceAllUsesWith(named);
    named->takeName(call);
    call->eraseFromParent();
  }

  Function *copyFor(Place place) {
    Function *&copy = made[place];
    if (copy)
      return copy;
    ValueToValueMapTy map;
    Function *whole = CloneFunction(place.first, map);
    copy = whole;
    whole->setName(place.first->getName() + ".gr_of." + procedure->getName());
    whole->setComdat(nullptr);
    whole->setVisibility(GlobalValue::DefaultVisibility);
    whole->setLinkage(GlobalValue::InternalLinkage);
    whole->setAttributes(whole->getAttributes().removeParamAttributes(whole->getContext(), place.second));
    Argument *taken = whole->getArg(place.second);
    replace(taken, taken);
    return whole;
  }
};

/// Returns the initialisation of a trampoline; null if the trampoline has several.
IntrinsicInst *begun(Value *code) {
  IntrinsicInst *found = nullptr;
  for (User *user : code->users()) {
    auto *use = dyn_cast<IntrinsicInst>(user);
    if (use && use->getIntrinsicID() == Intrinsic::init_trampoline) {
      if (found)
        return nullptr;
      found = use;
    } else if (!use || use->getIntrinsicID() != Intrinsic::adjust_trampoline) {
      return nullptr;
    }
  }
  return found;
}
} // namespace

extern "C" {
// Specialises the functions of a module that receive internal procedures.
void gr_name_internal_procedures(LLVMModuleRef module) {
  Module &M = *unwrap(module);
  Function *adjust = M.getFunction("llvm.adjust.trampoline");
  if (!adjust)
    adjust = M.getFunction("llvm.adjust.trampoline.p0");
  if (!adjust)
    return;
  std::vector<CallInst *> handed;
  for (User *user : adjust->users())
    if (auto *call = dyn_cast<CallInst>(user))
      handed.push_back(call);
  std::map<Function *, Copies> copies;
  for (CallInst *call : handed) {
    Value *code = call->getArgOperand(0);
    IntrinsicInst *begin = isa<AllocaInst>(code) ? begun(code) : nullptr;
    auto *procedure = begin ? dyn_cast<Function>(begin->getArgOperand(1)) : nullptr;
    std::set<Place> seen;
    if (!procedure || procedure->isVarArg() || !Copies::isPlain(call, procedure, seen))
      continue;
    auto &of = copies.try_emplace(procedure, Copies{procedure, {}}).first->second;
    of.replace(call, begin->getArgOperand(2));
    call->eraseFromParent();
    if (code->hasOneUse())
      begin->eraseFromParent();
  }
}
}
