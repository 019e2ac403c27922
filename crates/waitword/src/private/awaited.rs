//! What a thread waits for. Only debuggers read it: `tools/gdb` shows it for a program that hangs.

#[cfg(not(loom))]
use crate::debugger::Field;
use crate::word::Size;

/// The kind of object that a node's waiter waits for. A waiter that a condvar has moved to its
/// mutex stays one of a condvar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Awaited {
    /// A futex word of this size.
    Word8 = 0,
    Word16 = 1,
    Word32 = 2,
    Word64 = 3,
    Mutex = 4,
    Condvar = 5,
    RwLock = 6,
    Barrier = 7,
    /// A semaphore, or an event that resets itself (`lock/tokens.rs`).
    Tokens = 8,
    Event = 9,
    Latch = 10,
    Once = 11,
}

#[cfg(not(loom))]
impl Awaited {
    /// For debuggers, which show these names.
    pub(super) const FIELDS: [Field; 12] = [
        Field::constant("awaited: 8-bit word", Self::Word8 as u32),
        Field::constant("awaited: 16-bit word", Self::Word16 as u32),
        Field::constant("awaited: 32-bit word", Self::Word32 as u32),
        Field::constant("awaited: 64-bit word", Self::Word64 as u32),
        Field::constant("awaited: mutex", Self::Mutex as u32),
        Field::constant("awaited: condvar", Self::Condvar as u32),
        Field::constant("awaited: rwlock", Self::RwLock as u32),
        Field::constant("awaited: barrier", Self::Barrier as u32),
        Field::constant("awaited: tokens", Self::Tokens as u32),
        Field::constant("awaited: event", Self::Event as u32),
        Field::constant("awaited: latch", Self::Latch as u32),
        Field::constant("awaited: once", Self::Once as u32),
    ];
}

impl From<Size> for Awaited {
    fn from(size: Size) -> Self {
        match size {
            Size::U8 => Self::Word8,
            Size::U16 => Self::Word16,
            Size::U32 => Self::Word32,
            Size::U64 => Self::Word64,
        }
    }
}
