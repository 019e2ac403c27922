//! System calls that the kernel supports and refuses all the same, through a filter (seccomp(2)).

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::ffi::c_long;

/// A system call that is to be refused.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its number.
    pub number: c_long,
    /// Only if this argument, counted from 0, has this value in the bits of the mask.
    pub only: Option<(u8, u32, u32)>,
}

/// A call, whatever its arguments are.
pub fn call(number: c_long) -> Call {
    Call { number, only: None }
}

impl Call {
    /// Only if the bits of `mask` in an argument, counted from 0, are those of `value`.
    pub fn with(mut self, argument: u8, mask: u32, value: u32) -> Self {
        self.only = Some((argument, mask, value));
        self
    }

    fn rules(self) -> Vec<SeccompRule> {
        let rule = |(argument, mask, value): (u8, u32, u32)| {
            let bits = SeccompCmpOp::MaskedEq(mask.into());
            let only = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, bits, value.into());
            SeccompRule::new(vec![only.expect("a condition")]).expect("a rule")
        };
        self.only.map(rule).into_iter().collect()
    }
}

/// From here on the kernel refuses these calls with `error` to the calling thread, and to the
/// threads and programs that it starts.
pub fn refuse<const CALLS: usize>(error: i32, calls: [Call; CALLS]) {
    let filter = SeccompFilter::new(
        calls.map(|call| (call.number, call.rules())).into(),
        SeccompAction::Allow,
        SeccompAction::Errno(error as u32),
        std::env::consts::ARCH.try_into().expect("an architecture"),
    );
    let program: BpfProgram = filter.and_then(|filter| filter.try_into()).expect("a filter");
    seccompiler::apply_filter(&program).expect("the filter is installed");
}
