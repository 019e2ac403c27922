/* The calls that block, and what is left behind: for `leaving.c`, `leaving_exceptions.cpp` and
 * `leaving_stepped.cpp`. */
#ifndef WAITWORD_LEAVING_H
#define WAITWORD_LEAVING_H

#include "objects.h"
#include <linux/futex.h>
#include <setjmp.h>
#include <threads.h>

/* The C library's own rwlocks and barriers count a thread that has left them forever, and are of
 * no further use. Ours forget it. */
static inline int forgets_lost_threads(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "waitword") != NULL;
}

static pthread_mutex_t mutex, cond_mutex;
static pthread_rwlock_t rwlock;
static pthread_cond_t condition;
static sem_t sem;
static pthread_barrier_t barrier;
static pthread_once_t once;
static pthread_spinlock_t spin;
static int word;
static int once_may_end, once_runs, signalled;
static struct thread holder;

static struct timespec real_time(void) { return after_ms(CLOCK_REALTIME, FAR_AWAY); }
static struct timespec monotonic(void) { return after_ms(CLOCK_MONOTONIC, FAR_AWAY); }

/* ---- Mutexes: another thread holds the mutex ---- */

static void hold_mutex(int type, int protocol, int robust, int shared) {
    init_mutex(&mutex, type, protocol, robust, shared);
    OK(pthread_mutex_lock(&mutex));
}
static void hold_normal(void) { hold_mutex(PTHREAD_MUTEX_NORMAL, 0, 0, 0); }
static void hold_adaptive(void) { hold_mutex(PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0); }
static void hold_recursive(void) { hold_mutex(PTHREAD_MUTEX_RECURSIVE, 0, 0, 0); }
static void hold_checking(void) { hold_mutex(PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0); }
static void hold_inheriting(void) { hold_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0); }
static void hold_shared(void) { hold_mutex(PTHREAD_MUTEX_NORMAL, 0, 0, 1); }
static void release_mutex(void) { OK(pthread_mutex_unlock(&mutex)); }
static int lock(void) { return pthread_mutex_lock(&mutex); }
static int unlock(void) { return pthread_mutex_unlock(&mutex); }
static int timedlock(void) {
    struct timespec until = real_time();
    return pthread_mutex_timedlock(&mutex, &until);
}
static int clocklock(void) {
    struct timespec until = monotonic();
    return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
}
static int c11_lock(void) { return mtx_lock((mtx_t *)&mutex); }
static int c11_timedlock(void) {
    struct timespec until = real_time();
    return mtx_timedlock((mtx_t *)&mutex, &until);
}
static void use_mutex(void) {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}

/* ---- Rwlocks: another thread writes ---- */

static void hold_rwlock(void) {
    OK(pthread_rwlock_init(&rwlock, NULL));
    OK(pthread_rwlock_wrlock(&rwlock));
}
static void release_rwlock(void) { OK(pthread_rwlock_unlock(&rwlock)); }
static int rdlock(void) { return pthread_rwlock_rdlock(&rwlock); }
static int timedrdlock(void) {
    struct timespec until = real_time();
    return pthread_rwlock_timedrdlock(&rwlock, &until);
}
static int clockrdlock(void) {
    struct timespec until = monotonic();
    return pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &until);
}
static int wrlock(void) { return pthread_rwlock_wrlock(&rwlock); }
static int timedwrlock(void) {
    struct timespec until = real_time();
    return pthread_rwlock_timedwrlock(&rwlock, &until);
}
static int clockwrlock(void) {
    struct timespec until = monotonic();
    return pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &until);
}
static int rwunlock(void) { return pthread_rwlock_unlock(&rwlock); }
static void use_rwlock(void) {
    if (!forgets_lost_threads()) return;
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_destroy(&rwlock));
}

/* ---- Condition variables: no thread signals ---- */

static void hold_nothing(void) {}
static void make_cond(void) {
    init_mutex(&cond_mutex, PTHREAD_MUTEX_NORMAL, 0, 0, 0);
    OK(pthread_cond_init(&condition, NULL));
}
static void make_cond_inheriting(void) {
    init_mutex(&cond_mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0);
    OK(pthread_cond_init(&condition, NULL));
}
static void make_cond_robust(void) {
    init_mutex(&cond_mutex, PTHREAD_MUTEX_NORMAL, 0, 1, 0);
    OK(pthread_cond_init(&condition, NULL));
}
static void unlock_cond_mutex(void *unused) {
    (void)unused;
    OK(pthread_mutex_unlock(&cond_mutex));
}
/* A thread that jumps out of a wait holds the mutex. */
static int with_cond_mutex(void) { return pthread_mutex_unlock(&cond_mutex); }
#define WITH_COND_MUTEX(wait)                          \
    int result;                                        \
    OK(pthread_mutex_lock(&cond_mutex));               \
    pthread_cleanup_push(unlock_cond_mutex, NULL);     \
    result = wait;                                     \
    pthread_cleanup_pop(1);                            \
    return result

static int cond_wait(void) { WITH_COND_MUTEX(pthread_cond_wait(&condition, &cond_mutex)); }
static int cond_timedwait(void) {
    struct timespec until = real_time();
    WITH_COND_MUTEX(pthread_cond_timedwait(&condition, &cond_mutex, &until));
}
static int cond_clockwait(void) {
    struct timespec until = monotonic();
    WITH_COND_MUTEX(pthread_cond_clockwait(&condition, &cond_mutex, CLOCK_MONOTONIC, &until));
}
static int c11_wait(void) { WITH_COND_MUTEX(cnd_wait((cnd_t *)&condition, (mtx_t *)&cond_mutex)); }
static int c11_timedwait(void) {
    struct timespec until = real_time();
    WITH_COND_MUTEX(cnd_timedwait((cnd_t *)&condition, (mtx_t *)&cond_mutex, &until));
}
static void *wait_for_signal(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&cond_mutex));
    while (!GET(signalled)) OK(pthread_cond_wait(&condition, &cond_mutex));
    OK(pthread_mutex_unlock(&cond_mutex));
    return NULL;
}
/* One signal is for the waiter. */
static void use_cond(void) {
    struct thread waiter;
    OK(pthread_mutex_lock(&cond_mutex));
    OK(pthread_mutex_unlock(&cond_mutex));
    SET(signalled, 0);
    start(&waiter, wait_for_signal, NULL);
    until_asleep(&waiter);
    OK(pthread_mutex_lock(&cond_mutex));
    SET(signalled, 1);
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(&cond_mutex));
    join(&waiter);
    OK(pthread_cond_destroy(&condition));
    OK(pthread_mutex_destroy(&cond_mutex));
}

/* ---- Semaphores: no thread posts ---- */

static void make_sem(void) { OK(sem_init(&sem, 0, 0)); }
static int wait_sem(void) { return sem_wait(&sem); }
static int timedwait_sem(void) {
    struct timespec until = real_time();
    return sem_timedwait(&sem, &until);
}
static int clockwait_sem(void) {
    struct timespec until = monotonic();
    return sem_clockwait(&sem, CLOCK_MONOTONIC, &until);
}
static int post_sem(void) { return sem_post(&sem); }
static void *wait_for_post(void *unused) {
    (void)unused;
    while (sem_wait(&sem) != 0) EQ(errno, EINTR);
    return NULL;
}
static void use_sem(void) {
    struct thread waiter;
    int value;
    start(&waiter, wait_for_post, NULL);
    until_asleep(&waiter);
    OK(sem_post(&sem));
    join(&waiter);
    OK(sem_getvalue(&sem, &value));
    EQ(value, 0);
    OK(sem_post(&sem));
    OK(sem_wait(&sem));
}

/* ---- Barriers: the other thread does not come ---- */

static void make_barrier(void) { OK(pthread_barrier_init(&barrier, NULL, 2)); }
static int wait_barrier(void) { return pthread_barrier_wait(&barrier); }
static void *come(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    return NULL;
}
static void use_barrier(void) {
    struct thread other;
    if (!forgets_lost_threads()) return;
    start(&other, come, NULL);
    CHECK(still_waits(&other, 20));
    pthread_barrier_wait(&barrier);
    join(&other);
    OK(pthread_barrier_destroy(&barrier));
}

/* ---- Once: another thread runs it ---- */

static void run_once(void) {
    ADD(once_runs, 1);
    UNTIL(GET(once_may_end));
}
static void *begin_once(void *unused) {
    (void)unused;
    OK(pthread_once(&once, run_once));
    return NULL;
}
static void hold_once(void) {
    once = (pthread_once_t)PTHREAD_ONCE_INIT;
    SET(once_may_end, 0);
    SET(once_runs, 0);
    start(&holder, begin_once, NULL);
    UNTIL(GET(once_runs) == 1);
}
static void release_once(void) {
    SET(once_may_end, 1);
    join(&holder);
}
static int do_once(void) { return pthread_once(&once, run_once); }
static int c11_once(void) {
    call_once((once_flag *)&once, run_once);
    return 0;
}
static void use_once(void) {
    OK(pthread_once(&once, run_once));
    EQ(once_runs, 1);
}

/* ---- Spin locks ---- */

static void hold_spin(void) {
    OK(pthread_spin_init(&spin, 0));
    OK(pthread_spin_lock(&spin));
}
static void release_spin(void) { OK(pthread_spin_unlock(&spin)); }
static int lock_spin(void) { return pthread_spin_lock(&spin); }
static int unlock_spin(void) { return pthread_spin_unlock(&spin); }
static void use_spin(void) {
    OK(pthread_spin_lock(&spin));
    OK(pthread_spin_unlock(&spin));
}

/* ---- Raw futexes ---- */

static int wait_word(void) {
    return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}
static void *wait_on_word(void *unused) {
    (void)unused;
    while (GET(word) == 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return NULL;
}
static void use_word(void) {
    struct thread waiter;
    start(&waiter, wait_on_word, NULL);
    until_asleep(&waiter);
    SET(word, 1);
    EQ(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 1);
    join(&waiter);
    SET(word, 0);
}

/* ---- All calls ---- */

struct call {
    /* Before the call: another thread takes the lock. */
    void (*hold)(void);
    /* Waits forever. */
    int (*block)(void);
    void (*release)(void);
    /* Called by other threads afterwards: as if the thread that left had never been there. */
    void (*use)(void);
    /* Spins, and does not sleep. */
    int spins;
    /* Releases what `block` has acquired, or what a jump out of it leaves the thread with. */
    int (*undo)(void);
};

#define EACH_CALL(each)                                                                         \
    each(normal_lock, hold_normal, lock, release_mutex, use_mutex, 0, unlock)                   \
    each(normal_timedlock, hold_normal, timedlock, release_mutex, use_mutex, 0, unlock)         \
    each(normal_clocklock, hold_normal, clocklock, release_mutex, use_mutex, 0, unlock)         \
    each(adaptive_lock, hold_adaptive, lock, release_mutex, use_mutex, 0, unlock)               \
    each(recursive_lock, hold_recursive, lock, release_mutex, use_mutex, 0, unlock)             \
    each(recursive_timedlock, hold_recursive, timedlock, release_mutex, use_mutex, 0, unlock)   \
    each(checking_lock, hold_checking, lock, release_mutex, use_mutex, 0, unlock)               \
    each(checking_clocklock, hold_checking, clocklock, release_mutex, use_mutex, 0, unlock)     \
    each(inheriting_lock, hold_inheriting, lock, release_mutex, use_mutex, 0, unlock)           \
    each(inheriting_timedlock, hold_inheriting, timedlock, release_mutex, use_mutex, 0, unlock) \
    each(inheriting_clocklock, hold_inheriting, clocklock, release_mutex, use_mutex, 0, unlock) \
    each(shared_lock, hold_shared, lock, release_mutex, use_mutex, 0, unlock)                   \
    each(rdlock, hold_rwlock, rdlock, release_rwlock, use_rwlock, 0, rwunlock)                  \
    each(timedrdlock, hold_rwlock, timedrdlock, release_rwlock, use_rwlock, 0, rwunlock)        \
    each(clockrdlock, hold_rwlock, clockrdlock, release_rwlock, use_rwlock, 0, rwunlock)        \
    each(wrlock, hold_rwlock, wrlock, release_rwlock, use_rwlock, 0, rwunlock)                  \
    each(timedwrlock, hold_rwlock, timedwrlock, release_rwlock, use_rwlock, 0, rwunlock)        \
    each(clockwrlock, hold_rwlock, clockwrlock, release_rwlock, use_rwlock, 0, rwunlock)        \
    each(cond_wait, make_cond, cond_wait, hold_nothing, use_cond, 0, with_cond_mutex)           \
    each(cond_timedwait, make_cond, cond_timedwait, hold_nothing, use_cond, 0, with_cond_mutex) \
    each(cond_clockwait, make_cond, cond_clockwait, hold_nothing, use_cond, 0, with_cond_mutex) \
    each(cond_wait_inheriting, make_cond_inheriting, cond_wait, hold_nothing, use_cond, 0,      \
         with_cond_mutex)                                                                       \
    each(cond_wait_robust, make_cond_robust, cond_wait, hold_nothing, use_cond, 0,              \
         with_cond_mutex)                                                                       \
    each(sem_wait, make_sem, wait_sem, hold_nothing, use_sem, 0, post_sem)                      \
    each(sem_timedwait, make_sem, timedwait_sem, hold_nothing, use_sem, 0, post_sem)            \
    each(sem_clockwait, make_sem, clockwait_sem, hold_nothing, use_sem, 0, post_sem)            \
    each(barrier_wait, make_barrier, wait_barrier, hold_nothing, use_barrier, 0, NULL)          \
    each(once, hold_once, do_once, release_once, use_once, 0, NULL)                             \
    each(spin_lock, hold_spin, lock_spin, release_spin, use_spin, 1, unlock_spin)               \
    each(mtx_lock, hold_normal, c11_lock, release_mutex, use_mutex, 0, unlock)                  \
    each(mtx_timedlock, hold_normal, c11_timedlock, release_mutex, use_mutex, 0, unlock)        \
    each(cnd_wait, make_cond, c11_wait, hold_nothing, use_cond, 0, with_cond_mutex)             \
    each(cnd_timedwait, make_cond, c11_timedwait, hold_nothing, use_cond, 0, with_cond_mutex)   \
    each(call_once, hold_once, c11_once, release_once, use_once, 0, NULL)                       \
    each(futex_wait, hold_nothing, wait_word, hold_nothing, use_word, 0, NULL)

#define CALL_OF(name, ...) static const struct call of_##name = {__VA_ARGS__};
EACH_CALL(CALL_OF)

/* Overwrites the abandoned frames: nothing may still be found there. */
__attribute__((noinline, unused)) static void write_over_the_stack(void) {
    char bytes[16384];
    memset(bytes, 0xa5, sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

#endif
