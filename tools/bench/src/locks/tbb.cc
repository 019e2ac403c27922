// C functions around oneTBB's classes, in a separate shared object that `locks/tbb/library.rs`
// loads. The arguments point to memory of the right size, alignment and content: an unlocked mutex
// is all zeros, as its constructor leaves it. A queuing mutex's `scoped_lock` is constructed in the
// memory that `node` points to, as it would be on a caller's stack.

#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/queuing_mutex.h>
#include <oneapi/tbb/queuing_rw_mutex.h>
#include <oneapi/tbb/rw_mutex.h>

#include <cstdint>
#include <new>

namespace {

using Queuing = tbb::queuing_mutex::scoped_lock;
using QueuingRw = tbb::queuing_rw_mutex::scoped_lock;

template <typename T, typename Place>
constexpr bool fits = sizeof(T) <= sizeof(Place) && alignof(T) <= alignof(Place);

static_assert(fits<tbb::mutex, std::uintptr_t>, "locks/tbb.rs has another size");
static_assert(fits<tbb::rw_mutex, std::uintptr_t>, "locks/tbb.rs has another size");
static_assert(fits<tbb::queuing_mutex, std::uintptr_t>, "locks/tbb/queuing.rs has another size");
static_assert(fits<tbb::queuing_rw_mutex, std::uintptr_t>, "locks/tbb/queuing.rs has another size");
static_assert(fits<Queuing, std::uintptr_t[4]>, "locks/tbb/queuing.rs has another size");
static_assert(fits<QueuingRw, std::uintptr_t[4]>, "locks/tbb/queuing.rs has another size");

}  // namespace

extern "C" {
void waitword_tbb_mutex_lock(tbb::mutex *mutex) { mutex->lock(); }
bool waitword_tbb_mutex_try_lock(tbb::mutex *mutex) { return mutex->try_lock(); }
void waitword_tbb_mutex_unlock(tbb::mutex *mutex) { mutex->unlock(); }

void waitword_tbb_rw_mutex_lock(tbb::rw_mutex *mutex) { mutex->lock(); }
void waitword_tbb_rw_mutex_unlock(tbb::rw_mutex *mutex) { mutex->unlock(); }
void waitword_tbb_rw_mutex_lock_shared(tbb::rw_mutex *mutex) { mutex->lock_shared(); }
void waitword_tbb_rw_mutex_unlock_shared(tbb::rw_mutex *mutex) { mutex->unlock_shared(); }

void waitword_tbb_queuing_lock(tbb::queuing_mutex *mutex, void *node) {
    new (node) Queuing(*mutex);
}
bool waitword_tbb_queuing_try_lock(tbb::queuing_mutex *mutex, void *node) {
    return (new (node) Queuing)->try_acquire(*mutex);
}
void waitword_tbb_queuing_unlock(void *node) { static_cast<Queuing *>(node)->~Queuing(); }

void waitword_tbb_queuing_rw_lock(tbb::queuing_rw_mutex *mutex, void *node) {
    new (node) QueuingRw(*mutex, /* write = */ true);
}
void waitword_tbb_queuing_rw_lock_shared(tbb::queuing_rw_mutex *mutex, void *node) {
    new (node) QueuingRw(*mutex, /* write = */ false);
}
void waitword_tbb_queuing_rw_unlock(void *node) { static_cast<QueuingRw *>(node)->~QueuingRw(); }
}
