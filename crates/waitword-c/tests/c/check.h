/* Shared by the C tests: checks that report where they failed, with the expected and actual
 * result. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks, failures;

static inline void check(int line, const char *what, long expected, long got, int error)
{
    checks++;
    if (got == expected)
        return;
    failures++;
    printf("line %d: %s: expected %ld, got %ld (errno %d, %s)\n", line, what, expected, got, error,
           strerror(error));
}

static inline void check_error(int line, const char *what, int expected, long got, int error)
{
    checks++;
    if (got == -1 && error == expected)
        return;
    failures++;
    printf("line %d: %s: expected -1 and errno %d (%s), got %ld and errno %d (%s)\n", line, what,
           expected, strerror(expected), got, error, strerror(error));
}

/* call returns value. */
#define GIVES(value, call)                                  \
    do {                                                    \
        errno = 0;                                          \
        long got_ = (long)(call);                           \
        check(__LINE__, #call, (long)(value), got_, errno); \
    } while (0)

/* call returns -1, with errno set to error. */
#define FAILS(error, call)                                \
    do {                                                  \
        errno = 0;                                        \
        long got_ = (long)(call);                         \
        check_error(__LINE__, #call, error, got_, errno); \
    } while (0)

/* call returns 0 or an error number, as pthreads do, and leaves errno alone. */
static inline void check_number(int line, const char *what, int expected, int got, int error)
{
    checks++;
    if (got == expected && error == 77)
        return;
    failures++;
    printf("line %d: %s: expected %d (%s), got %d (%s); errno was 77 and is %d\n", line, what,
           expected, strerror(expected), got, strerror(got), error);
}

#define ANSWERS(number, call)                               \
    do {                                                    \
        errno = 77;                                         \
        int got_ = (call);                                  \
        check_number(__LINE__, #call, number, got_, errno); \
    } while (0)

static inline int report(const char *name)
{
    printf("%s: %d checks, %d failed\n", name, checks, failures);
    return failures != 0;
}

#endif
