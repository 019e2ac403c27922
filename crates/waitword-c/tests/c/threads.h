/* Shared by the lock tests: threads, processes, times. */
#ifndef THREADS_H
#define THREADS_H

#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline pthread_t start(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, body, argument);
    if (error) {
        printf("pthread_create: %s\n", strerror(error));
        exit(1);
    }
    return thread;
}

static inline void join(pthread_t thread)
{
    pthread_join(thread, NULL);
}

/* Runs a function in a new thread and joins the thread. */
static inline void elsewhere(void *(*body)(void *), void *argument)
{
    join(start(body, argument));
}

/* Memory shared with forked children, all zeros. */
static inline void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

/* A forked child. It does not outlive its parent. Its failures count as one failure of the
 * parent. */
static inline pid_t fork_child(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        exit(1);
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        failures = 0;
    }
    return child;
}

static inline void end_of_child(void)
{
    fflush(stdout);
    _exit(failures != 0);
}

static inline void wait_for_child(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    GIVES(0, status);
}

static const struct timespec past = {.tv_sec = 1, .tv_nsec = 0};
static const struct timespec before_zero = {.tv_sec = -5, .tv_nsec = 0};
static const struct timespec too_many_ns = {.tv_sec = 1, .tv_nsec = 1000000000};
static const struct timespec negative_ns = {.tv_sec = 1, .tv_nsec = -1};

static const int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};

static inline struct timespec in_ms(int clock, long milliseconds)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += milliseconds % 1000 * 1000000;
    time.tv_sec += milliseconds / 1000 + time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static inline bool has_come(int clock, struct timespec time)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec > time.tv_sec || (now.tv_sec == time.tv_sec && now.tv_nsec >= time.tv_nsec);
}

/* So far away that only a defect reaches it. */
static inline struct timespec never(int clock)
{
    return in_ms(clock, 30000);
}

/* For a call that must wait: every invalid time, on every clock, and a time that comes soon.
 * TIMED(objects, time) is the timed form of the call, CLOCKED(objects, clock, time) the form with a
 * clock. */
#define TIMES_OUT_AT(TIMED, CLOCKED, ...)                                           \
    do {                                                                            \
        ANSWERS(ETIMEDOUT, TIMED(__VA_ARGS__, &past));                              \
        ANSWERS(ETIMEDOUT, TIMED(__VA_ARGS__, &before_zero));                       \
        ANSWERS(EINVAL, TIMED(__VA_ARGS__, &too_many_ns));                          \
        ANSWERS(EINVAL, TIMED(__VA_ARGS__, &negative_ns));                          \
        ANSWERS(EINVAL, CLOCKED(__VA_ARGS__, CLOCK_PROCESS_CPUTIME_ID, &past));     \
        ANSWERS(EINVAL, CLOCKED(__VA_ARGS__, -1, &past));                           \
        for (int clock_ = 0; clock_ < 2; clock_++) {                                \
            struct timespec soon_ = in_ms(clocks[clock_], 2);                       \
            ANSWERS(ETIMEDOUT, CLOCKED(__VA_ARGS__, clocks[clock_], &soon_));       \
            GIVES(true, has_come(clocks[clock_], soon_));                           \
            ANSWERS(ETIMEDOUT, CLOCKED(__VA_ARGS__, clocks[clock_], &past));        \
            ANSWERS(ETIMEDOUT, CLOCKED(__VA_ARGS__, clocks[clock_], &before_zero)); \
            ANSWERS(EINVAL, CLOCKED(__VA_ARGS__, clocks[clock_], &negative_ns));    \
            ANSWERS(EINVAL, CLOCKED(__VA_ARGS__, clocks[clock_], &too_many_ns));    \
        }                                                                           \
        struct timespec soon_ = in_ms(CLOCK_REALTIME, 2);                           \
        ANSWERS(ETIMEDOUT, TIMED(__VA_ARGS__, &soon_));                             \
        GIVES(true, has_come(CLOCK_REALTIME, soon_));                               \
    } while (0)

/* The same, and no time. */
#define TIMES_OUT(TIMED, CLOCKED, ...)                                \
    do {                                                              \
        TIMES_OUT_AT(TIMED, CLOCKED, __VA_ARGS__);                    \
        ANSWERS(EINVAL, TIMED(__VA_ARGS__, NULL));                    \
        ANSWERS(EINVAL, CLOCKED(__VA_ARGS__, CLOCK_REALTIME, NULL));  \
        ANSWERS(EINVAL, CLOCKED(__VA_ARGS__, CLOCK_MONOTONIC, NULL)); \
    } while (0)

/* A wait without a time limit, with one, or with one on a clock. */
#define WAIT_BY(way, type, object)                                                       \
    ((way) == 0   ? type##_wait(object)                                                  \
     : (way) == 1 ? type##_timedwait(object, (struct timespec[]){never(CLOCK_REALTIME)}) \
                  : type##_clockwait(object, CLOCK_MONOTONIC,                            \
                                     (struct timespec[]){never(CLOCK_MONOTONIC)}))

#endif
