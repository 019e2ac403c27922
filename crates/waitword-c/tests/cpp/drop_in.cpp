// The same program with the standard's locks and with waitword's. Only the namespace differs.
#include "check.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#if __cplusplus >= 202002L
#include <barrier>
#include <latch>
#include <semaphore>
#endif

#include <waitword.hpp>

namespace with_std {
namespace sync = std;
#include "drop_in.inc"
} // namespace with_std

namespace with_waitword {
namespace sync = waitword;
#include "drop_in.inc"
} // namespace with_waitword

int main()
{
    // 1000 names; "one" is two letters longer than "1".
    const long expected = 2000 + 1000 + 2 * 100;
    CHECK(with_std::run() == expected);
    CHECK(with_waitword::run() == expected);
    return report("drop_in");
}
