//! Serde support, with the feature `serde`: the mutex is serialized as the value that it protects,
//! like `lock_api`'s.

use super::{FallibleMutex, RawFallibleMutex};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error, Serialize, Serializer};

/// Locks the mutex and serializes the value. Blocks.
///
/// # Errors
/// Those of the serializer, and those of [`lock`](FallibleMutex::lock) as its custom errors.
impl<R: RawFallibleMutex, T: ?Sized + Serialize> Serialize for FallibleMutex<R, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let guard = self.lock().map_err(S::Error::custom)?;
        (*guard).serialize(serializer)
    }
}

/// Deserializes the value and puts it into a free, private mutex.
impl<'de, R: RawFallibleMutex, T: Deserialize<'de>> Deserialize<'de> for FallibleMutex<R, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}
