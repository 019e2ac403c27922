/* pthread_cond_*: signals and broadcasts, clocks, time limits, signal handlers, every kind of
 * mutex. (cond_threads.c: order, destruction, many threads.) Sources: POSIX, pthread_cond_wait(3p),
 * pthread_cond_signal(3p), pthread_condattr_setclock(3p), pthread_cond_clockwait(3). */
#include "objects.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

/* ---- A gate with tickets: the number of threads that may pass ---- */

struct gate {
    pthread_cond_t *cond;
    pthread_mutex_t *mutex;
    clockid_t clock;
    /* How it waits: 0 wait, 1 timedwait, 2 clockwait, 3 all in turn. */
    int how;
    int waiting, tickets, passed;
};

static void *pass(void *pointer) {
    struct gate *gate = (struct gate *)pointer;
    OK(pthread_mutex_lock(gate->mutex));
    int how = gate->how == 3 ? gate->waiting % 3 : gate->how;
    gate->waiting++;
    while (gate->tickets == 0) OK(cond_wait_by(how, gate->cond, gate->mutex, gate->clock));
    gate->tickets--;
    gate->waiting--;
    gate->passed++;
    OK(pthread_mutex_unlock(gate->mutex));
    return NULL;
}

static int gate_get(struct gate *gate, int *field) {
    OK(pthread_mutex_lock(gate->mutex));
    int value = *field;
    OK(pthread_mutex_unlock(gate->mutex));
    return value;
}

/* One signal per ticket, repeatedly, then a broadcast for the rest; with and without the mutex
 * held. */
static void passes(struct gate *gate) {
    enum { MANY = 9 };
    struct thread threads[MANY];
    for (int each = 0; each < MANY; each++) start(&threads[each], pass, gate);
    UNTIL(gate_get(gate, &gate->waiting) == MANY);
    for (int each = 0; each < MANY; each++) until_asleep(&threads[each]);
    for (int turn = 1; turn <= 4; turn++) {
        OK(pthread_mutex_lock(gate->mutex));
        gate->tickets++;
        if (turn % 2) OK(pthread_cond_signal(gate->cond));
        OK(pthread_mutex_unlock(gate->mutex));
        if (turn % 2 == 0) OK(pthread_cond_signal(gate->cond));
        UNTIL(gate_get(gate, &gate->passed) == turn);
    }
    OK(pthread_mutex_lock(gate->mutex));
    gate->tickets = MANY - 4;
    OK(pthread_cond_broadcast(gate->cond));
    OK(pthread_mutex_unlock(gate->mutex));
    for (int each = 0; each < MANY; each++) join(&threads[each]);
    EQ(gate->passed, MANY);
    EQ(gate->tickets, 0);
    /* No thread waits: nothing is remembered. */
    OK(pthread_cond_signal(gate->cond));
    OK(pthread_cond_broadcast(gate->cond));
    OK(pthread_mutex_lock(gate->mutex));
    struct timespec soon = after_ms(CLOCK_MONOTONIC, 20);
    EQ(pthread_cond_clockwait(gate->cond, gate->mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    OK(pthread_mutex_unlock(gate->mutex));
    OK(pthread_cond_destroy(gate->cond));
    OK(pthread_mutex_destroy(gate->mutex));
}

static void passes_with(pthread_mutex_t *made, int shared_cond) {
    for (int how = 0; how < 4; how++) {
        struct gate gate = {
            new_cond(CLOCK_REALTIME, shared_cond), made, CLOCK_REALTIME, how, 0, 0, 0};
        /* `passes` destroys it. */
        pthread_mutex_t before = *made;
        passes(&gate);
        *made = before;
    }
}

#define PASSES(name, type, protocol, robust, shared, shared_cond)                             \
    LONG_CASE(name, 40) {                                                                     \
        passes_with(new_mutex(PTHREAD_MUTEX_##type, PTHREAD_PRIO_##protocol, robust, shared), \
                    shared_cond);                                                             \
    }

PASSES(with_normal, NORMAL, NONE, 0, 0, 0)
PASSES(with_adaptive, ADAPTIVE_NP, NONE, 0, 0, 0)
PASSES(with_recursive, RECURSIVE, NONE, 0, 0, 0)
PASSES(with_checking, ERRORCHECK, NONE, 0, 0, 0)
PASSES(with_inheriting, NORMAL, INHERIT, 0, 0, 0)
PASSES(with_inheriting_recursive, RECURSIVE, INHERIT, 0, 0, 0)
PASSES(with_robust, NORMAL, NONE, 1, 0, 0)
PASSES(with_robust_checking, ERRORCHECK, NONE, 1, 0, 0)
PASSES(with_robust_inheriting, NORMAL, INHERIT, 1, 0, 0)
PASSES(with_shared_mutex, NORMAL, NONE, 0, 1, 0)
PASSES(with_shared_inheriting, NORMAL, INHERIT, 0, 1, 0)
PASSES(shared_with_private_mutex, NORMAL, NONE, 0, 0, 1)
PASSES(shared_with_private_inheriting, NORMAL, INHERIT, 0, 0, 1)
PASSES(shared_with_private_recursive, RECURSIVE, NONE, 0, 0, 1)
PASSES(shared_with_shared, NORMAL, NONE, 0, 1, 1)
PASSES(shared_with_shared_robust, NORMAL, NONE, 1, 1, 1)

CASE(with_protecting) {
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    be_real_time(1);
    pthread_mutexattr_t attributes;
    pthread_mutex_t protecting;
    OK(pthread_mutexattr_init(&attributes));
    OK(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_PROTECT));
    OK(pthread_mutexattr_setprioceiling(&attributes, 3));
    OK(pthread_mutex_init(&protecting, &attributes));
    struct gate gate = {new_cond(CLOCK_REALTIME, 0), &protecting, CLOCK_REALTIME, 3, 0, 0, 0};
    passes(&gate);
}

CASE(with_static_ones) {
    struct gate gate = {&condition, &mutex, CLOCK_REALTIME, 3, 0, 0, 0};
    passes(&gate);
}

CASE(monotonic_passes) {
    struct gate gate = {new_cond(CLOCK_MONOTONIC, 0), &mutex, CLOCK_MONOTONIC, 3, 0, 0, 0};
    passes(&gate);
}

CASE(monotonic_shared_passes) {
    struct gate gate = {new_cond(CLOCK_MONOTONIC, 1), &mutex, CLOCK_MONOTONIC, 3, 0, 0, 0};
    passes(&gate);
}

/* ---- Time ---- */

/* The mutex is held again, whatever the result. */
static void holds(void) {
    EQ(pthread_mutex_trylock(&mutex), EBUSY);
}

static void keeps_time(pthread_cond_t *cond, clockid_t clock) {
    struct timespec soon;
    OK(pthread_mutex_lock(&mutex));
    soon = after_ms(clock, 30);
    EQ(pthread_cond_timedwait(cond, &mutex, &soon), ETIMEDOUT);
    CHECK(is_past(clock, soon));
    holds();
    soon = after_ms(CLOCK_REALTIME, 30);
    EQ(pthread_cond_clockwait(cond, &mutex, CLOCK_REALTIME, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_REALTIME, soon));
    holds();
    soon = after_ms(CLOCK_MONOTONIC, 30);
    EQ(pthread_cond_clockwait(cond, &mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    CHECK(is_past(CLOCK_MONOTONIC, soon));
    holds();
    EQ(pthread_cond_timedwait(cond, &mutex, &negative), ETIMEDOUT);
    holds();
    EQ(pthread_cond_timedwait(cond, &mutex, &long_ago), ETIMEDOUT);
    holds();
    EQ(pthread_cond_clockwait(cond, &mutex, CLOCK_MONOTONIC, &negative), ETIMEDOUT);
    holds();
    EQ(pthread_cond_timedwait(cond, &mutex, &bad), EINVAL);
    holds();
    EQ(pthread_cond_timedwait(cond, &mutex, &bad_too), EINVAL);
    holds();
    EQ(pthread_cond_clockwait(cond, &mutex, CLOCK_REALTIME, &bad), EINVAL);
    holds();
    EQ(pthread_cond_clockwait(cond, &mutex, CLOCK_THREAD_CPUTIME_ID, &long_ago), EINVAL);
    holds();
    EQ(pthread_cond_clockwait(cond, &mutex, 77, &long_ago), EINVAL);
    holds();
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_cond_destroy(cond));
}

CASE(static_keeps_time) { keeps_time(&condition, CLOCK_REALTIME); }
CASE(realtime_keeps_time) { keeps_time(new_cond(CLOCK_REALTIME, 0), CLOCK_REALTIME); }
CASE(monotonic_keeps_time) { keeps_time(new_cond(CLOCK_MONOTONIC, 0), CLOCK_MONOTONIC); }
CASE(shared_keeps_time) { keeps_time(new_cond(CLOCK_REALTIME, 1), CLOCK_REALTIME); }
CASE(shared_monotonic_keeps_time) { keeps_time(new_cond(CLOCK_MONOTONIC, 1), CLOCK_MONOTONIC); }

CASE(init_without_attributes) {
    pthread_cond_t cond;
    memset(&cond, 0xa5, sizeof cond);
    OK(pthread_cond_init(&cond, NULL));
    keeps_time(&cond, CLOCK_REALTIME);
}

CASE(errno_is_left_alone) {
    OK(pthread_mutex_lock(&mutex));
    struct timespec soon = after_ms(CLOCK_REALTIME, 5);
    errno = 1234;
    EQ(pthread_cond_timedwait(&condition, &mutex, &soon), ETIMEDOUT);
    EQ(pthread_cond_timedwait(&condition, &mutex, &bad), EINVAL);
    EQ(errno, 1234);
}

/* The wait times out while another thread holds the mutex: it returns only once it has the
 * mutex. */
static void *time_out(void *returned) {
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    OK(pthread_mutex_lock(&mutex));
    SET(*(int *)returned, 1);
    EQ(pthread_cond_timedwait(&condition, &mutex, &soon), ETIMEDOUT);
    SET(*(int *)returned, 2);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

CASE(times_out_only_with_the_mutex) {
    struct thread thread;
    int returned, is_late;
    do {
        returned = 0;
        start(&thread, time_out, &returned);
        UNTIL(GET(returned) != 0);
        OK(pthread_mutex_lock(&mutex));
        /* On a loaded machine the wait may have ended before: again. */
        is_late = GET(returned) == 2;
        pause_ms(60);
        if (!is_late) EQ(GET(returned), 1);
        OK(pthread_mutex_unlock(&mutex));
        join(&thread);
        EQ(returned, 2);
    } while (is_late);
}

/* ---- The mutex's own rules ---- */

static void wait_needs_the_mutex(int type, int shared) {
    pthread_mutex_t *checking = new_mutex(type, PTHREAD_PRIO_NONE, 0, shared);
    struct timespec soon = after_ms(CLOCK_REALTIME, 5);
    EQ(pthread_cond_wait(&condition, checking), EPERM);
    EQ(pthread_cond_timedwait(&condition, checking, &soon), EPERM);
    EQ(pthread_cond_clockwait(&condition, checking, CLOCK_REALTIME, &soon), EPERM);
    /* Neither object has changed. */
    OK(pthread_mutex_lock(checking));
    soon = after_ms(CLOCK_REALTIME, 5);
    EQ(pthread_cond_timedwait(&condition, checking, &soon), ETIMEDOUT);
    OK(pthread_mutex_unlock(checking));
    OK(pthread_cond_destroy(&condition));
    OK(pthread_mutex_destroy(checking));
}

CASE(wait_needs_a_checking_mutex) { wait_needs_the_mutex(PTHREAD_MUTEX_ERRORCHECK, 0); }
CASE(wait_needs_a_recursive_mutex) { wait_needs_the_mutex(PTHREAD_MUTEX_RECURSIVE, 0); }
CASE(wait_needs_a_shared_checking_mutex) { wait_needs_the_mutex(PTHREAD_MUTEX_ERRORCHECK, 1); }
CASE(wait_needs_a_shared_recursive_mutex) { wait_needs_the_mutex(PTHREAD_MUTEX_RECURSIVE, 1); }

/* Locked twice: a wait releases one level only (glibc; POSIX leaves it open). */
static void gives_up_one_level(int protocol) {
    pthread_mutex_t *recursive = new_mutex(PTHREAD_MUTEX_RECURSIVE, protocol, 0, 0);
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    struct thread thread;
    OK(pthread_mutex_lock(recursive));
    OK(pthread_mutex_lock(recursive));
    EQ(pthread_cond_timedwait(&condition, recursive, &soon), ETIMEDOUT);
    start(&thread, try_it, recursive);
    EQ(join(&thread), EBUSY);
    OK(pthread_mutex_unlock(recursive));
    start(&thread, try_it, recursive);
    EQ(join(&thread), EBUSY);
    OK(pthread_mutex_unlock(recursive));
    EQ(pthread_mutex_unlock(recursive), EPERM);
}

CASE(recursive_gives_up_one_level) { gives_up_one_level(PTHREAD_PRIO_NONE); }
CASE(inheriting_recursive_gives_up_one_level) { gives_up_one_level(PTHREAD_PRIO_INHERIT); }

/* A wait with a robust mutex whose holder dies: EOWNERDEAD, and the mutex is held. */
static pthread_mutex_t *robust;
static void *wait_for_a_death(void *woken) {
    OK(pthread_mutex_lock(robust));
    SET(*(int *)woken, 1);
    EQ(pthread_cond_wait(&condition, robust), EOWNERDEAD);
    OK(pthread_mutex_consistent(robust));
    OK(pthread_mutex_unlock(robust));
    return NULL;
}

static void *die_with_it(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(robust));
    OK(pthread_cond_signal(&condition));
    return NULL;
}

CASE(robust_owner_dies_before_it_is_retaken) {
    struct thread waiter, dying;
    int waits = 0;
    robust = new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0);
    start(&waiter, wait_for_a_death, &waits);
    UNTIL(GET(waits));
    until_asleep(&waiter);
    start(&dying, die_with_it, NULL);
    join(&dying);
    join(&waiter);
    OK(pthread_mutex_lock(robust));
    OK(pthread_mutex_unlock(robust));
}

/* ---- Signal handlers; two hundred threads ---- */

CASE(never_eintr) {
    struct gate gate = {&condition, &mutex, CLOCK_REALTIME, 3, 0, 0, 0};
    struct thread threads[3];
    struct sigaction action = {.sa_handler = no_op};
    OK(sigaction(SIGUSR1, &action, NULL));
    for (int each = 0; each < 3; each++) start(&threads[each], pass, &gate);
    UNTIL(gate_get(&gate, &gate.waiting) == 3);
    for (int turn = 0; turn < 20; turn++) {
        for (int each = 0; each < 3; each++) OK(pthread_kill(threads[each].handle, SIGUSR1));
        pause_ms(1);
    }
    EQ(gate_get(&gate, &gate.passed), 0);
    OK(pthread_mutex_lock(&mutex));
    gate.tickets = 3;
    OK(pthread_cond_broadcast(&condition));
    OK(pthread_mutex_unlock(&mutex));
    for (int each = 0; each < 3; each++) join(&threads[each]);
}

CASE(broadcast_to_two_hundred) {
    enum { MANY = 200 };
    static struct thread threads[MANY];
    struct gate gate = {&condition, &mutex, CLOCK_REALTIME, 0, 0, 0, 0};
    for (int each = 0; each < MANY; each++) start(&threads[each], pass, &gate);
    UNTIL(gate_get(&gate, &gate.waiting) == MANY);
    OK(pthread_mutex_lock(&mutex));
    gate.tickets = MANY;
    OK(pthread_cond_broadcast(&condition));
    OK(pthread_mutex_unlock(&mutex));
    for (int each = 0; each < MANY; each++) join(&threads[each]);
    OK(pthread_cond_destroy(&condition));
    OK(pthread_mutex_destroy(&mutex));
}
