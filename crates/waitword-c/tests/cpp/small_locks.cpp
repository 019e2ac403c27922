// The semaphores, barriers, latches, once flags and waits on atomics of waitword.hpp behave like
// their namesakes in std.
#include "check.hpp"

#include <waitword.hpp>

#include <cstring>
#include <limits>
#include <memory>
#include <string>

namespace {

void semaphores()
{
    waitword::counting_semaphore<10> semaphore(2);
    semaphore.acquire();
    CHECK(semaphore.try_acquire());
    CHECK(!semaphore.try_acquire());
    times_out([&](auto time) { return semaphore.try_acquire_for(time); },
              [&](auto time) { return semaphore.try_acquire_until(time); });
    std::thread releaser([&] {
        for (int i = 0; i < 12; i++)
            semaphore.release();
    });
    semaphore.acquire();
    comes_in_time([&](auto time) { return semaphore.try_acquire_for(time); },
                  [&](auto time) { return semaphore.try_acquire_until(time); });
    releaser.join();
    CHECK(!semaphore.try_acquire());
    semaphore.release(3);
    semaphore.release(0);
    crew(3, [&](int) { semaphore.acquire(); });
    CHECK(!semaphore.try_acquire());
    THROWS(invalid_argument, semaphore.release(-1));
    THROWS(value_too_large, semaphore.release(semaphore.max() + 1));
    semaphore.release(semaphore.max());
    THROWS(value_too_large, semaphore.release());
    THROWS(invalid_argument, waitword::binary_semaphore(-1));
    THROWS(invalid_argument, waitword::binary_semaphore(semaphore.max() + 1));

    // Turns.
    waitword::binary_semaphore ping(1), pong(0);
    int turns = 0;
    crew(2, [&](int number) {
        for (int i = 0; i < 500; i++) {
            (number ? pong : ping).acquire();
            turns++;
            (number ? ping : pong).release();
        }
    });
    CHECK(turns == 1000);
}

void barriers()
{
    constexpr int threads = 4, phases = 300;
    std::atomic<int> arrived{0};
    int completed = 0;
    const auto completion = [&]() noexcept {
        if (arrived.exchange(0) != threads)
            CHECK(!"complete");
        completed++;
    };
    waitword::barrier barrier(threads, completion);
    crew(threads, [&](int number) {
        for (int i = 0; i < phases; i++) {
            arrived++;
            if (i % 3 == number % 3) {
                auto token = barrier.arrive();
                barrier.wait(std::move(token));
            } else {
                barrier.arrive_and_wait();
            }
            // The next phase cannot complete before this thread has arrived in it.
            if (completed != i + 1)
                CHECK(completed == i + 1);
        }
    });
    CHECK(completed == phases);

    // Several arrivals by one thread, and none by threads that have dropped out.
    waitword::barrier<> plain(3);
    auto token = plain.arrive(2);
    std::thread third([&] { plain.arrive_and_wait(); });
    plain.wait(std::move(token));
    third.join();
    plain.arrive_and_drop();
    plain.arrive_and_drop();
    plain.arrive_and_wait();
    plain.arrive_and_wait(); // alone now
    auto last = plain.arrive();
    plain.wait(std::move(last));
    crew(1, [&](int) { plain.arrive_and_drop(); });
    THROWS(invalid_argument, waitword::barrier<>(-1));
    THROWS(invalid_argument, waitword::barrier<>(plain.max() + 1));
}

void latches()
{
    waitword::latch latch(6);
    std::atomic<int> before{0}, after{0};
    CHECK(!latch.try_wait());
    crew(5, [&](int number) {
        before++;
        if (number == 0) {
            latch.count_down(2);
            latch.wait();
        } else if (number < 3) {
            latch.arrive_and_wait();
        } else {
            latch.count_down();
            latch.wait();
        }
        CHECK(before == 5);
        after++;
    });
    CHECK(after == 5 && latch.try_wait());
    latch.wait();
    THROWS(invalid_argument, latch.count_down());
    THROWS(invalid_argument, latch.count_down(-1));
    THROWS(invalid_argument, waitword::latch(-1));
    THROWS(invalid_argument, waitword::latch(latch.max() + 1));
    CHECK(waitword::latch(0).try_wait());
    waitword::latch alone(3);
    alone.arrive_and_wait(3);
}

// Waits for another value of T, in every possible way.
template <class T> void atomics(T old, T other)
{
    std::atomic<T> atomic(old);
    const auto is_old = [&] {
        const T now = atomic.load();
        return std::memcmp(&now, &old, sizeof old) == 0;
    };
    waitword::atomic_wait(&atomic, other);
    times_out([&](auto time) { return waitword::atomic_wait_for(&atomic, old, time); },
              [&](auto time) { return waitword::atomic_wait_until(&atomic, old, time); });
    std::atomic<int> through{0};
    std::thread changer([&] {
        std::this_thread::sleep_for(1ms);
        atomic = other;
        waitword::atomic_notify_one(&atomic);
        waitword::atomic_notify_all(&atomic);
    });
    crew(4, [&](int number) {
        if (number == 0)
            waitword::atomic_wait(&atomic, old);
        else if (number == 1)
            waitword::atomic_wait_explicit(&atomic, old, std::memory_order_acquire);
        else if (number == 2)
            CHECK(waitword::atomic_wait_for(&atomic, old, never));
        else
            CHECK(waitword::atomic_wait_until(&atomic, old, slow_clock::now() + never,
                                              std::memory_order_relaxed));
        CHECK(!is_old());
        through++;
    });
    changer.join();
    CHECK(through == 4);
    comes_in_time([&](auto time) { return waitword::atomic_wait_for(&atomic, old, time); },
                  [&](auto time) { return waitword::atomic_wait_until(&atomic, old, time); });
}

enum class colour : short { red, green };
enum plain_enum { one, two };
struct position {
    std::int16_t x, y;
};
struct alignas(8) wide_position {
    std::int32_t x, y;
};

void atomic_waits()
{
    static int a, b;
    atomics<bool>(false, true);
    atomics<char>('a', 'b');
    atomics<unsigned char>(255, 0);
    atomics<short>(-1, 1);
    atomics<char16_t>(1, 2);
    atomics<int>(-1, 0);
    atomics<unsigned>(1, 2);
    atomics<long>(-1, 1);
    atomics<long long>(-1, 0xffffffff);
    atomics<unsigned long long>(1, 1ull << 32 | 1); // differs in the upper half only
    atomics<int *>(&a, &b);
    atomics<void (*)()>(nullptr, atomic_waits);
    atomics<colour>(colour::red, colour::green);
    atomics<plain_enum>(one, two);
    atomics<float>(0.0f, 1.0f);
    atomics<double>(0.5, -0.5);
    atomics<position>({1, 2}, {1, 3});
    atomics<wide_position>({1, 2}, {2, 2});

    // Each notification wakes one thread.
    std::atomic<short> turn{0};
    crew(2, [&](int number) {
        for (short i = static_cast<short>(number); i < 1000; i = static_cast<short>(i + 2)) {
            for (short now; (now = turn.load()) != i;)
                waitword::atomic_wait(&turn, now);
            turn++;
            waitword::atomic_notify_one(&turn);
        }
    });
    CHECK(turn == 1000);
}

// Conversion of times to the C ABI: never rounded down.
void times()
{
    using namespace std::chrono;
    using waitword::detail::to_timespec;
    const auto is = [](timespec time, long long seconds, long nanoseconds) {
        return time.tv_sec == seconds && time.tv_nsec == nanoseconds;
    };
    using picoseconds = duration<long long, std::pico>;
    CHECK(is(to_timespec(1ns), 0, 1));
    CHECK(is(to_timespec(picoseconds(1)), 0, 1));
    CHECK(is(to_timespec(picoseconds(1001)), 0, 2));
    CHECK(is(to_timespec(picoseconds(999'999'999'001)), 1, 0));
    CHECK(is(to_timespec(duration<double>(1.5)), 1, 500'000'000));
    CHECK(is(to_timespec(duration<float>(0.25f)), 0, 250'000'000));
    CHECK(is(to_timespec(duration<int, std::ratio<3600>>(3)), 10800, 0));
    CHECK(is(to_timespec(duration<signed char>(100)), 100, 0));
    CHECK(is(to_timespec(nanoseconds(0)), 0, 0));
    CHECK(is(to_timespec(nanoseconds(-1)), 0, 0));
    CHECK(is(to_timespec(nanoseconds::max()), 9'000'000'000, 0));
    CHECK(is(to_timespec(hours::max()), 9'000'000'000, 0));
    CHECK(is(to_timespec(hours::min()), 0, 0));
    CHECK(is(to_timespec(duration<double>(std::numeric_limits<double>::infinity())), 9'000'000'000,
             0));
    CHECK(is(to_timespec(duration<double>(std::numeric_limits<double>::quiet_NaN())), 0, 0));
    CHECK(is(to_timespec(8'999'999'999s), 8'999'999'999, 0));
}

void once()
{
    waitword::once_flag flag;
    std::atomic<int> calls{0};
    crew(6, [&](int) {
        waitword::call_once(flag, [&] {
            std::this_thread::sleep_for(1ms);
            calls++;
        });
        CHECK(calls == 1);
    });

    // With arguments, a member function, and a move-only type.
    struct adder {
        void add(std::unique_ptr<int> by) { sum += *by; }
        int sum = 0;
    } adder;
    waitword::once_flag with_arguments;
    for (int i = 0; i < 2; i++)
        waitword::call_once(with_arguments, &adder::add, &adder, std::make_unique<int>(3));
    CHECK(adder.sum == 3);

    // An exception propagates, and the function counts as not called.
    waitword::once_flag thrown;
    int attempts = 0;
    const auto attempt = [&] {
        if (++attempts < 3)
            throw std::string("not yet");
    };
    for (int i = 0; i < 2; i++) {
        try {
            waitword::call_once(thrown, attempt);
            CHECK(!"thrown");
        } catch (const std::string &what) {
            CHECK(what == "not yet");
        }
    }
    waitword::call_once(thrown, attempt);
    waitword::call_once(thrown, attempt);
    CHECK(attempts == 3);
    // If other threads wait, one of them runs its own.
    waitword::once_flag contended;
    std::atomic<int> tries{0}, done{0}, caught{0};
    crew(6, [&](int) {
        try {
            waitword::call_once(contended, [&] {
                if (tries++ < 3) {
                    std::this_thread::sleep_for(1ms);
                    throw 1;
                }
                done++;
            });
        } catch (int) {
            caught++;
        }
    });
    CHECK(tries == 4 && done == 1 && caught == 3);
}

} // namespace

int main()
{
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // so that a hang keeps earlier output
    semaphores();
    barriers();
    latches();
    atomic_waits();
    once();
    times();
    return report("small_locks");
}
