// Properties of the types: their sizes, that they cannot be copied or moved, that they are free to
// construct, and that they meet the standard's named requirements. The test passes if this
// compiles.
#include <waitword.hpp>

#include <cstdio>
#include <type_traits>

namespace {

template <class T, std::size_t Size> struct is_a_lock {
    static_assert(sizeof(T) == Size);
    static_assert(!std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>);
    static_assert(!std::is_move_constructible_v<T> && !std::is_move_assignable_v<T>);
    static_assert(std::is_standard_layout_v<T>);
    static_assert(std::is_trivially_destructible_v<T>);
};

template <class T, std::size_t Size> struct is_a_plain_lock : is_a_lock<T, Size> {
    static_assert(std::is_nothrow_default_constructible_v<T>);
};

using std::declval;
using namespace std::chrono_literals;
using seconds_of_system = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;
using steady_time = std::chrono::steady_clock::time_point;

template <class T> struct is_lockable {
    static_assert(std::is_same_v<decltype(declval<T &>().lock()), void>);
    static_assert(std::is_same_v<decltype(declval<T &>().try_lock()), bool>);
    static_assert(std::is_same_v<decltype(declval<T &>().unlock()), void>);
    static_assert(noexcept(declval<T &>().unlock()));
};

template <class T> struct is_timed_lockable : is_lockable<T> {
    static_assert(std::is_same_v<decltype(declval<T &>().try_lock_for(1ms)), bool>);
    static_assert(std::is_same_v<decltype(declval<T &>().try_lock_for(1.5s)), bool>);
    static_assert(std::is_same_v<decltype(declval<T &>().try_lock_until(steady_time())), bool>);
    static_assert(
        std::is_same_v<decltype(declval<T &>().try_lock_until(seconds_of_system())), bool>);
};

template <class T> struct is_shared_lockable : is_lockable<T> {
    static_assert(std::is_same_v<decltype(declval<T &>().lock_shared()), void>);
    static_assert(std::is_same_v<decltype(declval<T &>().try_lock_shared()), bool>);
    static_assert(std::is_same_v<decltype(declval<T &>().unlock_shared()), void>);
};

template <class T> struct is_shared_timed_lockable : is_shared_lockable<T>, is_timed_lockable<T> {
    static_assert(std::is_same_v<decltype(declval<T &>().try_lock_shared_for(1h)), bool>);
    static_assert(
        std::is_same_v<decltype(declval<T &>().try_lock_shared_until(steady_time())), bool>);
};

template struct is_a_plain_lock<waitword::mutex, 8>;
template struct is_a_plain_lock<waitword::timed_mutex, 8>;
template struct is_a_plain_lock<waitword::recursive_mutex, 8>;
template struct is_a_plain_lock<waitword::recursive_timed_mutex, 8>;
template struct is_a_plain_lock<waitword::shared_mutex, 8>;
template struct is_a_plain_lock<waitword::shared_timed_mutex, 8>;
template struct is_a_plain_lock<waitword::condition_variable, 16>;
template struct is_a_plain_lock<waitword::once_flag, 4>;
template struct is_a_lock<waitword::binary_semaphore, 8>;
template struct is_a_lock<waitword::counting_semaphore<>, 8>;
template struct is_a_lock<waitword::latch, 4>;

// Its destructor waits for its waiters.
static_assert(!std::is_copy_constructible_v<waitword::condition_variable_any>);
static_assert(!std::is_move_constructible_v<waitword::condition_variable_any>);
static_assert(std::is_nothrow_default_constructible_v<waitword::condition_variable_any>);
static_assert(!std::is_copy_constructible_v<waitword::barrier<>>);
static_assert(!std::is_move_constructible_v<waitword::barrier<>>);
static_assert(std::is_trivially_destructible_v<waitword::barrier<>>);
static_assert(!std::is_copy_constructible_v<waitword::barrier<>::arrival_token>);
static_assert(std::is_nothrow_move_constructible_v<waitword::barrier<>::arrival_token>);

template struct is_lockable<waitword::mutex>;
template struct is_lockable<waitword::recursive_mutex>;
template struct is_timed_lockable<waitword::timed_mutex>;
template struct is_timed_lockable<waitword::recursive_timed_mutex>;
template struct is_shared_lockable<waitword::shared_mutex>;
template struct is_shared_lockable<waitword::upgrade_mutex>;
template struct is_shared_timed_lockable<waitword::shared_timed_mutex>;

static_assert(waitword::counting_semaphore<5>::max() >= 5);
static_assert(waitword::binary_semaphore::max() >= 1);
static_assert(waitword::latch::max() > 0 && waitword::barrier<>::max() > 0);
static_assert(!std::is_convertible_v<std::ptrdiff_t, waitword::latch>);
static_assert(!std::is_convertible_v<std::ptrdiff_t, waitword::binary_semaphore>);
static_assert(!std::is_convertible_v<std::ptrdiff_t, waitword::barrier<>>);

// Initialised before the program starts.
#if defined(__cpp_constinit)
#define CONSTANT constinit
#else
#define CONSTANT
#endif
CONSTANT waitword::mutex a_mutex;
CONSTANT waitword::basic_mutex<WW_MUTEX_ERRORCHECK | WW_MUTEX_THROUGHPUT> another_mutex;
CONSTANT waitword::recursive_timed_mutex a_recursive_mutex;
CONSTANT waitword::shared_mutex a_shared_mutex;
CONSTANT waitword::basic_shared_mutex<WW_RWLOCK_PREFER_WRITER> another_shared_mutex;
CONSTANT waitword::condition_variable a_condition;
CONSTANT waitword::condition_variable_any another_condition;
CONSTANT waitword::counting_semaphore<> a_semaphore{3};
CONSTANT waitword::latch a_latch{2};
CONSTANT waitword::barrier<> a_barrier{2};
CONSTANT waitword::once_flag a_flag;

} // namespace

int main()
{
    (void)a_recursive_mutex, (void)a_condition, (void)another_condition, (void)a_barrier,
        (void)a_flag;
    (void)a_latch, (void)a_semaphore;
    std::scoped_lock all(a_mutex, another_mutex, a_shared_mutex, another_shared_mutex);
    std::printf("requirements: met in C++ %ld\n", __cplusplus);
}
