//! Links: those of the repository's Markdown files lead to a file and to a heading in it; those of
//! the rendered book lead to a page and to an element of it. Links to other hosts are not followed.

use crate::blocks::options;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// A link in Markdown: the place of its whole text, its target, and the text that is shown.
pub(crate) struct Link {
    pub(crate) range: Range<usize>,
    pub(crate) target: String,
    pub(crate) shown: Range<usize>,
}

/// All links and pictures of a text, in order.
pub(crate) fn of(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut open: Vec<(Range<usize>, String, Option<Range<usize>>)> = Vec::new();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                open.push((range, dest_url.to_string(), None));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some((range, target, shown)) = open.pop() {
                    let shown = shown.unwrap_or(range.start..range.start);
                    links.push(Link { range, target, shown });
                }
            }
            _ => {
                for (_, _, shown) in &mut open {
                    let start = shown.as_ref().map_or(range.start, |of| of.start);
                    *shown = Some(start..range.end);
                }
            }
        }
    }
    links
}

/// Whether the target is in this repository.
pub(crate) fn is_local(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

/// The path that a relative one means in this directory, without `..`.
pub(crate) fn resolve(directory: &Path, relative: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in directory.join(relative).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// The anchors that GitHub and mdBook give the headings of a text.
pub(crate) fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, options()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    *heading += &part;
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let count = counts.entry(slug.clone()).or_default();
                anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = |of: char| of.is_alphanumeric() || matches!(of, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(|of| kept(*of)).collect::<String>().replace(' ', "-")
}

/// Follows the links of these files, which are relative to the repository. Returns their number.
pub(crate) fn check_files(repository: &Path, files: &[PathBuf]) -> Result<usize, String> {
    let mut count = 0;
    let mut broken = String::new();
    for file in files {
        let text = read(&repository.join(file))?;
        for Link { range, target, .. } in of(&text).iter().filter(|link| is_local(&link.target)) {
            count += 1;
            if let Err(why) = follow(repository, file, target) {
                let line = text[..range.start].matches('\n').count() + 1;
                broken += &format!("{}:{line}: {target}: {why}\n", file.display());
            }
        }
    }
    if broken.is_empty() { Ok(count) } else { Err(format!("broken links:\n{broken}")) }
}

/// Whether the target of a link in `file` exists.
pub(crate) fn follow(repository: &Path, file: &Path, target: &str) -> Result<PathBuf, String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let found = if path.is_empty() {
        file.to_owned()
    } else {
        resolve(file.parent().unwrap_or(Path::new("")), path)
    };
    let whole = repository.join(&found);
    if !whole.exists() {
        return Err("there is no such file".to_owned());
    }
    let is_markdown = found.extension().is_some_and(|ending| ending == "md");
    if !anchor.is_empty() && is_markdown {
        let text = read(&whole)?;
        // A page of the book may consist of another file.
        let pages = text.lines().filter_map(crate::pages::directive);
        let pages = pages.filter(|(name, _)| *name == "page");
        let is_in_page = |(_, page): (&str, &str)| {
            follow(repository, &found, &format!("{page}#{anchor}")).is_ok()
        };
        if !anchors(&text).contains(anchor) && !pages.into_iter().any(is_in_page) {
            return Err("there is no such heading".to_owned());
        }
    }
    Ok(found)
}

/// Follows the links of the rendered pages below `root`. Returns their number.
pub(crate) fn check_html(root: &Path) -> Result<usize, String> {
    let mut pages = HashMap::new();
    for path in crate::check::files_below(root, "html")? {
        pages.insert(resolve(Path::new(""), &path.to_string_lossy()), read(&path)?);
    }
    let ids: HashMap<&PathBuf, HashSet<&str>> =
        pages.iter().map(|(path, text)| (path, attributes(text, " id=\"").collect())).collect();
    let mut count = 0;
    let mut broken = String::new();
    for (path, text) in &pages {
        // The page to print has all others in it, with their links. The sidebar's is not read.
        if ["print.html", "toc.html", "404.html"].iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let targets = attributes(text, " href=\"").chain(attributes(text, " src=\""));
        for target in targets.filter(|target| is_local(target) && !target.starts_with("data:")) {
            count += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let found = if file.is_empty() {
                path.clone()
            } else {
                resolve(path.parent().unwrap_or(Path::new("")), file)
            };
            let has_anchor = |ids: &HashSet<&str>| anchor.is_empty() || ids.contains(anchor);
            if !found.exists() || !ids.get(&found).is_none_or(has_anchor) {
                broken += &format!("{}: {target}\n", path.display());
            }
        }
    }
    if broken.is_empty() { Ok(count) } else { Err(format!("broken links in the pages:\n{broken}")) }
}

/// The values of an attribute.
fn attributes<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(name).skip(1).filter_map(|rest| rest.split('"').next())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_githubs_anchors() {
        let text = "# The `explain` command: why?\n\n## A – b\n\n## Again\n\n## Again\n";
        let expected = ["the-explain-command-why", "a--b", "again", "again-1"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }

    #[test]
    fn links_know_their_place_and_what_they_show() {
        let text = "See [the `b`](../b.md#x), not `[c](d)`.\n\n```sh\n[e](f)\n```\n";
        let links = of(text);
        assert_eq!(links.len(), 1);
        assert_eq!(&text[links[0].range.clone()], "[the `b`](../b.md#x)");
        assert_eq!(&text[links[0].shown.clone()], "the `b`");
        assert_eq!(links[0].target, "../b.md#x");
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("docs")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
        write("docs/a.md", "# A\n[b](../b.md#there) [a](#a) [far](https://example.org/x)\n");
        write("b.md", "# There\n");
        let check = || check_files(place.path(), &["docs/a.md".into()]);
        assert_eq!(check(), Ok(2));
        write("b.md", "# Elsewhere\n\n{{#page docs/c.md}}\n");
        write("docs/c.md", "# There\n");
        assert_eq!(check(), Ok(2), "a page has the headings of its file");
        write("docs/c.md", "# Elsewhere\n");
        assert!(check().unwrap_err().contains("docs/a.md:2: ../b.md#there"));
        std::fs::remove_file(place.path().join("b.md")).unwrap();
        assert!(check().is_err());
    }

    #[test]
    fn a_rendered_link_to_nothing_is_found() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
        write("a.html", "<h1 id=\"a\">A</h1> <a href=\"b.html#b\">b</a> <a href=\"#a\">a</a>");
        write("b.html", "<h1 id=\"b\">B</h1>");
        assert_eq!(check_html(place.path()), Ok(2));
        write("b.html", "<h1 id=\"c\">B</h1>");
        assert!(check_html(place.path()).is_err());
    }
}
