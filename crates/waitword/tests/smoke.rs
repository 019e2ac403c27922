//! first smoke
use std::sync::atomic::*;
use std::time::Duration;
use waitword::*;
#[test]
fn ping() {
    let w = AtomicU64::new(0);
    std::thread::scope(|s| {
        s.spawn(|| {
            while w.load(Ordering::Acquire) == 0 {
                let _ = Futex::private(&w).wait(0);
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        w.store(1, Ordering::Release);
        assert_eq!(Futex::private(&w).wake(1), Ok(1));
    });
    let d = Deadline::after(Duration::from_millis(10));
    assert_eq!(Futex::private(&w).wait_until(1, d), Err(Error::TimedOut));
    let n = AtomicU32::new(0);
    let w = AtomicU8::new(0);
    let t0 = std::time::Instant::now();
    std::thread::scope(|s| {
        for _ in 0..200 {
            s.spawn(|| {
                for i in 0..=255u8 {
                    let mut v = w.load(Ordering::Relaxed);
                    while v == i && i < 100 {
                        let _ = Futex::private(&w).wait(i);
                        v = w.load(Ordering::Relaxed);
                    }
                }
                n.fetch_add(1, Ordering::Relaxed);
            });
        }
        for i in 1..=100u8 {
            std::thread::sleep(Duration::from_micros(100));
            w.store(i, Ordering::Relaxed);
            Futex::private(&w).wake(usize::MAX).unwrap();
        }
        w.store(200, Ordering::Relaxed);
        Futex::private(&w).wake(usize::MAX).unwrap();
    });
    assert_eq!(n.load(Ordering::Relaxed), 200);
    eprintln!(
        "{:?} {} {}",
        t0.elapsed(),
        table::buckets(),
        table::mapped_bytes()
    );
    // shared
    let w = AtomicU64::new(5);
    std::thread::scope(|s| {
        s.spawn(|| assert_eq!(Futex::shared(&w).wait(5), Ok(())));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(Futex::shared(&w).wake(5), Ok(1));
    });
}
