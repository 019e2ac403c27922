//! Puts the source of a page into the form that man-pages(7) asks for, and that `mandoc -Tlint`
//! accepts: lines of at most 80 columns, no space at their ends, one blank line between paragraphs.

const WIDTH: usize = 80;

/// What clap_mangen's writer puts before each section; once for the page is enough.
const PRELUDE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// The page with the same text in this form.
pub(super) fn lay_out(page: &str) -> String {
    // Two breaks around an empty line are one empty line.
    let body = page.replace(PRELUDE, "").replace(".br\n\n.br\n", ".sp\n");
    let mut laid_out = PRELUDE.to_owned();
    let mut is_tag = false;
    for line in body.lines().map(str::trim_end) {
        if is_tag || line.starts_with('.') {
            // A tag is one line, however long.
            laid_out.push_str(line);
            laid_out.push('\n');
        } else {
            wrap(line, &mut laid_out);
        }
        is_tag = line == ".TP";
    }
    laid_out
}

/// Breaks a line of text at its spaces. The formatter fills the lines again.
fn wrap(text: &str, to: &mut String) {
    let mut columns = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if columns > 0 && columns + 1 + width > WIDTH {
            to.push('\n');
            columns = 0;
        } else if columns > 0 {
            to.push(' ');
            columns += 1;
        }
        // A line that begins like this would be a macro.
        if columns == 0 && word.starts_with(['.', '\'']) {
            to.push_str("\\&");
            columns += 2;
        }
        to.push_str(word);
        columns += width;
    }
    to.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_and_tags_are_not() {
        let long = "word ".repeat(30);
        let tag = "tag ".repeat(30);
        let page = format!("{PRELUDE}.TP\n{tag}\n{long}.so 'and\n{PRELUDE}.SH X\na\n.br\n\n.br\nb");
        let laid_out = lay_out(&page);
        let lines: Vec<&str> = laid_out.lines().collect();
        assert_eq!(lines[2..4], [".TP", tag.trim_end()]);
        assert!(lines[4..].iter().all(|line| line.len() <= WIDTH), "{laid_out}");
        assert!(laid_out.ends_with("\n.SH X\na\n.sp\nb\n"), "{laid_out}");
        let words = laid_out.split_whitespace().filter(|&word| word == "word").count();
        assert_eq!(words, 30);
    }

    #[test]
    fn no_word_becomes_a_macro() {
        for word in [".so", "'t"] {
            let laid_out = lay_out(&format!("{} {word} end", "x".repeat(WIDTH - 2)));
            assert!(laid_out.ends_with(&format!("\n\\&{word} end\n")), "{laid_out}");
        }
    }
}
