// waitword::counting_semaphore and binary_semaphore: the contents of <semaphore>, for C++17 too.
#ifndef WAITWORD_SEMAPHORE_HPP
#define WAITWORD_SEMAPHORE_HPP

#include "detail.hpp"

namespace waitword {

/// A semaphore: std::counting_semaphore. All have the same maximum, 2^31 - 1.
///
/// Once acquire has returned it may be destroyed, even while the release that ended the wait is
/// still returning. release and try_acquire may be called from signal handlers.
template <std::ptrdiff_t LeastMaxValue = WW_SEM_VALUE_MAX> class counting_semaphore {
    static_assert(LeastMaxValue >= 0 && LeastMaxValue <= WW_SEM_VALUE_MAX);

public:
    using native_handle_type = ww_sem_t *;

    static constexpr std::ptrdiff_t max() noexcept { return WW_SEM_VALUE_MAX; }

    /// Throws std::system_error, invalid_argument, for a value below 0 or above max().
    constexpr explicit counting_semaphore(std::ptrdiff_t value)
        : sem_ WW_SEM_INITIALIZER(detail::count(value, max(), "waitword: a semaphore's value"))
    {
    }
    counting_semaphore(const counting_semaphore &) = delete;
    counting_semaphore &operator=(const counting_semaphore &) = delete;

    /// Increments the value, and wakes up to that many waiters. Does not block.
    ///
    /// Throws std::system_error: value_too_large, if the value would rise above max();
    /// invalid_argument, for a number below 0. The value is then unchanged.
    void release(std::ptrdiff_t update = 1)
    {
        const char *const what = "waitword: semaphore not released";
        const auto count = update > max() ? (detail::fail(EOVERFLOW, what), 0u)
                                          : detail::count(update, max(), what);
        detail::check(ww_sem_post_many(&sem_, count), what);
    }

    /// Decrements the value by one, waiting until that is possible. Blocks; signal handlers do not
    /// end the wait.
    void acquire()
    {
        int error;
        while ((error = ww_sem_wait(&sem_)) == EINTR) {
        }
        detail::check(error, "waitword: semaphore not acquired");
    }

    /// Decrements the value by one if it is not 0. Returns whether it did. Does not fail
    /// spuriously.
    [[nodiscard]] bool try_acquire() noexcept { return ww_sem_trywait(&sem_) == 0; }

    /// Decrements the value by one, waiting no longer than this. Returns whether it did. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period> &time)
    {
        return try_acquire() || detail::lasting(time, waiting()) == 0;
    }

    /// Decrements the value by one, waiting until this time at the latest. Returns whether it did.
    /// Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return try_acquire() || detail::until(time, waiting()) == 0;
    }

    native_handle_type native_handle() noexcept { return &sem_; }

private:
    auto waiting()
    {
        return
            [this](int clock, const timespec *end) { return ww_sem_clockwait(&sem_, clock, end); };
    }

    ww_sem_t sem_;
};

using binary_semaphore = counting_semaphore<1>;

} // namespace waitword

#endif
