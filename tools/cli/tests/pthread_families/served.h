/* Shared by the programs here, in addition to the C tests' checks and threads
 * (crates/waitword-c/tests/c). Each program is run on the C library alone, under the drop-in, and
 * under the drop-in when it is switched off. The test sets SERVED_BY to tell them apart. */
#ifndef SERVED_H
#define SERVED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "threads.h"

/* Whether the drop-in serves this process. */
static inline bool ours(void)
{
    const char *by = getenv("SERVED_BY");
    return by && strcmp(by, "waitword") == 0;
}

/* Whether the drop-in is not loaded. */
static inline bool alone(void)
{
    const char *by = getenv("SERVED_BY");
    return !by || strcmp(by, "glibc") == 0;
}

static inline void sleep_ms(long milliseconds)
{
    struct timespec time = {.tv_sec = milliseconds / 1000,
                            .tv_nsec = milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Waits for the flag. Returns whether it was set within half a minute. */
static inline bool comes(const volatile int *flag)
{
    struct timespec end = never(CLOCK_MONOTONIC);
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE) && !has_come(CLOCK_MONOTONIC, end))
        sleep_ms(1);
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static inline void set(volatile int *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

#endif
