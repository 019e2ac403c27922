// waitword::barrier: the contents of <barrier>, for C++17 too.
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

/// A barrier: std::barrier. A number of threads arrive, and the last one runs the completion
/// function. Then all of them continue, and the next phase begins. Arriving and waiting may be
/// separate calls.
///
/// It is built on an atomic and atomic_wait, not on ww_barrier_t, which has no arrival without a
/// wait.
///
/// | word       | meaning                                                       |
/// |------------|---------------------------------------------------------------|
/// | remaining_ | number of threads that have not arrived in this phase         |
/// | expected_  | number of threads in the next phase                           |
/// | phase_     | number of the phase, modulo 2^32; waiters wait for its change |
template <class CompletionFunction = detail::no_completion> class barrier {
    static_assert(std::is_nothrow_invocable_v<CompletionFunction &>,
                  "a completion function must not throw, and must be noexcept");

public:
    /// Represents an arrival in a phase. Valid for a wait in that phase and the next.
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

    /// Arrives `update` times, which must be at least 1 and no more than the arrivals that remain.
    /// Does not block, but runs the completion function if this was the last arrival.
    arrival_token arrive(std::ptrdiff_t update = 1)
    {
        // The phase cannot change before we have arrived. Relaxed: we already know this phase.
        const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
        // Release: publishes what we did. Acquire: the last arrival sees what all threads did.
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

    /// Arrives, and is not expected in later phases. Does not block, but runs the completion
    /// function if this was the last arrival.
    void arrive_and_drop()
    {
        // Relaxed: the arrival publishes it to the last thread.
        expected_.fetch_sub(1, std::memory_order_relaxed);
        (void)arrive();
    }

private:
    void complete(std::uint32_t phase)
    {
        completion_();
        remaining_.store(expected_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        // Release: waiters, and threads that arrive after them, see all of this.
        phase_.store(phase + 1, std::memory_order_release);
        waitword::atomic_notify_all(&phase_);
    }

    std::atomic<std::ptrdiff_t> remaining_, expected_;
    std::atomic<std::uint32_t> phase_{0};
    CompletionFunction completion_;
};

} // namespace waitword

#endif
