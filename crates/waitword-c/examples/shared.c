/*
 * A 64-bit word in memory that two processes share: the child reports progress, the parent waits
 * for it.
 *
 * Linux has no 64-bit futex; the library builds this one from 32-bit futexes.
 *
 *     cc shared.c $(pkg-config --cflags --libs waitword) && ./a.out
 */
#define _DEFAULT_SOURCE

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <waitword.h>

/* Without WW_PRIVATE the waiters are queued in the kernel, where every process that maps the word
 * finds them. */
static const unsigned shared64 = WW_SIZE_U64;

/* The total exceeds 32 bits, so that the upper half matters too. */
static const uint64_t STEP = UINT64_C(1) << 31;
enum { STEPS = 6 };

static int work(_Atomic uint64_t *bytes_done)
{
    for (int i = 0; i < STEPS; i++) {
        atomic_fetch_add(bytes_done, STEP);
        if (ww_futex_wake(bytes_done, WW_MASK_U64, INT_MAX, shared64) < 0) {
            perror("ww_futex_wake");
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    _Atomic uint64_t *bytes_done = mmap(NULL, sizeof *bytes_done, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bytes_done == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    if (child == 0)
        _exit(work(bytes_done));

    uint64_t seen = 0;
    while (seen < STEPS * STEP) {
        if (ww_futex_wait(bytes_done, seen, WW_MASK_U64, shared64, NULL, 0) < 0 &&
            errno != EAGAIN && errno != EINTR) {
            perror("ww_futex_wait");
            return 1;
        }
        seen = atomic_load(bytes_done);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 1;
    printf("shared: the other process reported %llu bytes\n", (unsigned long long)seen);
    return 0;
}
