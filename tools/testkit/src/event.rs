//! What one step of a program did: this is compared.

use crate::answer::{Answer, show};
use std::fmt;

/// See the module documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<W> {
    /// The operation's answer; `None` if it is a wait, or no operation at all.
    pub answer: Option<Answer>,
    /// The threads that came back, and their waits' answers.
    pub came_back: Vec<(usize, Answer)>,
    /// The values of the words after that.
    pub words: W,
}

/// For a human reader.
impl<W: fmt::LowerHex + Copy, const WORDS: usize> fmt::Display for Event<[W; WORDS]> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = self.answer.map_or("-".to_owned(), show);
        let came_back: Vec<_> = self
            .came_back
            .iter()
            .map(|&(thread, answer)| format!("thread {thread}: {}", show(answer)))
            .collect();
        let words: Vec<_> = self.words.iter().map(|word| format!("{word:x}")).collect();
        let (came_back, words) = (came_back.join(", "), words.join(", "));
        write!(f, "answer {answer}; back: [{came_back}]; words [{words}]")
    }
}

/// Picks one of these by any number; `None` if there are none.
pub fn pick(from: &[usize], number: u8) -> Option<usize> {
    (!from.is_empty()).then(|| from[usize::from(number) % from.len()])
}
