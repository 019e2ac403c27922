//! Diagrams: a block in Graphviz's language becomes a picture in the page.
//!
//! Graphviz draws in black on nothing. Black becomes the colour of the text around it, so that a
//! diagram can be read in a light and in a dark theme.

use std::io::Write;
use std::process::{Command, Stdio};

const STYLE: [&str; 6] = [
    "-Gbgcolor=transparent",
    "-Nfontname=Helvetica",
    "-Efontname=Helvetica",
    "-Nfontsize=12",
    "-Efontsize=11",
    "-Nmargin=0.14,0.07",
];

/// The picture of a diagram, in one line.
pub(crate) fn draw(source: &str) -> Result<String, String> {
    let mut dot = Command::new("dot")
        .args(STYLE)
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start Graphviz's `dot`: {error}"))?;
    let mut input = dot.stdin.take().ok_or("`dot` has no input")?;
    input.write_all(source.as_bytes()).map_err(|error| format!("`dot`: {error}"))?;
    drop(input);
    let output = dot.wait_with_output().map_err(|error| format!("`dot`: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    // A warning is an unknown attribute or a text that does not fit.
    if !output.status.success() || !errors.trim().is_empty() {
        return Err(format!("`dot` refuses this diagram: {errors}\n{source}"));
    }
    let svg = String::from_utf8(output.stdout).map_err(|error| format!("`dot`: {error}"))?;
    let start = svg.find("<svg").ok_or("`dot` draws no picture")?;
    Ok(format!("<figure class=\"diagram\">{}</figure>\n", adapted(&svg[start..])))
}

/// The picture in the colours of the page; on one line, as Markdown demands of HTML; and without
/// titles, which would appear as tooltips with the internal names.
fn adapted(svg: &str) -> String {
    let mut text = svg.replace('\n', " ");
    for (open, close) in [("<!--", "-->"), ("<title>", "</title>")] {
        while let Some(start) = text.find(open) {
            let Some(length) = text[start..].find(close) else { break };
            text.replace_range(start..start + length + close.len(), "");
        }
    }
    text.replace("stroke=\"black\"", "stroke=\"currentColor\"")
        .replace("fill=\"black\"", "fill=\"currentColor\"")
        .replace("<text ", "<text fill=\"currentColor\" ")
        .replacen("<svg ", "<svg role=\"img\" ", 1)
}

#[cfg(test)]
mod tests {
    use super::adapted;

    #[test]
    fn a_picture_has_one_line_no_titles_and_the_colour_of_the_text() {
        let svg = "<svg width=\"1pt\">\n<!-- a -->\n<title>a</title>\n<text x=\"1\">a</text>\n\
                   <path fill=\"none\" stroke=\"black\"/>\n</svg>\n";
        let text = adapted(svg);
        assert!(!text.contains('\n') && !text.contains("title") && !text.contains("<!--"));
        assert!(text.contains("<text fill=\"currentColor\" x") && !text.contains("black"));
    }
}
