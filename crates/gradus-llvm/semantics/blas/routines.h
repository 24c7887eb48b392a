// All bodies and rules of one element type.
#include "types.h"
#include "level1.h"
#include "level2.h"
#include "level3.h"
#include "lapack.h"
#include "rules.h"
#include "rules_lapack.h"
