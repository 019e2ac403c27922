// The mutexes of waitword.hpp behave like their namesakes in std; upgrade_mutex like Boost's.
#include "check.hpp"

#include <waitword.hpp>

#include <mutex>
#include <shared_mutex>

namespace {

// Mutual exclusion, with every way to hold the lock.
template <class Mutex, class Lock> void excludes()
{
    Mutex mutex;
    long count = 0;
    crew(4, [&](int) {
        for (int i = 0; i < 2000; i++) {
            Lock lock(mutex);
            const long seen = count;
            if (i % 64 == 0)
                std::this_thread::yield();
            count = seen + 1;
        }
    });
    CHECK(count == 8000);
}

template <class Mutex> void is_a_mutex()
{
    excludes<Mutex, std::lock_guard<Mutex>>();
    excludes<Mutex, std::unique_lock<Mutex>>();
    excludes<Mutex, std::scoped_lock<Mutex>>();

    Mutex mutex;
    std::unique_lock<Mutex> lock(mutex, std::defer_lock);
    CHECK(!lock.owns_lock() && lock.try_lock());
    elsewhere([&] {
        CHECK(!mutex.try_lock());
        CHECK(!std::unique_lock<Mutex>(mutex, std::try_to_lock).owns_lock());
    });
    lock.unlock();
    elsewhere([&] {
        CHECK(mutex.try_lock());
        std::lock_guard<Mutex> adopted(mutex, std::adopt_lock);
    });
    CHECK(mutex.try_lock());
    mutex.unlock();

    // Two at once, in either order.
    Mutex other;
    long count = 0;
    crew(4, [&](int number) {
        for (int i = 0; i < 500; i++) {
            if (number % 2) {
                std::scoped_lock both(mutex, other);
                count++;
            } else {
                std::lock(other, mutex);
                count++;
                other.unlock();
                mutex.unlock();
            }
        }
    });
    CHECK(count == 2000);
}

template <class Mutex> void is_a_timed_mutex()
{
    is_a_mutex<Mutex>();
    Mutex mutex;
    mutex.lock();
    elsewhere([&] {
        times_out([&](auto time) { return mutex.try_lock_for(time); },
                  [&](auto time) { return mutex.try_lock_until(time); });
        CHECK(!std::unique_lock<Mutex>(mutex, 1ms).owns_lock());
    });
    std::thread waiter([&] {
        const auto had = [&](bool locked) {
            if (locked)
                mutex.unlock();
            return locked;
        };
        comes_in_time([&](auto time) { return had(mutex.try_lock_for(time)); },
                      [&](auto time) { return had(mutex.try_lock_until(time)); });
    });
    std::this_thread::sleep_for(1ms);
    mutex.unlock();
    waiter.join();
    // A free mutex is locked even if the time has passed.
    CHECK(mutex.try_lock_for(-1s));
    mutex.unlock();
    CHECK(mutex.try_lock_until(std::chrono::steady_clock::time_point()));
    mutex.unlock();
}

template <class Mutex> void is_recursive()
{
    Mutex mutex;
    mutex.lock();
    mutex.lock();
    CHECK(mutex.try_lock());
    mutex.unlock();
    mutex.unlock();
    elsewhere([&] { CHECK(!mutex.try_lock()); });
    mutex.unlock();
    elsewhere([&] {
        CHECK(mutex.try_lock());
        mutex.unlock();
    });
    for (int i = 0; i < 65536; i++)
        mutex.lock();
    THROWS(resource_unavailable_try_again, mutex.lock());
    CHECK(!mutex.try_lock());
    for (int i = 0; i < 65536; i++)
        mutex.unlock();
}

void mutexes()
{
    is_a_mutex<waitword::mutex>();
    is_a_mutex<waitword::recursive_mutex>();
    is_a_timed_mutex<waitword::timed_mutex>();
    is_a_timed_mutex<waitword::recursive_timed_mutex>();
    is_recursive<waitword::recursive_mutex>();
    is_recursive<waitword::recursive_timed_mutex>();
    is_a_mutex<waitword::basic_mutex<WW_MUTEX_THROUGHPUT>>();
    is_a_timed_mutex<waitword::basic_timed_mutex<WW_MUTEX_WAIT_WAKE>>();
    is_recursive<waitword::basic_mutex<WW_MUTEX_RECURSIVE | WW_MUTEX_THROUGHPUT>>();

    waitword::basic_timed_mutex<WW_MUTEX_ERRORCHECK> checking;
    checking.lock();
    THROWS(resource_deadlock_would_occur, checking.lock());
    THROWS(resource_deadlock_would_occur, (void)checking.try_lock_for(1h));
    CHECK(!checking.try_lock());
    checking.bump();
    checking.unlock_fair();
    CHECK(ww_mutex_lock(checking.native_handle()) == 0);
    checking.unlock();
}

template <class Mutex> void is_a_shared_mutex()
{
    is_a_mutex<Mutex>();
    Mutex mutex;
    long first = 0, second = 0;
    crew(4, [&](int number) {
        for (int i = 0; i < 2000; i++) {
            if (i % 8 == number) {
                std::unique_lock<Mutex> writing(mutex);
                first++;
                second++;
            } else {
                std::shared_lock<Mutex> reading(mutex);
                if (first != second)
                    CHECK(first == second);
            }
        }
    });
    CHECK(first == 1000);

    std::shared_lock<Mutex> reading(mutex);
    elsewhere([&] {
        CHECK(!mutex.try_lock());
        CHECK(mutex.try_lock_shared());
        mutex.unlock_shared();
        std::shared_lock<Mutex> also(mutex, std::try_to_lock);
        CHECK(also.owns_lock());
    });
    reading.unlock();
    mutex.lock();
    THROWS(resource_deadlock_would_occur, mutex.lock());
    THROWS(resource_deadlock_would_occur, mutex.lock_shared());
    elsewhere([&] { CHECK(!mutex.try_lock_shared() && !mutex.try_lock()); });
    mutex.unlock();
}

template <class Mutex> void is_a_shared_timed_mutex()
{
    is_a_shared_mutex<Mutex>();
    is_a_timed_mutex<Mutex>();
    Mutex mutex;
    mutex.lock();
    elsewhere([&] {
        times_out([&](auto time) { return mutex.try_lock_shared_for(time); },
                  [&](auto time) { return mutex.try_lock_shared_until(time); });
        CHECK(!std::shared_lock<Mutex>(mutex, 1ms).owns_lock());
    });
    mutex.unlock();
    mutex.lock_shared();
    comes_in_time([&](auto time) { return mutex.try_lock_shared_for(time); },
                  [&](auto time) { return mutex.try_lock_shared_until(time); });
    for (int i = 0; i < 12; i++)
        mutex.unlock_shared();
    elsewhere([&] {
        CHECK(mutex.try_lock());
        mutex.unlock();
    });
}

void shared_mutexes()
{
    is_a_shared_mutex<waitword::shared_mutex>();
    is_a_shared_timed_mutex<waitword::shared_timed_mutex>();
    is_a_shared_timed_mutex<waitword::basic_shared_timed_mutex<WW_RWLOCK_PREFER_WRITER>>();
}

template <class Mutex> void is_an_upgrade_mutex()
{
    is_a_shared_timed_mutex<Mutex>();
    Mutex mutex;
    int written = 0;
    mutex.lock_upgrade();
    std::thread([&] {
        CHECK(mutex.try_lock_shared());
        mutex.unlock_shared();
        CHECK(!mutex.try_lock());
        CHECK(!mutex.try_lock_upgrade());
        times_out([&](auto time) { return mutex.try_lock_upgrade_for(time); },
                  [&](auto time) { return mutex.try_lock_upgrade_until(time); });
    }).join();
    mutex.lock_shared();
    CHECK(!mutex.try_unlock_upgrade_and_lock());
    times_out([&](auto time) { return mutex.try_unlock_upgrade_and_lock_for(time); },
              [&](auto time) { return mutex.try_unlock_upgrade_and_lock_until(time); });
    mutex.unlock_shared();
    CHECK(mutex.try_unlock_upgrade_and_lock());
    std::thread([&] { CHECK(!mutex.try_lock_shared()); }).join();
    mutex.unlock_and_lock_shared();
    std::thread([&] {
        CHECK(mutex.try_lock_shared());
        mutex.unlock_shared();
    }).join();
    mutex.unlock_shared();
    const auto then_unlock = [&](bool locked) {
        if (locked)
            mutex.unlock_upgrade();
        return locked;
    };
    comes_in_time([&](auto time) { return then_unlock(mutex.try_lock_upgrade_for(time)); },
                  [&](auto time) { return then_unlock(mutex.try_lock_upgrade_until(time)); });
    CHECK(mutex.try_lock_upgrade());
    mutex.unlock_upgrade_and_lock_shared();
    mutex.unlock_shared();
    crew(3, [&](int) {
        for (int i = 0; i < 500; i++) {
            mutex.lock_upgrade();
            const int before = written;
            mutex.unlock_upgrade_and_lock();
            CHECK(written == before);
            written++;
            mutex.unlock_and_lock_upgrade();
            CHECK(written == before + 1);
            mutex.unlock_upgrade();
        }
    });
    CHECK(written == 1500);
}

void upgrade_mutexes()
{
    is_an_upgrade_mutex<waitword::upgrade_mutex>();
    is_an_upgrade_mutex<waitword::basic_upgrade_mutex<WW_RWLOCK_PREFER_WRITER>>();
}

} // namespace

int main()
{
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // so that a hang keeps earlier output
    mutexes();
    shared_mutexes();
    upgrade_mutexes();
    return report("mutexes");
}
