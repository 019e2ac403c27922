//! S1: a mutex that may refuse, or that admits its owner again, cannot back `lock_api`'s guards.

use waitword::{Kind, Mutex, PosixFlavour, PosixMutexOptions};

fn main() {
    let inheriting = PosixMutexOptions::new().flavour(PosixFlavour::PriorityInheriting);
    let _ = Mutex::from_raw(inheriting.build_raw(), 0);
    let recursive = PosixMutexOptions::new().kind(Kind::Recursive);
    let _ = waitword::lock_api::Mutex::from_raw(recursive.build_raw(), 0);
}
