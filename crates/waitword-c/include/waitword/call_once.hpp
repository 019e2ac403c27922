// waitword::once_flag and call_once.
#ifndef WAITWORD_CALL_ONCE_HPP
#define WAITWORD_CALL_ONCE_HPP

#include "detail.hpp"

#include <functional>
#include <utility>

namespace waitword {

/// Records whether a function has been called: std::once_flag, in four bytes.
class once_flag {
public:
    constexpr once_flag() noexcept = default;
    once_flag(const once_flag &) = delete;
    once_flag &operator=(const once_flag &) = delete;

private:
    template <class Callable, class... Args>
    friend void call_once(once_flag &flag, Callable &&callable, Args &&...args);

    ww_once_t once_ = WW_ONCE_INIT;
};

/// Calls the function if no call with this flag has completed, or waits for the thread that is
/// running one: std::call_once. If the function throws, the exception propagates to the caller, and
/// the function counts as not called. Blocks.
template <class Callable, class... Args>
void call_once(once_flag &flag, Callable &&callable, Args &&...args)
{
    auto call = [&] {
        std::invoke(std::forward<Callable>(callable), std::forward<Args>(args)...);
    };
    ww_once_call(
        &flag.once_, [](void *it) { (*static_cast<decltype(call) *>(it))(); }, &call);
}

} // namespace waitword

#endif
