// One thread waits for several words of different sizes at once: a 64-bit count of jobs and a
// one-byte stop request.
//
//     c++ -std=c++17 wait_any.cpp $(pkg-config --cflags --libs waitword) -pthread && ./a.out

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <iostream>
#include <system_error>
#include <thread>
#include <waitword.h>

namespace {

// The flags for a word. Its size follows from its type.
template <typename T> constexpr unsigned private_word()
{
    static_assert(sizeof(std::atomic<T>) == sizeof(T) && std::atomic<T>::is_always_lock_free);
    switch (sizeof(T)) {
    case 1: return WW_SIZE_U8 | WW_PRIVATE;
    case 2: return WW_SIZE_U16 | WW_PRIVATE;
    case 4: return WW_SIZE_U32 | WW_PRIVATE;
    default: return WW_SIZE_U64 | WW_PRIVATE;
    }
}

// A word, and the value that it is expected to hold.
template <typename T> struct ww_futex_waitv expecting(const std::atomic<T> &word, T value)
{
    return {value, reinterpret_cast<std::uintptr_t>(&word), private_word<T>(), 0};
}

template <typename T> void wake_all(std::atomic<T> &word)
{
    constexpr T any = static_cast<T>(~T{0});
    if (ww_futex_wake(&word, any, INT_MAX, private_word<T>()) < 0)
        throw std::system_error(errno, std::generic_category(), "ww_futex_wake");
}

// Sleeps while all words hold the given values. However it returns, the caller must check again.
template <std::size_t N> void wait_any(const std::array<struct ww_futex_waitv, N> &words)
{
    if (ww_futex_waitv(words.data(), N, 0, nullptr, 0) < 0 && errno != EAGAIN && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "ww_futex_waitv");
}

std::atomic<std::uint64_t> jobs{0};
std::atomic<std::uint8_t> stop{0};

// Takes jobs until it is asked to stop, and then the remaining ones.
std::uint64_t work()
{
    std::uint64_t done = 0;
    for (;;) {
        const bool last_round = stop != 0;
        const std::uint64_t available = jobs;
        done = available;
        if (last_round)
            return done;
        wait_any<2>({expecting(jobs, available), expecting(stop, std::uint8_t{0})});
    }
}

} // namespace

int main()
{
    constexpr std::uint64_t count = 1000;
    std::uint64_t done = 0;
    std::thread worker([&done] { done = work(); });
    for (std::uint64_t i = 0; i < count; i++) {
        ++jobs;
        wake_all(jobs);
    }
    stop = 1;
    wake_all(stop);
    worker.join();
    std::cout << "wait_any: " << done << " of " << count << " jobs done\n";
    return done == count ? 0 : 1;
}
