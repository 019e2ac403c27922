/* pthread_cond_*: signals and broadcasts, clocks, time limits, destruction, every kind of mutex.
 * Sources: POSIX, pthread_cond_wait(3p), pthread_cond_signal(3p), pthread_cond_destroy(3p),
 * pthread_condattr_setclock(3p), pthread_cond_clockwait(3). */
#include "conformance.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static pthread_cond_t *new_cond(clockid_t clock, int shared) {
    static pthread_cond_t many[16];
    static int used;
    pthread_cond_t *cond = &many[used++];
    pthread_condattr_t attributes;
    memset(cond, 0xa5, sizeof *cond);
    OK(pthread_condattr_init(&attributes));
    OK(pthread_condattr_setclock(&attributes, clock));
    OK(pthread_condattr_setpshared(&attributes, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    OK(pthread_cond_init(cond, &attributes));
    OK(pthread_condattr_destroy(&attributes));
    return cond;
}

/* ---- A gate with tickets: the number of threads that may pass ---- */

struct gate {
    pthread_cond_t *cond;
    pthread_mutex_t *mutex;
    clockid_t clock;
    /* How it waits: 0 wait, 1 timedwait, 2 clockwait, 3 all in turn. */
    int how;
    int waiting, tickets, passed;
};

static int gate_wait(struct gate *gate, int how) {
    struct timespec later;
    switch (how) {
    case 0: return pthread_cond_wait(gate->cond, gate->mutex);
    case 1:
        later = after_ms(gate->clock, FAR_AWAY);
        return pthread_cond_timedwait(gate->cond, gate->mutex, &later);
    default:
        later = after_ms(CLOCK_MONOTONIC, FAR_AWAY);
        return pthread_cond_clockwait(gate->cond, gate->mutex, CLOCK_MONOTONIC, &later);
    }
}

static void *pass(void *pointer) {
    struct gate *gate = (struct gate *)pointer;
    OK(pthread_mutex_lock(gate->mutex));
    int how = gate->how == 3 ? gate->waiting % 3 : gate->how;
    gate->waiting++;
    while (gate->tickets == 0) OK(gate_wait(gate, how));
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

static pthread_mutex_t *new_mutex(int type, int protocol, int robust, int shared) {
    static pthread_mutex_t mutexes[4];
    static int used;
    pthread_mutex_t *made = &mutexes[used++];
    pthread_mutexattr_t attributes;
    OK(pthread_mutexattr_init(&attributes));
    OK(pthread_mutexattr_settype(&attributes, type));
    OK(pthread_mutexattr_setprotocol(&attributes, protocol));
    OK(pthread_mutexattr_setrobust(&attributes, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED));
    OK(pthread_mutexattr_setpshared(&attributes, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    OK(pthread_mutex_init(made, &attributes));
    return made;
}

static void passes_with(pthread_mutex_t *made, int shared_cond) {
    for (int how = 0; how < 4; how++) {
        struct gate gate = {new_cond(CLOCK_REALTIME, shared_cond), made, CLOCK_REALTIME, how, 0, 0, 0};
        /* `passes` destroys it. */
        pthread_mutex_t before = *made;
        passes(&gate);
        *made = before;
    }
}

#define PASSES(name, type, protocol, robust, shared, shared_cond)                                              \
    LONG_CASE(name, 40) {                                                                                      \
        passes_with(new_mutex(PTHREAD_MUTEX_##type, PTHREAD_PRIO_##protocol, robust, shared), shared_cond); \
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

static const struct timespec negative = {-1, 0}, long_ago = {1, 0}, bad = {0, 1000000000}, bad_too = {0, -1};

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
    int returned = 0;
    start(&thread, time_out, &returned);
    UNTIL(GET(returned) == 1);
    OK(pthread_mutex_lock(&mutex));
    pause_ms(60);
    EQ(GET(returned), 1);
    OK(pthread_mutex_unlock(&mutex));
    join(&thread);
    EQ(returned, 2);
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

static void *try_it(void *which) { return (void *)(long)pthread_mutex_trylock(which); }

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

/* ---- Order ---- */

static struct {
    int woken[8], count, asleep;
    pthread_cond_t *cond;
    pthread_mutex_t *mutex;
} order;

static void *in_order(void *number) {
    long mine = (long)number;
    OK(pthread_mutex_lock(order.mutex));
    order.asleep++;
    OK(pthread_cond_wait(order.cond, order.mutex));
    order.woken[order.count++] = (int)mine;
    OK(pthread_mutex_unlock(order.mutex));
    return NULL;
}

static void *in_order_real_time(void *number) {
    be_real_time((int)(long)number);
    return in_order(number);
}

static const char *order_of(void *(*run)(void *), const long *numbers, int how_many, int broadcast) {
    static char text[64];
    struct thread threads[8];
    if (order.cond == NULL) order.cond = &condition;
    if (order.mutex == NULL) order.mutex = &mutex;
    for (int each = 0; each < how_many; each++) {
        start(&threads[each], run, (void *)numbers[each]);
        UNTIL(GET(order.asleep) == each + 1);
        until_asleep(&threads[each]);
    }
    for (int each = 0; each < how_many && !broadcast; each++) {
        OK(pthread_mutex_lock(order.mutex));
        OK(pthread_cond_signal(order.cond));
        OK(pthread_mutex_unlock(order.mutex));
        UNTIL(GET(order.count) == each + 1);
    }
    if (broadcast) {
        OK(pthread_mutex_lock(order.mutex));
        OK(pthread_cond_broadcast(order.cond));
        OK(pthread_mutex_unlock(order.mutex));
    }
    for (int each = 0; each < how_many; each++) join(&threads[each]);
    for (int each = 0; each < how_many; each++) {
        text[2 * each] = (char)('0' + order.woken[each]);
        text[2 * each + 1] = each + 1 < how_many ? ',' : 0;
    }
    return text;
}

CASE(signals_first_come_first_served) {
    static const long numbers[] = {1, 2, 3, 4, 5, 6};
    ANSWER("order", "%s", order_of(in_order, numbers, 6, 0));
}

/* POSIX: among real-time threads, the one of the highest priority. */
CASE(signals_by_priority) {
    static const long numbers[] = {2, 5, 3};
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    ANSWER("order", "%s", order_of(in_order_real_time, numbers, 3, 0));
}

CASE(signals_by_priority_inheriting) {
    static const long numbers[] = {2, 5, 3};
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    order.mutex = new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0);
    ANSWER("order", "%s", order_of(in_order_real_time, numbers, 3, 0));
}

/* Which thread takes the mutex first after a broadcast. One CPU, so that the order is the
 * scheduler's. */
CASE(broadcast_by_priority) {
    static const long numbers[] = {2, 5, 3};
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    only_on_cpu(0);
    be_real_time(9);
    ANSWER("order", "%s", order_of(in_order_real_time, numbers, 3, 1));
}

/* ---- Destruction ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int waiting, go;
} *freed;

static void *wait_in_freed(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&freed->mutex));
    freed->waiting++;
    while (!freed->go) OK(pthread_cond_wait(&freed->cond, &freed->mutex));
    freed->waiting--;
    OK(pthread_mutex_unlock(&freed->mutex));
    return NULL;
}

/* POSIX: a condition variable may be destroyed as soon as all waiters have been woken. */
static void destroy_after_broadcast(int turns) {
    enum { MANY = 4 };
    for (int turn = 0; turn < turns; turn++) {
        struct thread threads[MANY];
        freed = mmap(NULL, sizeof *freed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        OK(pthread_mutex_init(&freed->mutex, NULL));
        OK(pthread_cond_init(&freed->cond, NULL));
        for (int each = 0; each < MANY; each++) start(&threads[each], wait_in_freed, NULL);
        for (int waiting = 0; waiting < MANY;) {
            OK(pthread_mutex_lock(&freed->mutex));
            waiting = freed->waiting;
            OK(pthread_mutex_unlock(&freed->mutex));
        }
        OK(pthread_mutex_lock(&freed->mutex));
        freed->go = 1;
        OK(pthread_cond_broadcast(&freed->cond));
        OK(pthread_mutex_unlock(&freed->mutex));
        OK(pthread_cond_destroy(&freed->cond));
        memset(&freed->cond, 0x5a, sizeof freed->cond);
        for (int each = 0; each < MANY; each++) join(&threads[each]);
        for (size_t byte = 0; byte < sizeof freed->cond; byte++) EQ(((unsigned char *)&freed->cond)[byte], 0x5a);
        OK(pthread_mutex_destroy(&freed->mutex));
        OK(munmap(freed, sizeof *freed));
    }
}

CASE(destroyed_right_after_a_broadcast) { destroy_after_broadcast(200); }

/* The waiter that was woken last destroys and frees everything at once. */
static void *wait_and_free(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&freed->mutex));
    freed->waiting++;
    while (!freed->go) OK(pthread_cond_wait(&freed->cond, &freed->mutex));
    OK(pthread_mutex_unlock(&freed->mutex));
    OK(pthread_cond_destroy(&freed->cond));
    OK(pthread_mutex_destroy(&freed->mutex));
    OK(munmap(freed, sizeof *freed));
    return NULL;
}

CASE(freed_by_who_was_woken) {
    for (int turn = 0; turn < 300; turn++) {
        struct thread thread;
        freed = mmap(NULL, sizeof *freed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        OK(pthread_mutex_init(&freed->mutex, NULL));
        OK(pthread_cond_init(&freed->cond, NULL));
        start(&thread, wait_and_free, NULL);
        if (turn % 2) {
            for (int waiting = 0; waiting < 1;) {
                OK(pthread_mutex_lock(&freed->mutex));
                waiting = freed->waiting;
                OK(pthread_mutex_unlock(&freed->mutex));
            }
        }
        OK(pthread_mutex_lock(&freed->mutex));
        freed->go = 1;
        OK(pthread_cond_signal(&freed->cond));
        OK(pthread_mutex_unlock(&freed->mutex));
        join(&thread);
    }
}

/* ---- Signal handlers; many threads ---- */

static void no_op(int signal) { (void)signal; }

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

/* A bounded queue with many threads at both ends and time limits that expire all the time: every
 * item arrives once. */
static struct {
    pthread_mutex_t *mutex;
    pthread_cond_t *not_empty, *not_full;
    int level;
    long put, taken, to_take;
} queue;

static void *put(void *unused) {
    (void)unused;
    for (int item = 0; item < 2500; item++) {
        OK(pthread_mutex_lock(queue.mutex));
        while (queue.level == 2) OK(pthread_cond_wait(queue.not_full, queue.mutex));
        queue.level++;
        queue.put++;
        OK(pthread_cond_signal(queue.not_empty));
        OK(pthread_mutex_unlock(queue.mutex));
    }
    return NULL;
}

static void *take(void *impatient) {
    for (;;) {
        OK(pthread_mutex_lock(queue.mutex));
        while (queue.level == 0 && queue.taken < queue.to_take) {
            if (impatient) {
                struct timespec soon;
                clock_gettime(CLOCK_MONOTONIC, &soon);
                if (soon.tv_nsec < 999000000) soon.tv_nsec += 30000;
                int result = pthread_cond_clockwait(queue.not_empty, queue.mutex, CLOCK_MONOTONIC, &soon);
                CHECK(result == 0 || result == ETIMEDOUT);
            } else {
                OK(pthread_cond_wait(queue.not_empty, queue.mutex));
            }
        }
        if (queue.level == 0) break;
        queue.level--;
        if (++queue.taken == queue.to_take) OK(pthread_cond_broadcast(queue.not_empty));
        OK(pthread_cond_signal(queue.not_full));
        OK(pthread_mutex_unlock(queue.mutex));
    }
    OK(pthread_mutex_unlock(queue.mutex));
    return NULL;
}

static void nothing_is_lost(pthread_mutex_t *which, int shared) {
    struct thread threads[8];
    queue.mutex = which;
    queue.not_empty = new_cond(CLOCK_REALTIME, shared);
    queue.not_full = new_cond(CLOCK_REALTIME, shared);
    queue.to_take = 4 * 2500;
    for (int each = 0; each < 4; each++) start(&threads[each], put, NULL);
    for (int each = 4; each < 8; each++) start(&threads[each], take, each % 2 ? &queue : NULL);
    for (int each = 0; each < 8; each++) join(&threads[each]);
    EQ(queue.put, queue.taken);
    EQ(queue.level, 0);
}

LONG_CASE(queue_loses_nothing, 60) { nothing_is_lost(&mutex, 0); }
LONG_CASE(queue_with_recursive_loses_nothing, 60) { nothing_is_lost(new_mutex(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, 0, 0), 0); }
LONG_CASE(queue_with_inheriting_loses_nothing, 60) { nothing_is_lost(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0), 0); }
LONG_CASE(queue_with_robust_loses_nothing, 60) { nothing_is_lost(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0), 0); }
LONG_CASE(queue_with_shared_mutex_loses_nothing, 60) { nothing_is_lost(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 0, 1), 0); }

/* One thread waits with two mutexes in turn; two condition variables share one mutex. */
static void *ping(void *conds) {
    pthread_cond_t **both = (pthread_cond_t **)conds;
    for (int turn = 0; turn < 2000; turn++) {
        OK(pthread_mutex_lock(&mutex));
        while (queue.level == 0) OK(pthread_cond_wait(both[0], &mutex));
        queue.level = 0;
        OK(pthread_cond_signal(both[1]));
        OK(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

CASE(ping_pong) {
    struct thread thread;
    pthread_cond_t *both[2] = {new_cond(CLOCK_MONOTONIC, 0), &condition};
    start(&thread, ping, both);
    for (int turn = 0; turn < 2000; turn++) {
        OK(pthread_mutex_lock(&mutex));
        queue.level = 1;
        OK(pthread_cond_signal(both[0]));
        while (queue.level == 1) OK(pthread_cond_wait(both[1], &mutex));
        OK(pthread_mutex_unlock(&mutex));
    }
    join(&thread);
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
