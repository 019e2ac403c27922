// The condition variables of waitword.hpp behave like their namesakes in std.
#include "check.hpp"

#include <waitword.hpp>

#include <cstring>
#include <deque>
#include <memory>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Any condition variable, with any lock. Lock is the holder of a Mutex.
template <class Condition, class Mutex, class Lock> void is_a_condition()
{
    Mutex mutex;
    Condition condition;
    std::deque<int> queue;
    long sum = 0;
    crew(4, [&](int number) {
        for (int i = 0; i < 500; i++) {
            if (number % 2) {
                Lock lock(mutex);
                queue.push_back(i);
                if (i % 8)
                    lock.unlock();
                condition.notify_one();
            } else {
                Lock lock(mutex);
                switch (i % 3) {
                case 0:
                    while (queue.empty())
                        condition.wait(lock);
                    break;
                case 1: condition.wait(lock, [&] { return !queue.empty(); }); break;
                default: CHECK(condition.wait_for(lock, never, [&] { return !queue.empty(); }));
                }
                sum += queue.front();
                queue.pop_front();
            }
        }
    });
    CHECK(sum == 2 * 499 * 500 / 2);

    // Without a notification.
    Lock lock(mutex);
    times_out([&](auto time) { return condition.wait_for(lock, time, [] { return false; }); },
              [&](auto time) { return condition.wait_until(lock, time, [] { return false; }); });
    times_out(
        [&](auto time) { return condition.wait_for(lock, time) == std::cv_status::no_timeout; },
        [&](auto time) {
            // On a clock whose time is estimated, the wait may end early, as a spurious wake-up.
            // Not if the time had passed when it began.
            using Clock = typename decltype(time)::clock;
            for (;;) {
                const bool is_late = Clock::now() >= time;
                if (condition.wait_until(lock, time) == std::cv_status::timeout)
                    return false;
                if (is_late)
                    return true;
            }
        });
    CHECK(lock.owns_lock());
    bool done = false;
    CHECK(condition.wait_for(lock, 0s, [] { return true; }));
    comes_in_time([&](auto time) { return condition.wait_for(lock, time, [] { return true; }); },
                  [&](auto time) { return condition.wait_until(lock, time, [] { return true; }); });
    lock.unlock();

    // notify_all releases all waiters.
    int through = 0;
    std::thread waker([&] {
        std::this_thread::sleep_for(1ms);
        Lock lock(mutex);
        done = true;
        condition.notify_all();
    });
    crew(6, [&](int number) {
        Lock lock(mutex);
        if (number % 2)
            condition.wait(lock, [&] { return done; });
        else
            CHECK(condition.wait_until(lock, slow_clock::now() + never, [&] { return done; }));
        through++;
    });
    waker.join();
    CHECK(through == 6);
}

// It may be destroyed as soon as all waiters have been notified.
template <class Condition> void can_be_destroyed_early()
{
    for (int i = 0; i < 200; i++) {
        waitword::mutex mutex;
        auto condition = std::make_unique<Condition>();
        int waiting = 0;
        bool done = false;
        const auto wait = [&] {
            std::unique_lock<waitword::mutex> lock(mutex);
            waiting++;
            Condition &here = *condition;
            while (!done)
                here.wait(lock);
        };
        std::thread first(wait), second(wait);
        for (bool ready = false; !ready; std::this_thread::yield()) {
            std::lock_guard<waitword::mutex> lock(mutex);
            ready = waiting == 2;
        }
        {
            std::lock_guard<waitword::mutex> lock(mutex);
            done = true;
            condition->notify_all();
            condition.reset();
        }
        first.join();
        second.join();
    }
    CHECK(true);
}

// Nothing but lock and unlock.
struct basic_lockable {
    void lock() { mutex.lock(); }
    void unlock() { mutex.unlock(); }
    waitword::mutex mutex;
};

void conditions()
{
    using namespace waitword;
    using std::unique_lock;
    is_a_condition<condition_variable, waitword::mutex, unique_lock<waitword::mutex>>();
    is_a_condition<condition_variable, recursive_timed_mutex, unique_lock<recursive_timed_mutex>>();
    is_a_condition<condition_variable_any, std::mutex, unique_lock<std::mutex>>();
    is_a_condition<condition_variable_any, shared_mutex, unique_lock<shared_mutex>>();
    is_a_condition<condition_variable_any, basic_lockable, unique_lock<basic_lockable>>();
    can_be_destroyed_early<condition_variable>();
    can_be_destroyed_early<condition_variable_any>();

    waitword::mutex mutex;
    condition_variable condition;
    unique_lock<waitword::mutex> lock(mutex, std::defer_lock);
    THROWS(operation_not_permitted, condition.wait(lock));
    THROWS(operation_not_permitted, condition.wait_for(lock, 1s));
    THROWS(operation_not_permitted, condition.wait_until(lock, std::chrono::system_clock::now()));
    CHECK(ww_cond_signal(condition.native_handle()) == 0);

    // With a read lock.
    shared_mutex shared;
    condition_variable_any any;
    std::atomic<bool> ready{false};
    std::thread reader([&] {
        shared_lock<shared_mutex> reading(shared);
        any.wait(reading, [&] { return ready.load(); });
        CHECK(reading.owns_lock());
    });
    while (!ready) {
        std::this_thread::sleep_for(1ms);
        std::unique_lock<shared_mutex> writing(shared);
        ready = true;
        any.notify_all();
    }
    reader.join();
    // With the mutex itself.
    std::thread notifier([&] { any.notify_one(); });
    mutex.lock();
    (void)any.wait_for(mutex, 1ms);
    mutex.unlock();
    notifier.join();
}

#if defined(__cpp_lib_jthread)
void stops()
{
    waitword::mutex mutex;
    waitword::condition_variable_any condition;
    const auto no = [] { return false; };
    // A stop requested while they wait, and one requested before.
    std::atomic<int> through{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 6; i++)
            threads.emplace_back([&, i](std::stop_token token) {
                std::unique_lock<waitword::mutex> lock(mutex);
                if (i % 3 == 0)
                    CHECK(!condition.wait(lock, token, no));
                else if (i % 3 == 1)
                    CHECK(!condition.wait_for(lock, token, never, no));
                else
                    CHECK(!condition.wait_until(lock, token, slow_clock::now() + never, no));
                CHECK(token.stop_requested());
                CHECK(lock.owns_lock());
                through++;
            });
        std::this_thread::sleep_for(1ms);
    }
    CHECK(through == 6);

    std::stop_source source;
    std::unique_lock<waitword::mutex> lock(mutex);
    times_out([&](auto time) { return condition.wait_for(lock, source.get_token(), time, no); },
              [&](auto time) { return condition.wait_until(lock, source.get_token(), time, no); });
    CHECK(condition.wait(lock, source.get_token(), [] { return true; }));
    source.request_stop();
    CHECK(condition.wait(lock, source.get_token(), [] { return true; }));
    CHECK(!condition.wait(lock, source.get_token(), no));

    lock.unlock();
}

// A stop at the very moment when a thread starts to wait is not lost. Two threads meet, and one of
// them then lets a little more time pass in each round, until the stop comes too late to matter.
void stops_at_any_moment()
{
    constexpr int rounds = 20000, latest = 1000;
    waitword::mutex mutex;
    waitword::condition_variable_any condition;
    std::vector<std::stop_source> sources(rounds);
    std::atomic<int> begun{-1};
    std::thread waiter([&] {
        for (int round = 0; round < rounds; round++) {
            const std::stop_token token = sources[round].get_token();
            std::unique_lock<waitword::mutex> lock(mutex);
            const auto begin = [&] {
                begun = round;
                return false;
            };
            if (condition.wait(lock, token, begin))
                CHECK(!"nothing to wait for");
        }
    });
    for (int round = 0; round < rounds; round++) {
        for (int looks = 1; begun < round; looks++)
            if (looks % 10000 == 0)
                std::this_thread::yield();
        for (int i = 0; i < round % latest; i++)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        sources[round].request_stop();
    }
    waiter.join();
    CHECK(begun == rounds - 1);
}
#endif

// A wait whose priority-inheriting mutex cannot be locked again terminates the program, and names
// the mutex.
void lost_mutexes()
{
    using waitword::condition_variable;
    using inheriting = waitword::basic_mutex<WW_MUTEX_PRIO_INHERIT>;
    int said[2];
    CHECK(pipe(said) == 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        dup2(said[1], STDERR_FILENO);
        inheriting first, second;
        condition_variable changed;
        std::unique_lock<inheriting> holds_second(second);
        std::unique_lock<inheriting> holds_first(first);
        std::thread other([&] {
            std::lock_guard<inheriting> takes_first(first);
            // Waits for the waiting thread, so that thread can never lock `first` again.
            std::lock_guard<inheriting> takes_second(second);
        });
        try {
            changed.wait_for(holds_first, 1s);
        } catch (...) {
        }
        _exit(0);
    }
    close(said[1]);
    char text[256] = "";
    size_t length = 0;
    for (ssize_t more; (more = read(said[0], text + length, sizeof text - 1 - length)) > 0;)
        length += static_cast<size_t>(more);
    close(said[0]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(std::strstr(text, "condition variable 0x") && std::strstr(text, "its mutex 0x"));
}

} // namespace

int main()
{
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // so that a hang keeps earlier output
    conditions();
    lost_mutexes();
#if defined(__cpp_lib_jthread)
    stops();
    stops_at_any_moment();
#endif
    return report("conditions");
}
