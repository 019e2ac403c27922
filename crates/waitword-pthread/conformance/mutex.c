/* pthread_mutex_*: types, static initialisers, return codes, time limits. Sources: POSIX,
 * pthread_mutex_lock(3p), pthread_mutex_timedlock(3p), pthread_mutex_destroy(3p),
 * pthread_mutexattr_settype(3). */
#include "objects.h"

static pthread_mutex_t static_normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t static_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t static_checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t static_adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

#define NEW(type) new_mutex(PTHREAD_MUTEX_##type, PTHREAD_PRIO_NONE, 0, 0)
#define NEW_PI(type) new_mutex(PTHREAD_MUTEX_##type, PTHREAD_PRIO_INHERIT, 0, 0)

/* Results in another thread. */
static void *lock_and_unlock_it(void *mutex) {
    OK(pthread_mutex_lock(mutex));
    OK(pthread_mutex_unlock(mutex));
    return NULL;
}

static long elsewhere(void *(*run)(void *), pthread_mutex_t *mutex) {
    struct thread thread;
    start(&thread, run, mutex);
    return (long)join(&thread);
}

/* A thread waits for a held mutex, and gets it when it is released. */
static void waits_its_turn(pthread_mutex_t *mutex) {
    struct thread thread;
    OK(pthread_mutex_lock(mutex));
    EQ(elsewhere(try_it, mutex), EBUSY);
    start(&thread, lock_and_unlock_it, mutex);
    until_asleep(&thread);
    CHECK(still_waits(&thread, 20));
    OK(pthread_mutex_unlock(mutex));
    EQ(join(&thread), 0);
    OK(pthread_mutex_lock(mutex));
    OK(pthread_mutex_unlock(mutex));
}

/* No two threads are inside at once, and no thread is left behind. */
static struct {
    pthread_mutex_t *mutex;
    long plain;
    int how;
} stress;

static void *lock_repeatedly(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 20000; turn++) {
        struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
        switch ((turn + stress.how) % 3) {
        case 0: OK(pthread_mutex_lock(stress.mutex)); break;
        case 1: OK(pthread_mutex_timedlock(stress.mutex, &later)); break;
        default:
            if (pthread_mutex_trylock(stress.mutex) != 0) OK(pthread_mutex_lock(stress.mutex));
        }
        long before = *(volatile long *)&stress.plain;
        if (turn % 512 == 0) sched_yield();
        *(volatile long *)&stress.plain = before + 1;
        OK(pthread_mutex_unlock(stress.mutex));
    }
    return NULL;
}

static void excludes(pthread_mutex_t *mutex) {
    struct thread threads[4];
    stress.mutex = mutex;
    for (int each = 0; each < 4; each++) start(&threads[each], lock_repeatedly, NULL);
    for (int each = 0; each < 4; each++) join(&threads[each]);
    EQ(stress.plain, 80000);
    OK(pthread_mutex_destroy(mutex));
}

CASE(normal_excludes) { excludes(NEW(NORMAL)); }
CASE(recursive_excludes) { excludes(NEW(RECURSIVE)); }
CASE(checking_excludes) { excludes(NEW(ERRORCHECK)); }
CASE(adaptive_excludes) { excludes(NEW(ADAPTIVE_NP)); }
CASE(inheriting_excludes) { excludes(NEW_PI(NORMAL)); }
CASE(inheriting_recursive_excludes) { excludes(NEW_PI(RECURSIVE)); }
CASE(static_normal_excludes) { excludes(&static_normal); }
CASE(static_recursive_excludes) { excludes(&static_recursive); }
CASE(static_checking_excludes) { excludes(&static_checking); }
CASE(static_adaptive_excludes) { excludes(&static_adaptive); }

CASE(normal_waits_its_turn) { waits_its_turn(NEW(NORMAL)); }
CASE(recursive_waits_its_turn) { waits_its_turn(NEW(RECURSIVE)); }
CASE(checking_waits_its_turn) { waits_its_turn(NEW(ERRORCHECK)); }
CASE(adaptive_waits_its_turn) { waits_its_turn(NEW(ADAPTIVE_NP)); }
CASE(inheriting_waits_its_turn) { waits_its_turn(NEW_PI(NORMAL)); }
CASE(inheriting_checking_waits_its_turn) { waits_its_turn(NEW_PI(ERRORCHECK)); }
CASE(static_normal_waits_its_turn) { waits_its_turn(&static_normal); }
CASE(static_recursive_waits_its_turn) { waits_its_turn(&static_recursive); }
CASE(static_checking_waits_its_turn) { waits_its_turn(&static_checking); }
CASE(static_adaptive_waits_its_turn) { waits_its_turn(&static_adaptive); }

static void is_not_recursive(pthread_mutex_t *mutex) {
    struct timespec soon;
    OK(pthread_mutex_lock(mutex));
    EQ(pthread_mutex_trylock(mutex), EBUSY);
    soon = after_ms(CLOCK_REALTIME, 20);
    EQ(pthread_mutex_timedlock(mutex, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_REALTIME, soon));
    soon = after_ms(CLOCK_MONOTONIC, 20);
    EQ(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_MONOTONIC, soon));
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_mutex_destroy(mutex));
}

CASE(normal_relock_waits) { is_not_recursive(NEW(NORMAL)); }
CASE(adaptive_relock_waits) { is_not_recursive(NEW(ADAPTIVE_NP)); }
CASE(default_relock_waits) { is_not_recursive(&static_normal); }
CASE(inheriting_relock_waits) { is_not_recursive(NEW_PI(NORMAL)); }

static void *lock_twice(void *mutex) {
    OK(pthread_mutex_lock(mutex));
    pthread_mutex_lock(mutex);
    return NULL;
}

static void relock_never_returns(pthread_mutex_t *mutex) {
    struct thread thread;
    start(&thread, lock_twice, mutex);
    until_asleep(&thread);
    CHECK(still_waits(&thread, 50));
}

CASE(normal_relock_never_returns) { relock_never_returns(NEW(NORMAL)); }
CASE(inheriting_relock_never_returns) { relock_never_returns(NEW_PI(NORMAL)); }

static void is_recursive(pthread_mutex_t *mutex) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    struct timespec later_too = after_ms(CLOCK_MONOTONIC, FAR_AWAY);
    EQ(pthread_mutex_unlock(mutex), EPERM);
    OK(pthread_mutex_lock(mutex));
    OK(pthread_mutex_lock(mutex));
    OK(pthread_mutex_trylock(mutex));
    OK(pthread_mutex_timedlock(mutex, &later));
    OK(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &later_too));
    /* The time does not matter: the call need not wait. */
    OK(pthread_mutex_timedlock(mutex, &negative));
    for (int depth = 6; depth > 0; depth--) {
        EQ(elsewhere(try_it, mutex), EBUSY);
        EQ(elsewhere(unlock_it, mutex), EPERM);
        EQ(pthread_mutex_destroy(mutex), EBUSY);
        OK(pthread_mutex_unlock(mutex));
    }
    EQ(pthread_mutex_unlock(mutex), EPERM);
    EQ(elsewhere(unlock_it, mutex), EPERM);
    EQ(elsewhere(lock_and_unlock_it, mutex), 0);
    OK(pthread_mutex_destroy(mutex));
}

CASE(recursive_counts) { is_recursive(NEW(RECURSIVE)); }
CASE(static_recursive_counts) { is_recursive(&static_recursive); }
CASE(inheriting_recursive_counts) { is_recursive(NEW_PI(RECURSIVE)); }

static void *wait_at_exit_of(void *mutex) {
    OK(pthread_mutex_lock(mutex));
    return NULL;
}

CASE(recursive_depth_of_a_million) {
    pthread_mutex_t *mutex = NEW(RECURSIVE);
    for (int depth = 0; depth < 1000000; depth++) OK(pthread_mutex_lock(mutex));
    EQ(elsewhere(try_it, mutex), EBUSY);
    for (int depth = 0; depth < 1000000; depth++) OK(pthread_mutex_unlock(mutex));
    EQ(elsewhere(lock_and_unlock_it, mutex), 0);
}

static void checks(pthread_mutex_t *mutex) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    EQ(pthread_mutex_unlock(mutex), EPERM);
    OK(pthread_mutex_lock(mutex));
    EQ(pthread_mutex_lock(mutex), EDEADLK);
    EQ(pthread_mutex_timedlock(mutex, &later), EDEADLK);
    EQ(pthread_mutex_timedlock(mutex, &negative), EDEADLK);
    EQ(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &later), EDEADLK);
    /* POSIX: EBUSY. */
    ANSWER("try", "%s", error_name(pthread_mutex_trylock(mutex)));
    EQ(elsewhere(unlock_it, mutex), EPERM);
    EQ(elsewhere(try_it, mutex), EBUSY);
    EQ(pthread_mutex_destroy(mutex), EBUSY);
    OK(pthread_mutex_unlock(mutex));
    EQ(pthread_mutex_unlock(mutex), EPERM);
    OK(pthread_mutex_destroy(mutex));
}

CASE(checking_checks) { checks(NEW(ERRORCHECK)); }
CASE(static_checking_checks) { checks(&static_checking); }
CASE(inheriting_checking_checks) { checks(NEW_PI(ERRORCHECK)); }

/* Undefined in POSIX; programs rely on glibc's behaviour. */
CASE(normal_is_a_gate) {
    pthread_mutex_t *mutex = NEW(NORMAL);
    struct thread thread;
    OK(pthread_mutex_lock(mutex));
    start(&thread, lock_it, mutex);
    until_asleep(&thread);
    OK(elsewhere(unlock_it, mutex));
    EQ(join(&thread), 0);
    EQ(pthread_mutex_trylock(mutex), EBUSY);
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_mutex_destroy(mutex));
}

CASE(inheriting_unlock_by_another) {
    pthread_mutex_t *mutex = NEW_PI(NORMAL);
    OK(pthread_mutex_lock(mutex));
    ANSWER("other", "%s", error_name(elsewhere(unlock_it, mutex)));
    OK(pthread_mutex_unlock(mutex));
}

static void has_time_limits(pthread_mutex_t *mutex) {
    /* Free: the call need not wait, and the time is not checked. */
    OK(pthread_mutex_timedlock(mutex, &negative));
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_mutex_timedlock(mutex, &bad));
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &bad_too));
    OK(pthread_mutex_unlock(mutex));
    EQ(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &long_ago), EINVAL);
    EQ(pthread_mutex_clocklock(mutex, 77, &long_ago), EINVAL);
    EQ(pthread_mutex_clocklock(mutex, -1, &long_ago), EINVAL);
}

static void *wait_for_it(void *mutex) {
    /* POSIX: the time is in the past, so ETIMEDOUT. */
    ANSWER("negative", "%s", error_name(pthread_mutex_timedlock(mutex, &negative)));
    EQ(pthread_mutex_timedlock(mutex, &long_ago), ETIMEDOUT);
    EQ(pthread_mutex_timedlock(mutex, &bad), EINVAL);
    EQ(pthread_mutex_timedlock(mutex, &bad_too), EINVAL);
    ANSWER("negative-monotonic", "%s",
           error_name(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &negative)));
    EQ(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &long_ago), ETIMEDOUT);
    EQ(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &bad), EINVAL);
    EQ(pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &bad), EINVAL);
    EQ(pthread_mutex_clocklock(mutex, CLOCK_THREAD_CPUTIME_ID, &long_ago), EINVAL);
    struct timespec soon = after_ms(CLOCK_REALTIME, 30);
    EQ(pthread_mutex_timedlock(mutex, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_REALTIME, soon));
    soon = after_ms(CLOCK_REALTIME, 30);
    EQ(pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_REALTIME, soon));
    soon = after_ms(CLOCK_MONOTONIC, 30);
    EQ(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_MONOTONIC, soon));
    return NULL;
}

static void keeps_time(pthread_mutex_t *mutex) {
    has_time_limits(mutex);
    OK(pthread_mutex_lock(mutex));
    EQ(elsewhere(wait_for_it, mutex), 0);
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_mutex_destroy(mutex));
}

CASE(normal_keeps_time) { keeps_time(NEW(NORMAL)); }
CASE(recursive_keeps_time) { keeps_time(NEW(RECURSIVE)); }
CASE(checking_keeps_time) { keeps_time(NEW(ERRORCHECK)); }
CASE(adaptive_keeps_time) { keeps_time(NEW(ADAPTIVE_NP)); }
CASE(static_normal_keeps_time) { keeps_time(&static_normal); }
CASE(static_adaptive_keeps_time) { keeps_time(&static_adaptive); }
CASE(inheriting_keeps_time) { keeps_time(NEW_PI(NORMAL)); }

static void *wait_and_get_it(void *mutex) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    OK(pthread_mutex_timedlock(mutex, &later));
    OK(pthread_mutex_unlock(mutex));
    later = after_ms(CLOCK_MONOTONIC, FAR_AWAY);
    OK(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &later));
    OK(pthread_mutex_unlock(mutex));
    return NULL;
}

static void timed_lock_gets_it(pthread_mutex_t *mutex) {
    struct thread thread;
    OK(pthread_mutex_lock(mutex));
    start(&thread, wait_and_get_it, mutex);
    until_asleep(&thread);
    OK(pthread_mutex_unlock(mutex));
    join(&thread);
    OK(pthread_mutex_destroy(mutex));
}

CASE(normal_timed_lock_gets_it) { timed_lock_gets_it(NEW(NORMAL)); }
CASE(recursive_timed_lock_gets_it) { timed_lock_gets_it(NEW(RECURSIVE)); }
CASE(adaptive_timed_lock_gets_it) { timed_lock_gets_it(NEW(ADAPTIVE_NP)); }
CASE(inheriting_timed_lock_gets_it) { timed_lock_gets_it(NEW_PI(NORMAL)); }

/* Time limits expire while the mutex is passed around: a wake-up that came too late is not lost. */
static void *impatient(void *mutex) {
    long got = 0;
    for (int turn = 0; turn < 3000; turn++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        now.tv_nsec += turn % 40 * 1000;
        if (now.tv_nsec >= 1000000000) continue;
        int result = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &now);
        CHECK(result == 0 || result == ETIMEDOUT);
        if (result == 0) {
            got++;
            OK(pthread_mutex_unlock(mutex));
        }
    }
    return (void *)got;
}

static void *patient(void *mutex) {
    for (int turn = 0; turn < 3000; turn++) {
        OK(pthread_mutex_lock(mutex));
        if (turn % 64 == 0) sched_yield();
        OK(pthread_mutex_unlock(mutex));
    }
    return NULL;
}

static void withstands_timeouts(pthread_mutex_t *mutex) {
    struct thread threads[6];
    for (int each = 0; each < 6; each++)
        start(&threads[each], each % 2 ? impatient : patient, mutex);
    for (int each = 0; each < 6; each++) join(&threads[each]);
    OK(pthread_mutex_destroy(mutex));
}

CASE(normal_withstands_timeouts) { withstands_timeouts(NEW(NORMAL)); }
CASE(recursive_withstands_timeouts) { withstands_timeouts(NEW(RECURSIVE)); }
CASE(inheriting_withstands_timeouts) { withstands_timeouts(NEW_PI(NORMAL)); }

CASE(destroyed_answers) {
    pthread_mutex_t *mutex = NEW(NORMAL);
    OK(pthread_mutex_lock(mutex));
    EQ(pthread_mutex_destroy(mutex), EBUSY);
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_mutex_destroy(mutex));
    EQ(pthread_mutex_lock(mutex), EINVAL);
    EQ(pthread_mutex_trylock(mutex), EINVAL);
    EQ(pthread_mutex_timedlock(mutex, &negative), EINVAL);
    EQ(pthread_mutex_unlock(mutex), EINVAL);
    ANSWER("destroy", "%s", error_name(pthread_mutex_destroy(mutex)));
    /* It may be initialised again. */
    OK(pthread_mutex_init(mutex, NULL));
    waits_its_turn(mutex);
    OK(pthread_mutex_destroy(mutex));
}

CASE(destroy_while_waited_for) {
    pthread_mutex_t *mutex = NEW(NORMAL);
    struct thread thread;
    OK(pthread_mutex_lock(mutex));
    start(&thread, lock_and_unlock_it, mutex);
    until_asleep(&thread);
    EQ(pthread_mutex_destroy(mutex), EBUSY);
    OK(pthread_mutex_unlock(mutex));
    join(&thread);
    OK(pthread_mutex_destroy(mutex));
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int may_go;

static void *wait_with_it(void *mutex) {
    OK(pthread_mutex_lock(mutex));
    while (!may_go) OK(pthread_cond_wait(&condition, mutex));
    OK(pthread_mutex_unlock(mutex));
    return NULL;
}

static void destroy_while_waited_with(pthread_mutex_t *mutex) {
    struct thread thread;
    start(&thread, wait_with_it, mutex);
    until_asleep(&thread);
    EQ(pthread_mutex_destroy(mutex), EBUSY);
    OK(pthread_mutex_lock(mutex));
    may_go = 1;
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(mutex));
    join(&thread);
    OK(pthread_mutex_destroy(mutex));
}

CASE(destroy_normal_while_waited_with) { destroy_while_waited_with(NEW(NORMAL)); }
CASE(destroy_checking_while_waited_with) { destroy_while_waited_with(NEW(ERRORCHECK)); }
CASE(destroy_inheriting_while_waited_with) { destroy_while_waited_with(NEW_PI(NORMAL)); }

/* The thread that got the mutex last may destroy and free it while the one that released it is
 * still in its unlock. */
static pthread_mutex_t *passed_on;
static void *last_user(void *mutex) {
    OK(pthread_mutex_lock(mutex));
    OK(pthread_mutex_unlock(mutex));
    OK(pthread_mutex_destroy(mutex));
    OK(munmap(mutex, 4096));
    return NULL;
}

CASE(freed_by_the_last_user) {
    for (int turn = 0; turn < 300; turn++) {
        struct thread thread;
        passed_on = new_page();
        OK(pthread_mutex_init(passed_on, NULL));
        OK(pthread_mutex_lock(passed_on));
        start(&thread, last_user, passed_on);
        if (turn % 2) UNTIL(GET(thread.id) != 0);
        OK(pthread_mutex_unlock(passed_on));
        join(&thread);
    }
}

CASE(stays_locked_after_its_thread) {
    pthread_mutex_t *mutex = NEW(NORMAL), *checking = NEW(ERRORCHECK);
    EQ(elsewhere(wait_at_exit_of, mutex), 0);
    EQ(pthread_mutex_trylock(mutex), EBUSY);
    OK(pthread_mutex_unlock(mutex));
    EQ(elsewhere(wait_at_exit_of, checking), 0);
    EQ(pthread_mutex_trylock(checking), EBUSY);
    EQ(pthread_mutex_unlock(checking), EPERM);
}

/* The owner of an inheriting mutex ends while it holds it: the next thread waits forever. */
CASE(inheriting_stays_locked_after_its_thread) {
    pthread_mutex_t *mutex = NEW_PI(NORMAL);
    struct thread thread;
    struct timespec soon;
    EQ(elsewhere(wait_at_exit_of, mutex), 0);
    ANSWER("try", "%s", error_name(pthread_mutex_trylock(mutex)));
    soon = after_ms(CLOCK_REALTIME, 20);
    EQ(pthread_mutex_timedlock(mutex, &soon), ETIMEDOUT);
    start(&thread, lock_it, mutex);
    until_asleep(&thread);
    CHECK(still_waits(&thread, 20));
}

CASE(errno_is_left_alone) {
    pthread_mutex_t *mutex = NEW(ERRORCHECK), *normal = NEW(NORMAL);
    struct timespec soon = after_ms(CLOCK_REALTIME, 5);
    OK(pthread_mutex_lock(mutex));
    OK(pthread_mutex_lock(normal));
    errno = 1234;
    EQ(pthread_mutex_lock(mutex), EDEADLK);
    EQ(pthread_mutex_trylock(normal), EBUSY);
    EQ(pthread_mutex_timedlock(normal, &soon), ETIMEDOUT);
    EQ(pthread_mutex_destroy(mutex), EBUSY);
    OK(pthread_mutex_unlock(mutex));
    EQ(errno, 1234);
}

/* A signal handler runs, and the wait continues. */
static void withstands_signals(pthread_mutex_t *mutex) {
    struct thread threads[2];
    struct sigaction action = {.sa_handler = no_op};
    OK(sigaction(SIGUSR1, &action, NULL));
    OK(pthread_mutex_lock(mutex));
    start(&threads[0], lock_and_unlock_it, mutex);
    start(&threads[1], wait_and_get_it, mutex);
    until_asleep(&threads[0]);
    until_asleep(&threads[1]);
    for (int turn = 0; turn < 20; turn++) {
        OK(pthread_kill(threads[0].handle, SIGUSR1));
        OK(pthread_kill(threads[1].handle, SIGUSR1));
        pause_ms(1);
    }
    CHECK(still_waits(&threads[0], 10));
    OK(pthread_mutex_unlock(mutex));
    join(&threads[0]);
    join(&threads[1]);
}

CASE(normal_withstands_signals) { withstands_signals(NEW(NORMAL)); }
CASE(recursive_withstands_signals) { withstands_signals(NEW(RECURSIVE)); }
CASE(inheriting_withstands_signals) { withstands_signals(NEW_PI(NORMAL)); }

CASE(many_mutexes_come_and_go) {
    enum { MANY = 2000 };
    pthread_mutex_t *mutexes = (pthread_mutex_t *)malloc(MANY * sizeof *mutexes);
    for (int turn = 0; turn < 10; turn++) {
        for (int each = 0; each < MANY; each++) OK(pthread_mutex_init(&mutexes[each], NULL));
        for (int each = 0; each < MANY; each++) OK(pthread_mutex_lock(&mutexes[each]));
        EQ(elsewhere(try_it, &mutexes[turn]), EBUSY);
        for (int each = 0; each < MANY; each++) OK(pthread_mutex_unlock(&mutexes[each]));
        for (int each = 0; each < MANY; each++) OK(pthread_mutex_destroy(&mutexes[each]));
    }
    free(mutexes);
}
