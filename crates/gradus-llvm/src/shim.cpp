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
}
