/* `leaving.c` and `leaving_exceptions.cpp` at every instruction: threads run step by step with
 * the processor's trap flag, and leave a function between any two of its instructions.
 * Afterwards other threads use the object as if the one that left had never been there.
 *
 * The C library itself has instructions at which that goes wrong, so these cases are for the
 * drop-in; on glibc alone they do nothing. Only on x86-64. */
#include "leaving.h"

#ifdef __x86_64__
enum way { JUMP, EXIT, CANCEL, THROW };

struct Left {};

static const struct call *call;
static enum way way;
/* The step to leave at. */
static int target;
static int stage, steps;
static __thread sigjmp_buf where;
static __thread int is_stepped;

#define STEP_ON() __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc")

static int once_nothing_runs, runs_before;
static void nothing(void) { ADD(once_nothing_runs, 1); }

static void leave_now(void) {
    runs_before = GET(once_nothing_runs);
    switch (way) {
    case EXIT: pthread_exit(NULL);
    case CANCEL: OK(pthread_cancel(pthread_self())); break;
    case THROW: throw Left();
    default: siglongjmp(where, 1);
    }
}

/* No further step is needed. */
static int steps_enough;

static void step(int signal, siginfo_t *info, void *context) {
    ucontext_t *interrupted = (ucontext_t *)context;
    (void)signal;
    (void)info;
    int is_target = is_stepped && !GET(steps_enough) && ADD(steps, 1) == target;
    if (!is_stepped || is_target || GET(steps_enough))
        interrupted->uc_mcontext.gregs[REG_EFL] &= ~0x100;
    if (is_target) leave_now();
}

/* It sleeps, and reaches no further step. */
static void no_more_steps(int signal) {
    (void)signal;
    leave_now();
}

static int (*stepped)(void);

/* A separate function: the compiler's table of calls, which a `try` needs, covers no other
 * instructions. */
__attribute__((noinline)) static void run_stepped(void) {
    STEP_ON();
    stepped();
    /* The next step is the last. */
    is_stepped = 0;
}

static void has_left(void) {
    is_stepped = 0;
    if (call != NULL && call->undo == with_cond_mutex) OK(with_cond_mutex());
    write_over_the_stack();
    SET(stage, 2);
}

static void *leave(void *unused) {
    (void)unused;
    if (way == CANCEL) OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    if (sigsetjmp(where, 1) != 0) {
        has_left();
        return NULL;
    }
    try {
        SET(stage, 1);
        is_stepped = 1;
        run_stepped();
        SET(stage, 3);
        if (way == CANCEL) pthread_testcancel();
    } catch (const Left &) {
        has_left();
    }
    return NULL;
}

static void begin(const struct call *which, enum way how) {
    call = which;
    way = how;
    struct sigaction action = {};
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    action.sa_sigaction = step;
    OK(sigaction(SIGTRAP, &action, NULL));
    action.sa_flags = SA_RESTART;
    action.sa_handler = no_more_steps;
    OK(sigaction(SIGUSR1, &action, NULL));
}

/* Roughly how many places are tried. */
static int places(void) {
    const char *rounds = getenv("CONFORMANCE_ROUNDS");
    return rounds != NULL ? atoi(rounds) : 60;
}

/* Waits until the thread has left or sleeps; returns whether it has left. */
static int until_left_or_asleep(struct thread *thread) {
    int asleep = 0;
    void *result;
    UNTIL(GET(thread->id) != 0);
    for (;;) {
        struct timespec until = after_ms(CLOCK_REALTIME, 1);
        if (pthread_timedjoin_np(thread->handle, &result, &until) == 0) return 1;
        asleep = thread_state(getpid(), GET(thread->id)) == 'S' ? asleep + 1 : 0;
        if (asleep > 5) return 0;
    }
}

/* One thread leaves at this step, or asleep if it does not reach it. Returns whether it reached
 * the step. */
static int leave_at(int at) {
    struct thread thread;
    stage = steps = steps_enough = 0;
    target = at;
    start(&thread, leave, NULL);
    if (until_left_or_asleep(&thread)) return 1;
    SET(steps_enough, 1);
    if (way == CANCEL) {
        OK(pthread_cancel(thread.handle));
    } else {
        OK(pthread_kill(thread.handle, SIGUSR1));
    }
    join(&thread);
    return 0;
}

/* ---- A lock that another thread holds ---- */

static void leaves_at_each_step(const struct call *which, enum way how) {
    if (!forgets_lost_threads()) return;
    begin(which, how);
    stepped = call->block;
    /* Spin locks never sleep, so a fixed number of steps is tried. */
    int last = 2500, at = 1;
    if (!call->spins) {
        call->hold();
        leave_at(-1);
        last = steps;
        call->release();
        call->use();
    }
    CHECK(last > 30);
    /* The first instructions one by one, and some of the rest. */
    while (at < last) {
        call->hold();
        leave_at(at);
        call->release();
        call->use();
        at += at < 30 ? 1 : 1 + rand() % (1 + 2 * last / places());
    }
}

#define CASES_OF(name, ...)                                                          \
    LONG_CASE(name##_jumps, 60) { leaves_at_each_step(&of_##name, JUMP); }           \
    LONG_CASE(name##_exits, 60) { leaves_at_each_step(&of_##name, EXIT); }           \
    LONG_CASE(name##_cancelled, 60) { leaves_at_each_step(&of_##name, CANCEL); }     \
    LONG_CASE(name##_throws, 60) { leaves_at_each_step(&of_##name, THROW); }
#define EACH_STEPPED_CALL(each)                                                                 \
    each(normal_lock) each(normal_timedlock) each(recursive_lock) each(inheriting_lock)         \
    each(inheriting_timedlock) each(rdlock) each(wrlock) each(clockwrlock) each(sem_wait)       \
    each(sem_timedwait) each(barrier_wait) each(spin_lock)
EACH_STEPPED_CALL(CASES_OF)

/* The wait alone, with the mutex held: a thread that jumps out of it holds the mutex. */
static int wait_alone(void) { return pthread_cond_wait(&condition, &cond_mutex); }
static void *leave_cond(void *unused) {
    OK(pthread_mutex_lock(&cond_mutex));
    pthread_cleanup_push(unlock_cond_mutex, NULL);
    leave(unused);
    pthread_cleanup_pop(0);
    return NULL;
}

static int leave_cond_at(int at) {
    struct thread thread;
    stage = steps = steps_enough = 0;
    target = at;
    start(&thread, leave_cond, NULL);
    if (until_left_or_asleep(&thread)) return 1;
    SET(steps_enough, 1);
    OK(way == CANCEL ? pthread_cancel(thread.handle) : pthread_kill(thread.handle, SIGUSR1));
    join(&thread);
    return 0;
}

static void leaves_cond_at_each_step(const struct call *which, enum way how) {
    if (!forgets_lost_threads()) return;
    begin(which, how);
    stepped = wait_alone;
    call->hold();
    leave_cond_at(-1);
    int last = steps, at = 1;
    call->use();
    CHECK(last > 30);
    while (at < last) {
        call->hold();
        leave_cond_at(at);
        call->use();
        at += at < 30 ? 1 : 1 + rand() % (1 + 2 * last / places());
    }
}

#define COND_CASES_OF(name)                                                               \
    LONG_CASE(name##_jumps, 60) { leaves_cond_at_each_step(&of_##name, JUMP); }           \
    LONG_CASE(name##_exits, 60) { leaves_cond_at_each_step(&of_##name, EXIT); }           \
    LONG_CASE(name##_cancelled, 60) { leaves_cond_at_each_step(&of_##name, CANCEL); }     \
    LONG_CASE(name##_throws, 60) { leaves_cond_at_each_step(&of_##name, THROW); }
COND_CASES_OF(cond_wait)
COND_CASES_OF(cond_wait_inheriting)

/* ---- Calls that wake other threads, and calls that need not wait: what others use stays intact
 * ---- */

static pthread_mutex_t recursive;
static pthread_rwlock_t read_by_many;

static int lock_and_unlock(void) {
    return pthread_mutex_lock(&mutex) | pthread_mutex_unlock(&mutex);
}
static int lock_and_unlock_recursive(void) {
    return pthread_mutex_lock(&recursive) | pthread_mutex_lock(&recursive) |
           pthread_mutex_unlock(&recursive) | pthread_mutex_unlock(&recursive);
}
static int read_and_write(void) {
    return pthread_rwlock_rdlock(&read_by_many) | pthread_rwlock_unlock(&read_by_many) |
           pthread_rwlock_wrlock(&read_by_many) | pthread_rwlock_unlock(&read_by_many);
}
static int post_and_wait(void) { return sem_post(&sem) | sem_wait(&sem); }
static int signal_and_broadcast(void) {
    return pthread_cond_signal(&condition) | pthread_cond_broadcast(&condition);
}
static int do_nothing_once(void) { return pthread_once(&once, nothing); }
static int wake_word(void) {
    return (int)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Other threads wait for these objects, a little each time. They may miss a wake-up that was
 * about to be made. */
static int others_end;
static void *wait_a_little(void *number) {
    while (!GET(others_end)) {
        struct timespec soon = after_ms(CLOCK_REALTIME, 5);
        int result;
        switch ((long)number) {
        case 0:
            if (pthread_mutex_timedlock(&mutex, &soon) == 0) OK(pthread_mutex_unlock(&mutex));
            break;
        case 1:
            result = pthread_rwlock_timedwrlock(&read_by_many, &soon);
            if (result == 0) OK(pthread_rwlock_unlock(&read_by_many));
            break;
        case 2: sem_timedwait(&sem, &soon); break;
        case 3:
            OK(pthread_mutex_lock(&cond_mutex));
            pthread_cond_timedwait(&condition, &cond_mutex, &soon);
            OK(pthread_mutex_unlock(&cond_mutex));
            break;
        default: {
            struct timespec time = {0, 5000000};
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
        }
        }
    }
    return NULL;
}

static void leaves_what_others_use(int (*used)(void), enum way how) {
    enum { OTHERS = 5 };
    struct thread others[OTHERS];
    if (!forgets_lost_threads()) return;
    begin(NULL, how);
    stepped = used;
    for (int turn = 0, at = 1, misses = 0; misses < 3 && turn < 6 * places(); turn++) {
        /* New objects: the old ones may have been left in the middle of an acquire or a release. */
        init_mutex(&mutex, PTHREAD_MUTEX_NORMAL, 0, 0, 0);
        init_mutex(&recursive, PTHREAD_MUTEX_RECURSIVE, 0, 0, 0);
        make_cond();
        OK(sem_init(&sem, 0, 0));
        OK(pthread_rwlock_init(&read_by_many, NULL));
        once = (pthread_once_t)PTHREAD_ONCE_INIT;
        SET(others_end, 0);
        for (long each = 0; each < OTHERS; each++)
            start(&others[each], wait_a_little, (void *)each);
        if (turn % 2) pause_ms(1);
        leave_at(at);
        misses = GET(stage) == 3 || at > GET(steps) ? misses + 1 : 0;
        SET(others_end, 1);
        for (int each = 0; each < OTHERS; each++) join(&others[each]);
        /* The thread that left has not gone on to run the routine, and no thread runs it any
         * longer. */
        if (GET(stage) != 3) EQ(once_nothing_runs, runs_before);
        OK(do_nothing_once());
        at += at < 60 ? 1 : 1 + rand() % 20;
    }
}

#define USED(name)                                                                     \
    LONG_CASE(name##_jumps, 60) { leaves_what_others_use(name, JUMP); }                \
    LONG_CASE(name##_exits, 60) { leaves_what_others_use(name, EXIT); }                \
    LONG_CASE(name##_cancelled, 60) { leaves_what_others_use(name, CANCEL); }          \
    LONG_CASE(name##_throws, 60) { leaves_what_others_use(name, THROW); }
USED(lock_and_unlock)
USED(lock_and_unlock_recursive)
USED(read_and_write)
USED(post_and_wait)
USED(signal_and_broadcast)
USED(do_nothing_once)
USED(wake_word)
#else
CASE(other_machines) { SKIP("only on x86-64"); }
#endif
