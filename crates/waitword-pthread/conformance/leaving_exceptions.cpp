// A signal handler lets an exception out of the function that it has interrupted. The C++ standard
// leaves it open ([support.signal]); on glibc the caller catches it, and neither the thread nor the
// lock suffers from it. (Where the compiler was told that the function does not throw, and the
// caller has a table of calls, the process ends: so each is called through a pointer.)
#include "leaving.h"

#include <exception>

enum way {
    THROW,
    // On the alternate stack.
    THROW_ASIDE,
    // It catches another exception first, and lets that one out.
    RETHROW,
    // From a handler that has interrupted the first.
    THROW_NESTED,
    THROW_NESTED_ASIDE,
    // The first handler waits too; it catches the exception that the second one lets out of that
    // wait, and then throws.
    THROW_TWICE,
    // Within the handler: the function keeps waiting.
    CATCH,
    // Nothing catches it.
    UNCAUGHT,
};

struct Left {
    int by;
};

static const struct call *call;
static enum way way;
static int stage, destroyed;
static sem_t again;

struct Counted {
    ~Counted() { ADD(destroyed, 1); }
};

static void second_handler(int) {
    Counted counted;
    SET(stage, 3);
    throw Left{2};
}

__attribute__((noinline)) static void wait_in_handler() {
    Counted counted;
    sem_t own;
    OK(sem_init(&own, 0, 0));
    SET(stage, 2);
    int (*volatile wait)(sem_t *) = sem_wait;
    wait(&own);
    FAIL("it returned");
}

static void handler(int) {
    Counted counted;
    char space[512];
    memset(space, 0x5a, sizeof space);
    __asm__ volatile("" : : "r"(space) : "memory");
    switch (way) {
    case RETHROW:
        try {
            Counted another;
            throw Left{1};
        } catch (const Left &) {
            throw;
        }
    case THROW_NESTED:
    case THROW_NESTED_ASIDE: {
        int (*volatile kill)(pthread_t, int) = pthread_kill;
        kill(pthread_self(), SIGUSR2);
        FAIL("it did not leave");
    }
    case THROW_TWICE:
        try {
            wait_in_handler();
        } catch (const Left &left) {
            EQ(left.by, 2);
        }
        throw Left{1};
    case CATCH:
        try {
            Counted another;
            throw Left{1};
        } catch (const Left &) {
        }
        SET(stage, 2);
        return;
    default: throw Left{1};
    }
}

static void *leave(void *) {
    static char aside[1 << 16];
    volatile int caught = 0;
    if (way == THROW_ASIDE || way == THROW_NESTED_ASIDE) {
        stack_t stack = {.ss_sp = aside, .ss_flags = 0, .ss_size = sizeof aside};
        OK(sigaltstack(&stack, NULL));
    }
    int (*volatile block)() = call->block;
    if (way == UNCAUGHT) {
        SET(stage, 1);
        block();
    }
    try {
        Counted counted;
        SET(stage, 1);
        int result = block();
        if (way == CATCH) {
            if (result == 0 && call->undo != NULL && call->undo != with_cond_mutex)
                OK(call->undo());
            return NULL;
        }
        FAIL("it returned %s", error_name(result));
    } catch (const Left &left) {
        caught = left.by;
    }
    EQ(caught, way == THROW_NESTED || way == THROW_NESTED_ASIDE ? 2 : 1);
    CHECK(std::uncaught_exceptions() == 0);
    write_over_the_stack();
    sigset_t mask;
    OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
    // Nothing has restored it.
    EQ(sigismember(&mask, SIGUSR1), 1);
    OK(pthread_sigmask(SIG_SETMASK, NULL, &mask));
    SET(stage, 4);
    while (sem_wait(&again) != 0) EQ(errno, EINTR);
    return NULL;
}

static void handle(int number, void (*function)(int), int flags) {
    struct sigaction action = {};
    action.sa_handler = function;
    action.sa_flags = SA_RESTART | flags;
    OK(sigaction(number, &action, NULL));
}

static void *use(void *) {
    call->use();
    return NULL;
}

static void begin(struct thread *thread) {
    handle(SIGUSR1, handler, way == THROW_ASIDE ? SA_ONSTACK : 0);
    handle(SIGUSR2, second_handler, way == THROW_NESTED_ASIDE ? SA_ONSTACK : 0);
    OK(sem_init(&again, 0, 0));
    stage = destroyed = 0;
    call->hold();
    start(thread, leave, NULL);
    UNTIL(GET(stage) == 1);
    if (call->spins) {
        pause_ms(20);
    } else {
        until_asleep(thread);
    }
    OK(pthread_kill(thread->handle, SIGUSR1));
}

static int destroyed_by(enum way how) {
    switch (how) {
    case RETHROW: return 3;
    case THROW_NESTED:
    case THROW_NESTED_ASIDE: return 3;
    case THROW_TWICE: return 4;
    case CATCH: return 3;
    default: return 2;
    }
}

static void leaves(const struct call *which, enum way how) {
    struct thread thread, user;
    call = which;
    way = how;
    // The C library's wait leaves the mutex unlocked, and counts the thread as a waiter.
    if (call->undo == with_cond_mutex && !forgets_lost_threads()) return;
    for (int turn = 0; turn < 3; turn++) {
        begin(&thread);
        if (way == THROW_TWICE) {
            UNTIL(GET(stage) == 2);
            until_asleep(&thread);
            OK(pthread_kill(thread.handle, SIGUSR2));
        }
        if (way == CATCH) {
            UNTIL(GET(stage) == 2);
            if (!call->spins) until_asleep(&thread);
            CHECK(still_waits(&thread, 10));
            call->release();
        } else {
            // It leaves while the other thread still holds the lock, and waits for something else.
            UNTIL(GET(stage) == 4);
            until_asleep(&thread);
            OK(sem_post(&again));
        }
        join(&thread);
        EQ(destroyed, destroyed_by(way));
        if (way != CATCH) call->release();
        start(&user, use, NULL);
        join(&user);
    }
}

#define CASES_OF(name, ...) \
    CASE(name##_throws) { leaves(&of_##name, THROW); }
EACH_CALL(CASES_OF)

// The other ways, out of some of the calls.
#define MORE_CASES_OF(name)                                                     \
    CASE(name##_throws_aside) { leaves(&of_##name, THROW_ASIDE); }              \
    CASE(name##_throws_again) { leaves(&of_##name, RETHROW); }                  \
    CASE(name##_throws_nested) { leaves(&of_##name, THROW_NESTED); }            \
    CASE(name##_throws_nested_aside) { leaves(&of_##name, THROW_NESTED_ASIDE); } \
    CASE(name##_throws_twice) { leaves(&of_##name, THROW_TWICE); }
MORE_CASES_OF(normal_lock)
MORE_CASES_OF(inheriting_lock)
MORE_CASES_OF(wrlock)
MORE_CASES_OF(cond_wait)
MORE_CASES_OF(sem_wait)
MORE_CASES_OF(spin_lock)

#define CATCHES(name) \
    CASE(name##_waits_on) { leaves(&of_##name, CATCH); }
CATCHES(normal_lock)
CATCHES(inheriting_lock)
CATCHES(rdlock)
CATCHES(once)
CATCHES(mtx_lock)

static void ends_the_process(const struct call *which) {
    CHILD(child, {
        static struct thread thread;
        std::set_terminate([] {
            bool is_that = false;
            try {
                throw;
            } catch (const Left &) {
                is_that = true;
            }
            _exit(is_that ? 7 : 1);
        });
        call = which;
        way = UNCAUGHT;
        begin(&thread);
        pause_ms(FAR_AWAY);
    });
    int status;
    EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    EQ(WEXITSTATUS(status), 7);
}
CASE(uncaught_out_of_a_lock) { ends_the_process(&of_normal_lock); }
CASE(uncaught_out_of_a_semaphore) { ends_the_process(&of_sem_wait); }
