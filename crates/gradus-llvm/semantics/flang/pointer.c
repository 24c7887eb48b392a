// A check of the deallocation of pointers.
int dprintf(int, const char *, ...);

enum { TYPE_DERIVED = 42, NO_DESTRUCTION_NEEDED = 430, NO_FINALIZATION_NEEDED = 431 };

// Ends the program unless a deallocation frees plain memory only: the type is not derived, or its table
// states that nothing is to be destroyed and finalised.
BODY int32_t require_plain_memory(const struct descriptor *of) {
  if ((uint8_t)of->type != TYPE_DERIVED)
    return 0;
  const char *table = *(const char *const *)&of->dim[of->rank];
  if (table[NO_DESTRUCTION_NEEDED] & table[NO_FINALIZATION_NEEDED])
    return 0;
  dprintf(2, "gradus: cannot expand `deallocate`: the object has finalization or allocatable components, and "
             "the compiler does not see the type\n");
  abort();
}
