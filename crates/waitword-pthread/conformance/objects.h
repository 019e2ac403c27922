/* Shared by the programs of the conformance suite: objects of every kind, every way to wait with
 * them, and their functions for threads to run. */
#ifndef WAITWORD_CONFORMANCE_OBJECTS_H
#define WAITWORD_CONFORMANCE_OBJECTS_H

#include "conformance.h"

/* ---- Objects: the previous contents of their memory do not matter ---- */

static inline void init_mutex(pthread_mutex_t *mutex, int type, int protocol, int robust,
                              int shared) {
    pthread_mutexattr_t attributes;
    memset(mutex, 0xa5, sizeof *mutex);
    OK(pthread_mutexattr_init(&attributes));
    OK(pthread_mutexattr_settype(&attributes, type));
    OK(pthread_mutexattr_setprotocol(&attributes, protocol));
    OK(pthread_mutexattr_setrobust(&attributes,
                                   robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED));
    OK(pthread_mutexattr_setpshared(&attributes,
                                    shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    OK(pthread_mutex_init(mutex, &attributes));
    OK(pthread_mutexattr_destroy(&attributes));
}

static inline void init_cond(pthread_cond_t *cond, clockid_t clock, int shared) {
    pthread_condattr_t attributes;
    memset(cond, 0xa5, sizeof *cond);
    OK(pthread_condattr_init(&attributes));
    OK(pthread_condattr_setclock(&attributes, clock));
    OK(pthread_condattr_setpshared(&attributes,
                                   shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    OK(pthread_cond_init(cond, &attributes));
    OK(pthread_condattr_destroy(&attributes));
}

/* New ones, in memory that forked processes share. */
static inline pthread_mutex_t *new_mutex(int type, int protocol, int robust, int shared) {
    pthread_mutex_t *mutex = (pthread_mutex_t *)shared_memory(4096);
    init_mutex(mutex, type, protocol, robust, shared);
    return mutex;
}

static inline pthread_cond_t *new_cond(clockid_t clock, int shared) {
    pthread_cond_t *cond = (pthread_cond_t *)shared_memory(4096);
    init_cond(cond, clock, shared);
    return cond;
}

/* A page of memory for an object, to be unmapped. */
static inline void *new_page(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    return page;
}

/* ---- Waits: 0 without a time limit, 1 timed, 2 timed on a clock of the caller's choice ---- */

static inline int cond_wait_by(int how, pthread_cond_t *cond, pthread_mutex_t *mutex,
                               clockid_t clock_of_cond) {
    struct timespec later = after_ms(how == 1 ? clock_of_cond : CLOCK_MONOTONIC, FAR_AWAY);
    switch (how) {
    case 0: return pthread_cond_wait(cond, mutex);
    case 1: return pthread_cond_timedwait(cond, mutex, &later);
    default: return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &later);
    }
}

static inline int sem_wait_by(int how, sem_t *sem) {
    struct timespec later = after_ms(how == 1 ? CLOCK_REALTIME : CLOCK_MONOTONIC, FAR_AWAY);
    switch (how) {
    case 0: return sem_wait(sem);
    case 1: return sem_timedwait(sem, &later);
    default: return sem_clockwait(sem, CLOCK_MONOTONIC, &later);
    }
}

/* Times that have passed, and times that there are not. */
__attribute__((unused)) static const struct timespec negative = {-1, 0}, long_ago = {1, 0};
__attribute__((unused)) static const struct timespec bad = {0, 1000000000}, bad_too = {0, -1};

/* ---- A mutex's functions, for a thread; a signal handler ---- */

static inline void *lock_it(void *mutex) {
    return (void *)(long)pthread_mutex_lock((pthread_mutex_t *)mutex);
}
static inline void *try_it(void *mutex) {
    return (void *)(long)pthread_mutex_trylock((pthread_mutex_t *)mutex);
}
static inline void *unlock_it(void *mutex) {
    return (void *)(long)pthread_mutex_unlock((pthread_mutex_t *)mutex);
}
static inline void no_op(int signal) { (void)signal; }

#endif
