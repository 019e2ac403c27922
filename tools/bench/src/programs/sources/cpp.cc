// Every kind of lock in the C++20 library. Prints the same in every run.

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stop_token>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
constexpr int THREADS = 4;
static int turns;

template <class Body> static void all(Body body) {
    std::vector<std::jthread> threads;
    for (int number = 0; number < THREADS; number++) threads.emplace_back(body, number);
}

template <class Mutex> static void count(const char *name) {
    Mutex mutex;
    long counted = 0;
    all([&](int) {
        for (int i = 0; i < turns; i++) {
            std::lock_guard guard(mutex);
            counted++;
        }
    });
    std::printf("%s %ld\n", name, counted);
}

int main(int, char **arguments) {
    turns = std::atoi(arguments[1]);
    auto started = std::chrono::steady_clock::now();

    count<std::mutex>("mutex");
    count<std::recursive_mutex>("recursive");
    count<std::timed_mutex>("timed");
    count<std::shared_timed_mutex>("shared, timed");

    {
        std::atomic<int> turn = 0;
        all([&](int number) {
            for (int i = 0; i < turns / 10; i++) {
                for (int now; (now = turn.load()) % THREADS != number;) turn.wait(now);
                turn++;
                turn.notify_all();
            }
        });
        std::printf("atomic wait %d\n", turn.load());
        // The library has no futex for a type of this size: it waits on a separate word.
        std::atomic<long> wide = 0;
        std::jthread waker([&] { wide = 1; wide.notify_one(); });
        wide.wait(0);
        std::printf("wide wait %ld\n", wide.load());
    }
    {
        std::mutex mutex;
        std::condition_variable changed;
        int turn = 0;
        all([&](int number) {
            for (int i = 0; i < turns / 10; i++) {
                std::unique_lock guard(mutex);
                changed.wait(guard, [&] { return turn % THREADS == number; });
                turn++;
                changed.notify_all();
            }
        });
        std::unique_lock guard(mutex);
        bool late = changed.wait_for(guard, 20ms) == std::cv_status::timeout;
        late &= !changed.wait_until(guard, std::chrono::system_clock::now() + 20ms,
                                    [] { return false; });
        std::printf("condition %d, timeouts %d\n", turn, late);
    }
    {
        std::shared_mutex mutex;
        long written = 0, torn = 0;
        long copies[2] = {0, 0};
        all([&](int) {
            for (int i = 0; i < turns; i++) {
                if (i % 10 == 0) {
                    std::unique_lock guard(mutex);
                    written++, copies[0]++, copies[1]++;
                } else {
                    std::shared_lock guard(mutex);
                    if (copies[0] != copies[1]) std::atomic_ref(torn)++;
                }
            }
        });
        std::printf("shared %ld, torn %ld\n", written, torn);
    }
    {
        std::counting_semaphore<8> places(2);
        std::barrier meeting(THREADS);
        std::latch ended(THREADS);
        std::atomic<int> inside = 0, too_many = 0;
        all([&](int) {
            for (int i = 0; i < turns / 10; i++) {
                places.acquire();
                if (++inside > 2) too_many++;
                inside--;
                places.release();
                if (i % 10 == 0) meeting.arrive_and_wait();
            }
            ended.arrive_and_wait();
        });
        std::printf("semaphore, barrier, latch: too many %d\n", too_many.load());
    }
    {
        std::once_flag once;
        std::atomic<int> tries = 0, thrown = 0;
        all([&](int) {
            try {
                std::call_once(once, [&] {
                    if (++tries < 3) throw tries.load();
                });
            } catch (int) {
                thrown++;
            }
        });
        std::printf("once: thrown %d of %d tries\n", thrown.load(), tries.load());
    }
    {
        long sum = 0;
        for (int i = 0; i < 200; i++)
            sum += std::async(std::launch::async, [i] { return i; }).get();
        std::promise<int> promise;
        std::thread giver([&] { promise.set_value_at_thread_exit(7); });
        std::printf("futures %ld, at thread exit %d\n", sum, promise.get_future().get());
        giver.join();
    }
    {
        std::mutex mutex;
        std::condition_variable_any changed;
        bool stopped = false;
        std::jthread waiter([&](std::stop_token stop) {
            std::unique_lock guard(mutex);
            changed.wait(guard, stop, [] { return false; });
            stopped = stop.stop_requested();
        });
        std::this_thread::sleep_for(5ms);
        waiter.request_stop();
        waiter.join();
        std::printf("stopped %d\n", stopped);
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    std::fprintf(stderr, "seconds %f\n", took.count());
}
