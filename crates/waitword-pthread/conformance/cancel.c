/* Cancellation in a wait on a condition variable, in a once and elsewhere, and the state that a
 * cleanup handler finds. (cancel_points.c: semaphores, and what is no cancellation point.) Sources:
 * POSIX "Thread Cancellation", pthread_cancel(3p), pthread_cond_wait(3p), pthreads(7). */
#include "objects.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int stage, cleaned, go;

/* ---- Condition variables ---- */

struct wait {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
    int how, type, state;
};

/* The mutex is held when this runs. */
static void clean_up(void *pointer) {
    struct wait *wait = (struct wait *)pointer;
    int result = pthread_mutex_trylock(wait->mutex);
    CHECK(result == EBUSY || result == EDEADLK || result == 0);
    /* 0: the mutex is recursive. */
    if (result == 0) OK(pthread_mutex_unlock(wait->mutex));
    ADD(cleaned, 1);
    OK(pthread_mutex_unlock(wait->mutex));
}

static void *wait_and_be_cancelled(void *pointer) {
    struct wait *wait = (struct wait *)pointer;
    OK(pthread_setcanceltype(wait->type, NULL));
    OK(pthread_mutex_lock(wait->mutex));
    pthread_cleanup_push(clean_up, wait);
    SET(stage, 1);
    while (!go) {
        OK(cond_wait_by(wait->how, wait->cond, wait->mutex, CLOCK_REALTIME));
        /* No thread signals before: the wait itself acts on the request, and does not leave it
         * to the next cancellation point. */
        CHECK(go);
    }
    pthread_cleanup_pop(1);
    return NULL;
}

static void cancels(struct wait wait) {
    struct thread thread;
    cleaned = 0;
    SET(stage, 0);
    start(&thread, wait_and_be_cancelled, &wait);
    UNTIL(GET(stage) == 1);
    until_asleep(&thread);
    /* While we hold the mutex, the cancelled thread cannot run its handlers. */
    OK(pthread_mutex_lock(wait.mutex));
    OK(pthread_cancel(thread.handle));
    pause_ms(20);
    EQ(GET(cleaned), 0);
    OK(pthread_mutex_unlock(wait.mutex));
    CHECK(join(&thread) == PTHREAD_CANCELED);
    EQ(cleaned, 1);
    /* Nothing is left behind. */
    OK(pthread_mutex_lock(wait.mutex));
    OK(pthread_mutex_unlock(wait.mutex));
    OK(pthread_cond_destroy(wait.cond));
    OK(pthread_mutex_destroy(wait.mutex));
}

#define CANCELS(name, mutex, cond)                                                                 \
    CASE(name##_wait) { cancels((struct wait){mutex, cond, 0, PTHREAD_CANCEL_DEFERRED, 0}); }      \
    CASE(name##_timedwait) { cancels((struct wait){mutex, cond, 1, PTHREAD_CANCEL_DEFERRED, 0}); } \
    CASE(name##_clockwait) { cancels((struct wait){mutex, cond, 2, PTHREAD_CANCEL_DEFERRED, 0}); } \
    CASE(name##_wait_asynchronous) {                                                               \
        cancels((struct wait){mutex, cond, 0, PTHREAD_CANCEL_ASYNCHRONOUS, 0});                    \
    }

CANCELS(plain, &mutex, &condition)
CANCELS(recursive, new_mutex(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, 0, 0), &condition)
CANCELS(checking, new_mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, 0, 0), &condition)
CANCELS(inheriting, new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0),
        new_cond(CLOCK_MONOTONIC, 0))
CANCELS(robust, new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0), &condition)
CANCELS(shared_mutex, new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 0, 1), &condition)
CANCELS(shared_cond, &mutex, new_cond(CLOCK_REALTIME, 1))
CANCELS(both_shared, new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 0, 1),
        new_cond(CLOCK_REALTIME, 1))

/* The thread is signalled, and the condition variable is freed before the thread returns:
 * cancelling it then must not touch the condition variable. */
static void cancels_behind_the_end(pthread_mutex_t *with) {
    for (int turn = 0; turn < 300; turn++) {
        pthread_cond_t *cond = new_page();
        OK(pthread_cond_init(cond, NULL));
        struct wait waits[3];
        struct thread threads[3];
        cleaned = 0;
        SET(stage, 0);
        for (int each = 0; each < 3; each++) {
            waits[each] = (struct wait){with, cond, each, PTHREAD_CANCEL_DEFERRED, 0};
            start(&threads[each], wait_and_be_cancelled, &waits[each]);
            UNTIL(GET(stage) == 1);
            SET(stage, 0);
        }
        OK(pthread_mutex_lock(with));
        go = 1;
        OK(pthread_cond_broadcast(cond));
        if (turn % 2) OK(pthread_mutex_unlock(with));
        OK(pthread_cond_destroy(cond));
        OK(munmap(cond, 4096));
        for (int each = 0; each < 3; each++) {
            if (turn % 3 == 0) sched_yield();
            OK(pthread_cancel(threads[each].handle));
        }
        if (turn % 2 == 0) OK(pthread_mutex_unlock(with));
        for (int each = 0; each < 3; each++) join(&threads[each]);
        EQ(cleaned, 3);
        go = 0;
    }
}

CASE(cancelled_when_the_condition_is_gone) { cancels_behind_the_end(&mutex); }
CASE(cancelled_when_the_condition_is_gone_inheriting) {
    cancels_behind_the_end(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0));
}

/* Requested before the wait: the wait acts on it, with the mutex held. */
static void *wait_with_one_pending(void *unused) {
    struct wait wait = {&mutex, &condition, 0, PTHREAD_CANCEL_DEFERRED, 0};
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    SET(stage, 1);
    while (GET(stage) != 2) {
    }
    pthread_cleanup_push(clean_up, &wait);
    pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(0);
    FAIL("the wait returned");
}

CASE(pending_before_the_wait) {
    struct thread thread;
    start(&thread, wait_with_one_pending, NULL);
    UNTIL(GET(stage) == 1);
    OK(pthread_cancel(thread.handle));
    SET(stage, 2);
    CHECK(join(&thread) == PTHREAD_CANCELED);
    EQ(cleaned, 1);
    OK(pthread_mutex_lock(&mutex));
}

/* Disabled: the wait continues until it is signalled; the request takes effect later. */
static void *wait_disabled(void *unused) {
    (void)unused;
    OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    OK(pthread_mutex_lock(&mutex));
    SET(stage, 1);
    while (!go) OK(pthread_cond_wait(&condition, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    SET(stage, 2);
    OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
    pthread_testcancel();
    FAIL("the request was forgotten");
}

CASE(disabled_waits_on) {
    struct thread thread;
    start(&thread, wait_disabled, NULL);
    UNTIL(GET(stage) == 1);
    until_asleep(&thread);
    OK(pthread_cancel(thread.handle));
    CHECK(still_waits(&thread, 30));
    EQ(GET(stage), 1);
    OK(pthread_mutex_lock(&mutex));
    go = 1;
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(&mutex));
    CHECK(join(&thread) == PTHREAD_CANCELED);
    EQ(stage, 2);
}

/* A signal and a request for the same waiter: if it is cancelled, the signal goes to another.
 * POSIX: "a condition signal that was directed to it ... shall not be consumed". Two waiters,
 * one signal, one request: the other waiter must get through. */
static int tickets;
static void give_back(void *unused) {
    (void)unused;
    OK(pthread_mutex_unlock(&mutex));
}

static void *take_ticket(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(give_back, NULL);
    stage++;
    while (tickets == 0) OK(pthread_cond_wait(&condition, &mutex));
    tickets--;
    pthread_cleanup_pop(1);
    return NULL;
}

static void signal_against_cancel(int turns) {
    for (int turn = 0; turn < turns; turn++) {
        struct thread threads[2];
        stage = tickets = 0;
        for (int each = 0; each < 2; each++) start(&threads[each], take_ticket, NULL);
        for (int waiting = 0; waiting < 2;) {
            OK(pthread_mutex_lock(&mutex));
            waiting = stage;
            OK(pthread_mutex_unlock(&mutex));
            if (waiting < 2) sched_yield();
        }
        struct thread *victim = &threads[turn % 2], *other = &threads[1 - turn % 2];
        OK(pthread_mutex_lock(&mutex));
        tickets = 1;
        if (turn % 4 < 2) OK(pthread_mutex_unlock(&mutex));
        if (turn % 3 == 0) {
            OK(pthread_cancel(victim->handle));
            OK(pthread_cond_signal(&condition));
        } else {
            OK(pthread_cond_signal(&condition));
            OK(pthread_cancel(victim->handle));
        }
        if (turn % 4 >= 2) OK(pthread_mutex_unlock(&mutex));
        void *end = join(victim);
        if (end == PTHREAD_CANCELED) {
            /* The other thread gets the ticket and its signal. */
            join(other);
            EQ(tickets, 0);
            continue;
        }
        EQ(tickets, 0);
        OK(pthread_mutex_lock(&mutex));
        tickets = 1;
        OK(pthread_cond_signal(&condition));
        OK(pthread_mutex_unlock(&mutex));
        join(other);
    }
}

CASE(signal_against_cancel_loses_nothing) { signal_against_cancel(1500); }

/* Cancelled while signals, broadcasts and timeouts happen around it. */
static void *wait_forever(void *how) {
    struct wait wait = {&mutex, &condition, (int)(long)how, PTHREAD_CANCEL_DEFERRED, 0};
    OK(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(clean_up, &wait);
    for (;;) OK(cond_wait_by(wait.how, wait.cond, wait.mutex, CLOCK_REALTIME));
    pthread_cleanup_pop(1);
    return NULL;
}

static void *signal_on(void *unused) {
    (void)unused;
    for (int turn = 0; !GET(go); turn++) {
        OK(pthread_mutex_lock(&mutex));
        OK(turn % 8 ? pthread_cond_signal(&condition) : pthread_cond_broadcast(&condition));
        OK(pthread_mutex_unlock(&mutex));
        if (turn % 16 == 0) sched_yield();
    }
    return NULL;
}

CASE(storm_of_cancels) {
    struct thread signaller, threads[4];
    start(&signaller, signal_on, NULL);
    for (int turn = 0; turn < 150; turn++) {
        for (int each = 0; each < 4; each++)
            start(&threads[each], wait_forever, (void *)(long)(each % 3));
        if (turn % 3 == 0) sched_yield();
        if (turn % 3 == 1) pause_ms(1);
        for (int each = 0; each < 4; each++) OK(pthread_cancel(threads[each].handle));
        for (int each = 0; each < 4; each++) CHECK(join(&threads[each]) == PTHREAD_CANCELED);
    }
    SET(go, 1);
    join(&signaller);
    CHECK(cleaned >= 1 && cleaned <= 600);
    OK(pthread_cond_destroy(&condition));
    OK(pthread_mutex_destroy(&mutex));
}

/* ---- Once ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int runs;
static void sleep_in_once(void) {
    if (ADD(runs, 1) > 1) return;
    SET(stage, 1);
    for (;;) pause_ms(1000);
}

static void *call_once_and_be_cancelled(void *unused) {
    (void)unused;
    OK(pthread_once(&once, sleep_in_once));
    return NULL;
}

/* POSIX: "if the init routine is a cancellation point and is cancelled, the effect is as if
 * pthread_once had never been called". */
CASE(once_is_reset) {
    struct thread thread, second;
    start(&thread, call_once_and_be_cancelled, NULL);
    UNTIL(GET(stage) == 1);
    start(&second, call_once_and_be_cancelled, NULL);
    until_asleep(&second);
    OK(pthread_cancel(thread.handle));
    CHECK(join(&thread) == PTHREAD_CANCELED);
    EQ(join(&second), 0);
    EQ(runs, 2);
    OK(pthread_once(&once, sleep_in_once));
    EQ(runs, 2);
}

/* ---- pthread_cancel itself ---- */

static void *sleep_long(void *unused) {
    (void)unused;
    SET(stage, 1);
    for (;;) pause_ms(1000);
    return NULL;
}

CASE(other_points_are_as_before) {
    struct thread thread;
    start(&thread, sleep_long, NULL);
    UNTIL(GET(stage) == 1);
    OK(pthread_cancel(thread.handle));
    CHECK(join(&thread) == PTHREAD_CANCELED);
}

static void *spin_on(void *unused) {
    (void)unused;
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    SET(stage, 1);
    for (;;) {
    }
    return NULL;
}

CASE(asynchronous_ends_a_loop) {
    struct thread thread;
    start(&thread, spin_on, NULL);
    UNTIL(GET(stage) == 1);
    OK(pthread_cancel(thread.handle));
    CHECK(join(&thread) == PTHREAD_CANCELED);
}

static void *cancel_itself(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cancel(pthread_self()));
    struct wait wait = {&mutex, &condition, 0, 0, 0};
    pthread_cleanup_push(clean_up, &wait);
    pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(0);
    return NULL;
}

CASE(cancels_itself_at_the_wait) {
    struct thread thread;
    start(&thread, cancel_itself, NULL);
    CHECK(join(&thread) == PTHREAD_CANCELED);
    EQ(cleaned, 1);
}

/* The thread has ended and is not joined yet. */
static void *end_at_once(void *unused) { return unused; }
CASE(cancels_one_that_has_ended) {
    struct thread thread;
    start(&thread, end_at_once, &thread);
    UNTIL(GET(thread.id) != 0);
    UNTIL(thread_state(getpid(), GET(thread.id)) == 0);
    OK(pthread_cancel(thread.handle));
    CHECK(join(&thread) == &thread);
}
