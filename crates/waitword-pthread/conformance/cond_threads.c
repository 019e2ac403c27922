/* pthread_cond_*: which waiter a signal wakes, destruction with waiters on their way out, many
 * threads at once. Sources: POSIX, pthread_cond_signal(3p), pthread_cond_destroy(3p). */
#include "objects.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

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

static const char *order_of(void *(*run)(void *), const long *numbers, int how_many,
                            int broadcast) {
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
        freed = new_page();
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
        for (size_t byte = 0; byte < sizeof freed->cond; byte++)
            EQ(((unsigned char *)&freed->cond)[byte], 0x5a);
        OK(pthread_mutex_destroy(&freed->mutex));
        OK(munmap(freed, 4096));
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
    OK(munmap(freed, 4096));
    return NULL;
}

CASE(freed_by_the_woken_waiter) {
    for (int turn = 0; turn < 300; turn++) {
        struct thread thread;
        freed = new_page();
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

/* ---- Many threads ---- */

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
                int result =
                    pthread_cond_clockwait(queue.not_empty, queue.mutex, CLOCK_MONOTONIC, &soon);
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
LONG_CASE(queue_with_recursive_loses_nothing, 60) {
    nothing_is_lost(new_mutex(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, 0, 0), 0);
}
LONG_CASE(queue_with_inheriting_loses_nothing, 60) {
    nothing_is_lost(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0), 0);
}
LONG_CASE(queue_with_robust_loses_nothing, 60) {
    nothing_is_lost(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0), 0);
}
LONG_CASE(queue_with_shared_mutex_loses_nothing, 60) {
    nothing_is_lost(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 0, 1), 0);
}

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
