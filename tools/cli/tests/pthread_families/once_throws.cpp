// An exception leaves the routine of pthread_once, and of std::call_once, which is built on it.
// Threads are cancelled in the middle of C++ code: libgcc calls pthread_once while it unwinds.
extern "C" {
#include "served.h"
}
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile int runs, caught;

static void throw_twice()
{
    if (__atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED) <= 2) {
        sleep_ms(5);
        throw std::runtime_error("not this time");
    }
}

static void call()
{
    try {
        GIVES(0, pthread_once(&once, throw_twice));
    } catch (const std::runtime_error &) {
        __atomic_fetch_add(&caught, 1, __ATOMIC_RELAXED);
    }
}

struct Guard {
    volatile int *destroyed;
    ~Guard() { __atomic_fetch_add(destroyed, 1, __ATOMIC_RELAXED); }
};

static volatile int destroyed, is_inside;

static void wait_forever()
{
    Guard guard{&destroyed};
    set(&is_inside);
    for (;;)
        pause();
}

static void *call_and_be_cancelled(void *control)
{
    Guard guard{&destroyed};
    pthread_once(static_cast<pthread_once_t *>(control), wait_forever);
    return nullptr;
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; i++)
        threads.emplace_back(call);
    for (auto &thread : threads)
        thread.join();
    GIVES(3, runs);
    GIVES(2, caught);

    std::once_flag flag;
    int tries = 0;
    for (int i = 0; i < 4; i++) {
        try {
            std::call_once(flag, [&] {
                if (++tries < 3)
                    throw tries;
            });
        } catch (int) {
        }
    }
    GIVES(3, tries);

    static pthread_once_t left = PTHREAD_ONCE_INIT;
    pthread_t thread = start(call_and_be_cancelled, &left);
    GIVES(1, comes(&is_inside));
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    GIVES(PTHREAD_CANCELED, result);
    GIVES(2, destroyed);
    static volatile int done;
    GIVES(0, pthread_once(&left, [] { set(&done); }));
    GIVES(1, done);
    return report("once_throws");
}
