/* fork, with locks held and threads running. Sources: POSIX, fork(3p), pthread_atfork(3p).
 *
 * POSIX allows the child of a program with threads to call async-signal-safe functions only.
 * Programs do more, and glibc lets them: the child holds what the forking thread held; what
 * other threads held stays locked; everything else works. */
#include "objects.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t inheriting;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER, storms = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t sem;
static int stage, level, stop;

static void *give(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    level++;
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(&mutex));
    OK(sem_post(&sem));
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Uses all kinds of objects, with new threads. */
static void use_everything(void) {
    struct thread threads[3];
    level = 0;
    OK(sem_init(&sem, 0, 0));
    OK(pthread_barrier_init(&barrier, NULL, 4));
    /* Held, so that no thread gives before this one waits. */
    OK(pthread_mutex_lock(&mutex));
    for (int each = 0; each < 3; each++) start(&threads[each], give, NULL);
    while (level < 3) OK(pthread_cond_wait(&condition, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    for (int each = 0; each < 3; each++) OK(sem_wait(&sem));
    pthread_barrier_wait(&barrier);
    for (int each = 0; each < 3; each++) join(&threads[each]);
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    struct timespec soon = after_ms(CLOCK_MONOTONIC, 5);
    OK(pthread_mutex_lock(&mutex));
    EQ(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
}

CASE(child_uses_everything) {
    use_everything();
    CHILD(child, use_everything());
    use_everything();
    EQ(end_of(child), 0);
}

CASE(grandchild_uses_everything) {
    use_everything();
    CHILD(child, {
        use_everything();
        CHILD(grandchild, use_everything());
        EQ(end_of(grandchild), 0);
        use_everything();
    });
    EQ(end_of(child), 0);
}

/* ---- Held by the thread that forks ---- */

static void *try_them(void *unused) {
    (void)unused;
    EQ(pthread_mutex_trylock(&mutex), EBUSY);
    EQ(pthread_mutex_trylock(&recursive), EBUSY);
    EQ(pthread_mutex_trylock(&checking), EBUSY);
    EQ(pthread_mutex_unlock(&recursive), EPERM);
    EQ(pthread_mutex_unlock(&checking), EPERM);
    EQ(pthread_spin_trylock(&spin), EBUSY);
    return NULL;
}

static void *get_them(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_unlock(&recursive));
    return NULL;
}

static void release_them(void) {
    struct thread thread, waiter;
    start(&thread, try_them, NULL);
    join(&thread);
    start(&waiter, get_them, NULL);
    until_asleep(&waiter);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_spin_unlock(&spin));
    OK(pthread_mutex_unlock(&recursive));
    OK(pthread_mutex_unlock(&recursive));
    join(&waiter);
}

/* POSIX (2008 TC): a mutex that the forking thread owns belongs to the child; owner-checking
 * kinds in glibc 2.36 record the parent's TID. */
CASE(held_by_the_forking_thread) {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_lock(&checking));
    OK(pthread_spin_lock(&spin));
    CHILD(child, {
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_spin_unlock(&spin));
        ANSWER("recursive-in-child", "%s", error_name(pthread_mutex_unlock(&recursive)));
        ANSWER("checking-in-child", "%s", error_name(pthread_mutex_unlock(&checking)));
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_spin_lock(&spin));
    });
    EQ(end_of(child), 0);
    release_them();
    OK(pthread_mutex_unlock(&checking));
}

/* The state of the other objects in the child: glibc distinguishes a write lock from a read lock
 * by its holder's TID, which is different in the child, and counts waiters in the lock, which do
 * not exist in the child. */
static const char *outcome(pid_t child) {
    int end = end_of(child);
    return end == 0 ? "works" : end == -SIGALRM ? "hangs" : "fails";
}

static void *read_it(void *unused) {
    (void)unused;
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}

static void *write_it(void *unused) {
    (void)unused;
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}

static void release_in_child_and_parent(void *(*waiting)(void *)) {
    struct thread waiter;
    if (waiting != NULL) {
        start(&waiter, waiting, NULL);
        until_asleep(&waiter);
    }
    CHILD(child, {
        alarm(2);
        if (pthread_rwlock_unlock(&rwlock) != 0) _exit(1);
        if (pthread_rwlock_wrlock(&rwlock) != 0) _exit(1);
        if (pthread_rwlock_unlock(&rwlock) != 0) _exit(1);
        if (pthread_rwlock_rdlock(&rwlock) != 0) _exit(1);
    });
    ANSWER("child", "%s", outcome(child));
    OK(pthread_rwlock_unlock(&rwlock));
    if (waiting != NULL) join(&waiter);
    write_it(NULL);
}

CASE(written_by_the_forking_thread) {
    OK(pthread_rwlock_wrlock(&rwlock));
    release_in_child_and_parent(NULL);
}

CASE(written_by_the_forking_thread_with_a_waiter) {
    OK(pthread_rwlock_wrlock(&rwlock));
    release_in_child_and_parent(read_it);
}

CASE(read_by_the_forking_thread) {
    OK(pthread_rwlock_rdlock(&rwlock));
    release_in_child_and_parent(NULL);
}

CASE(read_by_the_forking_thread_with_a_waiter) {
    OK(pthread_rwlock_rdlock(&rwlock));
    release_in_child_and_parent(write_it);
}

/* The usual way: locked before, unlocked after, in parent and child. */
static void before(void) {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_lock(&other));
}

static void after(void) {
    OK(pthread_mutex_unlock(&other));
    OK(pthread_mutex_unlock(&mutex));
}

static void *lock_on(void *which) {
    while (!GET(stop)) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_lock(&other));
        OK(which ? pthread_rwlock_wrlock(&storms) : pthread_rwlock_rdlock(&storms));
        OK(pthread_rwlock_unlock(&storms));
        OK(pthread_mutex_unlock(&other));
        OK(pthread_mutex_unlock(&mutex));
        ADD(stage, 1);
    }
    return NULL;
}

CASE(locked_by_atfork_handlers) {
    struct thread threads[4];
    OK(pthread_atfork(before, after, after));
    for (int each = 0; each < 4; each++) start(&threads[each], lock_on, each % 2 ? &mutex : NULL);
    for (int turn = 0; turn < 60; turn++) {
        CHILD(child, use_everything());
        EQ(end_of(child), 0);
    }
    SET(stop, 1);
    for (int each = 0; each < 4; each++) join(&threads[each]);
    use_everything();
}

/* ---- Held by another thread ---- */

static void *hold(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&other));
    OK(pthread_mutex_lock(&inheriting));
    SET(stage, 1);
    while (GET(stage) != 2) pause_ms(1);
    OK(pthread_mutex_unlock(&inheriting));
    OK(pthread_mutex_unlock(&other));
    return NULL;
}

static void *wait_for_other(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&other));
    OK(pthread_mutex_unlock(&other));
    return NULL;
}

CASE(held_by_another_thread) {
    struct thread holder, waiter;
    init_mutex(&inheriting, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0);
    start(&holder, hold, NULL);
    UNTIL(GET(stage) == 1);
    start(&waiter, wait_for_other, NULL);
    until_asleep(&waiter);
    CHILD(child, {
        /* It stays locked, time limits hold, and it may be initialised again. */
        struct timespec soon = after_ms(CLOCK_REALTIME, 10);
        EQ(pthread_mutex_trylock(&other), EBUSY);
        EQ(pthread_mutex_timedlock(&other, &soon), ETIMEDOUT);
        EQ(pthread_mutex_trylock(&inheriting), EBUSY);
        OK(pthread_mutex_init(&other, NULL));
        OK(pthread_mutex_lock(&other));
        OK(pthread_mutex_unlock(&other));
        use_everything();
    });
    EQ(end_of(child), 0);
    SET(stage, 2);
    join(&holder);
    join(&waiter);
}

/* ---- Other threads wait while it forks ---- */

static void *wait_on(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    stage++;
    while (!stop) OK(pthread_cond_wait(&condition, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

CASE(waiters_stay_in_the_parent) {
    struct thread threads[5];
    for (int each = 0; each < 5; each++) {
        start(&threads[each], wait_on, NULL);
        until_asleep(&threads[each]);
    }
    /* No thread waits in the child. glibc counts the waiters there nevertheless. */
    CHILD(child, {
        alarm(2);
        OK(pthread_cond_signal(&condition));
        OK(pthread_cond_broadcast(&condition));
        use_everything();
    });
    ANSWER("child", "%s", outcome(child));
    OK(pthread_mutex_lock(&mutex));
    stop = 1;
    OK(pthread_cond_broadcast(&condition));
    OK(pthread_mutex_unlock(&mutex));
    for (int each = 0; each < 5; each++) join(&threads[each]);
}

/* ---- Fork while many threads run ---- */

static void *storm(void *unused) {
    (void)unused;
    for (int turn = 0; !GET(stop); turn++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_nsec < 999900000) now.tv_nsec += turn % 50 * 1000;
        OK(pthread_mutex_lock(&other));
        pthread_cond_clockwait(&condition, &other, CLOCK_MONOTONIC, &now);
        OK(pthread_mutex_unlock(&other));
        if (turn % 4 == 0) {
            pthread_cond_broadcast(&condition);
        } else {
            pthread_cond_signal(&condition);
        }
        if (pthread_mutex_clocklock(&recursive, CLOCK_MONOTONIC, &now) == 0)
            OK(pthread_mutex_unlock(&recursive));
        OK(turn % 3 ? pthread_rwlock_rdlock(&storms) : pthread_rwlock_wrlock(&storms));
        OK(pthread_rwlock_unlock(&storms));
        OK(sem_post(&sem));
        OK(sem_wait(&sem));
    }
    return NULL;
}

/* Objects that no thread used at the time of the fork work in the child; whatever the other
 * threads were doing, the child does not wait for any of it. */
static pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fresh_condition = PTHREAD_COND_INITIALIZER;
static int fresh_level;
static void *give_fresh(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&fresh));
    fresh_level++;
    OK(pthread_cond_signal(&fresh_condition));
    OK(pthread_mutex_unlock(&fresh));
    return NULL;
}

static void use_fresh(void) {
    struct thread threads[2];
    for (int each = 0; each < 2; each++) start(&threads[each], give_fresh, NULL);
    OK(pthread_mutex_lock(&fresh));
    while (fresh_level < 2) OK(pthread_cond_wait(&fresh_condition, &fresh));
    OK(pthread_mutex_unlock(&fresh));
    for (int each = 0; each < 2; each++) join(&threads[each]);
}

LONG_CASE(in_a_storm, 60) {
    struct thread threads[6];
    OK(sem_init(&sem, 0, 2));
    for (int each = 0; each < 6; each++) start(&threads[each], storm, NULL);
    for (int turn = 0; turn < 150; turn++) {
        CHILD(child, {
            alarm(20);
            use_fresh();
        });
        EQ(end_of(child), 0);
    }
    SET(stop, 1);
    for (int each = 0; each < 6; each++) join(&threads[each]);
}

/* Two threads fork at once, with handlers that lock. */
static void *fork_on(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 40; turn++) {
        CHILD(child, {
            alarm(20);
            use_fresh();
            use_everything();
        });
        EQ(end_of(child), 0);
    }
    return NULL;
}

LONG_CASE(several_fork_at_once, 60) {
    struct thread threads[3];
    OK(pthread_atfork(before, after, after));
    for (int each = 0; each < 3; each++) start(&threads[each], fork_on, NULL);
    for (int each = 0; each < 3; each++) join(&threads[each]);
}

/* vfork and posix_spawn: the child runs in the parent's memory until it executes another
 * program. */
CASE(vfork_disturbs_no_lock) {
    struct thread threads[4];
    for (int each = 0; each < 4; each++) start(&threads[each], lock_on, each % 2 ? &mutex : NULL);
    for (int turn = 0; turn < 30; turn++) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        CHECK(child > 0);
        EQ(end_of(child), 0);
    }
    SET(stop, 1);
    for (int each = 0; each < 4; each++) join(&threads[each]);
    use_everything();
}

/* The end of the child does not affect a robust mutex that the parent holds. */
CASE(robust_stays_with_the_parent) {
    pthread_mutex_t *robust = new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 1);
    OK(pthread_mutex_lock(robust));
    CHILD(child, use_everything());
    EQ(end_of(child), 0);
    EQ(pthread_mutex_trylock(robust), EBUSY);
    OK(pthread_mutex_unlock(robust));
    CHILD(second, {
        OK(pthread_mutex_lock(robust));
        raise(SIGKILL);
    });
    EQ(end_of(second), -SIGKILL);
    EQ(pthread_mutex_lock(robust), EOWNERDEAD);
}
