// waitword's locks in C++: those of the standard library, in another namespace.
//
// Workers count words. They start together (latch), take pieces of text from a queue (mutex,
// condition_variable), record the words in a dictionary that is read far more often than it is
// written (shared_mutex), and meet after each round (barrier).
//
//     c++ -std=c++17 pipeline.cpp $(pkg-config --cflags --libs waitword) -pthread && ./a.out

#include <cstddef>
#include <deque>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include <waitword.hpp>

namespace locks = waitword; // or std, with <mutex>, <barrier> and so on: nothing else would change

namespace {

constexpr int workers = 4, rounds = 3, pieces = 200;

// A queue that can be closed: pop waits until there is a value, or until the queue is closed.
template <class T> class queue {
public:
    void push(T value)
    {
        {
            locks::lock_guard lock(mutex_);
            values_.push_back(std::move(value));
        }
        changed_.notify_one();
    }

    std::optional<T> pop()
    {
        locks::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return closed_ || !values_.empty(); });
        if (values_.empty())
            return std::nullopt;
        T value = std::move(values_.front());
        values_.pop_front();
        return value;
    }

    void set_closed(bool closed)
    {
        {
            locks::lock_guard lock(mutex_);
            closed_ = closed;
        }
        changed_.notify_all();
    }

private:
    locks::mutex mutex_;
    locks::condition_variable changed_;
    std::deque<T> values_;
    bool closed_ = false;
};

// Assigns each word a number when it is first seen.
class dictionary {
public:
    std::size_t number_of(const std::string &word)
    {
        {
            locks::shared_lock reading(mutex_);
            if (const auto found = numbers_.find(word); found != numbers_.end())
                return found->second;
        }
        locks::unique_lock writing(mutex_);
        return numbers_.try_emplace(word, numbers_.size()).first->second;
    }

    std::size_t size()
    {
        locks::shared_lock reading(mutex_);
        return numbers_.size();
    }

private:
    locks::shared_mutex mutex_;
    std::map<std::string, std::size_t> numbers_;
};

} // namespace

int main()
{
    queue<std::string> texts;
    dictionary words;
    locks::latch ready(workers);
    long counted = 0; // guarded by the mutex below
    locks::mutex counted_mutex;
    std::vector<long> after_round;
    // One thread runs this when all have arrived, before any continues.
    const auto end_of_round = [&]() noexcept {
        after_round.push_back(counted);
        texts.set_closed(false);
    };
    locks::barrier together(workers + 1, end_of_round);

    std::vector<std::thread> threads;
    for (int i = 0; i < workers; i++)
        threads.emplace_back([&] {
            ready.arrive_and_wait();
            for (int round = 0; round < rounds; round++) {
                while (const auto text = texts.pop()) {
                    words.number_of(*text);
                    locks::scoped_lock lock(counted_mutex);
                    counted++;
                }
                together.arrive_and_wait();
            }
        });
    ready.wait();
    for (int round = 0; round < rounds; round++) {
        for (int piece = 0; piece < pieces; piece++)
            texts.push("word" + std::to_string(piece % 50 + 10 * round));
        texts.set_closed(true);
        together.arrive_and_wait();
    }
    for (auto &thread : threads)
        thread.join();

    std::cout << "pipeline: " << counted << " words, " << words.size()
              << " different ones; after each round";
    for (const long count : after_round)
        std::cout << ' ' << count;
    std::cout << '\n';
    return counted == rounds * pieces && words.size() == 70 && after_round.size() == rounds ? 0 : 1;
}
