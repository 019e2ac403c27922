// waitword::condition_variable and condition_variable_any: the contents of <condition_variable>.
#ifndef WAITWORD_CONDITION_VARIABLE_HPP
#define WAITWORD_CONDITION_VARIABLE_HPP

#include "mutex.hpp"

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>
#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_jthread)
#include <stop_token>
#endif

namespace waitword {

using std::cv_status;

namespace detail {

// The result of a timed wait. If the time was an estimate and too early, the wake-up is spurious.
template <class Clock, class Duration>
cv_status waited(int error, const deadline &end,
                 const std::chrono::time_point<Clock, Duration> &time)
{
    if (error == ETIMEDOUT && end.is_guess && Clock::now() < time)
        return cv_status::no_timeout;
    if (error == ETIMEDOUT)
        return cv_status::timeout;
    check(error, "waitword: condition_variable not waited for");
    return cv_status::no_timeout;
}

// Returns the error of a wait after which the mutex is locked. If it is not locked, no unique_lock
// may continue, so the program terminates.
inline int relocked(int error, const ww_cond_t *cond, const ww_mutex_t *mutex)
{
    if (__builtin_expect(error == 0 || error == ETIMEDOUT || error == EPERM || error == EINVAL, 1))
        return error;
    std::fprintf(
        stderr, "waitword: condition variable %p: its mutex %p could not be locked again: %s\n",
        static_cast<const void *>(cond), static_cast<const void *>(mutex), std::strerror(error));
    std::terminate();
}

inline cv_status waited(int error)
{
    if (error == ETIMEDOUT)
        return cv_status::timeout;
    check(error, "waitword: condition_variable not waited for");
    return cv_status::no_timeout;
}

} // namespace detail

/// A condition variable for unique_locks of waitword's own mutexes: std::condition_variable.
///
/// Threads are woken in order of arrival, and notify_all does not start a thundering herd: see
/// ww_cond_t. A wait releases one level of a recursive mutex. It may be destroyed once all waiters
/// have been notified, whether or not they have returned.
class condition_variable {
public:
    using native_handle_type = ww_cond_t *;

    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    /// Wakes the thread that has waited longest, if any. Does not block.
    void notify_one() noexcept { ww_cond_signal(&cond_); }

    /// Wakes all waiters, each once it can get the mutex. Does not block.
    void notify_all() noexcept { ww_cond_broadcast(&cond_); }

    /// Unlocks the mutex, waits, and locks it again. May return spuriously. Blocks.
    ///
    /// Throws std::system_error: operation_not_permitted, if the lock is not held;
    /// invalid_argument, if other threads wait here with another mutex. If a priority-inheriting
    /// mutex cannot be locked again, the program terminates with a message that names the condition
    /// variable and the mutex, as the standard specifies: otherwise the lock object would claim a
    /// mutex that it does not hold.
    template <class Mutex> void wait(std::unique_lock<Mutex> &lock)
    {
        const int error = detail::relocked(ww_cond_wait(&cond_, held(lock)), &cond_, held(lock));
        detail::check(error, "waitword: condition_variable not waited for");
    }

    /// Waits until the predicate holds. Blocks.
    template <class Mutex, class Predicate>
    void wait(std::unique_lock<Mutex> &lock, Predicate predicate)
    {
        while (!predicate())
            wait(lock);
    }

    /// wait until this time at the latest. Blocks.
    template <class Mutex, class Clock, class Duration>
    cv_status wait_until(std::unique_lock<Mutex> &lock,
                         const std::chrono::time_point<Clock, Duration> &time)
    {
        const detail::deadline end = detail::to_deadline(time);
        const int error = ww_cond_clockwait(&cond_, held(lock), end.clock, &end.time);
        return detail::waited(detail::relocked(error, &cond_, held(lock)), end, time);
    }

    /// Waits until the predicate holds or the timeout expires. Returns whether it holds. Blocks.
    template <class Mutex, class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<Mutex> &lock,
                    const std::chrono::time_point<Clock, Duration> &time, Predicate predicate)
    {
        while (!predicate())
            if (wait_until(lock, time) == cv_status::timeout)
                return predicate();
        return true;
    }

    /// wait no longer than this. Blocks.
    template <class Mutex, class Rep, class Period>
    cv_status wait_for(std::unique_lock<Mutex> &lock,
                       const std::chrono::duration<Rep, Period> &time)
    {
        return wait_to(lock, detail::after(time));
    }

    /// Waits until the predicate holds, no longer than this. Returns whether it holds. Blocks.
    template <class Mutex, class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<Mutex> &lock, const std::chrono::duration<Rep, Period> &time,
                  Predicate predicate)
    {
        const timespec end = detail::after(time);
        while (!predicate())
            if (wait_to(lock, end) == cv_status::timeout)
                return predicate();
        return true;
    }

    native_handle_type native_handle() noexcept { return &cond_; }

private:
    template <class Mutex> static ww_mutex_t *held(std::unique_lock<Mutex> &lock)
    {
        static_assert(
            std::is_same_v<decltype(lock.mutex()->native_handle()), ww_mutex_t *>,
            "condition_variable is for waitword's own mutexes: use condition_variable_any");
        if (!lock.owns_lock())
            detail::fail(EPERM, "waitword: condition_variable not waited for");
        return lock.mutex()->native_handle();
    }

    template <class Mutex> cv_status wait_to(std::unique_lock<Mutex> &lock, const timespec &end)
    {
        const int error = ww_cond_clockwait(&cond_, held(lock), CLOCK_MONOTONIC, &end);
        return detail::waited(detail::relocked(error, &cond_, held(lock)));
    }

    ww_cond_t cond_ = WW_COND_INITIALIZER;
};

/// A condition variable for anything that can be locked and unlocked: std::condition_variable_any.
///
/// It has an internal mutex, which every wait and notification takes for a moment. It may be
/// destroyed once all waiters have been notified: the destructor waits until they have left it, and
/// to leave they need no lock but the internal mutex.
class condition_variable_any {
public:
    constexpr condition_variable_any() noexcept = default;
    condition_variable_any(const condition_variable_any &) = delete;
    condition_variable_any &operator=(const condition_variable_any &) = delete;

    ~condition_variable_any()
    {
        std::unique_lock<mutex> inside(mutex_);
        leavers_.wait(inside, [this] { return waiters_ == 0; });
    }

    /// Wakes the thread that has waited longest, if any. Does not block except for the internal
    /// mutex.
    void notify_one() noexcept
    {
        std::lock_guard<mutex> inside(mutex_);
        changed_.notify_one();
    }

    /// Wakes all waiters. Does not block except for the internal mutex.
    void notify_all() noexcept
    {
        std::lock_guard<mutex> inside(mutex_);
        changed_.notify_all();
    }

    /// Unlocks, waits, and locks again. May return spuriously. Blocks.
    template <class Lock> void wait(Lock &lock)
    {
        guest visit(*this, lock);
        changed_.wait(visit.inside);
    }

    /// Waits until the predicate holds. Blocks.
    template <class Lock, class Predicate> void wait(Lock &lock, Predicate predicate)
    {
        while (!predicate())
            wait(lock);
    }

    /// wait until this time at the latest. Blocks.
    template <class Lock, class Clock, class Duration>
    cv_status wait_until(Lock &lock, const std::chrono::time_point<Clock, Duration> &time)
    {
        guest visit(*this, lock);
        return changed_.wait_until(visit.inside, time);
    }

    /// Waits until the predicate holds or the timeout expires. Returns whether it holds. Blocks.
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock &lock, const std::chrono::time_point<Clock, Duration> &time,
                    Predicate predicate)
    {
        while (!predicate())
            if (wait_until(lock, time) == cv_status::timeout)
                return predicate();
        return true;
    }

    /// wait no longer than this. Blocks.
    template <class Lock, class Rep, class Period>
    cv_status wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &time)
    {
        guest visit(*this, lock);
        return changed_.wait_for(visit.inside, time);
    }

    /// Waits until the predicate holds, no longer than this. Returns whether it holds. Blocks.
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &time, Predicate predicate)
    {
        return wait_to(lock, detail::after(time), std::move(predicate));
    }

#if defined(__cpp_lib_jthread)
    /// Waits until the predicate holds or a stop is requested. Returns whether it holds. Blocks.
    template <class Lock, class Predicate>
    bool wait(Lock &lock, std::stop_token token, Predicate predicate)
    {
        return wait_or_stop(lock, token, predicate, [this](std::unique_lock<mutex> &inside) {
            changed_.wait(inside);
            return cv_status::no_timeout;
        });
    }

    /// Waits until the predicate holds, a stop is requested, or the timeout expires. Returns
    /// whether it holds. Blocks.
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock &lock, std::stop_token token,
                    const std::chrono::time_point<Clock, Duration> &time, Predicate predicate)
    {
        return wait_or_stop(lock, token, predicate, [&](std::unique_lock<mutex> &inside) {
            return changed_.wait_until(inside, time);
        });
    }

    /// Waits until the predicate holds or a stop is requested, no longer than this. Returns whether
    /// it holds. Blocks.
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock &lock, std::stop_token token, const std::chrono::duration<Rep, Period> &time,
                  Predicate predicate)
    {
        const timespec end = detail::after(time);
        return wait_or_stop(lock, token, predicate, [&](std::unique_lock<mutex> &inside) {
            return wait_inside(inside, end);
        });
    }
#endif

private:
    // A thread inside a wait: it holds the internal mutex, and not the caller's lock. On the way
    // out it exchanges them again.
    template <class Lock> struct guest {
        guest(condition_variable_any &condition, Lock &lock)
            : inside(condition.mutex_), condition_(condition), lock_(lock)
        {
            lock.unlock();
            condition.waiters_++;
        }

        guest(const guest &) = delete;
        guest &operator=(const guest &) = delete;

        // If the lock cannot be locked again, the program terminates, as the standard specifies.
        ~guest()
        {
            // Under the internal mutex. Its unlock is the last access to the condition variable.
            if (--condition_.waiters_ == 0)
                condition_.leavers_.notify_all();
            inside.unlock();
            lock_.lock();
        }

        std::unique_lock<mutex> inside;

    private:
        condition_variable_any &condition_;
        Lock &lock_;
    };

    cv_status wait_inside(std::unique_lock<mutex> &inside, const timespec &end)
    {
        return detail::waited(ww_cond_clockwait(
            changed_.native_handle(), inside.mutex()->native_handle(), CLOCK_MONOTONIC, &end));
    }

    template <class Lock, class Predicate>
    bool wait_to(Lock &lock, const timespec &end, Predicate predicate)
    {
        while (!predicate()) {
            cv_status status;
            {
                guest visit(*this, lock);
                status = wait_inside(visit.inside, end);
            }
            if (status == cv_status::timeout)
                return predicate();
        }
        return true;
    }

#if defined(__cpp_lib_jthread)
    template <class Lock, class Predicate, class Wait>
    bool wait_or_stop(Lock &lock, std::stop_token &token, Predicate &predicate, Wait wait)
    {
        if (token.stop_requested())
            return predicate();
        // This takes the internal mutex, so a stop either comes before the check below or finds the
        // waiter waiting.
        std::stop_callback wake(token, [this] { notify_all(); });
        while (!predicate()) {
            cv_status status = cv_status::no_timeout;
            bool stopped;
            {
                guest visit(*this, lock);
                stopped = token.stop_requested();
                if (!stopped)
                    status = wait(visit.inside);
            }
            if (stopped || status == cv_status::timeout)
                return predicate();
        }
        return true;
    }
#endif

    mutex mutex_;
    condition_variable changed_, leavers_;
    std::size_t waiters_ = 0;
};

} // namespace waitword

#endif
