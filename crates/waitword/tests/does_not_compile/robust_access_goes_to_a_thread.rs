//! The access to a robust mutex stays with the thread that locked it.

use waitword::RobustMutex;

static MUTEX: RobustMutex<u64> = RobustMutex::new(0);

fn main() {
    let _ = MUTEX.with(|mut access| {
        std::thread::scope(|scope| {
            scope.spawn(move || *access = 1);
        });
    });
}
