// The XLA-FFI handler of `f.jax` on the CPU: calls the uniform entry of a compiled function on XLA's buffers.
//
// One handler serves all functions. `_jax_direct.py` registers a target per operation and shapes; the attribute `target`
// of a call is the target's identifier. A target's plan is a list of integers in the order in which `Reader` takes them;
// `_jax_direct.py` writes the list and documents the fields.
//
// # Invariants
// - Results are XLA's memory, or a copy of an operand: a function never writes into an operand.
// - One call runs at a time: a program may have static variables, and XLA starts independent calls in several threads.
// - A target that is not registered, or a length that differs, is an error and not a call.

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

namespace {

// As `MEMBERS_MAX` of `_jax_direct.py`, and `RANK_MAX` of the package's native module.
enum { MEMBERS_MAX = 64, RANK_MAX = 8, TARGETS_MAX = 1 << 14, DEPTH_MAX = 16, MESSAGE_BYTES = 1024 };

enum Source { OPERAND, NUMBER, VARIABLE, BUFFER, CONSTANT };
enum Passing { VALUE, ADDRESS, DESCRIPTOR };
enum Initial { ZEROS, COPY_OF_OPERAND, COPY_OF_NUMBER };
enum Kind { FLOATING, SIGNED, UNSIGNED, BOOLEAN };

// Tests guessed lengths on the operands. Returns 0, or writes a message.
typedef int (*Test)(void **operands, char *message, int64_t room_bytes);

struct Target {
  uint64_t id;
  void (*entry)(void **);
  const int64_t *plan;
  Test test;
  int is_tested;
};

// An array as the entry of a Fortran descriptor receives the array.
struct ArrayArgument {
  void *data;
  size_t extents[RANK_MAX];
};

struct Reader {
  const int64_t *at;
  int64_t next() { return *at++; }
};

// The memory of one call.
struct Frame {
  XLA_FFI_CallFrame *call;
  void *operands[MEMBERS_MAX];
  int64_t numbers[MEMBERS_MAX];
  int64_t variables[MEMBERS_MAX];
  void *buffers[MEMBERS_MAX];
  int64_t constants[MEMBERS_MAX];
  void *addresses[MEMBERS_MAX];
  ArrayArgument arrays[MEMBERS_MAX];
  void *arguments[MEMBERS_MAX + 1];
  int64_t result[MEMBERS_MAX];
  char *scratch;
};

Target targets[TARGETS_MAX];
pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;
// The address of arrays without elements.
int64_t nothing;

XLA_FFI_Error *error(XLA_FFI_CallFrame *call, XLA_FFI_Error_Code code, const char *message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message, code};
  return call->api->XLA_FFI_Error_Create(&args);
}

// Returns the place of a target, or the free place for the target; null if the table is full.
Target *place(uint64_t id) {
  for (uint64_t step = 0; step < TARGETS_MAX; step++) {
    Target *target = &targets[(id + step) % TARGETS_MAX];
    uint64_t found = __atomic_load_n(&target->id, __ATOMIC_ACQUIRE);
    if (found == id || found == 0) return target;
  }
  return nullptr;
}

Target *find(const XLA_FFI_Attrs *attrs) {
  if (attrs->size != 1 || attrs->types[0] != XLA_FFI_AttrType_STRING) return nullptr;
  const XLA_FFI_ByteSpan *text = static_cast<XLA_FFI_ByteSpan *>(attrs->attrs[0]);
  uint64_t id = 0;
  for (size_t i = 0; i < text->len; i++)
    id = id * 16 + static_cast<uint64_t>(text->ptr[i] <= '9' ? text->ptr[i] - '0' : text->ptr[i] - 'a' + 10);
  Target *target = place(id);
  return target && target->id == id ? target : nullptr;
}

// Reads an integer of any type of XLA. Returns false if the integer does not fit into 64 bits with a sign.
bool read_integer(const XLA_FFI_Buffer *buffer, int64_t *number) {
  const void *data = buffer->data;
  switch (buffer->dtype) {
    case XLA_FFI_DataType_PRED: *number = *static_cast<const uint8_t *>(data) != 0; return true;
    case XLA_FFI_DataType_S8: *number = *static_cast<const int8_t *>(data); return true;
    case XLA_FFI_DataType_S16: *number = *static_cast<const int16_t *>(data); return true;
    case XLA_FFI_DataType_S32: *number = *static_cast<const int32_t *>(data); return true;
    case XLA_FFI_DataType_S64: *number = *static_cast<const int64_t *>(data); return true;
    case XLA_FFI_DataType_U8: *number = *static_cast<const uint8_t *>(data); return true;
    case XLA_FFI_DataType_U16: *number = *static_cast<const uint16_t *>(data); return true;
    case XLA_FFI_DataType_U32: *number = *static_cast<const uint32_t *>(data); return true;
    case XLA_FFI_DataType_U64: *number = *static_cast<const int64_t *>(data); return *number >= 0;
    default: return false;
  }
}

// Reads a number by value as the bits of the function's type. Returns false if an integer does not fit.
bool read_number(const XLA_FFI_Buffer *buffer, int64_t kind, int64_t size_bytes, int64_t *number) {
  *number = 0;
  if (kind == FLOATING) {
    memcpy(number, buffer->data, static_cast<size_t>(size_bytes));
    return true;
  }
  if (!read_integer(buffer, number)) return false;
  if (size_bytes == 8) return kind == SIGNED || *number >= 0;
  int64_t limit = int64_t{1} << (8 * size_bytes - (kind == SIGNED));
  return *number < limit && *number >= (kind == SIGNED ? -limit : 0);
}

// Computes a length in postfix order. Returns false if the expression overflows.
bool length(Reader *plan, const int64_t *variables, int64_t *value) {
  int64_t stack[DEPTH_MAX], top = 0;
  bool fits = true;
  for (int64_t left = plan->next(); left > 0; left--) {
    int64_t operation = plan->next(), operand = plan->next();
    if (operation == 'c' || operation == 'v') {
      if (top == DEPTH_MAX) return false;
      stack[top++] = operation == 'c' ? operand : variables[operand];
      continue;
    }
    int64_t *a = &stack[top - 2], b = stack[top - 1];
    fits &= !(operation == '+' ? __builtin_add_overflow(*a, b, a)
                               : operation == '-' ? __builtin_sub_overflow(*a, b, a) : __builtin_mul_overflow(*a, b, a));
    top--;
  }
  *value = stack[0];
  return fits;
}

XLA_FFI_Error *read_operands(Frame *frame, Reader *plan) {
  XLA_FFI_CallFrame *call = frame->call;
  for (int64_t i = 0; i < call->args.size; i++) {
    void *data = static_cast<XLA_FFI_Buffer *>(call->args.args[i])->data;
    frame->operands[i] = data ? data : &nothing;
  }
  for (int64_t i = 0, count = plan->next(); i < count; i++) {
    int64_t operand = plan->next(), kind = plan->next(), size_bytes = plan->next();
    XLA_FFI_Buffer *buffer = static_cast<XLA_FFI_Buffer *>(call->args.args[operand]);
    if (!read_number(buffer, kind, size_bytes, &frame->numbers[i]))
      return error(call, XLA_FFI_Error_Code_OUT_OF_RANGE, "an integer does not fit into the type of the function's argument");
  }
  for (int64_t i = 0, count = plan->next(); i < count; i++) {
    int64_t is_number = plan->next(), value = plan->next();
    frame->variables[i] = is_number ? frame->numbers[value] : value;
  }
  for (int64_t count = plan->next(); count > 0; count--) {
    int64_t expected = plan->next(), found;
    if (!length(plan, frame->variables, &found) || found != expected)
      return error(call, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                   "an array has another length than the function expects by its integer arguments");
  }
  return nullptr;
}

XLA_FFI_Error *allocate(Frame *frame, Reader *plan) {
  XLA_FFI_CallFrame *call = frame->call;
  int64_t scratch_bytes = plan->next();
  frame->scratch = scratch_bytes ? static_cast<char *>(malloc(static_cast<size_t>(scratch_bytes))) : nullptr;
  if (scratch_bytes && !frame->scratch) return error(call, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "out of memory");
  for (int64_t i = 0, count = plan->next(); i < count; i++) {
    int64_t result = plan->next(), offset = plan->next(), initial = plan->next(), index = plan->next();
    size_t bytes = static_cast<size_t>(plan->next());
    void *data = result < 0 ? frame->scratch + offset : static_cast<XLA_FFI_Buffer *>(call->rets.rets[result])->data;
    frame->buffers[i] = data && bytes ? data : &nothing;
    if (initial == ZEROS)
      memset(frame->buffers[i], 0, bytes);
    else
      memcpy(frame->buffers[i], initial == COPY_OF_OPERAND ? frame->operands[index] : &frame->numbers[index], bytes);
  }
  return nullptr;
}

void pass_arguments(Frame *frame, Reader *plan) {
  int64_t count = plan->next();
  for (int64_t i = 0; i < count; i++) {
    int64_t source = plan->next(), index = plan->next(), passing = plan->next();
    void *data = source == OPERAND ? frame->operands[index]
                 : source == NUMBER ? &frame->numbers[index]
                 : source == BUFFER ? frame->buffers[index] : &frame->constants[i];
    frame->constants[i] = source == VARIABLE ? frame->variables[index] : index;
    frame->addresses[i] = data;
    frame->arguments[i] = passing == VALUE ? data : &frame->addresses[i];
    if (passing == DESCRIPTOR) {
      frame->arrays[i].data = data;
      for (size_t axis = 0; axis < RANK_MAX; axis++) frame->arrays[i].extents[axis] = static_cast<size_t>(plan->next());
      frame->arguments[i] = &frame->arrays[i];
    }
  }
  frame->arguments[count] = frame->result;
}

void store_results(Frame *frame, Reader *plan) {
  for (int64_t count = plan->next(); count > 0; count--) {
    int64_t result = plan->next(), offset = plan->next(), size_bytes = plan->next(), is_boolean = plan->next();
    char *from = reinterpret_cast<char *>(frame->result) + offset;
    if (is_boolean) *from &= 1;
    memcpy(static_cast<XLA_FFI_Buffer *>(frame->call->rets.rets[result])->data, from, static_cast<size_t>(size_bytes));
  }
}

void describe(XLA_FFI_Metadata *metadata) {
  metadata->api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
  metadata->traits = 0;
#ifdef XLA_FFI_UNKNOWN_TYPE_ID
  metadata->state_type_id = XLA_FFI_UNKNOWN_TYPE_ID;
#endif
}

}  // namespace

// Registers a target. Returns 0, or 1 if the table is full. A second registration of an identifier has no effect.
extern "C" int gradus_jax_register(uint64_t id, void (*entry)(void **), const int64_t *plan, Test test) {
  pthread_mutex_lock(&calls);
  Target *target = place(id);
  if (target && target->id != id) {
    target->entry = entry;
    target->plan = plan;
    target->test = test;
    target->is_tested = !test;
    __atomic_store_n(&target->id, id, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&calls);
  return target ? 0 : 1;
}

// The handler.
extern "C" XLA_FFI_Error *gradus_jax_call(XLA_FFI_CallFrame *call) {
  if (call->extension_start && call->extension_start->type == XLA_FFI_Extension_Metadata) {
    describe(reinterpret_cast<XLA_FFI_Metadata_Extension *>(call->extension_start)->metadata);
    return nullptr;
  }
  Target *target = find(&call->attrs);
  if (!target) return error(call, XLA_FFI_Error_Code_NOT_FOUND, "gradus: the function belongs to another process");
  Reader plan = {target->plan};
  int64_t operands = plan.next(), results = plan.next();
  if (call->args.size != operands || call->rets.size != results)
    return error(call, XLA_FFI_Error_Code_INTERNAL, "gradus: the call has another number of operands than its target");
  Frame frame;
  frame.call = call;
  XLA_FFI_Error *failed = read_operands(&frame, &plan);
  if (failed) return failed;
  if (!__atomic_load_n(&target->is_tested, __ATOMIC_ACQUIRE)) {
    // The test needs the interpreter's lock: a thread must not wait for that lock while it holds `calls`.
    char message[MESSAGE_BYTES] = "";
    if (target->test(frame.operands, message, MESSAGE_BYTES))
      return error(call, XLA_FFI_Error_Code_FAILED_PRECONDITION, message);
    __atomic_store_n(&target->is_tested, 1, __ATOMIC_RELEASE);
  }
  failed = allocate(&frame, &plan);
  if (failed) return failed;
  memset(frame.result, 0, sizeof frame.result);
  pass_arguments(&frame, &plan);
  pthread_mutex_lock(&calls);
  target->entry(frame.arguments);
  pthread_mutex_unlock(&calls);
  store_results(&frame, &plan);
  free(frame.scratch);
  return nullptr;
}
