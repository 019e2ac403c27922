/* A thread leaves a function in the middle: it is cancelled and its cancellation type is
 * asynchronous, or a signal handler that has interrupted it ends the thread or jumps. POSIX
 * leaves undefined what becomes of the lock. On glibc neither the thread nor others suffer from
 * it; old programs implement timeouts in this way. Sources: pthread_cancel(3p),
 * pthread_setcanceltype(3p), pthread_exit(3p), siglongjmp(3p), longjmp(3p) ("in a signal
 * handler"). */
#include "leaving.h"
#include <poll.h>

enum way {
    CANCEL,
    EXIT,
    THREAD_EXIT,
    SIGNAL_JUMP,
    JUMP,
    /* On the alternate stack. */
    EXIT_ASIDE,
    JUMP_ASIDE,
    /* From a handler that has interrupted another handler. */
    JUMP_NESTED,
    /* The same, with the second handler on the alternate stack. */
    JUMP_NESTED_ASIDE,
    /* From a handler that has interrupted the call, and that has itself made a call. */
    JUMP_WITHIN,
    /* At a cancellation point in a handler. */
    CANCEL_WITHIN,
};

static const struct call *call;
static enum way way;
static int stage;
static sem_t again;
static __thread sigjmp_buf where;

__attribute__((noinline)) static void jump(void) {
    if (way == JUMP) {
        longjmp(where, 1);
    } else {
        siglongjmp(where, 1);
    }
}

static void second_handler(int signal) {
    (void)signal;
    jump();
}

static void handler(int signal) {
    char space[512];
    (void)signal;
    memset(space, 0x5a, sizeof space);
    __asm__ volatile("" : : "r"(space) : "memory");
    switch (way) {
    case EXIT:
    case EXIT_ASIDE: pthread_exit((void *)&stage);
    case THREAD_EXIT: thrd_exit(7);
    case CANCEL_WITHIN:
        SET(stage, 2);
        OK(pthread_cancel(pthread_self()));
        pthread_testcancel();
        OK(poll(NULL, 0, 0));
        /* Here, or once the function has ended. */
        return;
    case JUMP_NESTED:
    case JUMP_NESTED_ASIDE: pthread_kill(pthread_self(), SIGUSR2); break;
    case JUMP_WITHIN:
        /* A jump within the handler is an ordinary jump; and the handler may post. */
        {
            sigjmp_buf here;
            sem_t own;
            OK(sem_init(&own, 0, 0));
            OK(sem_post(&own));
            OK(sem_trywait(&own));
            if (sigsetjmp(here, 1) == 0) siglongjmp(here, 1);
        }
        jump();
        break;
    default: jump();
    }
    FAIL("it did not leave");
}

static void *leave(void *unused) {
    static char aside[1 << 16];
    (void)unused;
    if (way == CANCEL) OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    if (way == EXIT_ASIDE || way == JUMP_ASIDE || way == JUMP_NESTED_ASIDE) {
        stack_t stack = {.ss_sp = aside, .ss_size = sizeof aside};
        OK(sigaltstack(&stack, NULL));
    }
    if (sigsetjmp(where, way != JUMP) == 0) {
        SET(stage, 1);
        int result = call->block();
        if (way == CANCEL_WITHIN) {
            if (result == 0 && call->undo != NULL && call->undo != with_cond_mutex)
                OK(call->undo());
            pthread_testcancel();
        }
        FAIL("it returned %s", error_name(result));
    }
    /* The thread has jumped. */
    if (call->undo == with_cond_mutex) OK(with_cond_mutex());
    write_over_the_stack();
    sigset_t mask;
    OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
    /* A jump that does not restore the mask keeps the handler's. */
    EQ(sigismember(&mask, SIGUSR1), way == JUMP);
    EQ(sigismember(&mask, SIGUSR2), 0);
    SET(stage, 2);
    while (sem_wait(&again) != 0) EQ(errno, EINTR);
    return NULL;
}

static void handle(int number, void (*function)(int), int flags) {
    struct sigaction action = {.sa_handler = function, .sa_flags = SA_RESTART | flags};
    OK(sigaction(number, &action, NULL));
}

static void *use(void *unused) {
    (void)unused;
    call->use();
    return NULL;
}

static void leaves(const struct call *which, enum way how) {
    struct thread thread, user;
    int is_cancelled = how == CANCEL || how == CANCEL_WITHIN;
    int is_jump = !is_cancelled && how != EXIT && how != EXIT_ASIDE && how != THREAD_EXIT;
    call = which;
    way = how;
    handle(SIGUSR1, handler, how == EXIT_ASIDE || how == JUMP_ASIDE ? SA_ONSTACK : 0);
    handle(SIGUSR2, second_handler, how == JUMP_NESTED_ASIDE ? SA_ONSTACK : 0);
    OK(sem_init(&again, 0, 0));
    for (int turn = 0; turn < 3; turn++) {
        stage = 0;
        call->hold();
        start(&thread, leave, NULL);
        UNTIL(GET(stage) == 1);
        if (call->spins) {
            pause_ms(20);
        } else {
            until_asleep(&thread);
        }
        OK(how == CANCEL ? pthread_cancel(thread.handle) : pthread_kill(thread.handle, SIGUSR1));
        if (is_jump) {
            /* It leaves while the other thread still holds the lock, and waits for something
             * else. */
            UNTIL(GET(stage) == 2);
            until_asleep(&thread);
            OK(sem_post(&again));
        }
        if (how == CANCEL_WITHIN) {
            /* The handler runs. Before that, a release might hand off a lock that inherits
             * priority: the thread would own it and end. */
            UNTIL(GET(stage) == 2);
            pause_ms(20);
            call->release();
        }
        void *result = join(&thread);
        if (is_cancelled) CHECK(result == PTHREAD_CANCELED);
        if (how == EXIT || how == EXIT_ASIDE) CHECK(result == (void *)&stage);
        if (how == THREAD_EXIT) EQ((int)(long)result, 7);
        if (how != CANCEL_WITHIN) call->release();
        start(&user, use, NULL);
        join(&user);
    }
}

#define CASES_OF(name, ...)                                                \
    CASE(name##_cancelled) { leaves(&of_##name, CANCEL); }               \
    CASE(name##_exits) { leaves(&of_##name, EXIT); }                     \
    CASE(name##_siglongjmp) { leaves(&of_##name, SIGNAL_JUMP); }         \
    CASE(name##_longjmp) { leaves(&of_##name, JUMP); }
EACH_CALL(CASES_OF)

/* The other ways, out of some of the calls. */
#define MORE_CASES_OF(name)                                                \
    CASE(name##_thrd_exit) { leaves(&of_##name, THREAD_EXIT); }          \
    CASE(name##_exits_aside) { leaves(&of_##name, EXIT_ASIDE); }         \
    CASE(name##_jumps_aside) { leaves(&of_##name, JUMP_ASIDE); }         \
    CASE(name##_jumps_nested) { leaves(&of_##name, JUMP_NESTED); }       \
    CASE(name##_jumps_nested_aside) { leaves(&of_##name, JUMP_NESTED_ASIDE); } \
    CASE(name##_jumps_within) { leaves(&of_##name, JUMP_WITHIN); }
MORE_CASES_OF(normal_lock)
MORE_CASES_OF(inheriting_lock)
MORE_CASES_OF(wrlock)
MORE_CASES_OF(cond_wait)
MORE_CASES_OF(sem_wait)
MORE_CASES_OF(barrier_wait)
MORE_CASES_OF(spin_lock)

#define CANCELLED_WITHIN(name) \
    CASE(name##_cancelled_in_a_handler) { leaves(&of_##name, CANCEL_WITHIN); }
CANCELLED_WITHIN(normal_lock)
CANCELLED_WITHIN(recursive_timedlock)
CANCELLED_WITHIN(inheriting_lock)
CANCELLED_WITHIN(rdlock)
CANCELLED_WITHIN(timedwrlock)
CANCELLED_WITHIN(cond_wait)
CANCELLED_WITHIN(cond_wait_inheriting)
CANCELLED_WITHIN(sem_wait)
CANCELLED_WITHIN(once)
CANCELLED_WITHIN(spin_lock)
CANCELLED_WITHIN(mtx_lock)

