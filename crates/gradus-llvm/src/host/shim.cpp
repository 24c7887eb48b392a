// Functions missing in LLVM's C API that import, export and the host require: debug records, words of wide
// constants, symbol + offset of constant expressions, effects of instructions, alias scopes, names of
// arguments. Most functions are thin wrappers; ownership stays with LLVM.
#include "llvm-c/Core.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <string>
using namespace llvm;

extern "C" {
void gr_disable_fast_isel(LLVMTargetMachineRef machine) {
  auto *target = reinterpret_cast<TargetMachine *>(machine);
  target->setO0WantsFastISel(false);
  target->setFastISel(false);
}

void gr_set_dso_local(LLVMValueRef global, int local) { unwrap<GlobalValue>(global)->setDSOLocal(local != 0); }
int gr_is_dso_local(LLVMValueRef global) { return unwrap<GlobalValue>(global)->isDSOLocal(); }

// Returns a replacement of `global` with `room` bytes of tail padding. Returns `global` itself if another
// definition may win at link time, or if the variable has a section, whose variables may be read as one
// array.
LLVMValueRef gr_leave_room(LLVMValueRef global, unsigned room) {
  auto *old = unwrap<GlobalVariable>(global);
  if (!old->isStrongDefinitionForLinker() || old->hasSection())
    return global;
  Module &M = *old->getParent();
  Type *parts[] = {old->getValueType(), ArrayType::get(Type::getInt8Ty(M.getContext()), room)};
  auto *type = StructType::get(M.getContext(), parts, /*isPacked=*/true);
  auto *held = ConstantStruct::get(type, {old->getInitializer(), Constant::getNullValue(parts[1])});
  auto *made = new GlobalVariable(M, type, old->isConstant(), old->getLinkage(), held, "", old,
                                  old->getThreadLocalMode(), old->getAddressSpace());
  made->copyAttributesFrom(old);
  made->setAlignment(M.getDataLayout().getPreferredAlign(old));
  made->setComdat(old->getComdat());
  made->copyMetadata(old, 0);
  made->takeName(old);
  old->replaceAllUsesWith(made);
  old->eraseFromParent();
  return wrap(made);
}

// Makes a function delegate to a copy of itself, called `name`, if argument `number` equals `first` or
// `second`.
void gr_leave_to_copy(LLVMValueRef function, const char *name, unsigned number, uint64_t first, uint64_t second) {
  auto *F = unwrap<Function>(function);
  ValueToValueMapTy map;
  Function *whole = CloneFunction(F, map);
  whole->setName(name);
  whole->setComdat(nullptr);
  whole->setVisibility(GlobalValue::DefaultVisibility);
  whole->setLinkage(GlobalValue::InternalLinkage);
  whole->addFnAttr(Attribute::NoInline);
  auto *op = F->getArg(number);
  auto *type = cast<IntegerType>(op->getType());
  BasicBlock &entry = F->getEntryBlock();
  auto at = entry.begin();
  while (isa<AllocaInst>(at))
    ++at;
  BasicBlock *rest = entry.splitBasicBlock(at, "goes.on");
  auto *left = BasicBlock::Create(F->getContext(), "left", F);
  IRBuilder<> build(left);
  if (auto *SP = F->getSubprogram())
    build.SetCurrentDebugLocation(DILocation::get(F->getContext(), SP->getLine(), 0, SP));
  SmallVector<Value *, 4> arguments;
  for (Argument &argument : F->args())
    arguments.push_back(&argument);
  auto *given = build.CreateCall(whole, arguments);
  given->setAttributes(AttributeList());
  build.CreateRet(given);
  entry.getTerminator()->eraseFromParent();
  build.SetInsertPoint(&entry);
  auto *choice = build.CreateSwitch(op, rest, 2);
  choice->addCase(ConstantInt::get(type, first), left);
  choice->addCase(ConstantInt::get(type, second), left);
}

// Stores the words of an integer constant, lowest first; returns the number of words.
unsigned gr_integer_words(LLVMValueRef constant, uint64_t *out, unsigned room) {
  const APInt &v = unwrap<ConstantInt>(constant)->getValue();
  for (unsigned i = 0; i < v.getNumWords() && i < room; ++i)
    out[i] = v.getRawData()[i];
  return v.getNumWords();
}

// Stores the bits of a floating-point constant, lowest word first; returns the number of bits.
unsigned gr_float_bits(LLVMValueRef constant, uint64_t *out) {
  APInt v = unwrap<ConstantFP>(constant)->getValueAPF().bitcastToAPInt();
  for (unsigned i = 0; i < v.getNumWords() && i < 2; ++i)
    out[i] = v.getRawData()[i];
  return v.getBitWidth();
}

// Returns 1 if `constant` is a global's address plus a constant number of bytes.
int gr_symbol_offset(LLVMValueRef constant, LLVMModuleRef module, LLVMValueRef *symbol, int64_t *offset) {
  auto *c = unwrap<Constant>(constant);
  GlobalValue *g = nullptr;
  APInt at;
  if (!IsConstantOffsetFromGlobal(c, g, at, unwrap(module)->getDataLayout()) || at.getSignificantBits() > 64)
    return 0;
  *symbol = wrap(g);
  *offset = at.getSExtValue();
  return 1;
}

// Bits: 1 reads memory, 2 writes memory, 4 may throw, 8 may not return, 16 may be moved or dropped freely.
unsigned gr_effects(LLVMValueRef instruction) {
  auto *i = unwrap<Instruction>(instruction);
  return i->mayReadFromMemory() | i->mayWriteToMemory() << 1 | i->mayThrow() << 2 | !i->willReturn() << 3 |
         (!i->mayHaveSideEffects() && !i->mayReadFromMemory()) << 4;
}

// Bits: 1 for `inalloca`, 2 for `swifterror`.
unsigned gr_alloca_flags(LLVMValueRef alloca) {
  auto *a = unwrap<AllocaInst>(alloca);
  return a->isUsedWithInAlloca() | a->isSwiftError() << 1;
}

LLVMValueRef gr_build_alloca(LLVMBuilderRef b, LLVMTypeRef ty, unsigned space, LLVMValueRef count, unsigned align,
                             int inalloca) {
  auto *a = unwrap(b)->CreateAlloca(unwrap(ty), space, unwrap(count));
  a->setAlignment(Align(align ? align : 1));
  a->setUsedWithInAlloca(inalloca);
  return wrap(a);
}
LLVMValueRef gr_build_extract(LLVMBuilderRef b, LLVMValueRef from, const unsigned *path, size_t len) {
  return wrap(unwrap(b)->CreateExtractValue(unwrap(from), ArrayRef<unsigned>(path, len)));
}
LLVMValueRef gr_build_insert(LLVMBuilderRef b, LLVMValueRef into, LLVMValueRef member, const unsigned *path,
                             size_t len) {
  return wrap(unwrap(b)->CreateInsertValue(unwrap(into), unwrap(member), ArrayRef<unsigned>(path, len)));
}

// Returns a copy of `loc` as if its function had been inlined at `at`.
LLVMMetadataRef gr_location_inlined_at(LLVMMetadataRef loc, LLVMMetadataRef at) {
  auto *l = unwrap<DILocation>(loc);
  auto *outer = unwrap<DILocation>(at);
  SmallVector<DILocation *, 4> chain;
  for (auto *p = l; p; p = p->getInlinedAt())
    chain.push_back(p);
  DILocation *last = outer;
  for (auto *p : llvm::reverse(llvm::ArrayRef<DILocation *>(chain).drop_front()))
    last = DILocation::get(p->getContext(), p->getLine(), p->getColumn(), p->getScope(), last);
  // The atom decides at which instruction of a line a debugger stops.
  return wrap(DILocation::get(l->getContext(), l->getLine(), l->getColumn(), l->getScope(), last, l->isImplicitCode(),
                              l->getAtomGroup(), l->getAtomRank()));
}

LLVMMetadataRef gr_location(LLVMContextRef ctx, unsigned line, unsigned column, LLVMMetadataRef scope,
                            LLVMMetadataRef at) {
  return wrap(DILocation::get(*unwrap(ctx), line, column, unwrap<DILocalScope>(scope),
                              at ? unwrap<DILocation>(at) : nullptr));
}

// Returns the subprogram of the outermost scope of a location, after all inlining.
LLVMMetadataRef gr_location_root(LLVMMetadataRef loc) {
  auto *l = unwrap<DILocation>(loc);
  while (auto *at = l->getInlinedAt())
    l = at;
  return wrap(static_cast<Metadata *>(l->getScope()->getSubprogram()));
}

// Returns loop metadata for a function with `subprogram` (or none), without locations of other functions.
LLVMMetadataRef gr_loop_metadata_for(LLVMMetadataRef loop, LLVMMetadataRef subprogram) {
  auto *n = unwrap<MDNode>(loop);
  auto *own = subprogram ? unwrap<DISubprogram>(subprogram) : nullptr;
  SmallVector<Metadata *, 4> kept = {nullptr};
  bool foreign = false;
  for (unsigned i = 1; i < n->getNumOperands(); ++i) {
    auto *l = dyn_cast_or_null<DILocation>(n->getOperand(i).get());
    if (l && (!own || l->getInlinedAtScope()->getSubprogram() != own))
      foreign = true;
    else
      kept.push_back(n->getOperand(i));
  }
  if (!foreign)
    return loop;
  auto *copy = MDNode::getDistinct(n->getContext(), kept);
  copy->replaceOperandWith(0, copy);
  return wrap(static_cast<Metadata *>(copy));
}

// Returns a distinct node.
LLVMMetadataRef gr_distinct_node(LLVMContextRef ctx) {
  return wrap(static_cast<Metadata *>(MDNode::getDistinct(*unwrap(ctx), {})));
}

// Adds properties to the loop whose latch is `branch`.
static void add_to_loop(Instruction *branch, ArrayRef<Metadata *> properties) {
  SmallVector<Metadata *, 4> parts = {nullptr};
  if (auto *old = branch->getMetadata(LLVMContext::MD_loop))
    for (unsigned k = 1; k < old->getNumOperands(); ++k)
      parts.push_back(old->getOperand(k));
  parts.append(properties.begin(), properties.end());
  auto *loop = MDNode::getDistinct(branch->getContext(), parts);
  loop->replaceOperandWith(0, loop);
  branch->setMetadata(LLVMContext::MD_loop, loop);
}

// States that accesses of `group` carry no dependence between iterations of a loop. With `whole`, also
// disables unrolling before vectorization. The vectorized loop may be unrolled afterwards: values that its
// few iterations share with the next execution of the loop then become invariant in the outer loop.
void gr_set_parallel_accesses(LLVMValueRef branch, LLVMMetadataRef group, int whole) {
  auto *i = unwrap<Instruction>(branch);
  auto &ctx = i->getContext();
  auto *accesses =
      MDNode::get(ctx, {MDString::get(ctx, "llvm.loop.parallel_accesses"), unwrap<MDNode>(group)});
  SmallVector<Metadata *, 3> parts = {accesses};
  if (whole) {
    parts.push_back(MDNode::get(ctx, {MDString::get(ctx, "llvm.loop.unroll.disable")}));
    auto *one = ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(ctx), 1));
    auto *done = MDNode::get(ctx, {MDString::get(ctx, "llvm.loop.isvectorized"), one});
    auto *then = MDString::get(ctx, "llvm.loop.vectorize.followup_vectorized");
    parts.push_back(MDNode::get(ctx, {then, accesses, done}));
  }
  add_to_loop(i, parts);
}

// Aligns the code of a loop.
void gr_set_loop_align(LLVMValueRef branch, unsigned align_bytes) {
  auto *i = unwrap<Instruction>(branch);
  auto &ctx = i->getContext();
  auto *bytes = ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(ctx), align_bytes));
  add_to_loop(i, {MDNode::get(ctx, {MDString::get(ctx, "llvm.loop.align"), bytes})});
}

// Disables vectorization of a loop.
void gr_set_scalar(LLVMValueRef branch) {
  auto *i = unwrap<Instruction>(branch);
  auto &ctx = i->getContext();
  auto *no = ConstantAsMetadata::get(ConstantInt::getFalse(ctx));
  add_to_loop(i, {MDNode::get(ctx, {MDString::get(ctx, "llvm.loop.vectorize.enable"), no})});
}

// Disables runtime unrolling of a loop, unless the program specifies its unrolling.
void gr_set_rolled(LLVMValueRef branch) {
  auto *i = unwrap<Instruction>(branch);
  if (auto *loop = i->getMetadata(LLVMContext::MD_loop))
    for (unsigned k = 1; k < loop->getNumOperands(); ++k) {
      auto *own = dyn_cast_or_null<MDNode>(loop->getOperand(k).get());
      auto *name = own && own->getNumOperands() ? dyn_cast<MDString>(own->getOperand(0)) : nullptr;
      if (name && name->getString().starts_with("llvm.loop.unroll."))
        return;
    }
  auto &ctx = i->getContext();
  add_to_loop(i, {MDNode::get(ctx, {MDString::get(ctx, "llvm.loop.unroll.runtime.disable")})});
}

// Identifies a loop that follows a marker of gradus/parallel.h: the header adds the property, which has no
// other effect on the supported targets.
static const char *const MARKED = "llvm.loop.pipeline.disable";

// Records that a marker precedes a loop.
void gr_set_marked(LLVMValueRef branch) {
  auto *i = unwrap<Instruction>(branch);
  auto &ctx = i->getContext();
  auto *yes = ConstantAsMetadata::get(ConstantInt::getTrue(ctx));
  add_to_loop(i, {MDNode::get(ctx, {MDString::get(ctx, MARKED), yes})});
}

// Returns 1 if a marker precedes the loop whose latch is `branch`.
int gr_is_marked(LLVMValueRef branch) {
  auto *loop = unwrap<Instruction>(branch)->getMetadata(LLVMContext::MD_loop);
  return loop && findOptionMDForLoopID(loop, MARKED) ? 1 : 0;
}

// Returns 1 if branch weights fit a terminator's successors, or if the node holds no branch weights.
int gr_weights_fit(LLVMMetadataRef node, LLVMValueRef terminator) {
  auto *n = unwrap<MDNode>(node);
  auto *name = n->getNumOperands() ? dyn_cast<MDString>(n->getOperand(0)) : nullptr;
  if (!name || name->getString() != "branch_weights")
    return 1;
  unsigned first = n->getNumOperands() > 1 && isa<MDString>(n->getOperand(1)) ? 2 : 1;
  return n->getNumOperands() - first == unwrap<Instruction>(terminator)->getNumSuccessors();
}

// Returns a subprogram like `from` with another name.
LLVMMetadataRef gr_derive_subprogram(LLVMMetadataRef from, const char *name) {
  auto *p = unwrap<DISubprogram>(from);
  // A declaration (the derivative is registered) belongs to the types of a compile unit: no scope of locations.
  if (!p->isDefinition())
    return nullptr;
  auto *s = DISubprogram::getDistinct(
      p->getContext(), p->getScope(), name, name, p->getFile(), p->getLine(), p->getType(), p->getScopeLine(),
      nullptr, 0, 0, DINode::FlagZero, p->getSPFlags(), p->getUnit());
  return wrap(static_cast<Metadata *>(s));
}

// Describes the parameters of a function rebuilt from `origin`: parameters with the name and type of an
// origin's parameter get the origin's variable, inlined at `at`.
void gr_describe_parameters(LLVMValueRef f, LLVMValueRef origin, LLVMMetadataRef at) {
  auto &F = *unwrap<Function>(f);
  auto &O = *unwrap<Function>(origin);
  auto *SP = O.getSubprogram();
  SmallVector<DILocalVariable *, 8> params;
  auto add = [&](DILocalVariable *v) {
    if (v && v->getArg() && v->getScope()->getSubprogram() == SP && !is_contained(params, v))
      params.push_back(v);
  };
  for (auto *n : SP->getRetainedNodes())
    add(dyn_cast<DILocalVariable>(n));
  for (auto &I : O.getEntryBlock())
    for (DbgVariableRecord &v : filterDbgVars(I.getDbgRecordRange()))
      if (!v.getDebugLoc().getInlinedAt())
        add(v.getVariable());
  auto &B = F.getEntryBlock();
  for (auto *v : params)
    for (auto &a : F.args())
      if (a.getName() == v->getName() && v->getArg() <= O.arg_size() &&
          a.getType() == O.getArg(v->getArg() - 1)->getType()) {
        auto *loc = DILocation::get(F.getContext(), v->getLine(), 0, v->getScope(), unwrap<DILocation>(at));
        B.insertDbgRecordBefore(
            DbgVariableRecord::createDbgVariableRecord(&a, v, DIExpression::get(F.getContext(), {}), loc),
            B.begin());
      }
}

// Copies the debug records before `from` to before `to`. `map` returns the new value of an old value, or
// null if it was dropped (the record then becomes a kill location).
void gr_copy_debug_records(LLVMValueRef from, LLVMValueRef to, LLVMValueRef (*map)(void *, LLVMValueRef),
                           void *data) {
  // Records already at the target precede the copies.
  for (DbgRecord &r : unwrap<Instruction>(to)->cloneDebugInfoFrom(unwrap<Instruction>(from))) {
    auto *v = dyn_cast<DbgVariableRecord>(&r);
    if (!v)
      continue;
    SmallVector<Value *, 4> olds(v->location_ops().begin(), v->location_ops().end());
    for (Value *old : olds) {
      if (!old || isa<Constant>(old))
        continue;
      LLVMValueRef now = map(data, wrap(old));
      v->replaceVariableLocationOp(old, now ? unwrap(now) : PoisonValue::get(old->getType()), true);
    }
    if (v->isDbgAssign()) {
      if (Value *a = v->getAddress(); a && !isa<Constant>(a)) {
        LLVMValueRef now = map(data, wrap(a));
        if (now)
          v->setAddress(unwrap(now));
        else
          v->setKillAddress();
      }
    }
  }
}
// Reports the non-constant values in the debug records before an instruction.
void gr_debug_operands(LLVMValueRef instruction, void (*sink)(void *, LLVMValueRef), void *data) {
  for (DbgVariableRecord &v : filterDbgVars(unwrap<Instruction>(instruction)->getDbgRecordRange())) {
    for (Value *o : v.location_ops())
      if (o && !isa<Constant>(o))
        sink(data, wrap(o));
    if (v.isDbgAssign() && v.getAddress() && !isa<Constant>(v.getAddress()))
      sink(data, wrap(v.getAddress()));
  }
}
int gr_has_debug_records(LLVMValueRef instruction) { return unwrap<Instruction>(instruction)->hasDbgRecords(); }

// Returns the name of an attribute kind; the second function tests for an integer attribute.
const char *gr_attribute_name(unsigned kind, size_t *len) {
  StringRef n = Attribute::getNameFromAttrKind((Attribute::AttrKind)kind);
  *len = n.size();
  return n.data();
}
int gr_is_integer_attribute(LLVMAttributeRef a) { return unwrap(a).isIntAttribute(); }

// Returns the folder of the compilation that a local scope belongs to; empty if unknown.
const char *gr_unit_directory(LLVMMetadataRef scope, size_t *len) {
  auto *local = dyn_cast<DILocalScope>(unwrap<Metadata>(scope));
  auto *program = local ? local->getSubprogram() : nullptr;
  auto *unit = program ? program->getUnit() : nullptr;
  StringRef n = unit ? unit->getDirectory() : StringRef("");
  *len = n.size();
  return n.data();
}

// Returns the source name of a function.
const char *gr_subprogram_name(LLVMMetadataRef subprogram, size_t *len) {
  StringRef n = unwrap<DISubprogram>(subprogram)->getName();
  *len = n.size();
  return n.data();
}

// Turns a definition into a declaration. An alias becomes a declaration with the alias's name.
void gr_drop_definition(LLVMValueRef value) {
  auto *g = unwrap<GlobalValue>(value);
  if (auto *f = dyn_cast<Function>(g)) {
    f->deleteBody();
    f->setComdat(nullptr);
    f->setSubprogram(nullptr);
    f->clearMetadata();
  } else if (auto *v = dyn_cast<GlobalVariable>(g)) {
    v->setInitializer(nullptr);
    v->setComdat(nullptr);
    v->clearMetadata();
  } else {
    GlobalValue *made;
    if (auto *ty = dyn_cast<FunctionType>(g->getValueType()))
      made = Function::Create(ty, GlobalValue::ExternalLinkage, g->getAddressSpace(), "", g->getParent());
    else
      made = new GlobalVariable(*g->getParent(), g->getValueType(), false, GlobalValue::ExternalLinkage, nullptr);
    made->takeName(g);
    g->replaceAllUsesWith(made);
    g->eraseFromParent();
    return;
  }
  g->setLinkage(GlobalValue::ExternalLinkage);
  g->setVisibility(GlobalValue::DefaultVisibility);
  g->setDSOLocal(false);
}
// Stores the attributes of a variable, at most `room`. Returns the number of attributes.
size_t gr_variable_attributes(LLVMValueRef variable, LLVMAttributeRef *list, size_t room) {
  size_t count = 0;
  for (Attribute a : unwrap<GlobalVariable>(variable)->getAttributes()) {
    if (count < room)
      list[count] = wrap(a);
    ++count;
  }
  return count;
}
void gr_erase_global(LLVMValueRef value) { unwrap<GlobalValue>(value)->eraseFromParent(); }

// Returns whether a name consists of C's integer keywords.
static bool is_c_integer(StringRef name) {
  SmallVector<StringRef, 4> words;
  name.split(words, ' ');
  return all_of(words, [](StringRef w) {
    return is_contained({"char", "short", "int", "long", "signed", "unsigned"}, w);
  });
}

// Returns C's spelling of a basic type of any language; empty if there is none.
static std::string c_basic_spelling(const DIBasicType &b) {
  uint64_t bits = b.getSizeInBits();
  bool sized = bits == 8 || bits == 16 || bits == 32 || bits == 64;
  std::string by_size = sized ? "int" + std::to_string(bits) + "_t" : "";
  switch (b.getEncoding()) {
  case dwarf::DW_ATE_float:
    return bits == 32 ? "float" : bits == 64 ? "double" : b.getName() == "long double" ? "long double" : "";
  case dwarf::DW_ATE_boolean:
    return bits == 8 ? "bool" : by_size;
  case dwarf::DW_ATE_signed_char:
  case dwarf::DW_ATE_signed:
    return is_c_integer(b.getName()) ? b.getName().str() : by_size;
  case dwarf::DW_ATE_unsigned_char:
  case dwarf::DW_ATE_unsigned:
    return is_c_integer(b.getName()) ? b.getName().str() : sized ? "u" + by_size : "";
  default:
    return "";
  }
}

// Returns C's spelling of a type; empty if there is none usable in a header. Typedefs are resolved.
static std::string c_spelling(const DIType *t, int depth) {
  if (!t)
    return "void";
  if (depth == 0)
    return "";
  if (auto *b = dyn_cast<DIBasicType>(t))
    return c_basic_spelling(*b);
  if (auto *c = dyn_cast<DICompositeType>(t)) {
    bool word = !c->getName().empty() && c->getName().find_if_not([](char x) { return isalnum(x) || x == '_'; }) == StringRef::npos;
    bool structure = c->getTag() == dwarf::DW_TAG_structure_type || c->getTag() == dwarf::DW_TAG_class_type;
    return word && structure ? "struct " + c->getName().str() : "";
  }
  auto *d = dyn_cast<DIDerivedType>(t);
  if (!d)
    return "";
  std::string inner = c_spelling(d->getBaseType(), depth - 1);
  switch (d->getTag()) {
  case dwarf::DW_TAG_pointer_type:
  case dwarf::DW_TAG_reference_type:
  case dwarf::DW_TAG_rvalue_reference_type:
    return inner.empty() ? "void *" : inner + (inner.back() == '*' ? "*" : " *");
  case dwarf::DW_TAG_const_type:
    return inner.empty() || inner.back() == '*' ? inner : "const " + inner;
  default:
    return inner;
  }
}

// Reports the demangled name of a C++ or Rust symbol, with scopes and types; other symbols are reported
// unchanged.
void gr_demangled(const char *symbol, size_t len, void (*sink)(void *, unsigned, const char *, size_t), void *data) {
  std::string text = demangle(StringRef(symbol, len));
  sink(data, 0, text.data(), text.size());
}

// Describes a parameter that Fortran passes by a descriptor: an array of assumed shape, an allocatable, a
// pointer or a polymorphic variable. The text holds a letter for the kind, the rank, and the element's
// spelling in C. The text is empty for any other parameter.
static std::string array_descriptor(const DIType *t, bool fortran) {
  auto *array = dyn_cast_or_null<DICompositeType>(t);
  if (array && array->getTag() == dwarf::DW_TAG_array_type && array->getRawDataLocation()) {
    const char *kind = array->getRawRank() ? "r" : array->getRawAllocated() ? "a" : array->getRawAssociated() ? "p" : "s";
    auto rank = array->getElements().size();
    return std::string(kind) + " " + std::to_string(rank) + " " + c_spelling(array->getBaseType(), 16);
  }
  // Scalar pointers in debug information are always descriptors.
  auto *pointer = dyn_cast_or_null<DIDerivedType>(t);
  bool points = pointer && pointer->getTag() == dwarf::DW_TAG_pointer_type && !isa_and_nonnull<DISubroutineType>(pointer->getBaseType());
  return fortran && points ? "a 0 " + c_spelling(pointer->getBaseType(), 16) : "";
}

static bool is_fortran(const DISubprogram *p) {
  if (!p->getUnit())
    return false;
  auto language = p->getUnit()->getSourceLanguage();
  if (language.hasVersionedName())
    return language.getName() == dwarf::DW_LNAME_Fortran;
  return dwarf::isFortran(static_cast<dwarf::SourceLanguage>(language.getName()));
}

// Like gr_c_types, for parameters that are descriptors of arrays.
void gr_array_descriptors(LLVMValueRef function, void (*sink)(void *, unsigned, const char *, size_t), void *data) {
  auto *p = unwrap<Function>(function)->getSubprogram();
  if (!p || !p->getType())
    return;
  unsigned index = 0;
  for (DIType *t : p->getType()->getTypeArray()) {
    std::string text = array_descriptor(t, is_fortran(p));
    sink(data, index++, text.data(), text.size());
  }
}

// Describes the shape of an argument that Fortran passes by address: the rank, then the extents, `?` if not constant.
// The text is empty for other languages and for arguments with a descriptor.
static std::string argument_shape(const DIType *t, bool fortran) {
  if (!fortran || !t || !array_descriptor(t, fortran).empty())
    return "";
  auto *array = dyn_cast<DICompositeType>(t);
  if (!array || array->getTag() != dwarf::DW_TAG_array_type)
    return "0";
  std::string text = std::to_string(array->getElements().size());
  for (const DINode *element : array->getElements()) {
    auto *range = dyn_cast<DISubrange>(element);
    auto count = range ? range->getCount() : DISubrange::BoundType();
    auto *constant = dyn_cast_if_present<ConstantInt *>(count);
    text += constant && constant->getSExtValue() >= 0 ? " " + std::to_string(constant->getSExtValue()) : " ?";
  }
  return text;
}

// Like gr_c_types, for the shapes of arguments.
void gr_argument_shapes(LLVMValueRef function, void (*sink)(void *, unsigned, const char *, size_t), void *data) {
  auto *p = unwrap<Function>(function)->getSubprogram();
  if (!p || !p->getType())
    return;
  unsigned index = 0;
  for (DIType *t : p->getType()->getTypeArray()) {
    std::string text = argument_shape(t, is_fortran(p));
    sink(data, index++, text.data(), text.size());
  }
}

// Reports C's spellings of a function's result (0) and of its source parameters (1 ...), if known.
void gr_c_types(LLVMValueRef function, void (*sink)(void *, unsigned, const char *, size_t), void *data) {
  auto *p = unwrap<Function>(function)->getSubprogram();
  if (!p || !p->getType())
    return;
  unsigned index = 0;
  for (DIType *t : p->getType()->getTypeArray()) {
    if (index > 0 && !array_descriptor(t, is_fortran(p)).empty()) {
      static const char descriptor[] = "CFI_cdesc_t *";
      sink(data, index++, descriptor, sizeof descriptor - 1);
      continue;
    }
    // Array parameters occur only in other languages and are passed by address.
    auto *array = dyn_cast_or_null<DICompositeType>(t);
    if (array && array->getTag() == dwarf::DW_TAG_array_type)
      t = array->getBaseType();
    std::string text = c_spelling(t, 16);
    sink(data, index++, text.data(), text.size());
  }
}

// Returns the name of the function that contains a location.
const char *gr_location_function(LLVMMetadataRef location, size_t *len) {
  auto *p = unwrap<DILocation>(location)->getScope()->getSubprogram();
  StringRef n = p ? p->getName() : StringRef();
  *len = n.size();
  return n.data();
}

// Reports the names of all metadata kinds, by number.
void gr_metadata_kinds(LLVMContextRef ctx, void (*sink)(void *, const char *, size_t), void *data) {
  SmallVector<StringRef, 64> names;
  unwrap(ctx)->getMDKindNames(names);
  for (StringRef n : names)
    sink(data, n.data(), n.size());
}

// Returns 1 if a call has a metadata argument that wraps a local value.
int gr_takes_local_metadata(LLVMValueRef call) {
  for (auto &a : unwrap<CallBase>(call)->args())
    if (auto *m = dyn_cast<MetadataAsValue>(a))
      if (isa<LocalAsMetadata>(m->getMetadata()) || isa<DIArgList>(m->getMetadata()))
        return 1;
  return 0;
}
int gr_has_block_address(LLVMBasicBlockRef block) { return unwrap(block)->hasAddressTaken(); }
int gr_call_returns_twice(LLVMValueRef call) {
  return unwrap<CallBase>(call)->hasFnAttr(Attribute::ReturnsTwice);
}

// Returns a fresh alias-scope domain, and a fresh scope in a domain.
LLVMMetadataRef gr_alias_domain(LLVMContextRef ctx, const char *name) {
  return wrap(MDBuilder(*unwrap(ctx)).createAnonymousAliasScopeDomain(name));
}
LLVMMetadataRef gr_alias_scope(LLVMContextRef ctx, LLVMMetadataRef domain, const char *name) {
  return wrap(MDBuilder(*unwrap(ctx)).createAnonymousAliasScope(unwrap<MDNode>(domain), name));
}

// Reports the source name of each IR parameter: from the debug records of the function's own variables that
// describe the parameter or its stack slot, otherwise by position if the source and the IR have equally
// many parameters.
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
