//! The page without a browser: `tests/page.rs` opens it in one.

use super::*;
use std::rc::Rc;

/// No tag or attribute comes from a name in the recording.
#[test]
fn no_name_becomes_markup() {
    const HOSTILE: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>";
    let mut process = crate::sites::tests::process();
    let file = HOSTILE.replace('/', "\\");
    process.maps = crate::read::mappings(&format!("0-40 r-xp 0 0:0 1 /{file}\n"));
    for (thread, wait) in &mut process.waits {
        process.threads.insert(*thread, HOSTILE.to_owned());
        (wait.holder, wait.waker) = (*thread, *thread);
    }
    let profiles = [Profile::of(process)];
    let page = page(&mut Recording::new(&profiles, &Rc::default()));
    assert!(page.contains("&lt;img src=x onerror=alert(2)&gt;"), "the name is shown");
    assert_eq!(page.matches("<script>").count(), 2, "our own");
    assert!(!page.contains("<img"));
    let is_ours = |attribute: &str| page.matches(attribute).count() == 0;
    assert!(is_ours(" onerror=\"") && is_ours("\"'>"));
}

#[test]
fn an_empty_recording_has_a_page() {
    let text = page(&mut Recording::new(&[], &Rc::default()));
    assert!(text.contains("No thread waited for a lock"), "{text}");
}
