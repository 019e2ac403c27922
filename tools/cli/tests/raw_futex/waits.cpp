// The C++20 primitives for which libstdc++ calls futexes itself, through `syscall`.
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <latch>
#include <semaphore>
#include <thread>
#include <vector>

int main()
{
	{
		std::atomic<int> turn{0};
		std::thread other([&] {
			for (int i = 0; i < 5000; i++) {
				turn.wait(0);
				turn = 0;
				turn.notify_one();
			}
		});
		for (int i = 0; i < 5000; i++) {
			turn = 1;
			turn.notify_one();
			turn.wait(1);
		}
		other.join();
		std::printf("ping-pong done\n");
	}
	{
		std::counting_semaphore<100> places(3);
		std::atomic<int> inside{0}, most{0}, through{0};
		std::vector<std::thread> threads;
		for (int t = 0; t < 8; t++)
			threads.emplace_back([&] {
				for (int i = 0; i < 300; i++) {
					places.acquire();
					int now = ++inside, seen = most;
					while (now > seen && !most.compare_exchange_weak(seen, now))
						;
					if (i % 30 == 0)
						std::this_thread::sleep_for(std::chrono::milliseconds(1));
					--inside;
					places.release();
					++through;
				}
			});
		for (auto &thread : threads)
			thread.join();
		std::printf("semaphore: %d through, at most three: %d\n", through.load(), most.load() <= 3);
		std::binary_semaphore none(0);
		std::printf("timed: %d\n", none.try_acquire_for(std::chrono::milliseconds(20)));
	}
	{
		std::latch start(1), end(8);
		std::atomic<int> sum{0};
		std::vector<std::thread> threads;
		for (int t = 0; t < 8; t++)
			threads.emplace_back([&, t] {
				start.wait();
				sum += t;
				end.count_down();
			});
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		start.count_down();
		end.wait();
		std::printf("latch: %d\n", sum.load());
		for (auto &thread : threads)
			thread.join();
	}
	{
		int rounds = 0;
		std::barrier gate(4, [&]() noexcept { rounds++; });
		std::vector<std::thread> threads;
		for (int t = 0; t < 4; t++)
			threads.emplace_back([&] {
				for (int i = 0; i < 500; i++)
					gate.arrive_and_wait();
			});
		for (auto &thread : threads)
			thread.join();
		std::printf("barrier: %d\n", rounds);
	}
}
