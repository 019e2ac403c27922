//! A value whose drop uses its borrow must not outlive it; a cell does not accept shorter borrows.

use waitword::OnceLock;

struct Looks<'a>(&'a String);

impl Drop for Looks<'_> {
    fn drop(&mut self) {
        assert_eq!(self.0, "text");
    }
}

fn main() {
    let cell = OnceLock::new();
    let text = String::from("text");
    let _ = cell.set(Looks(&text));

    let long: OnceLock<&'static str> = OnceLock::new();
    let short: &OnceLock<&str> = &long;
    let word = String::from("word");
    let _ = short.set(&word);
    println!("{:?}", long.get());
}
