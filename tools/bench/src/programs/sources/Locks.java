import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.*;
import java.util.stream.*;

/** Each kind of lock that Java has. Prints the same in every run. */
public class Locks {
    static final int THREADS = 4;
    static int turns;

    interface Body {
        void run(int number) throws Exception;
    }

    static void all(Body body) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        Future<?>[] running = new Future<?>[THREADS];
        for (int n = 0; n < THREADS; n++) {
            int number = n;
            running[n] = pool.submit(() -> {
                body.run(number);
                return null;
            });
        }
        for (Future<?> one : running) {
            one.get();
        }
        pool.shutdown();
        if (!pool.awaitTermination(1, TimeUnit.MINUTES)) {
            throw new AssertionError("the pool does not end");
        }
    }

    public static void main(String[] arguments) throws Exception {
        turns = Integer.parseInt(arguments[0]);
        long started = System.nanoTime();

        Object monitor = new Object();
        long[] count = new long[3];
        all(n -> {
            for (int i = 0; i < turns; i++) {
                synchronized (monitor) {
                    count[0]++;
                }
            }
        });
        System.out.println("synchronized " + count[0]);

        ReentrantLock lock = new ReentrantLock();
        Condition changed = lock.newCondition();
        all(n -> {
            for (int i = 0; i < turns / 10; i++) {
                lock.lock();
                try {
                    while (count[1] % THREADS != n) {
                        changed.await();
                    }
                    count[1]++;
                    changed.signalAll();
                } finally {
                    lock.unlock();
                }
            }
        });
        System.out.println("condition " + count[1]);

        BlockingQueue<Integer> queue = new LinkedBlockingQueue<>(16);
        LongAdder sum = new LongAdder();
        all(n -> {
            for (int i = 0; i < turns; i++) {
                if (n % 2 == 0) {
                    queue.put(i);
                } else {
                    sum.add(queue.take());
                }
            }
        });
        System.out.println("queue " + sum.sum());

        ReadWriteLock both = new ReentrantReadWriteLock();
        CyclicBarrier barrier = new CyclicBarrier(THREADS);
        Semaphore places = new Semaphore(2);
        all(n -> {
            for (int i = 0; i < turns / 10; i++) {
                places.acquire();
                (i % 10 == 0 ? both.writeLock() : both.readLock()).lock();
                if (i % 10 == 0) {
                    count[2]++;
                }
                (i % 10 == 0 ? both.writeLock() : both.readLock()).unlock();
                places.release();
                if (i % 100 == 0) {
                    barrier.await();
                }
            }
        });
        System.out.println("writers " + count[2]);

        System.out.println("streams " + IntStream.range(0, 200 * turns).parallel().mapToLong(i -> i % 7).sum());

        Thread sleeper = new Thread(() -> {
            try {
                Thread.sleep(1_000_000);
            } catch (InterruptedException wanted) {
                System.out.println("interrupted");
            }
        });
        sleeper.start();
        synchronized (monitor) {
            monitor.wait(20);
        }
        sleeper.interrupt();
        sleeper.join();
        System.gc();
        System.err.println("seconds " + (System.nanoTime() - started) / 1e9);
    }
}
