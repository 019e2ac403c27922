//! What a debugger must know to read the library's structures in the memory of a process or of a
//! core dump: where they begin, and the names, offsets and sizes of their fields.
//!
//! Each structure has a [`Description`], a constant in the ELF section `.waitword_debug`. No
//! instruction reads it. It is part of the loaded image, and `strip` keeps it and its section, so
//! `tools/gdb` needs neither debug information nor symbols. The offsets are those that the
//! compiler has chosen (`offset_of!`), so they cannot get out of step. (glibc tells its own
//! debugger library about its threads in the same way: `nptl_db/structs.def`.)
//!
//! # Bytes
//!
//! | offset | contents |
//! |--------|----------|
//! | 0 | `waitword` |
//! | 8 | the number of this format, [`FORMAT`], 32 bits |
//! | 12 | the number of fields, 32 bits |
//! | 16 | the library's version, padded with zeros |
//! | 32 | the subject, padded with zeros |
//! | 64 | the subject's address, a pointer |
//! | then | the fields: 24 bytes of name, padded with zeros; offset, 32 bits; size, 32 bits |
//!
//! A name `node.mask` is a field of a structure; `node` is the structure itself, with offset 0.
//! A name with a colon, `awaited: mutex`, is a constant, and its offset is the value. The section
//! may contain several descriptions, of several versions of this crate, with zeros in between. A
//! field may be added without a new format; a reader must find all that it needs by name.

use core::mem::offset_of;

/// Changes if one of the bytes above gets another meaning.
const FORMAT: u32 = 1;

/// See the module documentation. `T` is the subject, `F` consists of [`Field`]s.
#[repr(C)]
pub(crate) struct Description<T: 'static, F> {
    magic: [u8; 8],
    format: u32,
    count: u32,
    version: [u8; 16],
    subject: [u8; 32],
    address: &'static T,
    fields: F,
}

// As the table in the module's documentation states.
const _: () = {
    type Example = Description<u8, [Field; 1]>;
    assert!(offset_of!(Example, format) == 8 && offset_of!(Example, count) == 12);
    assert!(offset_of!(Example, version) == 16 && offset_of!(Example, subject) == 32);
    assert!(offset_of!(Example, address) == 64);
    assert!(offset_of!(Example, fields) == 64 + size_of::<usize>());
    assert!(offset_of!(Field, offset) == 24 && offset_of!(Field, size) == 28);
    assert!(size_of::<Field>() == 32);
};

impl<T, F> Description<T, F> {
    pub(crate) const fn new(subject: &str, address: &'static T, fields: F) -> Self {
        const { assert!(size_of::<F>() % size_of::<Field>() == 0 && align_of::<F>() == 4) };
        Self {
            magic: *b"waitword",
            format: FORMAT,
            count: (size_of::<F>() / size_of::<Field>()) as u32,
            version: padded(env!("CARGO_PKG_VERSION")),
            subject: padded(subject),
            address,
            fields,
        }
    }

    /// Keeps the linker from leaving it out. Called where it costs nothing.
    #[inline(always)]
    pub(crate) fn keep(&'static self) {
        core::hint::black_box(self);
    }
}

/// A field of a structure, a structure, or a constant.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Field {
    name: [u8; 24],
    offset: u32,
    size: u32,
}

impl Field {
    pub(crate) const fn new(name: &str, offset: usize, size: usize) -> Self {
        assert!(offset <= u32::MAX as usize && size <= u32::MAX as usize);
        Self { name: padded(name), offset: offset as u32, size: size as u32 }
    }

    /// A constant of a group.
    pub(crate) const fn constant(name: &str, value: u32) -> Self {
        Self::new(name, value as usize, 0)
    }
}

/// The size of what a function leads to.
pub(crate) const fn size_of_target<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// `text` and zeros, at least one.
pub(crate) const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    assert!(text.len() < N);
    let mut index = 0;
    while index < text.len() {
        bytes[index] = text.as_bytes()[index];
        index += 1;
    }
    bytes
}

/// The [`Field`]s of a structure: `fields!("node": Node { address, mask })`.
macro_rules! fields {
    ($name:literal: $owner:ty { $($field:ident),* $(,)? }) => {
        [
            $crate::debugger::Field::new($name, 0, size_of::<$owner>()),
            $($crate::debugger::Field::new(
                concat!($name, ".", stringify!($field)),
                core::mem::offset_of!($owner, $field),
                $crate::debugger::size_of_target(|owner: &$owner| &owner.$field),
            ),)*
        ]
    };
}

pub(crate) use fields;
