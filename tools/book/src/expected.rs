//! Compares what a command printed with what the page shows.
//!
//! Both are compared word by word, so a page may wrap a long line. `...` stands for any words, or
//! none; inside a word, for any characters. In a block with the attribute `figures`, each number
//! stands for any number, and a unit of time that follows it for any unit of time: what was
//! measured differs from run to run.

const UNITS: [&str; 6] = ["ns", "µs", "us", "ms", "s", "min"];

/// Whether `printed` is what `shown` promises.
pub(crate) fn matches(shown: &str, printed: &str, has_figures: bool) -> bool {
    let words = |text: &str| {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if has_figures { without_figures(&words) } else { words }
    };
    glob(&words(shown), &words(printed))
}

/// The classic match with one point to return to: the latest `...`.
fn glob(shown: &[String], printed: &[String]) -> bool {
    let (mut at, mut word) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while word < printed.len() {
        if shown.get(at).is_some_and(|of| of == "...") {
            back = Some((at, word));
            at += 1;
        } else if shown.get(at).is_some_and(|of| is_word(of, &printed[word])) {
            at += 1;
            word += 1;
        } else if let Some((star, from)) = back {
            back = Some((star, from + 1));
            at = star + 1;
            word = from + 1;
        } else {
            return false;
        }
    }
    shown[at..].iter().all(|of| of == "...")
}

/// Whether a word is the one that is shown; `...` in it stands for any characters.
fn is_word(shown: &str, printed: &str) -> bool {
    let Some((start, end)) = shown.split_once("...") else { return shown == printed };
    printed.len() >= start.len() + end.len() && printed.starts_with(start) && printed.ends_with(end)
}

/// The words with `#` for each number, and `t` for each unit of time after a number.
fn without_figures(words: &[String]) -> Vec<String> {
    let mut replaced: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let after_number = replaced.last().is_some_and(|last| last.ends_with('#'));
        let bare = word.trim_end_matches(|of: char| !of.is_alphanumeric());
        replaced.push(if after_number && UNITS.contains(&bare) {
            format!("t{}", &word[bare.len()..])
        } else {
            without_numbers(word)
        });
    }
    replaced
}

fn without_numbers(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word.chars().peekable();
    while let Some(next) = rest.next() {
        if !next.is_ascii_digit() {
            text.push(next);
            continue;
        }
        text.push('#');
        while let Some(&more) = rest.peek() {
            let is_inner = more == '.' && rest.clone().nth(1).is_some_and(|of| of.is_ascii_digit());
            if !more.is_ascii_digit() && !is_inner {
                break;
            }
            rest.next();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn lines_may_be_wrapped_but_words_must_agree() {
        assert!(matches("a b\n    c\n", "a b c\n", false));
        assert!(!matches("a b", "a b c", false) && !matches("a b c", "a b", false));
        assert!(matches("", "\n", false) && !matches("", "x", false));
    }

    #[test]
    fn dots_stand_for_any_words() {
        for printed in ["a z", "a b z", "a z b z"] {
            assert!(matches("a ... z", printed, false), "{printed}");
        }
        assert!(!matches("a ... z", "a b", false));
        assert!(matches("... b ... d ...", "a b c d", false));
        assert!(matches("at (...b.c:3)", "at (/a/b.c:3)", false));
        assert!(!matches("at (...b.c:3)", "at (/a/b.c:4)", false));
        assert!(!matches("aa...aa", "aaa", false));
    }

    #[test]
    fn a_figure_stands_for_any_figure_only_where_that_is_said() {
        let (shown, printed) =
            ("54 waits, 1.10 s: a (b.c:31), 98 %", "7 waits, 980 ms: a (b.c:4), 5 %");
        assert!(matches(shown, printed, true));
        assert!(!matches(shown, printed, false));
        assert!(!matches("54 waits", "many waits", true));
        assert!(!matches("5 s", "5 threads", true));
    }
}
