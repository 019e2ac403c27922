//! The code blocks of a page.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::path::{Path, PathBuf};

/// A code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The page, relative to the book.
    pub(crate) page: PathBuf,
    /// The line of the page on which its text begins, after directives were replaced.
    pub(crate) line: usize,
    pub(crate) language: String,
    /// What follows the language, such as `no_run`.
    pub(crate) attributes: Vec<String>,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn has(&self, attribute: &str) -> bool {
        self.attributes.iter().any(|of| of == attribute)
    }

    /// Where it is, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{}:{} ({})", self.page.display(), self.line, self.language)
    }
}

/// The extensions of Markdown that the book uses.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH
}

/// All code blocks of a page. One without a language has an empty one.
pub(crate) fn of(page: &Path, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                let mut words =
                    info.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned);
                inside = true;
                blocks.push(Block {
                    page: page.to_owned(),
                    line: text[..range.start].matches('\n').count() + 2,
                    language: words.next().unwrap_or_default(),
                    attributes: words.collect(),
                    text: String::new(),
                });
            }
            Event::Text(part) if inside => {
                if let Some(block) = blocks.last_mut() {
                    block.text += &part;
                }
            }
            Event::End(TagEnd::CodeBlock) => inside = false,
            _ => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_their_attributes_and_lines() {
        let page =
            "# A\n\n```c,no_run body\nint a;\n\nint b;\n```\n\n* x\n\n  ```sh\n  ls\n  ```\n";
        let blocks = of(Path::new("a.md"), page);
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].language.as_str(), blocks[0].line), ("c", 4));
        assert!(blocks[0].has("no_run") && blocks[0].has("body") && !blocks[0].has("run"));
        assert_eq!(blocks[0].text, "int a;\n\nint b;\n");
        assert_eq!((blocks[1].language.as_str(), blocks[1].text.as_str()), ("sh", "ls\n"));
    }
}
