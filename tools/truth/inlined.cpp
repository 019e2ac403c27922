/* inlined: `deposit` waits in an inlined function for a std::mutex; its holder `audit` sleeps. */
/* Ledger::take is always inlined: a report must show it between std::mutex::lock and its caller,
 * and the names in their C++ form, such as truth::Ledger::deposit<int>. `audit` sleeps 20 ms in
 * clock_nanosleep, under the lock, and 2 ms outside. A third thread waits at a
 * std::condition_variable for changes: idle, no contention. */
#include "truth.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace truth {

site audit_site = SITE("truth::Ledger::audit");
site deposit_site = SITE("truth::Ledger::deposit<int>");
site await_site = SITE("truth::Ledger::await_change");
site change_site = SITE("truth::Ledger::await_change");
section sections;

class Ledger {
  public:
    NAMED void audit() {
        take(audit_site);
        struct moment from = moment();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        add_section(&sections, from);
        mutex.unlock();
    }

    template <typename Amount>
    NAMED void deposit(Amount amount) {
        take(deposit_site);
        sum += amount;
        mutex.unlock();
        changed.notify_one();
    }

    /* Waits for the next deposit, and returns the sum. */
    NAMED long await_change(long seen) {
        take(await_site);
        std::unique_lock<std::mutex> guard(mutex, std::adopt_lock);
        while (sum == seen) {
            wait_begin from = begin_wait();
            changed.wait(guard);
            end_wait(&change_site, from);
        }
        return sum;
    }

  private:
    __attribute__((always_inline)) void take(site &where) {
        warm_up();
        wait_begin from = begin_wait();
        mutex.lock();
        end_wait(&where, from);
    }

    std::mutex mutex;
    std::condition_variable changed;
    long sum = 0;
};

}  // namespace truth

int main(int count, char **arguments) {
    truth::Ledger ledger;
    start_run(count, arguments);
    std::thread auditor([&] {
        while (time_left()) {
            ledger.audit();
            sleep_ns(2 * MS);
        }
    });
    std::thread depositor([&] {
        while (time_left()) {
            ledger.deposit(1);
            sleep_ns(MS);
        }
        ledger.deposit(1000000);
    });
    std::thread observer([&] {
        for (long sum = 0; sum < 1000000;) sum = ledger.await_change(sum);
    });
    auditor.join();
    depositor.join();
    observer.join();
    print_site(&truth::audit_site);
    print_site(&truth::deposit_site);
    print_site(&truth::await_site);
    print_idle_site("condvar", &truth::change_site);
    print_section("audit", &truth::sections);
    return 0;
}
