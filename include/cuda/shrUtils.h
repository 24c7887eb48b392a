/* The names of the oldest samples. */
#ifndef GRADUS_CUDA_SHRUTILS_H
#define GRADUS_CUDA_SHRUTILS_H
#include "helper_functions.h"
#define shrLog printf
#define shrEXIT(argc, argv) exit(0)
#define shrSetLogFileName(name) ((void)(name))
#define shrCheckCmdLineFlag checkCmdLineFlag
#define shrGetCmdLineArgumenti(argc, argv, name, value) getCmdLineArgumentValue(argc, argv, name, value)
#endif
