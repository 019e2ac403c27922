// C++: exceptions through pthread_once, std:: types, unwinding by cancellation with destructors,
// locks of libstdc++. Sources: the C++ standard ([thread.once], [thread.condition]),
// pthread_once(3p), pthreads(7).
#include "conformance.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static std::atomic<int> runs;

static void throws_at_first() {
    if (++runs < 3) throw std::runtime_error("not yet");
}

// As if it had never been called.
CASE(once_is_reset_by_an_exception) {
    int caught = 0;
    for (int turn = 0; turn < 5; turn++) {
        try {
            OK(pthread_once(&once, throws_at_first));
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    EQ(caught, 2);
    EQ(runs, 3);
}

static std::atomic<int> entered;
static void throws_slowly() {
    if (++entered == 1) {
        pause_ms(50);
        throw std::runtime_error("not yet");
    }
}

// The waiter runs it then.
CASE(waiter_runs_it_after_an_exception) {
    std::thread other([] {
        while (entered == 0) std::this_thread::yield();
        OK(pthread_once(&once, throws_slowly));
    });
    bool caught = false;
    try {
        pthread_once(&once, throws_slowly);
    } catch (const std::runtime_error &) {
        caught = true;
    }
    CHECK(caught);
    other.join();
    EQ(entered, 2);
}

static std::atomic<int> stage;
static void waits_for_the_other() {
    stage = 1;
    while (stage != 2) std::this_thread::yield();
    pause_ms(30);
    runs = 1;
}
static void throws() { throw std::runtime_error("not now"); }

static void *throws_and_ends(void *) {
    try {
        pthread_once(&once, throws);
    } catch (const std::runtime_error &) {
    }
    stage = 3;
    while (stage != 1) std::this_thread::yield();
    stage = 2;
    pthread_exit(nullptr);
}

// The thread that threw ends while another one runs the routine; the two are unrelated.
CASE(end_of_a_thread_after_an_exception) {
    struct thread thread;
    start(&thread, throws_and_ends, nullptr);
    while (stage != 3) std::this_thread::yield();
    std::thread other([] { OK(pthread_once(&once, waits_for_the_other)); });
    join(&thread);
    OK(pthread_once(&once, waits_for_the_other));
    EQ(runs, 1);
    other.join();
}

CASE(std_call_once) {
    std::once_flag flag;
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; each++)
        threads.emplace_back([&] {
            for (int turn = 0; turn < 10; turn++) {
                try {
                    std::call_once(flag, throws_at_first);
                } catch (const std::runtime_error &) {
                }
            }
        });
    for (auto &thread : threads) thread.join();
    EQ(runs, 3);
}

CASE(std_mutexes) {
    std::mutex mutex;
    std::recursive_mutex recursive;
    std::timed_mutex timed;
    std::shared_timed_mutex shared;
    long counts[4] = {};
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; each++)
        threads.emplace_back([&] {
            for (int turn = 0; turn < 3000; turn++) {
                std::lock_guard<std::mutex> one(mutex);
                counts[0]++;
                std::lock_guard<std::recursive_mutex> two(recursive), three(recursive);
                counts[1]++;
                std::unique_lock<std::timed_mutex> four(timed, 10s);
                CHECK(four.owns_lock());
                counts[2]++;
                if (turn % 4) {
                    std::shared_lock<std::shared_timed_mutex> five(shared);
                } else {
                    std::unique_lock<std::shared_timed_mutex> six(shared, 10s);
                    CHECK(six.owns_lock());
                    counts[3]++;
                }
            }
        });
    for (auto &thread : threads) thread.join();
    EQ(counts[0], 12000);
    EQ(counts[1], 12000);
    EQ(counts[2], 12000);
    EQ(counts[3], 3000);
    std::unique_lock<std::timed_mutex> held(timed);
    std::thread([&] {
        CHECK(!timed.try_lock_for(20ms));
        CHECK(!timed.try_lock_until(std::chrono::system_clock::now() + 20ms));
    }).join();
}

CASE(std_condition_variables) {
    std::mutex mutex;
    std::condition_variable ready;
    std::condition_variable_any any;
    int level = 0, taken = 0;
    std::thread taker([&] {
        for (int turn = 0; turn < 2000; turn++) {
            std::unique_lock<std::mutex> lock(mutex);
            CHECK(ready.wait_for(lock, 10s, [&] { return level > 0; }));
            level--;
            taken++;
            any.notify_one();
        }
    });
    for (int turn = 0; turn < 2000; turn++) {
        std::unique_lock<std::mutex> lock(mutex);
        any.wait(lock, [&] { return level < 2; });
        level++;
        ready.notify_one();
    }
    taker.join();
    EQ(taken, 2000);
    std::unique_lock<std::mutex> lock(mutex);
    CHECK(ready.wait_for(lock, 20ms) == std::cv_status::timeout);
    CHECK(any.wait_until(lock, std::chrono::system_clock::now() + 20ms) == std::cv_status::timeout);
}

CASE(std_futures) {
    std::vector<std::future<int>> futures;
    for (int each = 0; each < 20; each++)
        futures.push_back(std::async(std::launch::async, [each] {
            if (each % 5 == 4) throw std::runtime_error("a fifth");
            return each;
        }));
    int sum = 0, caught = 0;
    for (auto &future : futures) {
        try {
            sum += future.get();
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    EQ(caught, 4);
    EQ(sum, 190 - 4 - 9 - 14 - 19);
}

CASE(notify_all_at_thread_exit) {
    std::mutex mutex;
    std::condition_variable ready;
    bool done = false;
    std::thread([&] {
        std::unique_lock<std::mutex> lock(mutex);
        done = true;
        std::notify_all_at_thread_exit(ready, std::move(lock));
    }).detach();
    std::unique_lock<std::mutex> lock(mutex);
    while (!done) ready.wait(lock);
}

// ---- Unwinding ----

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static std::atomic<int> destroyed, waiting, caught_all;

struct Guard {
    Guard() { OK(pthread_mutex_lock(&mutex)); }
    ~Guard() {
        // Held, as after any wait.
        EQ(pthread_mutex_trylock(&mutex), EBUSY);
        destroyed++;
        OK(pthread_mutex_unlock(&mutex));
    }
};

extern "C" void *wait_guarded(void *) {
    Guard guard;
    try {
        waiting++;
        for (;;) pthread_cond_wait(&condition, &mutex);
    } catch (...) {
        caught_all++;
        throw;
    }
}

CASE(cancelled_waits_run_destructors) {
    struct thread threads[4];
    for (auto &thread : threads) start(&thread, wait_guarded, nullptr);
    UNTIL(waiting == 4);
    for (auto &thread : threads) until_asleep(&thread);
    for (auto &thread : threads) OK(pthread_cancel(thread.handle));
    for (auto &thread : threads) CHECK(join(&thread) == PTHREAD_CANCELED);
    EQ(destroyed, 4);
    EQ(caught_all, 4);
    OK(pthread_mutex_lock(&mutex));
}

struct Count {
    ~Count() { destroyed++; }
};

extern "C" void *wait_for_semaphore(void *) {
    Count count;
    waiting++;
    for (;;) sem_wait(&semaphore);
}

CASE(cancelled_semaphore_waits_run_destructors) {
    struct thread thread;
    OK(sem_init(&semaphore, 0, 0));
    start(&thread, wait_for_semaphore, nullptr);
    UNTIL(waiting == 1);
    until_asleep(&thread);
    OK(pthread_cancel(thread.handle));
    CHECK(join(&thread) == PTHREAD_CANCELED);
    EQ(destroyed, 1);
}

// Destructors that lock while an exception propagates, in many threads at once: the unwinder takes
// locks of its own.
CASE(locks_in_destructors_under_unwinding) {
    std::mutex lock;
    long count = 0;
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; each++)
        threads.emplace_back([&] {
            struct Locking {
                std::mutex &lock;
                long &count;
                ~Locking() {
                    std::lock_guard<std::mutex> guard(lock);
                    count++;
                }
            };
            for (int turn = 0; turn < 1000; turn++) {
                try {
                    Locking one{lock, count};
                    Locking two{lock, count};
                    throw turn;
                } catch (int) {
                }
            }
        });
    for (auto &thread : threads) thread.join();
    EQ(count, 8000);
}

extern "C" void *exit_by_unwinding(void *) {
    Guard guard;
    pthread_exit(&mutex);
}

CASE(thread_exit_runs_destructors) {
    struct thread thread;
    start(&thread, exit_by_unwinding, nullptr);
    CHECK(join(&thread) == &mutex);
    EQ(destroyed, 1);
}

// Thread-local and static objects that lock when they are destroyed; statics guarded by the
// compiler.
struct Static {
    Static() { pause_ms(20); }
    int value = 7;
};

CASE(static_locals_are_made_once) {
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; each++)
        threads.emplace_back([] {
            static Static one;
            EQ(one.value, 7);
        });
    for (auto &thread : threads) thread.join();
}

struct ThreadLocal {
    ~ThreadLocal() {
        std::lock_guard<std::mutex> guard(*lock);
        destroyed++;
    }
    std::mutex *lock;
};

CASE(thread_locals_lock_at_the_end) {
    static std::mutex lock;
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; each++)
        threads.emplace_back([] {
            thread_local ThreadLocal local{&lock};
            std::lock_guard<std::mutex> guard(*local.lock);
        });
    for (auto &thread : threads) thread.join();
    EQ(destroyed, 4);
}

#if __cplusplus >= 202002L
#include <barrier>
#include <latch>
#include <semaphore>

CASE(std_twenty) {
    std::latch latch(4);
    std::barrier barrier(4);
    std::counting_semaphore<8> units(2);
    std::atomic<int> word{0}, inside{0};
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; each++)
        threads.emplace_back([&] {
            latch.arrive_and_wait();
            for (int turn = 0; turn < 500; turn++) {
                units.acquire();
                CHECK(++inside <= 2);
                --inside;
                units.release();
                barrier.arrive_and_wait();
            }
            word++;
            word.notify_all();
        });
    for (int seen = 0; (seen = word.load()) != 4;) word.wait(seen);
    for (auto &thread : threads) thread.join();
}
#endif
