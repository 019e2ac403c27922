// waitword::barrier: what <barrier> has, in C++17 too.
#ifndef WAITWORD_BARRIER_HPP
#define WAITWORD_BARRIER_HPP

#include "atomic_wait.hpp"

#include <utility>

namespace waitword {

namespace detail {

struct no_completion {
    void operator()() const noexcept {}
};

} // namespace detail

/// A barrier: std::barrier. So many threads arrive; the last of them runs the completion function; then all go on, and the next phase
/// begins. To arrive and to wait can be done apart.
///
/// It stands on an atomic and atomic_wait, not on ww_barrier_t, which knows no arrival without a wait.
///
/// | word       | meaning                                              |
/// |------------|------------------------------------------------------|
/// | remaining_ | how many have not arrived in this phase              |
/// | expected_  | how many there will be in the next                   |
/// | phase_     | its number, modulo 2^32; what those who wait wait for |
template <class CompletionFunction = detail::no_completion> class barrier {
    static_assert(std::is_nothrow_invocable_v<CompletionFunction &>,
                  "a completion function must not throw, and must be noexcept");

public:
    /// That one has arrived in a phase. Can be waited with in that phase and the next.
    class [[nodiscard]] arrival_token {
    public:
        arrival_token(arrival_token &&) = default;
        arrival_token &operator=(arrival_token &&) = default;

    private:
        friend barrier;
        explicit arrival_token(std::uint32_t phase) : phase_(phase) {}
        std::uint32_t phase_;
    };

    static constexpr std::ptrdiff_t max() noexcept { return WW_BARRIER_COUNT_MAX; }

    /// Throws std::system_error, invalid_argument, for a count below 0 or above max().
    constexpr explicit barrier(std::ptrdiff_t expected,
                               CompletionFunction completion = CompletionFunction())
        : remaining_(detail::count(expected, max(), "waitword: a barrier's count")),
          expected_(expected), completion_(std::move(completion))
    {
    }
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;

    /// Arrives so many times, which must be at least once and no more than are left. Does not block, but runs the completion
    /// function if that was the last.
    arrival_token arrive(std::ptrdiff_t update = 1)
    {
        // It cannot change before we have arrived. Relaxed: we know of this phase.
        const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
        // Release: what we did is seen by the last. Acquire: the last sees what all did.
        if (remaining_.fetch_sub(update, std::memory_order_acq_rel) == update)
            complete(phase);
        return arrival_token(phase);
    }

    /// Waits until the token's phase is complete. Blocks.
    void wait(arrival_token &&token) const
    {
        waitword::atomic_wait_explicit(&phase_, token.phase_, std::memory_order_acquire);
    }

    /// Arrives, and waits until the phase is complete. Blocks.
    void arrive_and_wait() { wait(arrive()); }

    /// Arrives, and is not expected in later phases. Does not block, but runs the completion function if that was the last.
    void arrive_and_drop()
    {
        // Relaxed: carried to the last by the arrival.
        expected_.fetch_sub(1, std::memory_order_relaxed);
        (void)arrive();
    }

private:
    void complete(std::uint32_t phase)
    {
        completion_();
        remaining_.store(expected_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        // Release: all of it is seen by those who wait, and by who arrives after them.
        phase_.store(phase + 1, std::memory_order_release);
        waitword::atomic_notify_all(&phase_);
    }

    std::atomic<std::ptrdiff_t> remaining_, expected_;
    std::atomic<std::uint32_t> phase_{0};
    CompletionFunction completion_;
};

} // namespace waitword

#endif
