/* Real-time threads at locks without a protocol: which waiter is served. POSIX lets the
 * scheduling policy decide it at a mutex, at a condition variable and at a semaphore: the
 * highest priority first. Sources: POSIX, pthread_mutex_unlock(3p), pthread_cond_signal(3p),
 * sem_post(3p), pthread_rwlock_unlock(3p), sched(7). Without CAP_SYS_NICE, cases that need it
 * are skipped, with a message. */
#include "objects.h"
#include <sys/eventfd.h>

static pthread_mutex_t mutex;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_rwlock_t rwlock;

/* With the mutex held: how many waiters of the condition variable may proceed. */
static int may_go;

/* ---- Waiters that record in which order they were served ---- */

enum { MOST = 8 };

struct waiter {
    struct thread thread;
    /* 0: not a real-time thread. */
    int priority;
    void (*wait)(struct waiter *self);
};

static struct waiter waiters[MOST];
static int order[MOST], served;

static void note(struct waiter *self) { order[ADD(served, 1) - 1] = self->priority; }

static void be_ordinary(void) {
    struct sched_param none = {.sched_priority = 0};
    OK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &none));
}

static void *waiter_main(void *argument) {
    struct waiter *self = argument;
    if (self->priority != 0)
        be_real_time(self->priority);
    else
        be_ordinary();
    self->wait(self);
    return NULL;
}

static void start_waiter(struct waiter *waiter, int priority, void (*wait)(struct waiter *)) {
    waiter->priority = priority;
    waiter->wait = wait;
    start(&waiter->thread, waiter_main, waiter);
}

/* They arrive one after the other: each sleeps before the next one starts. */
static void arrive(const int priorities[], int count, void (*wait)(struct waiter *)) {
    served = 0;
    for (int each = 0; each < count; each++) {
        start_waiter(&waiters[each], priorities[each], wait);
        until_asleep(&waiters[each].thread);
    }
}

static void leave(int count) {
    for (int each = 0; each < count; each++) join(&waiters[each].thread);
    EQ(served, count);
}

static int were_served_as(const int expected[], int count) {
    return memcmp(order, expected, sizeof(int) * (size_t)count) == 0;
}

static void check_order(const char *at, const int expected[], int count) {
    char text[8 * MOST] = "";
    for (int each = 0; each < count; each++) sprintf(text + strlen(text), " %d", order[each]);
    if (!were_served_as(expected, count)) FAIL("%s: served in the order%s", at, text);
}

enum { FIVE = 5 };
static const int arrivals[FIVE] = {5, 10, 20, 15, 7}, by_priority[FIVE] = {20, 15, 10, 7, 5};

/* ---- Mutexes of every kind ---- */

static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                            PTHREAD_MUTEX_ADAPTIVE_NP};
static const char *const type_names[] = {"normal", "recursive", "error-checking", "adaptive"};
enum { TYPES = 4 };

static void take_mutex(struct waiter *self) {
    OK(pthread_mutex_lock(&mutex));
    note(self);
    OK(pthread_mutex_unlock(&mutex));
}

static void take_mutex_in_time(struct waiter *self) {
    struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
    OK(pthread_mutex_timedlock(&mutex, &later));
    note(self);
    OK(pthread_mutex_unlock(&mutex));
}

/* Sleeps while it holds the mutex: a lower thread that gets it first keeps a higher one waiting. */
static void hold_mutex(struct waiter *self) {
    OK(pthread_mutex_lock(&mutex));
    note(self);
    pause_ms(20);
    OK(pthread_mutex_unlock(&mutex));
}

static void for_each_mutex(void (*play)(const char *name)) {
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    for (int type = 0; type < TYPES; type++) {
        init_mutex(&mutex, types[type], PTHREAD_PRIO_NONE, 0, PTHREAD_PROCESS_PRIVATE);
        play(type_names[type]);
        OK(pthread_mutex_destroy(&mutex));
    }
    init_mutex(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 0, PTHREAD_PROCESS_SHARED);
    play("process-shared");
    OK(pthread_mutex_destroy(&mutex));
}

static void admit(const char *name, void (*wait)(struct waiter *)) {
    OK(pthread_mutex_lock(&mutex));
    arrive(arrivals, FIVE, wait);
    OK(pthread_mutex_unlock(&mutex));
    leave(FIVE);
    check_order(name, by_priority, FIVE);
}

static void admit_plainly(const char *name) { admit(name, take_mutex); }
static void admit_in_time(const char *name) { admit(name, take_mutex_in_time); }

CASE(a_mutex_admits_by_priority) { for_each_mutex(admit_plainly); }
CASE(a_timed_mutex_admits_by_priority) { for_each_mutex(admit_in_time); }

static void admit_late(const char *name) {
    static const int ordinary_first[] = {0, 50}, expected[] = {50, 0};
    OK(pthread_mutex_lock(&mutex));
    arrive(ordinary_first, 2, hold_mutex);
    OK(pthread_mutex_unlock(&mutex));
    leave(2);
    check_order(name, expected, 2);
}

CASE(a_late_real_time_thread_is_first) { for_each_mutex(admit_late); }

static void admit_mixed(const char *name) {
    static const int mixed[] = {0, 5, 0, 20, 10, 0}, expected[] = {20, 10, 5, 0, 0, 0};
    OK(pthread_mutex_lock(&mutex));
    arrive(mixed, 6, hold_mutex);
    OK(pthread_mutex_unlock(&mutex));
    leave(6);
    check_order(name, expected, 6);
}

LONG_CASE(real_time_threads_go_before_all_others, 40) { for_each_mutex(admit_mixed); }

/* ---- Condition variables ---- */

static void wait_in_condition(struct waiter *self) {
    OK(pthread_mutex_lock(&mutex));
    while (may_go == 0) OK(pthread_cond_wait(&condition, &mutex));
    may_go--;
    note(self);
    OK(pthread_mutex_unlock(&mutex));
}

static void signal_one_by_one(const char *name) {
    may_go = 0;
    arrive(arrivals, FIVE, wait_in_condition);
    for (int each = 0; each < FIVE; each++) {
        OK(pthread_mutex_lock(&mutex));
        may_go++;
        /* With the mutex held, or not. */
        if (each % 2 == 0) OK(pthread_cond_signal(&condition));
        OK(pthread_mutex_unlock(&mutex));
        if (each % 2 == 1) OK(pthread_cond_signal(&condition));
        UNTIL(GET(served) == each + 1);
    }
    leave(FIVE);
    check_order(name, by_priority, FIVE);
}

CASE(a_signal_wakes_the_highest_priority) { for_each_mutex(signal_one_by_one); }

static void signal_all_at_once(const char *name) {
    may_go = 0;
    arrive(arrivals, FIVE, wait_in_condition);
    OK(pthread_mutex_lock(&mutex));
    may_go = FIVE;
    for (int each = 0; each < FIVE; each++) OK(pthread_cond_signal(&condition));
    /* The woken threads sleep at the mutex by now. */
    for (int each = 0; each < FIVE; each++) until_asleep(&waiters[each].thread);
    OK(pthread_mutex_unlock(&mutex));
    leave(FIVE);
    check_order(name, by_priority, FIVE);
}

CASE(signalled_waiters_get_the_mutex_by_priority) { for_each_mutex(signal_all_at_once); }

static void broadcast_with_the_mutex(const char *name) {
    may_go = 0;
    arrive(arrivals, FIVE, wait_in_condition);
    OK(pthread_mutex_lock(&mutex));
    may_go = FIVE;
    OK(pthread_cond_broadcast(&condition));
    for (int each = 0; each < FIVE; each++) until_asleep(&waiters[each].thread);
    OK(pthread_mutex_unlock(&mutex));
    leave(FIVE);
    check_order(name, by_priority, FIVE);
}

CASE(a_broadcast_serves_by_priority) { for_each_mutex(broadcast_with_the_mutex); }

/* An ordinary thread waits for the mutex when the signalled threads come to it. */
static void broadcast_behind_another(const char *name) {
    static const int expected[] = {20, 15, 10, 7, 5, 0};
    may_go = 0;
    arrive(arrivals, FIVE, wait_in_condition);
    OK(pthread_mutex_lock(&mutex));
    start_waiter(&waiters[FIVE], 0, hold_mutex);
    until_asleep(&waiters[FIVE].thread);
    may_go = FIVE;
    OK(pthread_cond_broadcast(&condition));
    for (int each = 0; each < FIVE; each++) until_asleep(&waiters[each].thread);
    OK(pthread_mutex_unlock(&mutex));
    leave(FIVE + 1);
    check_order(name, expected, FIVE + 1);
}

CASE(a_broadcast_serves_before_an_ordinary_waiter) { for_each_mutex(broadcast_behind_another); }

/* ---- Semaphores ---- */

static void take_semaphore(struct waiter *self) {
    OK(sem_wait(&semaphore));
    note(self);
}

static void posts_serve_by_priority(int shared) {
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    static const int mixed[] = {0, 5, 10, 20, 15, 7}, expected[] = {20, 15, 10, 7, 5, 0};
    OK(sem_init(&semaphore, shared, 0));
    arrive(mixed, FIVE + 1, take_semaphore);
    for (int each = 0; each <= FIVE; each++) {
        OK(sem_post(&semaphore));
        UNTIL(GET(served) == each + 1);
    }
    leave(FIVE + 1);
    check_order(shared ? "process-shared" : "private", expected, FIVE + 1);
    OK(sem_destroy(&semaphore));
}

CASE(a_post_wakes_the_highest_priority) { posts_serve_by_priority(0); }
CASE(a_post_to_processes_wakes_the_highest_priority) { posts_serve_by_priority(1); }

/* ---- Readers and writers ---- */

static void write_it(struct waiter *self) {
    OK(pthread_rwlock_wrlock(&rwlock));
    note(self);
    OK(pthread_rwlock_unlock(&rwlock));
}

/* A waiter may leave the queue for some microseconds to check the lock itself, so occasionally
 * one is not there at the right moment. */
static void writers_are_served_by_priority(int kind) {
    static const int mixed[] = {0, 5, 10, 20, 15, 7}, expected[] = {20, 15, 10, 7, 5, 0};
    if (!may_be_real_time()) SKIP("real-time threads are not permitted");
    pthread_rwlockattr_t attributes;
    OK(pthread_rwlockattr_init(&attributes));
    OK(pthread_rwlockattr_setkind_np(&attributes, kind));
    OK(pthread_rwlock_init(&rwlock, &attributes));
    for (int attempt = 0; attempt < 4; attempt++) {
        OK(pthread_rwlock_wrlock(&rwlock));
        arrive(mixed, FIVE + 1, write_it);
        OK(pthread_rwlock_unlock(&rwlock));
        leave(FIVE + 1);
        if (were_served_as(expected, FIVE + 1)) return;
    }
    check_order("four times in a row", expected, FIVE + 1);
}

CASE(writers_by_priority) { writers_are_served_by_priority(PTHREAD_RWLOCK_PREFER_READER_NP); }
CASE(preferred_writers_by_priority) {
    writers_are_served_by_priority(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
}

/* ---- An ordinary waiter that is awake and gets no CPU ----
 *
 * All threads are on one CPU, and the caller has the highest priority. It wakes an ordinary
 * thread that waits for the mutex, which does not get the CPU, since one of middle priority has
 * it. Then a high one comes. It must not wait until the middle one is done: it shares no lock
 * with it, and the waiter between the two does not hold the mutex. */

enum { MIDDLE = 20, HIGH = 50, DIRECTOR = 60, HOGS_MS = 100 };

static int gate, hog_is_done;
static struct thread the_hog;

static void *hog(void *unused) {
    (void)unused;
    uint64_t count;
    be_real_time(MIDDLE);
    EQ(read(gate, &count, sizeof count), sizeof count);
    struct timespec limit = after_ms(CLOCK_THREAD_CPUTIME_ID, HOGS_MS);
    while (!is_past(CLOCK_THREAD_CPUTIME_ID, limit)) {
    }
    SET(hog_is_done, 1);
    return NULL;
}

/* No thread of a lower priority than the hog runs any longer; the caller does. */
static void let_the_hog_go(void) {
    uint64_t one = 1;
    EQ(write(gate, &one, sizeof one), sizeof one);
}

static void set_the_scene(void) {
    served = 0;
    hog_is_done = 0;
    gate = eventfd(0, 0);
    CHECK(gate >= 0);
    only_on_cpu(sched_getcpu());
    be_real_time(DIRECTOR);
    start(&the_hog, hog, NULL);
    until_asleep(&the_hog);
}

/* The mutex is held, and its waiter is awake and does not run. */
static void starve_one_that_was_woken(void) {
    OK(pthread_mutex_lock(&mutex));
    start_waiter(&waiters[0], 0, take_mutex);
    until_asleep(&waiters[0].thread);
    let_the_hog_go();
    OK(pthread_mutex_unlock(&mutex));
    EQ(pthread_mutex_trylock(&mutex), 0);
}

static void clear_the_scene(const char *name, int count) {
    if (GET(hog_is_done)) FAIL("%s: the high one waited for the middle one", name);
    join(&the_hog);
    leave(count);
    EQ(order[count - 1], 0);
    be_ordinary();
    close(gate);
    /* The kernel throttles a thread that keeps a CPU for too much of a second, and lower ones
     * run (sched(7)). */
    pause_ms(2 * HOGS_MS);
}

static void pass_one_that_was_woken(const char *name) {
    set_the_scene();
    starve_one_that_was_woken();
    start_waiter(&waiters[1], HIGH, take_mutex);
    until_asleep(&waiters[1].thread);
    OK(pthread_mutex_unlock(&mutex));
    UNTIL(GET(served) == 1 || GET(hog_is_done));
    clear_the_scene(name, 2);
}

CASE(an_unlock_does_not_rely_on_a_lower_thread_that_is_awake) {
    for_each_mutex(pass_one_that_was_woken);
}

/* The same with signals, with a free mutex. */
static void signal_past_one_that_was_woken(const char *name, int (*wake)(pthread_cond_t *),
                                           int count) {
    static const int high_ones[] = {HIGH - 1, HIGH, HIGH - 2};
    set_the_scene();
    may_go = 0;
    for (int each = 1; each <= count; each++) {
        start_waiter(&waiters[each], high_ones[each - 1], wait_in_condition);
        until_asleep(&waiters[each].thread);
    }
    starve_one_that_was_woken();
    may_go = count;
    OK(pthread_mutex_unlock(&mutex));
    OK(wake(&condition));
    UNTIL(GET(served) == count || GET(hog_is_done));
    clear_the_scene(name, count + 1);
    for (int each = 0; each < count && count > 1; each++) EQ(order[each], HIGH - each);
}

static void signal_past(const char *name) {
    signal_past_one_that_was_woken(name, pthread_cond_signal, 1);
}
static void broadcast_past(const char *name) {
    signal_past_one_that_was_woken(name, pthread_cond_broadcast, 3);
}

CASE(a_signal_does_not_rely_on_a_lower_thread_that_is_awake) { for_each_mutex(signal_past); }
CASE(a_broadcast_does_not_rely_on_a_lower_thread_that_is_awake) { for_each_mutex(broadcast_past); }

/* Two high threads that take turns do not wait for the one that gets no CPU, however long it has
 * been awake. */
enum { TURNS = 200 };
static struct thread high_ones[2];

static void *take_turns(void *unused) {
    (void)unused;
    be_real_time(HIGH);
    for (int turn = 0; turn < TURNS && !GET(hog_is_done); turn++) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        struct timespec limit = after_ms(CLOCK_THREAD_CPUTIME_ID, 0);
        limit.tv_nsec += 20000;
        while (limit.tv_nsec < 1000000000 && !is_past(CLOCK_THREAD_CPUTIME_ID, limit)) {
        }
        sched_yield();
    }
    return NULL;
}

static void take_turns_past(const char *name) {
    set_the_scene();
    starve_one_that_was_woken();
    OK(pthread_mutex_unlock(&mutex));
    for (int each = 0; each < 2; each++) start(&high_ones[each], take_turns, NULL);
    for (int each = 0; each < 2; each++) join(&high_ones[each]);
    clear_the_scene(name, 1);
}

CASE(taking_turns_does_not_yield_to_a_lower_thread) { for_each_mutex(take_turns_past); }
