/* Robust mutexes: the death of a thread, of a process, kill -9. Sources: POSIX,
 * pthread_mutexattr_setrobust(3), pthread_mutex_consistent(3). */
#include "objects.h"

static void die_with(pthread_mutex_t *mutex) {
    struct thread thread;
    start(&thread, lock_it, mutex);
    EQ(join(&thread), 0);
}

static void recovers(pthread_mutex_t *mutex) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    struct thread thread;
    die_with(mutex);
    EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
    start(&thread, try_it, mutex);
    EQ(join(&thread), EBUSY);
    OK(pthread_mutex_consistent(mutex));
    EQ(pthread_mutex_consistent(mutex), EINVAL);
    OK(pthread_mutex_unlock(mutex));
    die_with(mutex);
    EQ(pthread_mutex_trylock(mutex), EOWNERDEAD);
    OK(pthread_mutex_consistent(mutex));
    OK(pthread_mutex_unlock(mutex));
    die_with(mutex);
    EQ(pthread_mutex_timedlock(mutex, &later), EOWNERDEAD);
    OK(pthread_mutex_consistent(mutex));
    OK(pthread_mutex_unlock(mutex));
    die_with(mutex);
    EQ(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &later), EOWNERDEAD);
    OK(pthread_mutex_consistent(mutex));
    OK(pthread_mutex_unlock(mutex));
    /* Not made consistent: it is lost for all threads. */
    die_with(mutex);
    EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
    OK(pthread_mutex_unlock(mutex));
    EQ(pthread_mutex_lock(mutex), ENOTRECOVERABLE);
    EQ(pthread_mutex_timedlock(mutex, &later), ENOTRECOVERABLE);
    start(&thread, lock_it, mutex);
    EQ(join(&thread), ENOTRECOVERABLE);
    /* The last one: glibc 2.36 forgets to unlock it there, and the next thread waits forever. */
    EQ(pthread_mutex_trylock(mutex), ENOTRECOVERABLE);
    OK(pthread_mutex_destroy(mutex));
}

CASE(normal_recovers) { recovers(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0)); }
CASE(recursive_recovers) { recovers(new_mutex(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, 1, 0)); }
CASE(checking_recovers) { recovers(new_mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, 1, 0)); }
CASE(shared_recovers) { recovers(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 1)); }
CASE(inheriting_recovers) { recovers(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 1, 0)); }
CASE(shared_inheriting_recovers) {
    recovers(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 1, 1));
}

CASE(consistent_answers) {
    pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *mutex = new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0);
    pthread_mutexattr_t attributes;
    int robustness;
    EQ(pthread_mutex_consistent(&plain), EINVAL);
    OK(pthread_mutex_lock(&plain));
    EQ(pthread_mutex_consistent(&plain), EINVAL);
    EQ(pthread_mutex_consistent(mutex), EINVAL);
    OK(pthread_mutex_lock(mutex));
    EQ(pthread_mutex_consistent(mutex), EINVAL);
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_mutexattr_init(&attributes));
    OK(pthread_mutexattr_getrobust(&attributes, &robustness));
    EQ(robustness, PTHREAD_MUTEX_STALLED);
    EQ(pthread_mutexattr_setrobust(&attributes, 7), EINVAL);
}

/* ---- Waiters ---- */

static void *hold_for_a_while(void *mutex) {
    OK(pthread_mutex_lock(mutex));
    pause_ms(60);
    return NULL;
}

static int successors;
static void *inherit(void *mutex) {
    int result = pthread_mutex_lock(mutex);
    if (result == EOWNERDEAD) {
        ADD(successors, 1);
        OK(pthread_mutex_consistent(mutex));
    } else {
        OK(result);
    }
    OK(pthread_mutex_unlock(mutex));
    return NULL;
}

static void waiters_of_the_dead(pthread_mutex_t *mutex, void *(*run)(void *)) {
    struct thread dying, threads[4];
    start(&dying, hold_for_a_while, mutex);
    UNTIL(pthread_mutex_trylock(mutex) == EBUSY || (pthread_mutex_unlock(mutex), 0));
    for (int each = 0; each < 4; each++) start(&threads[each], run, mutex);
    join(&dying);
    for (int each = 0; each < 4; each++) join(&threads[each]);
    EQ(successors, 1);
}

CASE(one_waiter_inherits) {
    waiters_of_the_dead(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0), inherit);
}
CASE(one_waiter_inherits_pi) {
    waiters_of_the_dead(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 1, 0), inherit);
}
/* Whether all waiters learn that it is lost is not checked here: glibc 2.36 often wakes only one
 * of them, and robust mutexes are glibc's. */

static pthread_mutex_t *several[8];
static void *lock_several(void *unused) {
    (void)unused;
    for (int each = 0; each < 8; each++) OK(pthread_mutex_lock(several[each]));
    OK(pthread_mutex_unlock(several[3]));
    return NULL;
}

CASE(several_at_once) {
    struct thread thread;
    for (int each = 0; each < 8; each++)
        several[each] = new_mutex(each % 2 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL,
                                  each % 3 ? PTHREAD_PRIO_NONE : PTHREAD_PRIO_INHERIT, 1, 0);
    start(&thread, lock_several, NULL);
    join(&thread);
    for (int each = 0; each < 8; each++)
        EQ(pthread_mutex_lock(several[each]), each == 3 ? 0 : EOWNERDEAD);
}

/* Locking and unlocking a mutex of another kind in between does not disturb the list of robust
 * ones. */
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER,
                       recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void *mix(void *unused) {
    (void)unused;
    for (int each = 0; each < 8; each++) {
        OK(pthread_mutex_lock(&plain));
        OK(pthread_mutex_lock(several[each]));
        OK(pthread_mutex_lock(&recursive));
        OK(pthread_mutex_unlock(&recursive));
        OK(pthread_mutex_unlock(&plain));
    }
    return NULL;
}

CASE(mixed_with_others) {
    struct thread thread;
    for (int each = 0; each < 8; each++)
        several[each] = new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0);
    start(&thread, mix, NULL);
    join(&thread);
    for (int each = 0; each < 8; each++) EQ(pthread_mutex_lock(several[each]), EOWNERDEAD);
    OK(pthread_mutex_lock(&plain));
}

/* ---- Processes ---- */

struct shared {
    pthread_mutex_t mutex;
    int stage;
    long counter, copy;
};

PART(hold_until_killed) {
    struct shared *shared = (struct shared *)map_memory_file(sizeof *shared);
    int result = pthread_mutex_lock(&shared->mutex);
    CHECK(result == 0 || result == EOWNERDEAD);
    SET(shared->stage, 1);
    for (;;) pause_ms(1000);
}

static void make_shared(pthread_mutex_t *mutex, int protocol) {
    pthread_mutex_t *made = new_mutex(PTHREAD_MUTEX_NORMAL, protocol, 1, 1);
    memcpy(mutex, made, sizeof *made);
}

static void killed_while_it_holds(int protocol, int plain_process) {
    char argument[16];
    struct shared *shared = (struct shared *)memory_file(sizeof *shared, argument);
    make_shared(&shared->mutex, protocol);
    for (int turn = 0; turn < 3; turn++) {
        struct thread waiter;
        SET(shared->stage, 0);
        pid_t child = run_part("hold_until_killed", argument, plain_process);
        UNTIL(GET(shared->stage) == 1);
        EQ(pthread_mutex_trylock(&shared->mutex), EBUSY);
        start(&waiter, lock_it, &shared->mutex);
        until_asleep(&waiter);
        OK(kill(child, SIGKILL));
        EQ(join(&waiter), EOWNERDEAD);
        EQ(end_of(child), -SIGKILL);
        /* Its thread has in turn ended while holding it. */
        EQ(pthread_mutex_lock(&shared->mutex), EOWNERDEAD);
        OK(pthread_mutex_consistent(&shared->mutex));
        OK(pthread_mutex_unlock(&shared->mutex));
    }
}

CASE(killed_while_it_holds_normal) { killed_while_it_holds(PTHREAD_PRIO_NONE, 0); }
CASE(killed_while_it_holds_inheriting) { killed_while_it_holds(PTHREAD_PRIO_INHERIT, 0); }
CASE(killed_plain_process_while_it_holds) { killed_while_it_holds(PTHREAD_PRIO_NONE, 1); }
CASE(killed_plain_process_while_it_holds_inheriting) {
    killed_while_it_holds(PTHREAD_PRIO_INHERIT, 1);
}

/* Locks, counts twice and unlocks, until it is killed at an arbitrary instruction. */
PART(count_until_killed) {
    struct shared *shared = (struct shared *)map_memory_file(sizeof *shared);
    for (;;) {
        int result = pthread_mutex_lock(&shared->mutex);
        if (result == EOWNERDEAD) {
            shared->copy = shared->counter;
            OK(pthread_mutex_consistent(&shared->mutex));
        } else {
            OK(result);
        }
        EQ(shared->counter, shared->copy);
        *(volatile long *)&shared->counter += 1;
        *(volatile long *)&shared->copy += 1;
        OK(pthread_mutex_unlock(&shared->mutex));
        ADD(shared->stage, 1);
    }
}

/* Processes with and without the drop-in, killed at random; the survivors continue, and never
 * see half a count. */
LONG_CASE(storm_of_kills, 60) {
    enum { MANY = 4 };
    char argument[16];
    struct shared *shared = (struct shared *)memory_file(sizeof *shared, argument);
    pid_t children[MANY];
    make_shared(&shared->mutex, PTHREAD_PRIO_NONE);
    for (int each = 0; each < MANY; each++)
        children[each] = run_part("count_until_killed", argument, each % 2);
    for (int turn = 0; turn < 80; turn++) {
        int before = GET(shared->stage);
        UNTIL(GET(shared->stage) - before > 20);
        int victim = turn % MANY;
        OK(kill(children[victim], SIGKILL));
        EQ(end_of(children[victim]), -SIGKILL);
        children[victim] = run_part("count_until_killed", argument, turn / MANY % 2);
    }
    for (int each = 0; each < MANY; each++) {
        OK(kill(children[each], SIGKILL));
        EQ(end_of(children[each]), -SIGKILL);
    }
    int result = pthread_mutex_lock(&shared->mutex);
    CHECK(result == 0 || result == EOWNERDEAD);
}
