//! Prepares the pages for mdBook.
//!
//! | in a page | becomes |
//! |---|---|
//! | `{{#picture ...}}` | a picture of stored reports ([`Results::picture`]) |
//! | `{{#then-and-now PATCH}}` | a patch's figures ([`Results::then_and_now`]) |
//! | `{{#results NAME}}` | a table of stored reports ([`Results::block`]) |
//! | `{{#page FILE}}` | the text of a Markdown file outside of the book |
//! | `{{#help COMMAND}}` | what `waitword COMMAND --help` prints |
//! | a block in the language `dot` | the diagram that it describes |
//! | a link out of the book | its text, with the file's name |
//!
//! The last is for readers of the rendered book, which has no other files beside it. Readers of
//! the repository have the links.

use crate::{diagram, links};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use waitword_report::Results;

const SOURCE: &str = "book/src";

/// All that the pages refer to.
struct Sources {
    repository: PathBuf,
    results: Results,
    /// The chapters that consist of a file outside of the book.
    pages: HashMap<PathBuf, PathBuf>,
}

/// Answers mdBook: takes its context and the book, and returns the book.
pub(crate) fn prepare(input: &str) -> Result<String, String> {
    let mut input: Value =
        serde_json::from_str(input).map_err(|error| format!("no JSON from mdBook: {error}"))?;
    let root = input[0]["root"].as_str().ok_or("mdBook names no root")?;
    let root = PathBuf::from(root);
    let repository = root.parent().ok_or("the book is not in a repository")?.to_owned();
    let results = Results::read(&repository.join("results"))?;
    let mut sources = Sources { repository, results, pages: HashMap::new() };
    let mut book = input[1].take();
    each_chapter(&mut book, &mut |chapter| sources.note_page(chapter))?;
    each_chapter(&mut book, &mut |chapter| {
        let Some((path, text)) = parts(chapter) else { return Ok(()) };
        let page = Path::new(SOURCE).join(&path);
        let text = sources.page(&page, &page, &text);
        let text = text.map_err(|error| format!("{}: {error}", page.display()))?;
        chapter["content"] = Value::String(text);
        Ok(())
    })?;
    Ok(book.to_string())
}

/// Calls `visit` with each chapter, however nested. (mdBook 0.5 calls the list `items`, 0.4
/// `sections`.)
fn each_chapter(
    value: &mut Value,
    visit: &mut dyn FnMut(&mut Value) -> Result<(), String>,
) -> Result<(), String> {
    match value {
        Value::Array(all) => all.iter_mut().try_for_each(|of| each_chapter(of, visit)),
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, field)| {
            if name == "Chapter" {
                visit(field)?;
            }
            match name.as_str() {
                "items" | "sections" | "sub_items" | "Chapter" => each_chapter(field, visit),
                _ => Ok(()),
            }
        }),
        _ => Ok(()),
    }
}

/// A chapter's path and text; `None` for one that is not written yet.
fn parts(chapter: &Value) -> Option<(String, String)> {
    let path = chapter["path"].as_str()?;
    Some((path.to_owned(), chapter["content"].as_str()?.to_owned()))
}

/// The name and the argument of a directive.
pub(crate) fn directive(line: &str) -> Option<(&str, &str)> {
    let inner = line.trim().strip_prefix("{{#")?.strip_suffix("}}")?;
    let (name, argument) = inner.split_once(' ')?;
    Some((name, argument.trim()))
}

impl Sources {
    fn note_page(&mut self, chapter: &Value) -> Result<(), String> {
        let Some((path, text)) = parts(chapter) else { return Ok(()) };
        let chapter = Path::new(SOURCE).join(path);
        for line in text.lines() {
            if let Some(("page", file)) = directive(line) {
                let file = links::follow(&self.repository, &chapter, file)
                    .map_err(|why| format!("{}: {file}: {why}", chapter.display()))?;
                self.pages.insert(file, chapter.clone());
            }
        }
        Ok(())
    }

    /// Prepares a text that was written in `file` and appears in `chapter`.
    fn page(&self, chapter: &Path, file: &Path, text: &str) -> Result<String, String> {
        let text = self.without_links_out(chapter, file, text)?;
        let mut prepared = String::new();
        let mut has_pictures = false;
        let mut fence: Option<&str> = None;
        let mut dot: Option<String> = None;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            // A directive may be wrapped.
            let mut whole = line.to_owned();
            while fence.is_none() && whole.starts_with("{{#") && !whole.ends_with("}}") {
                let more = lines.next().ok_or("a directive has no end")?;
                whole.push(' ');
                whole += more.trim();
            }
            let line = whole.as_str();
            let trimmed = line.trim_start();
            let is_fence = trimmed.starts_with("```");
            match (&mut dot, fence) {
                (Some(source), _) if is_fence => {
                    prepared += &diagram::draw(source)?;
                    dot = None;
                    continue;
                }
                (Some(source), _) => {
                    *source += line;
                    source.push('\n');
                    continue;
                }
                (None, None) if line == "```dot" => {
                    dot = Some(String::new());
                    continue;
                }
                (None, None) if is_fence => fence = Some("```"),
                (None, Some(_)) if is_fence => fence = None,
                _ => {}
            }
            match directive(line).filter(|_| fence.is_none()) {
                Some((name, argument)) => {
                    has_pictures |= name == "picture";
                    prepared += &self.directive(chapter, name, argument)?;
                }
                None => prepared += line,
            }
            prepared.push('\n');
        }
        if dot.is_some() {
            return Err("a diagram has no end".to_owned());
        }
        if has_pictures {
            let keys = self.results.picture_keys().ok_or("there are no reports")?;
            prepared += &format!("\n{keys}");
        }
        Ok(prepared)
    }

    fn directive(&self, chapter: &Path, name: &str, argument: &str) -> Result<String, String> {
        let measured = match name {
            "picture" => self.results.picture(argument, "")?,
            "then-and-now" => self.results.then_and_now(argument, "")?,
            "results" => self.results.block(argument, "")?,
            "page" => {
                let file = links::follow(&self.repository, chapter, argument)?;
                let text = std::fs::read_to_string(self.repository.join(&file))
                    .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
                return self.page(chapter, &file, &text);
            }
            "help" => return help(argument),
            other => return Err(format!("there is no directive `{other}`")),
        };
        // Its links are relative to the repository, as those of README.
        self.without_links_out(chapter, Path::new("README.md"), &measured)
    }

    /// The text with links that the rendered book can follow.
    fn without_links_out(&self, chapter: &Path, file: &Path, text: &str) -> Result<String, String> {
        let mut prepared = text.to_owned();
        for link in links::of(text).iter().rev().filter(|link| links::is_local(&link.target)) {
            let target = &link.target;
            if target.starts_with('#') {
                continue;
            }
            let found = links::follow(&self.repository, file, target)
                .map_err(|why| format!("{target}: {why}"))?;
            let inside = self.pages.get(&found).unwrap_or(&found);
            let shown = &text[link.shown.clone()];
            let new = if inside.starts_with(SOURCE) {
                let anchor = target.split_once('#').map_or("", |(_, anchor)| anchor);
                let to = relative(chapter, inside);
                let mark = if anchor.is_empty() { "" } else { "#" };
                format!("[{shown}]({to}{mark}{anchor})")
            } else if shown.contains(&*found.to_string_lossy()) {
                shown.to_owned()
            } else {
                format!("{shown} (`{}`)", found.display())
            };
            prepared.replace_range(link.range.clone(), &new);
        }
        Ok(prepared)
    }
}

/// The options of a subcommand, as the built command prints them.
fn help(command: &str) -> Result<String, String> {
    let output = std::process::Command::new("waitword")
        .args([command, "--help"])
        .output()
        .map_err(|error| format!("cannot start `waitword`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`waitword {command} --help` fails"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(format!("```text\n{}\n```\n", text.trim_end()))
}

/// The path from one page of the book to another.
fn relative(from: &Path, to: &Path) -> String {
    let [from, to] = [from, to].map(|path| path.strip_prefix(SOURCE).unwrap_or(path));
    let ups = from.parent().map_or(0, |directory| directory.components().count());
    format!("{}{}", "../".repeat(ups), to.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(place: &Path) -> Sources {
        for (name, text) in [
            ("ARCHITECTURE.md", "# Rooms\n"),
            ("docs/install.md", "# Install\n\nSee [rooms](../ARCHITECTURE.md#rooms).\n"),
            ("book/src/a.md", "# A\n"),
            ("book/src/use/b.md", "# B\n"),
            ("book/src/install.md", "{{#page ../../docs/install.md}}\n"),
        ] {
            let path = place.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let pages = [("docs/install.md".into(), "book/src/install.md".into())].into();
        Sources { repository: place.to_owned(), results: Results::default(), pages }
    }

    #[test]
    fn links_out_of_the_book_become_text_and_others_lead_to_its_pages() {
        let place = tempfile::tempdir().unwrap();
        let sources = sources(place.path());
        let chapter = Path::new("book/src/use/b.md");
        let page = |text: &str| sources.page(chapter, chapter, text);
        assert_eq!(page("[a](../a.md#a)").unwrap(), "[a](../a.md#a)\n");
        assert_eq!(page("[i](../../../docs/install.md)").unwrap(), "[i](../install.md)\n");
        let out = "[the rooms](../../../ARCHITECTURE.md#rooms)";
        assert_eq!(page(out).unwrap(), "the rooms (`ARCHITECTURE.md`)\n");
        let named = "[`ARCHITECTURE.md`](../../../ARCHITECTURE.md)";
        assert_eq!(page(named).unwrap(), "`ARCHITECTURE.md`\n");
        for broken in
            ["[a](../c.md)", "[a](../a.md#b)", "{{#x y}}", "{{#x\ny}}", "{{#x", "```dot\na"]
        {
            assert!(page(broken).is_err(), "{broken}");
        }
        let quoted = "```text\n{{#x y}}\n```\n";
        assert_eq!(page(quoted).unwrap(), quoted);
    }

    #[test]
    fn a_page_from_outside_has_its_own_directory() {
        let place = tempfile::tempdir().unwrap();
        let sources = sources(place.path());
        let chapter = Path::new("book/src/install.md");
        let text = sources.page(chapter, chapter, "{{#page ../../docs/install.md}}").unwrap();
        assert!(text.contains("See rooms (`ARCHITECTURE.md`)."), "{text}");
    }

    #[test]
    fn all_chapters_are_prepared_however_nested() {
        let place = tempfile::tempdir().unwrap();
        sources(place.path());
        std::fs::create_dir(place.path().join("results")).unwrap();
        let chapter = |path: &str, parts: Value| {
            let text = "[r](../../ARCHITECTURE.md)";
            serde_json::json!({"Chapter": {"path": path, "content": text, "sub_items": parts}})
        };
        let inner = serde_json::json!([chapter("a.md", serde_json::json!([]))]);
        let book = serde_json::json!({"items": ["Separator", chapter("a.md", inner)]});
        let context = serde_json::json!({"root": place.path().join("book")});
        let done = prepare(&serde_json::json!([context, book]).to_string()).unwrap();
        assert_eq!(done.matches("r (`ARCHITECTURE.md`)").count(), 2, "{done}");
    }
}
