// 32-bit address arithmetic in shared memory, as on a GPU. See shared_addresses.rs.
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <map>
#include <vector>
using namespace llvm;

// The most steps of a search.
static const unsigned MOST_STEPS = 64;
// The most function copies in a module.
static const unsigned MOST_COPIES = 256;

// The parameters that point to shared memory at each call.
using Parameters = SmallPtrSet<const Argument *, 16>;

static bool is_shared_variable(const Value *object) {
  return isa<GlobalVariable>(object) && object->getName().starts_with("__gr_shared");
}

// Returns true if a pointer leads to shared memory on all paths.
static bool is_shared(const Value *pointer, const Parameters &parameters) {
  SmallVector<const Value *, 8> objects;
  getUnderlyingObjects(pointer, objects, nullptr, MOST_STEPS);
  bool found = false;
  for (const Value *object : objects) {
    if (isa<UndefValue>(object) || isa<ConstantPointerNull>(object)) continue;
    const auto *parameter = dyn_cast<Argument>(object);
    if (!is_shared_variable(object) && !(parameter && parameters.contains(parameter))) return false;
    found = true;
  }
  return found;
}

// Returns true if a 64-bit number is computed from a zero-extended 32-bit number whose highest bit may be
// set, or from a constant that is no signed 32-bit number.
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
    if (const auto *constant = dyn_cast<ConstantInt>(at); constant && !constant->getValue().isSignedIntN(32)) return true;
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

// Returns the constant address with its distance wrapped, or null if the address stays unchanged.
static Constant *wrapped_constant(Value *address, const DataLayout &layout) {
  auto *constant = dyn_cast<ConstantExpr>(address);
  if (!constant || !constant->getType()->isPointerTy()) return nullptr;
  APInt offset(layout.getIndexTypeSizeInBits(constant->getType()), 0);
  Value *object = constant->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true);
  if (offset.isSignedIntN(32) || !is_shared_variable(object)) return nullptr;
  LLVMContext &context = address->getContext();
  auto *distance = ConstantInt::get(context, offset.trunc(32).sext(offset.getBitWidth()));
  return ConstantExpr::getGetElementPtr(Type::getInt8Ty(context), cast<Constant>(object), distance);
}

// Wraps the distance of an address with constant indices. Returns false if an index varies.
static bool wrap_constant_place(GetElementPtrInst *place, const Parameters &parameters, const DataLayout &layout) {
  APInt offset(layout.getIndexTypeSizeInBits(place->getType()), 0);
  if (!place->accumulateConstantOffset(layout, offset)) return false;
  if (offset.isSignedIntN(32) || !is_shared(place->getPointerOperand(), parameters)) return true;
  IRBuilder<> builder(place);
  auto *distance = builder.getInt(offset.trunc(32).sext(offset.getBitWidth()));
  Value *near = builder.CreateGEP(builder.getInt8Ty(), place->getPointerOperand(), distance);
  near->takeName(place);
  place->replaceAllUsesWith(near);
  place->eraseFromParent();
  return true;
}

// Wraps the addresses of a function.
static void wrap_addresses(Function &F, const Parameters &parameters) {
  const DataLayout &layout = F.getDataLayout();
  for (Instruction &at : make_early_inc_range(instructions(F))) {
    for (Use &use : at.operands())
      if (Constant *constant = wrapped_constant(use.get(), layout)) use.set(constant);
    auto *place = dyn_cast<GetElementPtrInst>(&at);
    if (!place || !place->getType()->isPointerTy() || wrap_constant_place(place, parameters, layout)) continue;
    bool shared = false;
    for (Use &index : place->indices()) {
      Value *number = index.get();
      if (!number->getType()->isIntegerTy(64) || !may_wrap(number, layout)) continue;
      if (!shared && !is_shared(place->getPointerOperand(), parameters)) break;
      shared = true;
      IRBuilder<> builder(place);
      index.set(signed_half(builder, number));
      place->setNoWrapFlags(GEPNoWrapFlags::none());
    }
  }
}

// The functions that receive pointers to shared memory. Note [Shared parameters] in shared_addresses.rs.
class Receivers {
  Module &module;
  // The version of a callee for each set of shared parameters.
  std::map<std::pair<Function *, std::vector<unsigned>>, Function *> versions;
  // The shared parameters of a version.
  std::map<Function *, std::vector<unsigned>> numbers;
  // The original of each copy.
  std::map<Function *, Function *> origins;
  std::vector<Function *> open;
  unsigned copies = 0;

  std::vector<unsigned> shared_in(const CallBase &call) const {
    std::vector<unsigned> found;
    for (unsigned i = 0; i < call.arg_size(); i++)
      if (call.getArgOperand(i)->getType()->isPointerTy() && is_shared(call.getArgOperand(i), parameters))
        found.push_back(i);
    return found;
  }

  // Returns true if a function or a transitive callee has an address that may need wrapping.
  static bool has_wrapping_address(Function *function) {
    std::vector<Function *> open{function};
    SmallPtrSet<Function *, 16> seen{function};
    while (!open.empty()) {
      Function *at = open.back();
      open.pop_back();
      const DataLayout &layout = at->getDataLayout();
      for (Instruction &inst : instructions(*at)) {
        if (auto *call = dyn_cast<CallBase>(&inst)) {
          Function *callee = call->getCalledFunction();
          if (callee && !callee->isDeclaration() && seen.insert(callee).second) open.push_back(callee);
        }
        if (auto *place = dyn_cast<GetElementPtrInst>(&inst))
          for (Use &index : place->indices())
            if (index->getType()->isIntegerTy(64) && may_wrap(index.get(), layout)) return true;
      }
    }
    return false;
  }

  // Returns true if a function is internal, and all calls pass shared memory in the same parameters.
  bool is_called_alike(Function *callee, const std::vector<unsigned> &shared) const {
    if (!callee->hasLocalLinkage() || numbers.count(callee)) return false;
    for (const Use &use : callee->uses()) {
      const auto *call = dyn_cast<CallBase>(use.getUser());
      if (!call || !call->isCallee(&use) || shared_in(*call) != shared) return false;
    }
    return true;
  }

  static bool is_only_called(const Function *callee) {
    for (const Use &use : callee->uses()) {
      const auto *call = dyn_cast<CallBase>(use.getUser());
      if (!call || !call->isCallee(&use)) return false;
    }
    return true;
  }

  void enter(Function *version, const std::vector<unsigned> &shared) {
    numbers[version] = shared;
    for (unsigned number : shared) parameters.insert(version->getArg(number));
    open.push_back(version);
  }

  // Returns the version of a function for the given shared parameters, or null if there is none.
  Function *version(Function *callee, const std::vector<unsigned> &shared) {
    auto origin = origins.find(callee);
    if (origin != origins.end()) callee = origin->second;
    auto known = versions.find({callee, shared});
    if (known != versions.end()) return known->second;
    Function *made = callee;
    if (!is_called_alike(callee, shared)) {
      if (copies == MOST_COPIES || !is_only_called(callee)) return nullptr;
      copies++;
      ValueToValueMapTy map;
      made = CloneFunction(callee, map);
      made->setName(callee->getName() + ".shared");
      made->setLinkage(GlobalValue::InternalLinkage);
      made->setVisibility(GlobalValue::DefaultVisibility);
      made->setDSOLocal(true);
      made->setComdat(nullptr);
      origins[made] = callee;
    }
    versions[{callee, shared}] = made;
    enter(made, shared);
    return made;
  }

  void follow(CallBase &call) {
    Function *callee = call.getCalledFunction();
    if (!callee || callee->isDeclaration() || callee->isVarArg() || call.arg_size() != callee->arg_size()) return;
    std::vector<unsigned> shared = shared_in(call);
    if (shared.empty()) return;
    auto own = numbers.find(callee);
    if (own != numbers.end() && own->second == shared) return;
    if (!has_wrapping_address(callee)) return;
    if (Function *made = version(callee, shared); made && made != callee) call.setCalledFunction(made);
  }

public:
  Parameters parameters;

  explicit Receivers(Module &of) : module(of) {}

  void find() {
    for (Function &F : module) if (!F.isDeclaration()) open.push_back(&F);
    while (!open.empty()) {
      Function *at = open.back();
      open.pop_back();
      std::vector<CallBase *> calls;
      for (Instruction &inst : instructions(*at))
        if (auto *call = dyn_cast<CallBase>(&inst)) calls.push_back(call);
      for (CallBase *call : calls) follow(*call);
    }
  }
};

extern "C" void gr_wrap_shared_addresses(LLVMModuleRef handle) {
  Module &module = *unwrap(handle);
  bool found = false;
  for (const GlobalVariable &variable : module.globals()) found |= is_shared_variable(&variable);
  if (!found) return;
  Receivers receivers(module);
  receivers.find();
  for (Function &F : module) wrap_addresses(F, receivers.parameters);
}
