/* Options and files of a command line, by the names that CUDA's samples use. */
#ifndef GRADUS_CUDA_HELPER_STRING_H
#define GRADUS_CUDA_HELPER_STRING_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef STRCASECMP
#define STRCASECMP strcasecmp
#define STRNCASECMP strncasecmp
#define STRCPY(to, size, from) strcpy(to, from)
#define FOPEN(file, name, mode) (file = fopen(name, mode))
#define SSCANF sscanf
#define SPRINTF sprintf
#endif

/* The option `name` among the arguments, after its dashes; null where it is not there. */
static inline const char *gr_option(int argc, const char **argv, const char *name)
{
    size_t length = strcspn(name, "=");
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i] + strspn(argv[i], "-");
        if (option != argv[i] && strncasecmp(option, name, length) == 0 && (option[length] == 0 || option[length] == '=')) return option;
    }
    return 0;
}
/* What follows its equals sign. */
static inline const char *gr_option_value(int argc, const char **argv, const char *name)
{
    const char *option = gr_option(argc, argv, name);
    const char *equals = option ? strchr(option, '=') : 0;
    return equals ? equals + 1 : 0;
}
static inline bool checkCmdLineFlag(const int argc, const char **argv, const char *name) { return gr_option(argc, argv, name) != 0; }
static inline int getCmdLineArgumentInt(const int argc, const char **argv, const char *name)
{
    const char *value = gr_option_value(argc, argv, name);
    return value ? atoi(value) : 0;
}
static inline float getCmdLineArgumentFloat(const int argc, const char **argv, const char *name)
{
    const char *value = gr_option_value(argc, argv, name);
    return value ? (float)atof(value) : 0.0f;
}
static inline bool getCmdLineArgumentString(const int argc, const char **argv, const char *name, char **value)
{
    *value = (char *)gr_option_value(argc, argv, name);
    return *value != 0;
}
template <class T> static inline bool getCmdLineArgumentValue(const int argc, const char **argv, const char *name, T *value)
{
    const char *text = gr_option_value(argc, argv, name);
    if (text) *value = (T)atof(text);
    return text != 0;
}
/* The path of a sample's data file: where it is named, or in a folder `data`. */
static inline char *sdkFindFilePath(const char *name, const char *)
{
    const char *folders[] = {"", "./data/", "../data/", "../../data/"};
    for (int i = 0; i < 4; i++) {
        size_t size = strlen(folders[i]) + strlen(name) + 1;
        char *path = (char *)malloc(size);
        snprintf(path, size, "%s%s", folders[i], name);
        FILE *file = fopen(path, "rb");
        if (file) {
            fclose(file);
            return path;
        }
        free(path);
    }
    return 0;
}
#endif
