/* Signal handlers and delays at every instruction: threads run step by step with the processor's
 * trap flag, and everything that a handler may do is done between any two instructions of a
 * lock. Sources: POSIX, sem_post(3p) ("async-signal-safe"), signal-safety(7),
 * pthread_cond_wait(3p), pthread_cancel(3p).
 *
 * Only on x86-64. `lost_wakeup.c` makes its delays in the same way. */
#include "objects.h"

#ifdef __x86_64__
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t own, others;
static int posted, taken, stop, turns;
static __thread unsigned steps;
static __thread int every = 1;

#define STEP_ON() __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc")
#define STEP_OFF() __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc")

static void handle_steps(void (*handler)(int)) {
    /* Without SA_NODEFER: only the thread's own steps raise the signal. */
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    OK(sigaction(SIGTRAP, &action, NULL));
    const char *rounds = getenv("CONFORMANCE_ROUNDS");
    turns = rounds != NULL ? atoi(rounds) : 16;
}

/* ---- Posts in between ---- */

static void post_to_others(int signal) {
    int before = errno;
    (void)signal;
    if (++steps % (unsigned)every == 0) {
        OK(sem_post(&others));
        ADD(posted, 1);
    }
    errno = before;
}

static void *take_on(void *unused) {
    (void)unused;
    for (;;) {
        while (sem_wait(&others) != 0) EQ(errno, EINTR);
        if (GET(stop)) return NULL;
        ADD(taken, 1);
    }
}

static void use_locks(int turn) {
    struct timespec soon;
    clock_gettime(CLOCK_MONOTONIC, &soon);
    if (soon.tv_nsec < 999000000) soon.tv_nsec += 200000;
    STEP_ON();
    switch (turn % 6) {
    case 0:
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        break;
    case 1:
        pthread_mutex_lock(&mutex);
        pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &soon);
        pthread_mutex_unlock(&mutex);
        pthread_cond_signal(&condition);
        break;
    case 2:
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        break;
    case 3:
        sem_post(&own);
        while (sem_wait(&own) != 0) {
        }
        break;
    case 4:
        pthread_mutex_lock(&recursive);
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&recursive);
        break;
    default:
        pthread_barrier_wait(&barrier);
    }
    STEP_OFF();
}

static void *use_them(void *number) {
    every = 3 + (int)(long)number;
    for (int turn = 0; turn < turns; turn++) use_locks(turn);
    return NULL;
}

/* sem_post, between any two instructions of all other operations, wakes a thread; none
 * deadlocks, and no unit is lost. */
LONG_CASE(posts_in_between, 60) {
    struct thread users[2], taker;
    handle_steps(post_to_others);
    OK(sem_init(&own, 0, 0));
    OK(sem_init(&others, 0, 0));
    OK(pthread_barrier_init(&barrier, NULL, 2));
    start(&taker, take_on, NULL);
    for (long each = 0; each < 2; each++) start(&users[each], use_them, (void *)each);
    for (int each = 0; each < 2; each++) join(&users[each]);
    UNTIL(GET(taken) == GET(posted));
    SET(stop, 1);
    OK(sem_post(&others));
    join(&taker);
    CHECK(posted > 100);
}

/* The very semaphore of the wait, posted between any two instructions of the wait. */
static int handlers_left;
static void post_own(int signal) {
    int before = errno;
    (void)signal;
    if (++steps == (unsigned)every && handlers_left > 0) {
        handlers_left--;
        OK(sem_post(&own));
    }
    errno = before;
}

/* A wait that sleeps before it has made that many steps is helped. */
static int waits;
static void *help(void *unused) {
    int before = 0;
    (void)unused;
    while (!GET(stop)) {
        int now = GET(waits);
        if (now % 2 && now == before) OK(sem_post(&own));
        before = now;
        pause_ms(2);
    }
    return NULL;
}

LONG_CASE(posts_to_waiters, 60) {
    struct thread helper;
    handle_steps(post_own);
    OK(sem_init(&own, 0, 0));
    start(&helper, help, NULL);
    for (int step = 1; step <= 160; step++) {
        struct timespec until = after_ms(CLOCK_REALTIME, FAR_AWAY);
        steps = 0;
        every = step;
        handlers_left = 1;
        ADD(waits, 1);
        STEP_ON();
        int result = step % 2 ? sem_timedwait(&own, &until) : sem_wait(&own);
        STEP_OFF();
        ADD(waits, 1);
        if (result != 0) EQ(errno, EINTR);
        /* The units that it did not take are available. */
        while (sem_trywait(&own) == 0) {
        }
    }
    SET(stop, 1);
    join(&helper);
}

/* ---- Delayed in between: short waits, signals, broadcasts, cancellation requests ---- */

static __thread unsigned seed;
static void nap(int signal) {
    int before = errno;
    (void)signal;
    seed = seed * 1103515245 + 12345;
    unsigned draw = seed >> 16;
    if (draw % 151 == 0) {
        struct timespec time = {0, 1000 * (draw % 200)};
        syscall(SYS_nanosleep, &time, NULL);
    }
    errno = before;
}

static struct gate {
    pthread_mutex_t *mutex;
    int tickets, given, passed;
} gate;

static void unlock_gate(void *unused) {
    (void)unused;
    STEP_OFF();
    OK(pthread_mutex_unlock(gate.mutex));
}

/* Takes one ticket, unless it is cancelled. */
static void *take_ticket(void *number) {
    seed = (unsigned)(long)number * 7919 + 1;
    OK(pthread_mutex_lock(gate.mutex));
    pthread_cleanup_push(unlock_gate, NULL);
    while (gate.tickets == 0) {
        struct timespec soon;
        clock_gettime(CLOCK_MONOTONIC, &soon);
        if (soon.tv_nsec < 999000000) soon.tv_nsec += (long)number % 5 * 100000;
        STEP_ON();
        if ((long)number % 3) {
            pthread_cond_wait(&condition, gate.mutex);
        } else {
            pthread_cond_clockwait(&condition, gate.mutex, CLOCK_MONOTONIC, &soon);
        }
        STEP_OFF();
    }
    gate.tickets--;
    gate.passed++;
    pthread_cleanup_pop(1);
    return NULL;
}

static void tickets_and_cancels(pthread_mutex_t *with) {
    enum { MANY = 6 };
    gate.mutex = with;
    handle_steps(nap);
    for (int turn = 0; turn < turns / 2; turn++) {
        struct thread threads[MANY];
        int ended = 0, cancelled = 0;
        gate.tickets = gate.passed = 0;
        for (long each = 0; each < MANY; each++)
            start(&threads[each], take_ticket, (void *)(each + turn * MANY));
        for (int each = 0; each < MANY; each++) {
            if (turn % 2) pause_ms(1);
            OK(pthread_mutex_lock(with));
            gate.tickets++;
            OK(pthread_cond_signal(&condition));
            OK(pthread_mutex_unlock(with));
            /* One in three gets a cancellation request. */
            if (each % 3 == 0) OK(pthread_cancel(threads[each].handle));
        }
        /* Tickets of cancelled threads are left over; all other threads get one. */
        for (int each = 0; each < MANY; each++) {
            if (join(&threads[each]) == PTHREAD_CANCELED) {
                cancelled++;
            } else {
                ended++;
            }
        }
        EQ(gate.passed, ended);
        EQ(gate.tickets, cancelled);
        CHECK(cancelled <= 2);
    }
    OK(pthread_cond_destroy(&condition));
    OK(pthread_mutex_destroy(with));
}

LONG_CASE(cancels_in_between, 60) { tickets_and_cancels(&mutex); }
LONG_CASE(cancels_in_between_recursive, 60) { tickets_and_cancels(&recursive); }
LONG_CASE(cancels_in_between_inheriting, 60) {
    tickets_and_cancels(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0));
}
LONG_CASE(cancels_in_between_robust, 60) {
    tickets_and_cancels(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 1, 0));
}
LONG_CASE(cancels_in_between_shared, 60) {
    tickets_and_cancels(new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 0, 1));
}

/* The woken thread frees everything while the one that woke it is delayed at any instruction of
 * the signal and the unlock. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    sem_t sem;
    int go;
} *freed;

static void *wake(void *number) {
    seed = (unsigned)(long)number;
    OK(pthread_mutex_lock(&freed->mutex));
    freed->go = 1;
    STEP_ON();
    pthread_cond_signal(&freed->cond);
    pthread_mutex_unlock(&freed->mutex);
    STEP_OFF();
    return NULL;
}

static void *post(void *number) {
    seed = (unsigned)(long)number;
    STEP_ON();
    sem_post(&freed->sem);
    STEP_OFF();
    return NULL;
}

LONG_CASE(freed_in_between, 60) {
    handle_steps(nap);
    for (int turn = 0; turn < 4 * turns; turn++) {
        struct thread waker;
        freed = new_page();
        if (turn % 2) {
            OK(pthread_mutex_init(&freed->mutex, NULL));
            OK(pthread_cond_init(&freed->cond, NULL));
            start(&waker, wake, (void *)(long)turn);
            OK(pthread_mutex_lock(&freed->mutex));
            while (!freed->go) OK(pthread_cond_wait(&freed->cond, &freed->mutex));
            OK(pthread_mutex_unlock(&freed->mutex));
            OK(pthread_cond_destroy(&freed->cond));
            OK(pthread_mutex_destroy(&freed->mutex));
        } else {
            OK(sem_init(&freed->sem, 0, 0));
            start(&waker, post, (void *)(long)turn);
            OK(sem_wait(&freed->sem));
            OK(sem_destroy(&freed->sem));
        }
        OK(munmap(freed, 4096));
        join(&waker);
    }
}

/* The first use of a statically initialised lock by two threads: one comes between any two
 * instructions of the other's call. */
static pthread_rwlock_t first_lock;
static pthread_mutex_t first_mutex;
static int comes, came;
static void let_the_other_come(int signal) {
    (void)signal;
    if (++steps != (unsigned)every) return;
    SET(comes, 1);
    while (!GET(came)) sched_yield();
}

static void *come(void *to_the_mutex) {
    while (!GET(stop)) {
        sched_yield();
        if (!GET(comes)) continue;
        int result = to_the_mutex ? pthread_mutex_trylock(&first_mutex)
                                  : pthread_rwlock_tryrdlock(&first_lock);
        if (result == 0) {
            OK(to_the_mutex ? pthread_mutex_unlock(&first_mutex)
                            : pthread_rwlock_unlock(&first_lock));
        } else {
            EQ(result, EBUSY);
        }
        SET(comes, 0);
        SET(came, 1);
    }
    return NULL;
}

static int use_lock(int writes) {
    STEP_ON();
    int result = writes ? pthread_rwlock_wrlock(&first_lock) : pthread_rwlock_rdlock(&first_lock);
    STEP_OFF();
    OK(result);
    EQ(pthread_rwlock_trywrlock(&first_lock), EBUSY);
    OK(pthread_rwlock_unlock(&first_lock));
    OK(pthread_rwlock_trywrlock(&first_lock));
    return pthread_rwlock_unlock(&first_lock);
}

static int use_mutex(int which) {
    (void)which;
    STEP_ON();
    int result = pthread_mutex_lock(&first_mutex);
    STEP_OFF();
    OK(result);
    OK(pthread_mutex_unlock(&first_mutex));
    OK(pthread_mutex_trylock(&first_mutex));
    return pthread_mutex_unlock(&first_mutex);
}

static void first_used(void *mutex, int many, void (*renew)(int), int (*use)(int)) {
    struct thread other;
    handle_steps(let_the_other_come);
    start(&other, come, mutex);
    for (int which = 0; which < many; which++) {
        every = 0;
        do {
            renew(which);
            SET(came, 0);
            steps = 0;
            every++;
            OK(use(which));
        } while (GET(came));
        CHECK(every > 5);
    }
    SET(stop, 1);
    join(&other);
}

static void renew_lock(int writes) {
    (void)writes;
    first_lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}

static void renew_mutex(int which) {
    const pthread_mutex_t fresh_ones[] = {
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
        PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};
    first_mutex = fresh_ones[which];
}

LONG_CASE(first_used_by_two, 60) { first_used(NULL, 2, renew_lock, use_lock); }
LONG_CASE(mutex_first_used_by_two, 60) { first_used(&first_mutex, 4, renew_mutex, use_mutex); }

/* fork while other threads are delayed at any instruction: the child has everything that it
 * needs. */
static void *use_on(void *number) {
    seed = (unsigned)(long)number;
    for (int turn = 0; !GET(stop); turn++) use_locks(turn % 5);
    return NULL;
}

static pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fresh_condition = PTHREAD_COND_INITIALIZER;
static int ready;
static void *make_ready(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&fresh));
    ready = 1;
    OK(pthread_cond_signal(&fresh_condition));
    OK(pthread_mutex_unlock(&fresh));
    return NULL;
}

LONG_CASE(forks_in_between, 60) {
    struct thread threads[3];
    handle_steps(nap);
    OK(sem_init(&own, 0, 0));
    for (long each = 0; each < 3; each++) start(&threads[each], use_on, (void *)(each + 1));
    for (int turn = 0; turn < turns; turn++) {
        CHILD(child, {
            struct thread other;
            alarm(20);
            OK(pthread_mutex_lock(&fresh));
            start(&other, make_ready, NULL);
            while (!ready) OK(pthread_cond_wait(&fresh_condition, &fresh));
            OK(pthread_mutex_unlock(&fresh));
            join(&other);
        });
        EQ(end_of(child), 0);
    }
    SET(stop, 1);
    for (int each = 0; each < 3; each++) join(&threads[each]);
}

/* The same in a process that had no memory when its threads first waited. A handler of the
 * program unlocks in the child. */
static void unlock_in_child(void) {
    alarm(20);
    OK(pthread_mutex_unlock(&mutex));
}

static void *lock_mutex(void *unused) {
    (void)unused;
    while (!GET(taken)) sched_yield();
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *time_out_on_mutex(void *unused) {
    (void)unused;
    while (!GET(posted)) sched_yield();
    every = 0;
    do {
        SET(came, 0);
        steps = 0;
        every += 5;
        struct timespec soon = after_ms(CLOCK_MONOTONIC, 5);
        STEP_ON();
        int result = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon);
        STEP_OFF();
        EQ(result, ETIMEDOUT);
    } while (GET(came));
    CHECK(every > 100);
    SET(stop, 1);
    return NULL;
}

LONG_CASE(forks_in_between_with_handlers_and_no_memory, 60) {
    struct thread waiter, stepped;
    struct rlimit usual, none;
    OK(pthread_atfork(NULL, NULL, unlock_in_child));
    handle_steps(let_the_other_come);
    OK(pthread_mutex_lock(&mutex));
    start(&waiter, lock_mutex, NULL);
    start(&stepped, time_out_on_mutex, NULL);
    OK(getrlimit(RLIMIT_AS, &usual));
    none = (struct rlimit){0, usual.rlim_max};
    OK(setrlimit(RLIMIT_AS, &none));
    SET(taken, 1);
    until_asleep(&waiter);
    SET(posted, 1);
    while (!GET(stop)) {
        sched_yield();
        if (!GET(comes)) continue;
        CHILD(child, );
        EQ(end_of(child), 0);
        SET(comes, 0);
        SET(came, 1);
    }
    OK(setrlimit(RLIMIT_AS, &usual));
    OK(pthread_mutex_unlock(&mutex));
    join(&stepped);
    join(&waiter);
}
#else
CASE(steps) { SKIP("needs x86-64: its trap flag"); }
#endif
