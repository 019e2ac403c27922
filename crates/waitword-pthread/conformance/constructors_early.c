/* A library that `constructors.c` is linked with: if CONFORMANCE_EARLY is set, it loads the
 * plugin before main, and before a library in LD_PRELOAD has run its constructors. */
#define _GNU_SOURCE
#include "constructors_load.h"
#include <stdio.h>

__attribute__((constructor)) static void early(int count, char **arguments) {
    if (getenv("CONFORMANCE_EARLY") == NULL || count < 2 || strcmp(arguments[0], "case") != 0)
        return;
    const char *error = load_plugin(arguments[1]);
    if (error != NULL) fprintf(stderr, "%s\n", error);
}
