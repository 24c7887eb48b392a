// Replaces variadic functions that read their arguments by functions that take the address of the arguments. See
// variadic_functions.rs.
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <vector>
using namespace llvm;

namespace {
// `va_list` of the System V ABI for x86-64, 3.5.7: an array of one such structure.
constexpr uint64_t FLOAT_OFFSET = 4, AREA = 8, REGISTERS = 16, LIST_BYTES = 24;
// Offsets behind the last register of a kind: every `va_arg` then reads the area in memory.
constexpr uint32_t NO_INTEGERS = 48, NO_FLOATS = 176;
constexpr uint64_t SLOT = 8;

// Where an argument lies in the area.
struct Slot {
  uint64_t offset;
  Type *byval; // The type of a structure in memory, else null.
};
} // namespace

static bool reads_list(Value *list, SmallPtrSetImpl<Value *> &seen, bool &reads);
static bool variable_reads_list(Value *address, SmallPtrSetImpl<Value *> &seen, bool &reads);

// Returns whether the body of a function is known, and the body rounds no address up: `va_arg` does for types with
// more than eight bytes of alignment, and reads an instruction for types that the front end does not lower.
static bool can_be_replaced(Function &function) {
  if (function.isDeclaration() || function.isInterposable()) return false;
  return none_of(instructions(function), [](Instruction &i) {
    auto *intrinsic = dyn_cast<IntrinsicInst>(&i);
    return isa<VAArgInst>(i) || (intrinsic && intrinsic->getIntrinsicID() == Intrinsic::ptrmask);
  });
}

// Follows a list through a variable that holds its address: a parameter in unoptimised code.
static bool variable_is_kept(Value *variable, SmallPtrSetImpl<Value *> &seen, bool &reads) {
  if (!isa<AllocaInst>(variable)) return false;
  return all_of(variable->users(), [&](User *user) {
    if (isa<LoadInst>(user)) return reads_list(user, seen, reads);
    auto *store = dyn_cast<StoreInst>(user);
    return (store && store->getPointerOperand() == variable) || isa<LifetimeIntrinsic>(user);
  });
}

// Returns whether an instruction uses a list in a way that the expansion keeps; `reads` becomes true if a program's
// own code reads an argument.
static bool use_is_kept(Use &use, SmallPtrSetImpl<Value *> &seen, bool &reads) {
  auto *user = cast<Instruction>(use.getUser());
  if (isa<LoadInst>(user)) return reads = true;
  if (auto *store = dyn_cast<StoreInst>(user))
    return store->getPointerOperand() == use.get() || variable_is_kept(store->getPointerOperand(), seen, reads);
  if (isa<GetElementPtrInst>(user) || isa<PHINode>(user)) return reads_list(user, seen, reads);
  if (isa<ICmpInst>(user)) return true;
  auto *call = dyn_cast<CallBase>(user);
  if (!call || !call->isArgOperand(&use)) return false;
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(call)) {
    switch (intrinsic->getIntrinsicID()) {
    case Intrinsic::vastart:
    case Intrinsic::vaend:
    case Intrinsic::lifetime_start:
    case Intrinsic::lifetime_end:
      return true;
    case Intrinsic::vacopy:
      return use.getOperandNo() == 0 || variable_reads_list(intrinsic->getArgOperand(0), seen, reads);
    default:
      return false;
    }
  }
  Function *callee = call->getCalledFunction();
  unsigned index = call->getArgOperandNo(&use);
  return callee && can_be_replaced(*callee) && index < callee->arg_size() &&
         reads_list(callee->getArg(index), seen, reads);
}

// Follows the uses of a list in a local variable.
static bool variable_reads_list(Value *address, SmallPtrSetImpl<Value *> &seen, bool &reads) {
  Value *variable = address->stripPointerCasts();
  return isa<AllocaInst>(variable) && reads_list(variable, seen, reads);
}

static bool reads_list(Value *list, SmallPtrSetImpl<Value *> &seen, bool &reads) {
  if (!seen.insert(list).second) return true;
  bool kept = true;
  for (Use &use : list->uses()) kept &= use_is_kept(use, seen, reads);
  return kept;
}

// Returns whether a function reads its variadic arguments, and no function outside the module sees the list. `seen`
// becomes the lists and their addresses.
static bool is_expandable(Function &function, SmallPtrSetImpl<Value *> &seen) {
  if (!function.isVarArg() || !can_be_replaced(function)) return false;
  bool reads = false;
  for (Instruction &i : instructions(function)) {
    auto *intrinsic = dyn_cast<IntrinsicInst>(&i);
    if (!intrinsic || intrinsic->getIntrinsicID() != Intrinsic::vastart) continue;
    if (!variable_reads_list(intrinsic->getArgOperand(0), seen, reads)) return false;
  }
  return reads;
}

static void start_list(IntrinsicInst *start, Argument *arguments) {
  IRBuilder<> build(start);
  Value *list = start->getArgOperand(0);
  auto member = [&](uint64_t offset) { return build.CreateConstInBoundsGEP1_64(build.getInt8Ty(), list, offset); };
  build.CreateAlignedStore(build.getInt32(NO_INTEGERS), list, Align(8));
  build.CreateAlignedStore(build.getInt32(NO_FLOATS), member(FLOAT_OFFSET), Align(4));
  build.CreateAlignedStore(arguments, member(AREA), Align(8));
  build.CreateAlignedStore(arguments, member(REGISTERS), Align(8));
}

// Replaces the intrinsics of lists.
static void lower_lists(Function &function, Argument *arguments) {
  std::vector<IntrinsicInst *> found;
  for (Instruction &i : instructions(function))
    if (auto *intrinsic = dyn_cast<IntrinsicInst>(&i))
      if (auto id = intrinsic->getIntrinsicID();
          id == Intrinsic::vastart || id == Intrinsic::vaend || id == Intrinsic::vacopy)
        found.push_back(intrinsic);
  for (IntrinsicInst *intrinsic : found) {
    IRBuilder<> build(intrinsic);
    if (intrinsic->getIntrinsicID() == Intrinsic::vastart && arguments) start_list(intrinsic, arguments);
    if (intrinsic->getIntrinsicID() == Intrinsic::vacopy)
      build.CreateMemCpy(intrinsic->getArgOperand(0), Align(8), intrinsic->getArgOperand(1), Align(8), LIST_BYTES);
    intrinsic->eraseFromParent();
  }
}

// Returns the copy of a variadic function that takes the address of the arguments in place of the arguments.
static Function *with_area(Function &function) {
  std::vector<Type *> params(function.getFunctionType()->params());
  params.push_back(PointerType::getUnqual(function.getContext()));
  auto *type = FunctionType::get(function.getReturnType(), params, false);
  auto *copy = Function::Create(type, GlobalValue::InternalLinkage, function.getAddressSpace(),
                                function.getName() + ".arguments", function.getParent());
  ValueToValueMapTy map;
  for (auto [from, to] : zip(function.args(), copy->args())) {
    to.setName(from.getName());
    map[&from] = &to;
  }
  SmallVector<ReturnInst *, 8> returns;
  CloneFunctionInto(copy, &function, map, CloneFunctionChangeType::LocalChangesOnly, returns);
  copy->setLinkage(GlobalValue::InternalLinkage);
  copy->setVisibility(GlobalValue::DefaultVisibility);
  copy->setDSOLocal(true);
  copy->setComdat(nullptr);
  copy->removeFnAttr(Attribute::Memory);
  lower_lists(*copy, copy->getArg(copy->arg_size() - 1));
  return copy;
}

// Places the variadic arguments of a call; returns false if the call cannot be replaced.
static bool place_arguments(CallBase &call, unsigned named, std::vector<Slot> &slots, uint64_t &bytes) {
  auto *asked = dyn_cast<CallInst>(&call);
  if (asked && asked->isMustTailCall()) return false;
  const DataLayout &layout = call.getModule()->getDataLayout();
  for (unsigned index = named; index < call.arg_size(); index++) {
    Type *byval = call.getParamByValType(index);
    Type *type = byval ? byval : call.getArgOperand(index)->getType();
    if (!byval && type->isAggregateType()) return false;
    uint64_t align = byval ? call.getParamAlign(index).valueOrOne().value() : layout.getABITypeAlign(type).value();
    bytes = alignTo(bytes, std::max(align, SLOT));
    slots.push_back({bytes, byval});
    bytes += alignTo(layout.getTypeAllocSize(type).getFixedValue(), SLOT);
  }
  return true;
}

static void replace_call(CallBase &call, Function *copy, unsigned named, const std::vector<Slot> &slots,
                         uint64_t bytes) {
  Function *caller = call.getFunction();
  IRBuilder<> entry(&*caller->getEntryBlock().getFirstInsertionPt());
  auto *area = entry.CreateAlloca(ArrayType::get(entry.getInt8Ty(), std::max(bytes, SLOT)), nullptr, "arguments");
  area->setAlignment(Align(16));
  IRBuilder<> build(&call);
  const DataLayout &layout = call.getModule()->getDataLayout();
  for (unsigned index = 0; index < slots.size(); index++) {
    Value *to = build.CreateConstInBoundsGEP1_64(build.getInt8Ty(), area, slots[index].offset);
    Value *argument = call.getArgOperand(named + index);
    if (Type *byval = slots[index].byval)
      build.CreateMemCpy(to, Align(8), argument, call.getParamAlign(named + index),
                         layout.getTypeAllocSize(byval).getFixedValue());
    else
      build.CreateAlignedStore(argument, to, Align(8));
  }
  std::vector<Value *> arguments(call.arg_begin(), call.arg_begin() + named);
  arguments.push_back(area);
  SmallVector<OperandBundleDef, 1> bundles;
  call.getOperandBundlesAsDefs(bundles);
  CallBase *made;
  if (auto *invoke = dyn_cast<InvokeInst>(&call))
    made = InvokeInst::Create(copy->getFunctionType(), copy, invoke->getNormalDest(), invoke->getUnwindDest(),
                              arguments, bundles, "", call.getIterator());
  else
    made = CallInst::Create(copy->getFunctionType(), copy, arguments, bundles, "", call.getIterator());
  std::vector<AttributeSet> params;
  for (unsigned index = 0; index < named; index++) params.push_back(call.getAttributes().getParamAttrs(index));
  made->setAttributes(AttributeList::get(call.getContext(), call.getAttributes().getFnAttrs(),
                                         call.getAttributes().getRetAttrs(), params));
  made->removeFnAttr(Attribute::Memory);
  made->setCallingConv(call.getCallingConv());
  made->setDebugLoc(call.getDebugLoc());
  made->takeName(&call);
  call.replaceAllUsesWith(made);
  call.eraseFromParent();
}

// Replaces the direct calls of a variadic function, also those in the new function itself.
static void replace_calls(Function &function) {
  unsigned named = function.arg_size();
  Function *copy = nullptr;
  SmallPtrSet<CallBase *, 8> kept;
  std::vector<CallBase *> calls;
  do {
    calls.clear();
    for (User *user : function.users())
      if (auto *call = dyn_cast<CallBase>(user))
        if (call->getCalledFunction() == &function && !kept.contains(call)) calls.push_back(call);
    for (CallBase *call : calls) {
      std::vector<Slot> slots;
      uint64_t bytes = 0;
      if (!place_arguments(*call, named, slots, bytes)) {
        kept.insert(call);
        continue;
      }
      if (!copy) copy = with_area(function);
      replace_call(*call, copy, named, slots, bytes);
    }
  } while (!calls.empty());
}

extern "C" void gr_expand_variadic_functions(LLVMModuleRef module) {
  Module &m = *unwrap(module);
  const Triple &triple = m.getTargetTriple();
  if (triple.getArch() != Triple::x86_64 || triple.isOSWindows() || triple.isX32()) return;
  std::vector<Function *> functions;
  SmallPtrSet<Function *, 8> readers;
  for (Function &function : m) {
    SmallPtrSet<Value *, 16> seen;
    if (!is_expandable(function, seen)) continue;
    functions.push_back(&function);
    for (Value *list : seen)
      if (auto *param = dyn_cast<Argument>(list)) readers.insert(param->getParent());
  }
  for (Function *function : functions) replace_calls(*function);
  for (Function *reader : readers)
    if (!reader->isVarArg()) lower_lists(*reader, nullptr);
}
