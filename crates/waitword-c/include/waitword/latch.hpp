// waitword::latch: the contents of <latch>, for C++17 too.
#ifndef WAITWORD_LATCH_HPP
#define WAITWORD_LATCH_HPP

#include "detail.hpp"

namespace waitword {

/// A latch: std::latch, in four bytes. Counted down once, and open from then on.
///
/// Once all waits have returned it may be destroyed, even while a count_down is still returning.
class latch {
public:
    using native_handle_type = ww_latch_t *;

    static constexpr std::ptrdiff_t max() noexcept { return WW_LATCH_COUNT_MAX; }

    /// Throws std::system_error, invalid_argument, for a count below 0 or above max().
    constexpr explicit latch(std::ptrdiff_t expected)
        : latch_ WW_LATCH_INITIALIZER(detail::count(expected, max(), "waitword: a latch's count"))
    {
    }
    latch(const latch &) = delete;
    latch &operator=(const latch &) = delete;

    /// Decrements the count, and releases all waiting threads if it reaches 0. Does not block.
    ///
    /// Throws std::system_error, invalid_argument, if less is left. The latch is then unchanged.
    void count_down(std::ptrdiff_t update = 1)
    {
        const char *const what = "waitword: latch not counted down";
        detail::check(ww_latch_count_down(&latch_, detail::count(update, max(), what)), what);
    }

    /// Returns whether it is open. Does not fail spuriously.
    [[nodiscard]] bool try_wait() const noexcept { return ww_latch_trywait(&latch_) == 0; }

    /// Waits until it is open. Blocks.
    void wait() const { ww_latch_wait(&latch_); }

    /// Decrements the count, and waits until the latch is open. Blocks.
    ///
    /// Throws what count_down throws.
    void arrive_and_wait(std::ptrdiff_t update = 1)
    {
        count_down(update);
        wait();
    }

    native_handle_type native_handle() noexcept { return &latch_; }

private:
    // A wait sets a bit in it.
    mutable ww_latch_t latch_;
};

} // namespace waitword

#endif
