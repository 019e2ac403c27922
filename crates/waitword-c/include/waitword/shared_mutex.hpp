// waitword::shared_mutex and shared_timed_mutex: the contents of <shared_mutex>.
// waitword::upgrade_mutex: adds the interface of Boost's upgrade_mutex.
#ifndef WAITWORD_SHARED_MUTEX_HPP
#define WAITWORD_SHARED_MUTEX_HPP

#include "detail.hpp"

#include <shared_mutex>

namespace waitword {

using std::shared_lock;

/// A reader/writer lock with the flags of ww_rwlock_init. Meets SharedLockable and SharedMutex.
///
///     basic_shared_mutex<WW_RWLOCK_PREFER_WRITER> settings_lock;
template <unsigned Flags> class basic_shared_mutex {
    static_assert((Flags & ~1u) == 0, "WW_RWLOCK_PREFER_READER or WW_RWLOCK_PREFER_WRITER; "
                                      "process-shared locks are for ww_rwlock_init");

public:
    using native_handle_type = ww_rwlock_t *;

    constexpr basic_shared_mutex() noexcept = default;
    basic_shared_mutex(const basic_shared_mutex &) = delete;
    basic_shared_mutex &operator=(const basic_shared_mutex &) = delete;

    /// Locks for writing, waiting as long as necessary. Blocks.
    ///
    /// Throws std::system_error, resource_deadlock_would_occur, if the caller holds it for writing.
    void lock() { detail::check(ww_rwlock_wrlock(&rwlock_), "waitword: shared_mutex not locked"); }

    /// Locks for writing if it can do so without waiting. Returns whether it did.
    [[nodiscard]] bool try_lock() noexcept { return ww_rwlock_trywrlock(&rwlock_) == 0; }

    /// Unlocks it.
    void unlock() noexcept
    {
        detail::check(ww_rwlock_unlock(&rwlock_), "waitword: shared_mutex not unlocked");
    }

    /// Locks for reading, waiting as long as necessary. Blocks.
    ///
    /// Throws std::system_error, resource_deadlock_would_occur, if the caller holds it for writing.
    void lock_shared()
    {
        detail::check(ww_rwlock_rdlock(&rwlock_), "waitword: shared_mutex not locked");
    }

    /// Locks for reading if it can do so without waiting. Returns whether it did.
    [[nodiscard]] bool try_lock_shared() noexcept { return ww_rwlock_tryrdlock(&rwlock_) == 0; }

    /// Unlocks what the caller holds for reading.
    void unlock_shared() noexcept { unlock(); }

    native_handle_type native_handle() noexcept { return &rwlock_; }

protected:
    ww_rwlock_t rwlock_ = WW_RWLOCK_INITIALIZER_WITH(Flags);
};

/// A reader/writer lock with the flags of ww_rwlock_init and with timed waits. Meets
/// SharedTimedLockable and SharedTimedMutex.
template <unsigned Flags> class basic_shared_timed_mutex : public basic_shared_mutex<Flags> {
public:
    /// Locks for writing, waiting no longer than this. Returns whether it did. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
    {
        return this->try_lock() || is_locked(detail::lasting(time, writing()));
    }

    /// Locks for writing, waiting until this time at the latest. Returns whether it did. Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return this->try_lock() || is_locked(detail::until(time, writing()));
    }

    /// Locks for reading, waiting no longer than this. Returns whether it did. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
    {
        return this->try_lock_shared() || is_locked(detail::lasting(time, reading()));
    }

    /// Locks for reading, waiting until this time at the latest. Returns whether it did. Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return this->try_lock_shared() || is_locked(detail::until(time, reading()));
    }

private:
    auto writing()
    {
        return [this](int clock, const timespec *end) {
            return ww_rwlock_clockwrlock(&this->rwlock_, clock, end);
        };
    }

    auto reading()
    {
        return [this](int clock, const timespec *end) {
            return ww_rwlock_clockrdlock(&this->rwlock_, clock, end);
        };
    }

    static bool is_locked(int error)
    {
        // EAGAIN: the maximum number of readers.
        if (error != 0 && error != ETIMEDOUT && error != EAGAIN)
            detail::fail(error, "waitword: shared_mutex not locked");
        return error == 0;
    }
};

/// A reader/writer lock that can also be held for upgrade: alongside readers, with the exclusive
/// right to write next. The calls are those of Boost's upgrade_mutex, so boost::upgrade_lock and
/// boost::upgrade_to_unique_lock work with it. Meets SharedTimedLockable.
///
///     index_lock.lock_upgrade();
///     if (missing()) {
///         // Waits for the readers to leave. No other thread has written in between.
///         index_lock.unlock_upgrade_and_lock();
///         insert();
///         index_lock.unlock();
///     } else {
///         index_lock.unlock_upgrade();
///     }
template <unsigned Flags> class basic_upgrade_mutex : public basic_shared_timed_mutex<Flags> {
public:
    /// Locks for upgrade, waiting as long as necessary. Blocks.
    void lock_upgrade() { check(ww_rwlock_upgradable_lock(&this->rwlock_)); }

    /// Locks for upgrade if it can do so without waiting. Returns whether it did.
    [[nodiscard]] bool try_lock_upgrade() noexcept
    {
        return ww_rwlock_upgradable_trylock(&this->rwlock_) == 0;
    }

    /// Locks for upgrade, waiting no longer than this. Returns whether it did. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_upgrade_for(const std::chrono::duration<Rep, Period> &time)
    {
        return try_lock_upgrade() || in_time(detail::lasting(time, holding()));
    }

    /// Locks for upgrade, waiting until this time at the latest. Returns whether it did. Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_upgrade_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return try_lock_upgrade() || in_time(detail::until(time, holding()));
    }

    /// Unlocks what the caller holds for upgrade.
    void unlock_upgrade() noexcept { check(ww_rwlock_upgradable_unlock(&this->rwlock_)); }

    /// From upgrade to writing. Waits until the readers have left. Blocks.
    void unlock_upgrade_and_lock() { check(ww_rwlock_upgrade(&this->rwlock_)); }

    /// From upgrade to writing, if no thread holds it for reading. Returns whether it did; if not,
    /// the lock is held as before.
    [[nodiscard]] bool try_unlock_upgrade_and_lock() noexcept
    {
        return ww_rwlock_tryupgrade(&this->rwlock_) == 0;
    }

    /// From upgrade to writing, waiting no longer than this. Returns whether it did; if not, the
    /// lock is held as before. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool
    try_unlock_upgrade_and_lock_for(const std::chrono::duration<Rep, Period> &time)
    {
        return in_time(detail::lasting(time, upgrading()));
    }

    /// From upgrade to writing, waiting until this time at the latest. Returns whether it did; if
    /// not, the lock is held as before. Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool
    try_unlock_upgrade_and_lock_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return in_time(detail::until(time, upgrading()));
    }

    /// From writing to upgrade. Readers may enter.
    void unlock_and_lock_upgrade() noexcept
    {
        check(ww_rwlock_downgrade_to_upgradable(&this->rwlock_));
    }

    /// From writing to reading. Readers may enter.
    void unlock_and_lock_shared() noexcept { check(ww_rwlock_downgrade(&this->rwlock_)); }

    /// From upgrade to reading.
    void unlock_upgrade_and_lock_shared() noexcept
    {
        check(ww_rwlock_upgradable_downgrade(&this->rwlock_));
    }

private:
    auto holding()
    {
        return [this](int clock, const timespec *end) {
            return ww_rwlock_upgradable_clocklock(&this->rwlock_, clock, end);
        };
    }

    auto upgrading()
    {
        return [this](int clock, const timespec *end) {
            return ww_rwlock_clockupgrade(&this->rwlock_, clock, end);
        };
    }

    static void check(int error) { detail::check(error, "waitword: upgrade_mutex not held so"); }

    static bool in_time(int error)
    {
        if (error != ETIMEDOUT)
            check(error);
        return error == 0;
    }
};

using shared_mutex = basic_shared_mutex<WW_RWLOCK_PREFER_READER>;
using shared_timed_mutex = basic_shared_timed_mutex<WW_RWLOCK_PREFER_READER>;
using upgrade_mutex = basic_upgrade_mutex<WW_RWLOCK_PREFER_READER>;

} // namespace waitword

#endif
