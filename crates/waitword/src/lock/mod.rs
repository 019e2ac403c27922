//! The locks, a folder or file each. They know the table only through `futex`: [`parking`](crate::futex::parking) where a
//! lock's own word must change in one step with its queue, `wait` and `wake` elsewhere.

mod key;
pub(crate) mod pi;
pub(crate) mod robust;

pub(crate) use key::key_of;
