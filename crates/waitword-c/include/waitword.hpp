// waitword for C++17 and later: the standard library's locks, over the C ABI of waitword.h. Header only.
//
//     #include <waitword.hpp>
//
//     waitword::mutex mutex;                                    // 8 bytes, constexpr, no destructor
//     std::scoped_lock lock(mutex);                             // with all of the standard's ways to hold one
//
// Each type has the name and the interface of its namesake in std, and meets the same named requirements (Lockable,
// TimedLockable, SharedTimedLockable ...). So namespace waitword can stand where std stood: what the standard's headers have
// beside the locks (unique_lock, cv_status ...) is here under the same name.
//
// | file                              | what is in it                                                    |
// |-----------------------------------|------------------------------------------------------------------|
// | waitword/mutex.hpp                | mutex, timed_mutex, recursive_mutex, recursive_timed_mutex; basic_mutex for other flavours |
// | waitword/shared_mutex.hpp         | shared_mutex, shared_timed_mutex, upgrade_mutex; basic_...        |
// | waitword/condition_variable.hpp   | condition_variable, condition_variable_any                       |
// | waitword/semaphore.hpp            | counting_semaphore, binary_semaphore                             |
// | waitword/barrier.hpp              | barrier                                                          |
// | waitword/latch.hpp                | latch                                                            |
// | waitword/atomic_wait.hpp          | atomic_wait, atomic_notify_one, atomic_notify_all, timed waits   |
// | waitword/call_once.hpp            | once_flag, call_once                                             |
//
// What differs from the standard library, everywhere:
//
// * Nothing allocates. The constructors of everything but condition_variable_any are constexpr, and the destructors trivial.
// * Waits by any clock: those of system_clock and steady_clock are waited for by just that clock, others by steady_clock.
// * Errors are std::system_error with std::generic_category, where the standard has them; misuse that the library sees in a
//   function that does not throw ends the program. Compiled without exceptions, errors abort.
// * All of it is for the threads of one process. For memory that processes share there is waitword.h, and for robust mutexes
//   and events too.
// * Not here: notify_all_at_thread_exit, and waits on atomic_ref and atomic_flag.
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
