//! S2: the data of a robust mutex must not outlive the section that it is lent to.

use waitword::RobustMutex;

static MUTEX: RobustMutex<u64> = RobustMutex::new(0);

fn main() {
    let leaked: &'static mut u64 = MUTEX
        .with(|access| &mut **Box::leak(Box::new(access)))
        .unwrap();
    *leaked = 1;
}
