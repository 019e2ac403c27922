// waitword::shared_mutex and shared_timed_mutex: what <shared_mutex> has. waitword::upgrade_mutex: what Boost's has besides.
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
    static_assert((Flags & ~1u) == 0,
                  "WW_RWLOCK_PREFER_READER or WW_RWLOCK_PREFER_WRITER; process-shared locks are for ww_rwlock_init");

public:
    using native_handle_type = ww_rwlock_t *;

    constexpr basic_shared_mutex() noexcept = default;
    basic_shared_mutex(const basic_shared_mutex &) = delete;
    basic_shared_mutex &operator=(const basic_shared_mutex &) = delete;

    /// Takes it for writing, and waits for that as long as it takes. Blocks.
    ///
    /// Throws std::system_error, resource_deadlock_would_occur, if the caller holds it for writing.
    void lock() { detail::check(ww_rwlock_wrlock(&rwlock_), "waitword: shared_mutex not locked"); }

    /// Takes it for writing if that needs no waiting; whether it has.
    [[nodiscard]] bool try_lock() noexcept { return ww_rwlock_trywrlock(&rwlock_) == 0; }

    /// Gives it back.
    void unlock() noexcept { detail::check(ww_rwlock_unlock(&rwlock_), "waitword: shared_mutex not unlocked"); }

    /// Takes it for reading, and waits for that as long as it takes. Blocks.
    ///
    /// Throws std::system_error, resource_deadlock_would_occur, if the caller holds it for writing.
    void lock_shared()
    {
        detail::check(ww_rwlock_rdlock(&rwlock_), "waitword: shared_mutex not locked");
    }

    /// Takes it for reading if that needs no waiting; whether it has.
    [[nodiscard]] bool try_lock_shared() noexcept { return ww_rwlock_tryrdlock(&rwlock_) == 0; }

    /// Gives it back.
    void unlock_shared() noexcept { unlock(); }

    native_handle_type native_handle() noexcept { return &rwlock_; }

protected:
    ww_rwlock_t rwlock_ = WW_RWLOCK_INITIALIZER_WITH(Flags);
};

/// A reader/writer lock with the flags of ww_rwlock_init that can be waited for until a time. Meets SharedTimedLockable and
/// SharedTimedMutex.
template <unsigned Flags> class basic_shared_timed_mutex : public basic_shared_mutex<Flags> {
public:
    /// Takes it for writing, waiting no longer than this; whether it has. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
    {
        return this->try_lock() || is_locked(detail::lasting(time, writing()));
    }

    /// Takes it for writing, waiting until this time at the latest; whether it has. Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return this->try_lock() || is_locked(detail::until(time, writing()));
    }

    /// Takes it for reading, waiting no longer than this; whether it has. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
    {
        return this->try_lock_shared() || is_locked(detail::lasting(time, reading()));
    }

    /// Takes it for reading, waiting until this time at the latest; whether it has. Blocks.
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
        // EAGAIN: as many readers as can be counted.
        if (error != 0 && error != ETIMEDOUT && error != EAGAIN)
            detail::fail(error, "waitword: shared_mutex not locked");
        return error == 0;
    }
};

/// A reader/writer lock that can also be held for upgrade: beside readers, alone in the right to write next. The calls are those of
/// Boost's upgrade_mutex, so boost::upgrade_lock and boost::upgrade_to_unique_lock work with it. Meets SharedTimedLockable.
///
///     index_lock.lock_upgrade();
///     if (missing()) {
///         index_lock.unlock_upgrade_and_lock();          // waits for the readers to leave; nobody has written meanwhile
///         insert();
///         index_lock.unlock();
///     } else {
///         index_lock.unlock_upgrade();
///     }
template <unsigned Flags> class basic_upgrade_mutex : public basic_shared_timed_mutex<Flags> {
public:
    /// Takes it for upgrade, and waits for that as long as it takes. Blocks.
    void lock_upgrade() { check(ww_rwlock_upgradable_lock(&this->rwlock_)); }

    /// Takes it for upgrade if that needs no waiting; whether it has.
    [[nodiscard]] bool try_lock_upgrade() noexcept
    {
        return ww_rwlock_upgradable_trylock(&this->rwlock_) == 0;
    }

    /// Takes it for upgrade, waiting no longer than this; whether it has. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_upgrade_for(const std::chrono::duration<Rep, Period> &time)
    {
        return try_lock_upgrade() || in_time(detail::lasting(time, holding()));
    }

    /// Takes it for upgrade, waiting until this time at the latest; whether it has. Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_upgrade_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return try_lock_upgrade() || in_time(detail::until(time, holding()));
    }

    /// Gives it back.
    void unlock_upgrade() noexcept { check(ww_rwlock_upgradable_unlock(&this->rwlock_)); }

    /// From upgrade to writing; waits until the readers have left. Blocks.
    void unlock_upgrade_and_lock() { check(ww_rwlock_upgrade(&this->rwlock_)); }

    /// From upgrade to writing, if nobody reads now; whether it has. If not, it is held as before.
    [[nodiscard]] bool try_unlock_upgrade_and_lock() noexcept
    {
        return ww_rwlock_tryupgrade(&this->rwlock_) == 0;
    }

    /// From upgrade to writing, waiting no longer than this; whether it has. If not, it is held as before. Blocks.
    template <class Rep, class Period>
    [[nodiscard]] bool try_unlock_upgrade_and_lock_for(const std::chrono::duration<Rep, Period> &time)
    {
        return in_time(detail::lasting(time, upgrading()));
    }

    /// From upgrade to writing, waiting until this time at the latest; whether it has. If not, it is held as before. Blocks.
    template <class Clock, class Duration>
    [[nodiscard]] bool
    try_unlock_upgrade_and_lock_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return in_time(detail::until(time, upgrading()));
    }

    /// From writing to upgrade: readers come in.
    void unlock_and_lock_upgrade() noexcept
    {
        check(ww_rwlock_downgrade_to_upgradable(&this->rwlock_));
    }

    /// From writing to reading: readers come in.
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
