// Shared by the C++ tests: checks that report where they failed, threads that are joined.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

inline std::atomic<int> checks{0}, failures{0};

inline void check(int line, const char *what, bool holds)
{
    checks++;
    if (holds)
        return;
    failures++;
    std::printf("line %d: %s\n", line, what);
}

#define CHECK(what) check(__LINE__, #what, static_cast<bool>(what))

// The statement throws std::system_error with this std::errc.
#define THROWS(error, ...)                                        \
    do {                                                          \
        bool thrown_ = false;                                     \
        try {                                                     \
            __VA_ARGS__;                                          \
        } catch (const std::system_error &e) {                    \
            thrown_ = e.code() == std::errc::error;               \
        }                                                         \
        check(__LINE__, #__VA_ARGS__ " throws " #error, thrown_); \
    } while (0)

inline int report(const char *name)
{
    std::printf("%s: %d checks, %d failed\n", name, checks.load(), failures.load());
    return failures != 0;
}

// Runs a function in a new thread and joins the thread.
inline void elsewhere(const std::function<void()> &function)
{
    std::thread(function).join();
}

// Runs `count` threads at once and joins them. Each gets its number.
inline void crew(int count, const std::function<void(int)> &function)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
        threads.emplace_back(function, i);
    for (auto &thread : threads)
        thread.join();
}

using namespace std::chrono_literals;

// So far away that only a defect reaches it.
constexpr auto never = 30s;

// A clock that the library does not know: twice as fast as the steady one.
struct fast_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<fast_clock>;
    static constexpr bool is_steady = true;
    static time_point now()
    {
        const auto steady = std::chrono::steady_clock::now().time_since_epoch();
        return time_point(std::chrono::duration_cast<duration>(steady) * 2);
    }
};

// A clock that the library does not know: half as fast as the steady one, so that every estimate of
// a time on it is too early.
struct slow_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<slow_clock>;
    static constexpr bool is_steady = true;
    static time_point now()
    {
        const auto steady = std::chrono::steady_clock::now().time_since_epoch();
        return time_point(std::chrono::duration_cast<duration>(steady) / 2);
    }
};

// For something that must wait: wait_for(duration) and wait_until(time), which return whether they
// succeeded, do not succeed and do not return too early, whatever the clock, and however short the
// time or far in the past.
template <class For, class Until> void times_out(For wait_for, Until wait_until)
{
    using namespace std::chrono;
    const auto by = [&](auto clock, auto time) {
        using Clock = decltype(clock);
        const auto end = Clock::now() + time;
        CHECK(!wait_until(end));
        CHECK(Clock::now() >= end);
    };
    by(system_clock(), 2ms);
    by(steady_clock(), 2ms);
    by(fast_clock(), 2ms);
    by(slow_clock(), 2ms);
    by(steady_clock(), -1h);
    by(slow_clock(), -1h);
    CHECK(!wait_until(system_clock::time_point::min()));
    CHECK(!wait_until(steady_clock::time_point()));
    CHECK(!wait_until(time_point<system_clock, hours>()));
    CHECK(!wait_until(time_point<system_clock, duration<double>>(duration<double>(1.5))));

    const auto begin = steady_clock::now();
    CHECK(!wait_for(1500us));
    CHECK(steady_clock::now() - begin >= 1500us);
    CHECK(!wait_for(duration<double, std::milli>(1.5)));
    CHECK(steady_clock::now() - begin >= 3ms);
    CHECK(!wait_for(0s));
    CHECK(!wait_for(-1ns));
    CHECK(!wait_for(hours::min()));
    CHECK(!wait_for(duration<double>(-1e300)));
}

// For something that another thread is about to provide: the longest possible times do not
// overflow.
template <class For, class Until> void comes_in_time(For wait_for, Until wait_until)
{
    using namespace std::chrono;
    CHECK(wait_for(never));
    CHECK(wait_for(hours::max()));
    CHECK(wait_for(nanoseconds::max()));
    CHECK(wait_for(duration<double>(1e300)));
    CHECK(wait_until(system_clock::now() + never));
    CHECK(wait_until(steady_clock::now() + never));
    CHECK(wait_until(fast_clock::now() + never));
    CHECK(wait_until(slow_clock::now() + never));
    CHECK(wait_until(system_clock::time_point::max()));
    CHECK(wait_until(steady_clock::time_point::max()));
    CHECK(wait_until(time_point<steady_clock, hours>(hours::max())));
}

#endif
