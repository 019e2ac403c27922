/* Loads `plugin.so`, which lies beside the program, to try an operation. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the error, or NULL. */
static const char *load_plugin(const char *operation) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    if (length <= 0) return "there is no /proc/self/exe";
    path[length] = 0;
    strcpy(strrchr(path, '/'), "/plugin.so");
    setenv("CONFORMANCE_OPERATION", operation, 1);
    int deep = getenv("CONFORMANCE_DEEPBIND") != NULL ? RTLD_DEEPBIND : 0;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | deep) == NULL ? dlerror() : NULL;
}
