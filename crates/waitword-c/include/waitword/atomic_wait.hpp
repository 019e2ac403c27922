// Waiting for an atomic to change: C++20's atomic_wait and atomic_notify_*, for C++17 too, and with
// timeouts.
#ifndef WAITWORD_ATOMIC_WAIT_HPP
#define WAITWORD_ATOMIC_WAIT_HPP

#include "detail.hpp"

#include <atomic>
#include <climits>
#include <cstring>

namespace waitword {

namespace detail {

// An atomic as a futex: its bits as an unsigned number, and its size.
template <class T> struct atomic_word {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                  "a type of 1, 2, 4 or 8 bytes");
    static_assert(sizeof(std::atomic<T>) == sizeof(T) && std::atomic<T>::is_always_lock_free,
                  "an atomic that is nothing but its value");
    static_assert(alignof(std::atomic<T>) >= sizeof(T));

    static constexpr unsigned flags =
        WW_PRIVATE | (sizeof(T) == 1   ? WW_SIZE_U8
                      : sizeof(T) == 2 ? WW_SIZE_U16
                      : sizeof(T) == 4 ? WW_SIZE_U32
                                       : WW_SIZE_U64);
    static constexpr std::uint64_t all_bits = WW_MASK_U64 >> (64 - 8 * sizeof(T));

    static std::uint64_t bits(const T &value) noexcept
    {
        using number = std::conditional_t<
            sizeof(T) == 1, std::uint8_t,
            std::conditional_t<sizeof(T) == 2, std::uint16_t,
                               std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
        number result;
        std::memcpy(&result, &value, sizeof result);
        return result;
    }

    // The C ABI does not change the object. It takes the address of an atomic, which C cannot
    // express.
    static void *address(const std::atomic<T> *object) noexcept
    {
        return const_cast<void *>(static_cast<const void *>(object));
    }
};

template <class T> void atomic_notify(const std::atomic<T> *object, int count) noexcept
{
    using word = atomic_word<T>;
    ww_futex_wake(word::address(object), word::all_bits, count, word::flags);
}

// Sleeps while the object holds the bits of `old`, until `end` on `clock` at the latest. Returns 0
// or ETIMEDOUT.
template <class T>
int atomic_sleep(const std::atomic<T> *object, const T &old, std::memory_order order, int clock,
                 const timespec *end) noexcept
{
    using word = atomic_word<T>;
    const std::uint64_t bits = word::bits(old);
    while (word::bits(object->load(order)) == bits) {
        // Woken, or the value has changed, or a signal handler ran: check again.
        if (ww_futex_wait(word::address(object), bits, word::all_bits, word::flags, end, clock) !=
                0 &&
            errno == ETIMEDOUT)
            return word::bits(object->load(order)) == bits ? ETIMEDOUT : 0;
    }
    return 0;
}

} // namespace detail

/// Waits until the atomic's value differs from old: std::atomic_wait_explicit. Values are compared
/// by their bits.
///
/// For every trivially copyable type of 1, 2, 4 or 8 bytes: numbers, pointers, enumerations, small
/// structures. A thread that changes the value must notify. The notification does not touch the
/// atomic, so a waiter may destroy the atomic as soon as it has returned. A change that is reverted
/// may be missed. Blocks.
template <class T>
void atomic_wait_explicit(const std::atomic<T> *object, typename std::atomic<T>::value_type old,
                          std::memory_order order) noexcept
{
    detail::atomic_sleep<T>(object, old, order, CLOCK_MONOTONIC, nullptr);
}

/// atomic_wait_explicit, sequentially consistent: std::atomic_wait.
template <class T>
void atomic_wait(const std::atomic<T> *object, typename std::atomic<T>::value_type old) noexcept
{
    waitword::atomic_wait_explicit(object, old, std::memory_order_seq_cst);
}

/// atomic_wait until this time at the latest. Returns whether the atomic's value differs from old.
/// Blocks.
template <class T, class Clock, class Duration>
[[nodiscard]] bool atomic_wait_until(const std::atomic<T> *object,
                                     typename std::atomic<T>::value_type old,
                                     const std::chrono::time_point<Clock, Duration> &time,
                                     std::memory_order order = std::memory_order_seq_cst)
{
    return detail::until(time, [&](int clock, const timespec *end) {
               return detail::atomic_sleep<T>(object, old, order, clock, end);
           }) == 0;
}

/// atomic_wait no longer than this. Returns whether the atomic's value differs from old. Blocks.
template <class T, class Rep, class Period>
[[nodiscard]] bool atomic_wait_for(const std::atomic<T> *object,
                                   typename std::atomic<T>::value_type old,
                                   const std::chrono::duration<Rep, Period> &time,
                                   std::memory_order order = std::memory_order_seq_cst)
{
    return detail::lasting(time, [&](int clock, const timespec *end) {
               return detail::atomic_sleep<T>(object, old, order, clock, end);
           }) == 0;
}

/// Wakes one waiter, if any: std::atomic_notify_one. The waiter checks the value, and continues to
/// wait if it is unchanged. Does not block; may be called from signal handlers.
template <class T> void atomic_notify_one(const std::atomic<T> *object) noexcept
{
    detail::atomic_notify(object, 1);
}

/// Wakes all waiters: std::atomic_notify_all. Does not block; may be called from signal handlers.
template <class T> void atomic_notify_all(const std::atomic<T> *object) noexcept
{
    detail::atomic_notify(object, INT_MAX);
}

} // namespace waitword

#endif
