/* glibc's bug 25847: a signal to a condition variable on which one thread waits wakes no thread.
 *
 * Versions 2.25 to 2.40 keep waiters in two groups, whose places are used in turn. A waiter that
 * is delayed for long may take a signal from the group that now has its old place, notices that,
 * and puts it back. If it is delayed again just before it puts it back, the place belongs to the
 * next group again: a waiter there wakes spuriously, the group's size is then too large by one,
 * and so a later signal goes to a group that has no waiter.
 *
 * The delays are made with the processor's trap flag: a thread that runs instruction by
 * instruction stops where it should. So the test does not depend on luck. The program is correct
 * whichever thread is delayed, wherever and for how long: the final check asks only that one
 * signal wakes one waiter.
 */
#include "conformance.h"

#ifdef __x86_64__
#include <ucontext.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

/* The places where a thread stops, in this order. */
enum { RELEASED_THE_MUTEX, BEFORE_FIRST_EXCHANGE, BEFORE_SECOND_EXCHANGE };

struct stepped {
    struct thread thread;
    /* How many of the stops it makes. */
    int stops;
    /* How many stops it has reached; how many it may leave. */
    int reached, may_leave;
};

static __thread struct stepped *self;

#define TRAP_FLAG 0x100

/* The next instruction is a `lock cmpxchg`. */
static int is_exchange(const unsigned char *code) {
    if (*code++ != 0xf0) return 0;
    if ((*code & 0xf0) == 0x40) code++;
    return code[0] == 0x0f && code[1] == 0xb1;
}

static void stop_here(void) {
    int stop = self->reached;
    /* An implementation that stops at other places than glibc must not be held up forever. */
    struct timespec limit = after_ms(CLOCK_MONOTONIC, 1500);
    SET(self->reached, stop + 1);
    while (GET(self->may_leave) <= stop && !is_past(CLOCK_MONOTONIC, limit)) pause_ms(1);
}

static void step(int signal, siginfo_t *info, void *pointer) {
    ucontext_t *context = (ucontext_t *)pointer;
    int before = errno;
    (void)signal, (void)info;
    switch (self->reached) {
    case RELEASED_THE_MUTEX:
        if (*(volatile int *)&mutex == 0) stop_here();
        break;
    case BEFORE_FIRST_EXCHANGE:
    case BEFORE_SECOND_EXCHANGE:
        if (is_exchange((const unsigned char *)context->uc_mcontext.gregs[REG_RIP])) stop_here();
        break;
    }
    if (self->reached >= self->stops) context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    errno = before;
}

/* Waits once; any wake-up, for whatever reason, ends it. */
static void *wait_once(void *pointer) {
    self = (struct stepped *)pointer;
    OK(pthread_mutex_lock(&mutex));
    if (self->stops > 0) __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    OK(pthread_cond_wait(&condition, &mutex));
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void begin(struct stepped *one, int stops) {
    one->stops = stops;
    one->reached = one->may_leave = 0;
    start(&one->thread, wait_once, one);
    if (stops == 0) until_asleep(&one->thread);
}

/* Lets the thread continue from its last stop, and waits until it reaches the next one, with a
 * time limit. */
static void let_reach(struct stepped *one, int stop) {
    struct timespec limit = after_ms(CLOCK_MONOTONIC, 500);
    SET(one->may_leave, stop);
    while (GET(one->reached) <= stop && !is_past(CLOCK_MONOTONIC, limit)) pause_ms(1);
}

static void signal_one(void) {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(&mutex));
}

/* It has been woken, or will be now. */
static void end(struct stepped *one) {
    SET(one->may_leave, INT_MAX);
    if (!still_waits(&one->thread, 500)) return;
    do {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_cond_broadcast(&condition));
        OK(pthread_mutex_unlock(&mutex));
    } while (still_waits(&one->thread, 50));
}

static int sent;
static void *wait_for_it(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    while (!sent) OK(pthread_cond_wait(&condition, &mutex));
    sent = 0;
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

/* Whether one signal wakes the waiter. */
static int arrives(void) {
    struct thread thread;
    start(&thread, wait_for_it, NULL);
    until_asleep(&thread);
    OK(pthread_mutex_lock(&mutex));
    sent = 1;
    OK(pthread_cond_signal(&condition));
    OK(pthread_mutex_unlock(&mutex));
    int lost = still_waits(&thread, 3000);
    while (lost && still_waits(&thread, 20)) OK(pthread_cond_broadcast(&condition));
    return !lost;
}

LONG_CASE(a_signal_is_not_lost, 60) {
    static struct stepped thief, robbed, plain[3];
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_RESTART};
    OK(sigaction(SIGTRAP, &action, NULL));
    /* A signal for the thief, which is about to take it and is delayed. */
    begin(&thief, 3);
    let_reach(&thief, RELEASED_THE_MUTEX);
    signal_one();
    let_reach(&thief, BEFORE_FIRST_EXCHANGE);
    /* The other place is used... */
    begin(&plain[0], 0);
    signal_one();
    end(&plain[0]);
    /* ... then the thief's again, for a signal that another thread is about to take; the thief
     * takes it, and is delayed while it puts it back. */
    begin(&robbed, 1);
    let_reach(&robbed, RELEASED_THE_MUTEX);
    signal_one();
    let_reach(&thief, BEFORE_SECOND_EXCHANGE);
    /* The place is closed; a thread in it needs no signal any longer. */
    begin(&plain[1], 0);
    signal_one();
    end(&plain[1]);
    end(&robbed);
    /* A new waiter in the place gets the signal that the thief puts back. */
    begin(&plain[2], 0);
    end(&thief);
    end(&plain[2]);
    int arrived = 0;
    for (int round = 0; round < 6; round++) arrived += arrives();
    ANSWER("of-six", "%d", arrived);
}

/* ---- The same, left to chance: a thread may stop for a while after every instruction ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    sem_t sem;
    int level, taken, rounds, asked;
} chance = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
static __thread unsigned seed;

static void step_by_chance(int signal, siginfo_t *info, void *pointer) {
    int before = errno;
    (void)signal, (void)info, (void)pointer;
    seed = seed * 1103515245 + 12345;
    unsigned draw = seed >> 16;
    if (draw % 97 == 0) sched_yield();
    if (draw % 499 == 0) {
        struct timespec nap = {0, 1000 * (draw % 150)};
        syscall(SYS_nanosleep, &nap, NULL);
    }
    errno = before;
}

#define STEP_ON() __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc")
#define STEP_OFF() __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc")

/* Takes items one by one. Each signal counts: there is exactly one for each item. */
static void *take_by_chance(void *number) {
    seed = (unsigned)(long)number;
    for (;;) {
        STEP_ON();
        pthread_mutex_lock(&chance.mutex);
        while (chance.level == 0 && chance.taken < chance.rounds) {
            chance.asked++;
            pthread_cond_wait(&chance.cond, &chance.mutex);
        }
        int is_over = chance.level == 0;
        if (!is_over) {
            chance.level--;
            chance.taken++;
            if (chance.taken == chance.rounds) pthread_cond_broadcast(&chance.cond);
        }
        pthread_mutex_unlock(&chance.mutex);
        STEP_OFF();
        if (is_over) return NULL;
        sem_post(&chance.sem);
    }
}

LONG_CASE(signals_at_every_instruction, 60) {
    enum { TAKERS = 4 };
    struct thread threads[TAKERS];
    struct sigaction action = {.sa_sigaction = step_by_chance, .sa_flags = SA_SIGINFO | SA_RESTART};
    OK(sigaction(SIGTRAP, &action, NULL));
    const char *rounds = getenv("CONFORMANCE_ROUNDS");
    chance.rounds = rounds != NULL ? atoi(rounds) : 100;
    OK(sem_init(&chance.sem, 0, 0));
    for (long each = 0; each < TAKERS; each++)
        start(&threads[each], take_by_chance, (void *)(each + getpid()));
    int stalls = 0;
    for (int round = 0; round < chance.rounds; round++) {
        OK(pthread_mutex_lock(&chance.mutex));
        chance.level++;
        OK(pthread_cond_signal(&chance.cond));
        OK(pthread_mutex_unlock(&chance.mutex));
        /* At most two items are on their way. */
        if (round < 1) continue;
        struct timespec limit = after_ms(CLOCK_REALTIME, 5000);
        while (sem_timedwait(&chance.sem, &limit) != 0) {
            if (errno == EINTR) continue;
            EQ(errno, ETIMEDOUT);
            stalls++;
            OK(pthread_cond_broadcast(&chance.cond));
            limit = after_ms(CLOCK_REALTIME, 5000);
        }
    }
    for (int each = 0; each < TAKERS; each++) join(&threads[each]);
    EQ(chance.taken, chance.rounds);
    EQ(stalls, 0);
}

/* Mutexes, rwlocks and semaphores in the same way: no thread is left behind, and no two threads
 * are inside at once. */
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int inside, readers;

static void *lock_by_chance(void *number) {
    seed = (unsigned)(long)number;
    for (int round = 0; round < chance.rounds; round++) {
        STEP_ON();
        switch (round % 4) {
        case 0:
            pthread_mutex_lock(&chance.mutex);
            STEP_OFF();
            EQ(ADD(inside, 1), 1);
            ADD(inside, -1);
            STEP_ON();
            pthread_mutex_unlock(&chance.mutex);
            break;
        case 1:
            pthread_rwlock_rdlock(&rwlock);
            STEP_OFF();
            CHECK(ADD(readers, 1) < 1000);
            ADD(readers, -1);
            STEP_ON();
            pthread_rwlock_unlock(&rwlock);
            break;
        case 2:
            pthread_rwlock_wrlock(&rwlock);
            STEP_OFF();
            EQ(ADD(readers, 1000), 1000);
            ADD(readers, -1000);
            STEP_ON();
            pthread_rwlock_unlock(&rwlock);
            break;
        default:
            sem_wait(&chance.sem);
            sem_post(&chance.sem);
        }
        STEP_OFF();
    }
    return NULL;
}

LONG_CASE(locks_at_every_instruction, 60) {
    enum { MANY = 4 };
    struct thread threads[MANY];
    struct sigaction action = {.sa_sigaction = step_by_chance, .sa_flags = SA_SIGINFO | SA_RESTART};
    OK(sigaction(SIGTRAP, &action, NULL));
    const char *rounds = getenv("CONFORMANCE_ROUNDS");
    chance.rounds = rounds != NULL ? atoi(rounds) : 100;
    OK(sem_init(&chance.sem, 0, 1));
    for (long each = 0; each < MANY; each++)
        start(&threads[each], lock_by_chance, (void *)(each + getpid()));
    for (int each = 0; each < MANY; each++) join(&threads[each]);
    int value;
    OK(sem_getvalue(&chance.sem, &value));
    EQ(value, 1);
}
#else
CASE(a_signal_is_not_lost) { SKIP("needs x86-64: its trap flag"); }
#endif
