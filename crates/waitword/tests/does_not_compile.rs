//! Programs that would access memory without its lock. The compiler must refuse each of them, for
//! the stated reason.

#[test]
#[cfg_attr(feature = "send_guard", ignore = "what it allows is refused here")]
fn each_of_them_is_refused() {
    trybuild::TestCases::new().compile_fail("tests/does_not_compile/*.rs");
}
