/* Threads that begin one after another, each once the last one sleeps. So their numbers in gdb, and
 * the order in which they wait, are the same each time. */
#ifndef THREADS_H
#define THREADS_H

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic pid_t started;

struct body {
    const char *name;
    void (*run)(void);
};

static inline void *body_of_thread(void *argument)
{
    struct body *body = argument;
    pthread_setname_np(pthread_self(), body->name);
    started = (pid_t)syscall(SYS_gettid);
    body->run();
    return NULL;
}

/* Whether the thread sleeps in a futex call: what /proc says it is in. */
static inline int sleeps(pid_t thread)
{
    char path[64], said[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char *line = fgets(said, sizeof said, file);
    fclose(file);
    long call = line ? atol(line) : 0;
    return call == SYS_futex || call == 449 || call == 455;
}

static inline void begin(const char *name, void (*run)(void))
{
    static struct body bodies[64];
    static int count;
    struct body *body = &bodies[count++];
    *body = (struct body){name, run};
    pthread_t thread;
    started = 0;
    if (pthread_create(&thread, NULL, body_of_thread, body))
        abort();
    /* Asleep ten times in a row: not for a moment, as a mutex's successor naps. */
    for (int seen = 0, looks = 0; seen < 10; looks++) {
        usleep(1000);
        seen = started && sleeps(started) ? seen + 1 : 0;
        if (looks == 20000) {
            fprintf(stderr, "thread %s does not sleep\n", name);
            abort();
        }
    }
}

/* gdb stops here: at a breakpoint, or if the program was called with an argument by itself. */
__attribute__((noinline)) void known_state(int arguments)
{
    if (arguments > 1)
        raise(SIGTRAP);
}

#endif
