// Shared by the other headers: errors as exceptions, times as timespecs. Private to the library.
#ifndef WAITWORD_DETAIL_HPP
#define WAITWORD_DETAIL_HPP

#include "../waitword.h"

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "waitword.hpp needs C++17: compile with -std=c++17 or later (waitword.h is for C++11)"
#endif

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <system_error>
#include <type_traits>

namespace waitword::detail {

[[noreturn]] inline void fail(int error, const char *what)
{
#if defined(__cpp_exceptions)
    throw std::system_error(error, std::generic_category(), what);
#else
    (void)error;
    (void)what;
    std::abort();
#endif
}

inline void check(int error, const char *what)
{
    if (__builtin_expect(error != 0, 0))
        fail(error, what);
}

// A count for the constructors. In the C ABI it is an unsigned number.
constexpr std::uint32_t count(std::ptrdiff_t value, std::ptrdiff_t most, const char *what)
{
    return value >= 0 && value <= most ? static_cast<std::uint32_t>(value)
                                       : (fail(EINVAL, what), 0);
}

// The time as a timespec, never rounded down. A time in the past is 0; a time that does not fit is
// 285 years.
template <class Rep, class Period>
timespec to_timespec(const std::chrono::duration<Rep, Period> &time)
{
    using namespace std::chrono;
    constexpr long double most =
        std::numeric_limits<std::time_t>::max() < 9'000'000'000 ? 2'000'000'000 : 9'000'000'000;
    const long double about = duration<long double>(time).count();
    if (!(about > 0))
        return {0, 0};
    if (about >= most)
        return {static_cast<std::time_t>(most), 0};
    const auto whole = duration_cast<seconds>(time);
    const auto rest = ceil<nanoseconds>(time - whole).count();
    timespec result{};
    result.tv_sec = static_cast<std::time_t>(whole.count() + rest / 1'000'000'000);
    result.tv_nsec = static_cast<long>(rest % 1'000'000'000);
    return result;
}

// The time on CLOCK_MONOTONIC at this distance from now.
template <class Rep, class Period> timespec after(const std::chrono::duration<Rep, Period> &time)
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const timespec wait = to_timespec(time);
    now.tv_sec += wait.tv_sec;
    now.tv_nsec += wait.tv_nsec;
    if (now.tv_nsec >= 1'000'000'000) {
        now.tv_nsec -= 1'000'000'000;
        now.tv_sec++;
    }
    return now;
}

// A time point as the C ABI takes it: a clock ID and a time on that clock.
struct deadline {
    int clock;
    timespec time;
    // Whether this is an estimate, because the clock is neither of the two. The clock must then be
    // checked again.
    bool is_guess;
};

template <class Clock, class Duration>
deadline to_deadline(const std::chrono::time_point<Clock, Duration> &time)
{
    if constexpr (std::is_same_v<Clock, std::chrono::system_clock>)
        return {CLOCK_REALTIME, to_timespec(time.time_since_epoch()), false};
    else if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>)
        return {CLOCK_MONOTONIC, to_timespec(time.time_since_epoch()), false};
    else
        return {CLOCK_MONOTONIC, after(time - Clock::now()), true};
}

// Calls wait(clock, time), which returns an error number, until it returns for a reason other than
// an estimated time that was too early. Signal handlers (EINTR) do not end it.
template <class Clock, class Duration, class Wait>
int until(const std::chrono::time_point<Clock, Duration> &time, Wait wait)
{
    for (;;) {
        const deadline guess = to_deadline(time);
        const int error = wait(guess.clock, &guess.time);
        const bool too_early = error == ETIMEDOUT && guess.is_guess && Clock::now() < time;
        if (error != EINTR && !too_early)
            return error;
    }
}

template <class Rep, class Period, class Wait>
int lasting(const std::chrono::duration<Rep, Period> &time, Wait wait)
{
    const timespec end = after(time);
    for (;;) {
        const int error = wait(CLOCK_MONOTONIC, &end);
        if (error != EINTR)
            return error;
    }
}

} // namespace waitword::detail

#endif
