// The types of waitword.hpp behave like their namesakes in std.
#include "check.hpp"

#include <waitword.hpp>

#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <string>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Mutual exclusion, with every way to hold the lock.
template <class Mutex, class Lock> void excludes()
{
    Mutex mutex;
    long count = 0;
    crew(4, [&](int) {
        for (int i = 0; i < 2000; i++) {
            Lock lock(mutex);
            const long seen = count;
            if (i % 64 == 0)
                std::this_thread::yield();
            count = seen + 1;
        }
    });
    CHECK(count == 8000);
}

template <class Mutex> void is_a_mutex()
{
    excludes<Mutex, std::lock_guard<Mutex>>();
    excludes<Mutex, std::unique_lock<Mutex>>();
    excludes<Mutex, std::scoped_lock<Mutex>>();

    Mutex mutex;
    std::unique_lock<Mutex> lock(mutex, std::defer_lock);
    CHECK(!lock.owns_lock() && lock.try_lock());
    elsewhere([&] {
        CHECK(!mutex.try_lock());
        CHECK(!std::unique_lock<Mutex>(mutex, std::try_to_lock).owns_lock());
    });
    lock.unlock();
    elsewhere([&] {
        CHECK(mutex.try_lock());
        std::lock_guard<Mutex> adopted(mutex, std::adopt_lock);
    });
    CHECK(mutex.try_lock());
    mutex.unlock();

    // Two at once, in either order.
    Mutex other;
    long count = 0;
    crew(4, [&](int number) {
        for (int i = 0; i < 500; i++) {
            if (number % 2) {
                std::scoped_lock both(mutex, other);
                count++;
            } else {
                std::lock(other, mutex);
                count++;
                other.unlock();
                mutex.unlock();
            }
        }
    });
    CHECK(count == 2000);
}

template <class Mutex> void is_a_timed_mutex()
{
    is_a_mutex<Mutex>();
    Mutex mutex;
    mutex.lock();
    elsewhere([&] {
        times_out([&](auto time) { return mutex.try_lock_for(time); },
                  [&](auto time) { return mutex.try_lock_until(time); });
        CHECK(!std::unique_lock<Mutex>(mutex, 1ms).owns_lock());
    });
    std::thread waiter([&] {
        const auto had = [&](bool locked) {
            if (locked)
                mutex.unlock();
            return locked;
        };
        comes_in_time([&](auto time) { return had(mutex.try_lock_for(time)); },
                      [&](auto time) { return had(mutex.try_lock_until(time)); });
    });
    std::this_thread::sleep_for(1ms);
    mutex.unlock();
    waiter.join();
    // A free mutex is locked even if the time has passed.
    CHECK(mutex.try_lock_for(-1s));
    mutex.unlock();
    CHECK(mutex.try_lock_until(std::chrono::steady_clock::time_point()));
    mutex.unlock();
}

template <class Mutex> void is_recursive()
{
    Mutex mutex;
    mutex.lock();
    mutex.lock();
    CHECK(mutex.try_lock());
    mutex.unlock();
    mutex.unlock();
    elsewhere([&] { CHECK(!mutex.try_lock()); });
    mutex.unlock();
    elsewhere([&] {
        CHECK(mutex.try_lock());
        mutex.unlock();
    });
    for (int i = 0; i < 65536; i++)
        mutex.lock();
    THROWS(resource_unavailable_try_again, mutex.lock());
    CHECK(!mutex.try_lock());
    for (int i = 0; i < 65536; i++)
        mutex.unlock();
}

void mutexes()
{
    is_a_mutex<waitword::mutex>();
    is_a_mutex<waitword::recursive_mutex>();
    is_a_timed_mutex<waitword::timed_mutex>();
    is_a_timed_mutex<waitword::recursive_timed_mutex>();
    is_recursive<waitword::recursive_mutex>();
    is_recursive<waitword::recursive_timed_mutex>();
    is_a_mutex<waitword::basic_mutex<WW_MUTEX_THROUGHPUT>>();
    is_a_timed_mutex<waitword::basic_timed_mutex<WW_MUTEX_WAIT_WAKE>>();
    is_recursive<waitword::basic_mutex<WW_MUTEX_RECURSIVE | WW_MUTEX_THROUGHPUT>>();

    waitword::basic_timed_mutex<WW_MUTEX_ERRORCHECK> checking;
    checking.lock();
    THROWS(resource_deadlock_would_occur, checking.lock());
    THROWS(resource_deadlock_would_occur, (void)checking.try_lock_for(1h));
    CHECK(!checking.try_lock());
    checking.bump();
    checking.unlock_fair();
    CHECK(ww_mutex_lock(checking.native_handle()) == 0);
    checking.unlock();
}

template <class Mutex> void is_a_shared_mutex()
{
    is_a_mutex<Mutex>();
    Mutex mutex;
    long first = 0, second = 0;
    crew(4, [&](int number) {
        for (int i = 0; i < 2000; i++) {
            if (i % 8 == number) {
                std::unique_lock<Mutex> writing(mutex);
                first++;
                second++;
            } else {
                std::shared_lock<Mutex> reading(mutex);
                if (first != second)
                    CHECK(first == second);
            }
        }
    });
    CHECK(first == 1000);

    std::shared_lock<Mutex> reading(mutex);
    elsewhere([&] {
        CHECK(!mutex.try_lock());
        CHECK(mutex.try_lock_shared());
        mutex.unlock_shared();
        std::shared_lock<Mutex> also(mutex, std::try_to_lock);
        CHECK(also.owns_lock());
    });
    reading.unlock();
    mutex.lock();
    THROWS(resource_deadlock_would_occur, mutex.lock());
    THROWS(resource_deadlock_would_occur, mutex.lock_shared());
    elsewhere([&] { CHECK(!mutex.try_lock_shared() && !mutex.try_lock()); });
    mutex.unlock();
}

template <class Mutex> void is_a_shared_timed_mutex()
{
    is_a_shared_mutex<Mutex>();
    is_a_timed_mutex<Mutex>();
    Mutex mutex;
    mutex.lock();
    elsewhere([&] {
        times_out([&](auto time) { return mutex.try_lock_shared_for(time); },
                  [&](auto time) { return mutex.try_lock_shared_until(time); });
        CHECK(!std::shared_lock<Mutex>(mutex, 1ms).owns_lock());
    });
    mutex.unlock();
    mutex.lock_shared();
    comes_in_time([&](auto time) { return mutex.try_lock_shared_for(time); },
                  [&](auto time) { return mutex.try_lock_shared_until(time); });
    for (int i = 0; i < 12; i++)
        mutex.unlock_shared();
    elsewhere([&] {
        CHECK(mutex.try_lock());
        mutex.unlock();
    });
}

void shared_mutexes()
{
    is_a_shared_mutex<waitword::shared_mutex>();
    is_a_shared_timed_mutex<waitword::shared_timed_mutex>();
    is_a_shared_timed_mutex<waitword::basic_shared_timed_mutex<WW_RWLOCK_PREFER_WRITER>>();
}

template <class Mutex> void is_an_upgrade_mutex()
{
    is_a_shared_timed_mutex<Mutex>();
    Mutex mutex;
    int written = 0;
    mutex.lock_upgrade();
    std::thread([&] {
        CHECK(mutex.try_lock_shared());
        mutex.unlock_shared();
        CHECK(!mutex.try_lock());
        CHECK(!mutex.try_lock_upgrade());
        times_out([&](auto time) { return mutex.try_lock_upgrade_for(time); },
                  [&](auto time) { return mutex.try_lock_upgrade_until(time); });
    }).join();
    mutex.lock_shared();
    CHECK(!mutex.try_unlock_upgrade_and_lock());
    times_out([&](auto time) { return mutex.try_unlock_upgrade_and_lock_for(time); },
              [&](auto time) { return mutex.try_unlock_upgrade_and_lock_until(time); });
    mutex.unlock_shared();
    CHECK(mutex.try_unlock_upgrade_and_lock());
    std::thread([&] { CHECK(!mutex.try_lock_shared()); }).join();
    mutex.unlock_and_lock_shared();
    std::thread([&] {
        CHECK(mutex.try_lock_shared());
        mutex.unlock_shared();
    }).join();
    mutex.unlock_shared();
    const auto then_unlock = [&](bool locked) {
        if (locked)
            mutex.unlock_upgrade();
        return locked;
    };
    comes_in_time([&](auto time) { return then_unlock(mutex.try_lock_upgrade_for(time)); },
                  [&](auto time) { return then_unlock(mutex.try_lock_upgrade_until(time)); });
    CHECK(mutex.try_lock_upgrade());
    mutex.unlock_upgrade_and_lock_shared();
    mutex.unlock_shared();
    crew(3, [&](int) {
        for (int i = 0; i < 500; i++) {
            mutex.lock_upgrade();
            const int before = written;
            mutex.unlock_upgrade_and_lock();
            CHECK(written == before);
            written++;
            mutex.unlock_and_lock_upgrade();
            CHECK(written == before + 1);
            mutex.unlock_upgrade();
        }
    });
    CHECK(written == 1500);
}

void upgrade_mutexes()
{
    is_an_upgrade_mutex<waitword::upgrade_mutex>();
    is_an_upgrade_mutex<waitword::basic_upgrade_mutex<WW_RWLOCK_PREFER_WRITER>>();
}

// Any condition variable, with any lock. Lock is the holder of a Mutex.
template <class Condition, class Mutex, class Lock> void is_a_condition()
{
    Mutex mutex;
    Condition condition;
    std::deque<int> queue;
    long sum = 0;
    crew(4, [&](int number) {
        for (int i = 0; i < 500; i++) {
            if (number % 2) {
                Lock lock(mutex);
                queue.push_back(i);
                if (i % 8)
                    lock.unlock();
                condition.notify_one();
            } else {
                Lock lock(mutex);
                switch (i % 3) {
                case 0:
                    while (queue.empty())
                        condition.wait(lock);
                    break;
                case 1: condition.wait(lock, [&] { return !queue.empty(); }); break;
                default: CHECK(condition.wait_for(lock, never, [&] { return !queue.empty(); }));
                }
                sum += queue.front();
                queue.pop_front();
            }
        }
    });
    CHECK(sum == 2 * 499 * 500 / 2);

    // Without a notification.
    Lock lock(mutex);
    times_out([&](auto time) { return condition.wait_for(lock, time, [] { return false; }); },
              [&](auto time) { return condition.wait_until(lock, time, [] { return false; }); });
    times_out(
        [&](auto time) { return condition.wait_for(lock, time) == std::cv_status::no_timeout; },
        [&](auto time) {
            // On a clock whose time is estimated, the wait may end early, as a spurious wake-up.
            // Not if the time had passed when it began.
            using Clock = typename decltype(time)::clock;
            for (;;) {
                const bool is_late = Clock::now() >= time;
                if (condition.wait_until(lock, time) == std::cv_status::timeout)
                    return false;
                if (is_late)
                    return true;
            }
        });
    CHECK(lock.owns_lock());
    bool done = false;
    CHECK(condition.wait_for(lock, 0s, [] { return true; }));
    comes_in_time([&](auto time) { return condition.wait_for(lock, time, [] { return true; }); },
                  [&](auto time) { return condition.wait_until(lock, time, [] { return true; }); });
    lock.unlock();

    // notify_all releases all waiters.
    int through = 0;
    std::thread waker([&] {
        std::this_thread::sleep_for(1ms);
        Lock lock(mutex);
        done = true;
        condition.notify_all();
    });
    crew(6, [&](int number) {
        Lock lock(mutex);
        if (number % 2)
            condition.wait(lock, [&] { return done; });
        else
            CHECK(condition.wait_until(lock, slow_clock::now() + never, [&] { return done; }));
        through++;
    });
    waker.join();
    CHECK(through == 6);
}

// It may be destroyed as soon as all waiters have been notified.
template <class Condition> void can_be_destroyed_early()
{
    for (int i = 0; i < 200; i++) {
        waitword::mutex mutex;
        auto condition = std::make_unique<Condition>();
        int waiting = 0;
        bool done = false;
        const auto wait = [&] {
            std::unique_lock<waitword::mutex> lock(mutex);
            waiting++;
            Condition &here = *condition;
            while (!done)
                here.wait(lock);
        };
        std::thread first(wait), second(wait);
        for (bool ready = false; !ready; std::this_thread::yield()) {
            std::lock_guard<waitword::mutex> lock(mutex);
            ready = waiting == 2;
        }
        {
            std::lock_guard<waitword::mutex> lock(mutex);
            done = true;
            condition->notify_all();
            condition.reset();
        }
        first.join();
        second.join();
    }
    CHECK(true);
}

// Nothing but lock and unlock.
struct basic_lockable {
    void lock() { mutex.lock(); }
    void unlock() { mutex.unlock(); }
    waitword::mutex mutex;
};

void conditions()
{
    using namespace waitword;
    using std::unique_lock;
    is_a_condition<condition_variable, waitword::mutex, unique_lock<waitword::mutex>>();
    is_a_condition<condition_variable, recursive_timed_mutex, unique_lock<recursive_timed_mutex>>();
    is_a_condition<condition_variable_any, std::mutex, unique_lock<std::mutex>>();
    is_a_condition<condition_variable_any, shared_mutex, unique_lock<shared_mutex>>();
    is_a_condition<condition_variable_any, basic_lockable, unique_lock<basic_lockable>>();
    can_be_destroyed_early<condition_variable>();
    can_be_destroyed_early<condition_variable_any>();

    waitword::mutex mutex;
    condition_variable condition;
    unique_lock<waitword::mutex> lock(mutex, std::defer_lock);
    THROWS(operation_not_permitted, condition.wait(lock));
    THROWS(operation_not_permitted, condition.wait_for(lock, 1s));
    THROWS(operation_not_permitted, condition.wait_until(lock, std::chrono::system_clock::now()));
    CHECK(ww_cond_signal(condition.native_handle()) == 0);

    // With a read lock.
    shared_mutex shared;
    condition_variable_any any;
    std::atomic<bool> ready{false};
    std::thread reader([&] {
        shared_lock<shared_mutex> reading(shared);
        any.wait(reading, [&] { return ready.load(); });
        CHECK(reading.owns_lock());
    });
    while (!ready) {
        std::this_thread::sleep_for(1ms);
        std::unique_lock<shared_mutex> writing(shared);
        ready = true;
        any.notify_all();
    }
    reader.join();
    // With the mutex itself.
    std::thread notifier([&] { any.notify_one(); });
    mutex.lock();
    (void)any.wait_for(mutex, 1ms);
    mutex.unlock();
    notifier.join();
}

#if defined(__cpp_lib_jthread)
void stops()
{
    waitword::mutex mutex;
    waitword::condition_variable_any condition;
    const auto no = [] { return false; };
    // A stop requested while they wait, and one requested before.
    std::atomic<int> through{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 6; i++)
            threads.emplace_back([&, i](std::stop_token token) {
                std::unique_lock<waitword::mutex> lock(mutex);
                if (i % 3 == 0)
                    CHECK(!condition.wait(lock, token, no));
                else if (i % 3 == 1)
                    CHECK(!condition.wait_for(lock, token, never, no));
                else
                    CHECK(!condition.wait_until(lock, token, slow_clock::now() + never, no));
                CHECK(token.stop_requested());
                CHECK(lock.owns_lock());
                through++;
            });
        std::this_thread::sleep_for(1ms);
    }
    CHECK(through == 6);

    std::stop_source source;
    std::unique_lock<waitword::mutex> lock(mutex);
    times_out([&](auto time) { return condition.wait_for(lock, source.get_token(), time, no); },
              [&](auto time) { return condition.wait_until(lock, source.get_token(), time, no); });
    CHECK(condition.wait(lock, source.get_token(), [] { return true; }));
    source.request_stop();
    CHECK(condition.wait(lock, source.get_token(), [] { return true; }));
    CHECK(!condition.wait(lock, source.get_token(), no));

    lock.unlock();
}

// A stop at the very moment when a thread starts to wait is not lost. Two threads meet, and one of
// them then lets a little more time pass in each round, until the stop comes too late to matter.
void stops_at_any_moment()
{
    constexpr int rounds = 20000, latest = 1000;
    waitword::mutex mutex;
    waitword::condition_variable_any condition;
    std::vector<std::stop_source> sources(rounds);
    std::atomic<int> begun{-1};
    std::thread waiter([&] {
        for (int round = 0; round < rounds; round++) {
            const std::stop_token token = sources[round].get_token();
            std::unique_lock<waitword::mutex> lock(mutex);
            const auto begin = [&] {
                begun = round;
                return false;
            };
            if (condition.wait(lock, token, begin))
                CHECK(!"nothing to wait for");
        }
    });
    for (int round = 0; round < rounds; round++) {
        for (int looks = 1; begun < round; looks++)
            if (looks % 10000 == 0)
                std::this_thread::yield();
        for (int i = 0; i < round % latest; i++)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        sources[round].request_stop();
    }
    waiter.join();
    CHECK(begun == rounds - 1);
}
#endif

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
    CHECK(is(to_timespec(duration<double>(std::numeric_limits<double>::infinity())), 9'000'000'000, 0));
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

// A wait whose priority-inheriting mutex cannot be locked again terminates the program, and names
// the mutex.
void lost_mutexes()
{
    using waitword::condition_variable;
    using inheriting = waitword::basic_mutex<WW_MUTEX_PRIO_INHERIT>;
    int said[2];
    CHECK(pipe(said) == 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        dup2(said[1], STDERR_FILENO);
        inheriting first, second;
        condition_variable changed;
        std::unique_lock<inheriting> holds_second(second);
        std::unique_lock<inheriting> holds_first(first);
        std::thread other([&] {
            std::lock_guard<inheriting> takes_first(first);
            // Waits for the waiting thread, so that thread can never lock `first` again.
            std::lock_guard<inheriting> takes_second(second);
        });
        try {
            changed.wait_for(holds_first, 1s);
        } catch (...) {
        }
        _exit(0);
    }
    close(said[1]);
    char text[256] = "";
    size_t length = 0;
    for (ssize_t more; (more = read(said[0], text + length, sizeof text - 1 - length)) > 0;)
        length += static_cast<size_t>(more);
    close(said[0]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(std::strstr(text, "condition variable 0x") && std::strstr(text, "its mutex 0x"));
}

} // namespace

int main()
{
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // so that a hang keeps earlier output
    std::printf("mutexes\n");
    mutexes();
    std::printf("shared mutexes\n");
    shared_mutexes();
    upgrade_mutexes();
    std::printf("conditions\n");
    conditions();
    lost_mutexes();
#if defined(__cpp_lib_jthread)
    std::printf("stops\n");
    stops();
    stops_at_any_moment();
#endif
    std::printf("semaphores, barriers, latches\n");
    semaphores();
    barriers();
    latches();
    std::printf("atomics, once\n");
    atomic_waits();
    once();
    times();
    return report("locks");
}
