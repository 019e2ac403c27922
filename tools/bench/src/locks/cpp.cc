// C functions around the C++ library's classes. The arguments point to memory of the right size and
// alignment in which `..._new` has constructed the object.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <shared_mutex>

#include <pthread.h>

namespace {

// The three-state mutex of Ulrich Drepper's "Futexes Are Tricky" in C++20: free, held, held with
// possible waiters.
class AtomicMutex {
    std::atomic<int> state{0};

  public:
    bool try_lock() {
        int expected = 0;
        return state.compare_exchange_strong(expected, 1);
    }

    void lock() {
        int seen = 0;
        if (state.compare_exchange_strong(seen, 1)) return;
        if (seen == 2) state.wait(2);
        while (state.exchange(2) != 0) state.wait(2);
    }

    void unlock() {
        if (state.exchange(0) == 2) state.notify_one();
    }
};

static_assert(sizeof(std::mutex) == sizeof(pthread_mutex_t), "locks/cpp.rs has another size");
static_assert(sizeof(std::condition_variable) == sizeof(pthread_cond_t),
              "locks/cpp.rs has another size");
static_assert(sizeof(std::shared_mutex) == sizeof(pthread_rwlock_t),
              "locks/cpp.rs has another size");
static_assert(sizeof(std::atomic<int>) == sizeof(int), "ops/cpp.rs has another size");
static_assert(sizeof(AtomicMutex) == sizeof(int), "locks/cpp.rs has another size");

}  // namespace

extern "C" {
void waitword_cpp_mutex_new(void *place) { new (place) std::mutex; }
void waitword_cpp_mutex_lock(std::mutex *mutex) { mutex->lock(); }
bool waitword_cpp_mutex_try_lock(std::mutex *mutex) { return mutex->try_lock(); }
void waitword_cpp_mutex_unlock(std::mutex *mutex) { mutex->unlock(); }

void waitword_cpp_condvar_new(void *place) { new (place) std::condition_variable; }
void waitword_cpp_condvar_wait(std::condition_variable *condvar, std::mutex *mutex) {
    std::unique_lock<std::mutex> lock(*mutex, std::adopt_lock);
    condvar->wait(lock);
    lock.release();
}
void waitword_cpp_condvar_notify_one(std::condition_variable *condvar) { condvar->notify_one(); }
void waitword_cpp_condvar_notify_all(std::condition_variable *condvar) { condvar->notify_all(); }

void waitword_cpp_shared_mutex_new(void *place) { new (place) std::shared_mutex; }
void waitword_cpp_shared_mutex_lock(std::shared_mutex *mutex) { mutex->lock(); }
void waitword_cpp_shared_mutex_unlock(std::shared_mutex *mutex) { mutex->unlock(); }
void waitword_cpp_shared_mutex_lock_shared(std::shared_mutex *mutex) { mutex->lock_shared(); }
void waitword_cpp_shared_mutex_unlock_shared(std::shared_mutex *mutex) { mutex->unlock_shared(); }

// `wait` loops internally and returns only when the value has changed. Returns whether it had to
// wait.
bool waitword_cpp_atomic_wait(std::atomic<int> *word, int old) {
    if (word->load() != old) return false;
    word->wait(old);
    return true;
}
void waitword_cpp_atomic_notify_one(std::atomic<int> *word) { word->notify_one(); }
void waitword_cpp_atomic_notify_all(std::atomic<int> *word) { word->notify_all(); }

void waitword_cpp_atomic_new(void *place) { new (place) AtomicMutex; }
void waitword_cpp_atomic_lock(AtomicMutex *mutex) { mutex->lock(); }
bool waitword_cpp_atomic_try_lock(AtomicMutex *mutex) { return mutex->try_lock(); }
void waitword_cpp_atomic_unlock(AtomicMutex *mutex) { mutex->unlock(); }
}
