// waitword::mutex and its variants: the contents of <mutex>.
#ifndef WAITWORD_MUTEX_HPP
#define WAITWORD_MUTEX_HPP

#include "detail.hpp"

#include <mutex>

namespace waitword {

using std::adopt_lock;
using std::adopt_lock_t;
using std::defer_lock;
using std::defer_lock_t;
using std::lock;
using std::lock_guard;
using std::scoped_lock;
using std::try_lock;
using std::try_to_lock;
using std::try_to_lock_t;
using std::unique_lock;

/// A mutex with the flags of ww_mutex_init. Meets Lockable and Mutex.
///
///     basic_mutex<WW_MUTEX_WAIT_WAKE> file_lock;      // its holder does I/O
///     basic_mutex<WW_MUTEX_PRIO_INHERIT> device_lock; // for real-time threads
template <unsigned Flags> class basic_mutex {
    static_assert(
        (Flags & ~0x33u) == 0 && (Flags & 3) != 3,
        "a kind (WW_MUTEX_RECURSIVE or WW_MUTEX_ERRORCHECK) and a flavour; process-shared "
        "mutexes are for ww_mutex_init");

public:
    using native_handle_type = ww_mutex_t *;

    constexpr basic_mutex() noexcept = default;
    basic_mutex(const basic_mutex &) = delete;
    basic_mutex &operator=(const basic_mutex &) = delete;

    /// Locks it, waiting as long as necessary. Blocks.
    ///
    /// Throws std::system_error if it detects that the lock can never succeed:
    /// resource_deadlock_would_occur (error-checking, priority-inheriting),
    /// resource_unavailable_try_again (recursive, 65,536 levels).
    void lock() { detail::check(ww_mutex_lock(&mutex_), "waitword: mutex not locked"); }

    /// Locks it if it can do so without waiting. Returns whether it did. Does not fail spuriously.
    [[nodiscard]] bool try_lock() noexcept { return ww_mutex_trylock(&mutex_) == 0; }

    /// Unlocks it. If the mutex records its owner, an unlock by another thread terminates the
    /// program.
    void unlock() noexcept
    {
        detail::check(ww_mutex_unlock(&mutex_), "waitword: mutex not unlocked");
    }

    /// Hands it off to the thread that has waited longest, if any: see ww_mutex_unlock_fair.
    void unlock_fair() noexcept
    {
        detail::check(ww_mutex_unlock_fair(&mutex_), "waitword: mutex not unlocked");
    }

    /// Hands it off to the thread that has waited longest, and locks it again after that thread:
    /// see ww_mutex_bump.
    void bump() noexcept { ww_mutex_bump(&mutex_); }

    native_handle_type native_handle() noexcept { return &mutex_; }

protected:
    ww_mutex_t mutex_ = WW_MUTEX_INITIALIZER_WITH(Flags);
};

/// A mutex with the flags of ww_mutex_init and with timed waits. Meets TimedLockable and
/// TimedMutex.
template <unsigned Flags> class basic_timed_mutex : public basic_mutex<Flags> {
public:
    /// Locks it, waiting no longer than this. Returns whether it did. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
    {
        return this->try_lock() || is_locked(detail::lasting(time, waiting()));
    }

    /// Locks it, waiting until this time at the latest. Returns whether it did. Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return this->try_lock() || is_locked(detail::until(time, waiting()));
    }

private:
    auto waiting()
    {
        return [this](int clock, const timespec *end) {
            return ww_mutex_clocklock(&this->mutex_, clock, end);
        };
    }

    static bool is_locked(int error)
    {
        // EAGAIN: a recursive mutex, 65,536 levels deep. The standard specifies false here.
        if (error != 0 && error != ETIMEDOUT && error != EAGAIN)
            detail::fail(error, "waitword: mutex not locked");
        return error == 0;
    }
};

using mutex = basic_mutex<WW_MUTEX_NORMAL>;
using recursive_mutex = basic_mutex<WW_MUTEX_RECURSIVE>;
using timed_mutex = basic_timed_mutex<WW_MUTEX_NORMAL>;
using recursive_timed_mutex = basic_timed_mutex<WW_MUTEX_RECURSIVE>;

} // namespace waitword

#endif
