//! Such a mutex as serde sees it, with the feature `serde`: as what it protects, as `lock_api`'s
//! are.

use super::{FallibleMutex, RawFallibleMutex};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error, Serialize, Serializer};

/// Locks it, and serializes the value. Blocks.
///
/// # Errors
/// Those of the serializer, and those of [`lock`](FallibleMutex::lock) as its custom errors.
impl<R: RawFallibleMutex, T: ?Sized + Serialize> Serialize for FallibleMutex<R, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let guard = self.lock().map_err(S::Error::custom)?;
        (*guard).serialize(serializer)
    }
}

/// A free, private mutex around a value.
impl<'de, R: RawFallibleMutex, T: Deserialize<'de>> Deserialize<'de> for FallibleMutex<R, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}
