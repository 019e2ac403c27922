// waitword for C++17 and later: the locks of the standard library, over the C ABI of waitword.h.
// Header only.
//
//     #include <waitword.hpp>
//
//     waitword::mutex mutex;         // 8 bytes, constexpr, no destructor
//     std::scoped_lock lock(mutex);  // works with all of the standard's lock holders
//
// Each type has the name and the interface of its namesake in std, and meets the same named
// requirements (Lockable, TimedLockable, SharedTimedLockable ...). So namespace waitword can
// replace std: what the standard's headers offer besides the locks (unique_lock, cv_status ...) is
// available here under the same name.
//
// | file in waitword/      | contents                                                       |
// |------------------------|----------------------------------------------------------------|
// | mutex.hpp              | mutex, timed_mutex, recursive_mutex, recursive_timed_mutex;    |
// |                        | basic_mutex for other flavours                                 |
// | shared_mutex.hpp       | shared_mutex, shared_timed_mutex, upgrade_mutex; basic_...     |
// | condition_variable.hpp | condition_variable, condition_variable_any                     |
// | semaphore.hpp          | counting_semaphore, binary_semaphore                           |
// | barrier.hpp            | barrier                                                        |
// | latch.hpp              | latch                                                          |
// | atomic_wait.hpp        | atomic_wait, atomic_notify_one, atomic_notify_all, timed waits |
// | call_once.hpp          | once_flag, call_once                                           |
//
// General differences from the standard library:
//
// * Nothing allocates. All constructors are constexpr. All destructors are trivial, except that of
//   condition_variable_any.
// * Timed waits accept any clock. Waits on system_clock and steady_clock use exactly that clock,
//   waits on other clocks use steady_clock.
// * Errors are std::system_error with std::generic_category where the standard specifies them. If
//   the library detects misuse in a function that does not throw, the program terminates. Without
//   exceptions, errors abort.
// * Everything here is for the threads of one process. For memory that processes share, use
//   waitword.h; also for robust mutexes and for events.
// * Not provided: notify_all_at_thread_exit, and waits on atomic_ref and atomic_flag.
#ifndef WAITWORD_HPP
#define WAITWORD_HPP

#include "waitword/atomic_wait.hpp"
#include "waitword/barrier.hpp"
#include "waitword/call_once.hpp"
#include "waitword/condition_variable.hpp"
#include "waitword/latch.hpp"
#include "waitword/mutex.hpp"
#include "waitword/semaphore.hpp"
#include "waitword/shared_mutex.hpp"

#endif
