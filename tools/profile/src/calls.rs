//! The names of system calls.

use syscalls::Sysno;

/// The name of the call in which a holder slept ([`Wait::call`]): `read`, or `call 1234` if this
/// machine knows none of that number. `None` for 0: it is not known.
///
/// [`Wait::call`]: waitword_record::format::Wait::call
pub fn name(call: u16) -> Option<String> {
    let number = usize::from(call.checked_sub(1)?);
    Some(Sysno::new(number).map_or_else(|| format!("call {number}"), |call| call.name().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_name() {
        let sleep = Sysno::clock_nanosleep.id() as u16;
        assert_eq!(name(sleep + 1).as_deref(), Some("clock_nanosleep"));
        assert_eq!(name(0), None);
        assert_eq!(name(u16::MAX).as_deref(), Some("call 65534"));
    }
}
