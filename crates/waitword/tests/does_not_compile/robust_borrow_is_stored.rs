//! S2: the data of a robust mutex must not be stored either.

use waitword::{RobustAccess, RobustMutex};

static MUTEX: RobustMutex<u64> = RobustMutex::new(0);

fn main() {
    let mut aside: Option<RobustAccess<'_, u64>> = None;
    let _ = MUTEX.with(|access| aside = Some(access));
}
