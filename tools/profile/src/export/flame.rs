//! Flame graphs: the stacks that waited, as wide as they waited. The root is at the top.
//!
//! Below a stack is what it waited for, and below that the function that kept it. Waits for locks
//! and waits for work make two graphs: in one, the time that idle threads spend would leave no room
//! for the time that is lost.
//!
//! The graph is drawn here because the crate for it, inferno, has a licence (CDDL) that the project
//! does not accept. Each frame is an `svg` element of its own, with its place in percent. So texts
//! are cut off where their frame ends, and the graph is as wide as its place, without a script. A
//! script (`flame/zoom.js`) only changes the places when a frame is clicked.

use super::{Recording, frames, object};
use crate::profile::Profile;
use crate::sites::Key;
use crate::symbols::Symbols;
use crate::text::{is_between, time};
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeMap;

/// Frames that are narrower, as a share of the whole, are left out.
const NARROWEST: f64 = 1.0 / 4000.0;
/// Frames further down are left out.
const DEEPEST: usize = 200;
/// The height of a frame, and the gap below it.
const HEIGHT: usize = 17;
const GAP: usize = 1;

/// The script that zooms.
pub(crate) const ZOOM: &str = include_str!("flame/zoom.js");
/// The colours.
pub(crate) const STYLE: &str = include_str!("flame/style.css");

/// Which waits a graph shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Those for locks.
    Locks,
    /// All others: for work or an event.
    Work,
}

impl Waits {
    /// Whether a site is shown.
    pub(crate) fn has(self, key: &Key) -> bool {
        key.object.is_lock() == (self == Self::Locks)
    }

    /// What they are called.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Locks => "waiting for locks",
            Self::Work => "waiting for work",
        }
    }
}

/// The graph as a file of its own.
pub fn flamegraph(recording: &mut Recording<'_>, waits: Waits) -> String {
    let graph = graph(recording, waits);
    let style = format!("<style>{STYLE}svg.flame {{ background: var(--page); }}</style>");
    let script = format!("<script><![CDATA[{ZOOM}]]></script>");
    // Inside the element that the graph is.
    let graph = graph.into_string();
    let end = graph.len() - "</svg>".len();
    format!("{}{style}{script}</svg>\n", &graph[..end])
}

/// The graph as an element of a page.
pub(crate) fn graph(recording: &mut Recording<'_>, waits: Waits) -> Markup {
    let root = tree(recording, waits);
    let mut boxes = Vec::new();
    root.lay_out(waits.title(), 0.0, root.total as f64, 0, &mut boxes);
    let deepest = boxes.iter().map(|placed| placed.depth).max().unwrap_or(0);
    let height = (deepest + 1) * HEIGHT;
    html! {
        svg.flame xmlns="http://www.w3.org/2000/svg" width="100%" height=(height) role="group"
            aria-label=(format!("Flame graph: {}", waits.title())) {
            @for placed in &boxes { (placed.draw(root.total)) }
        }
    }
}

/// A function, with what was waited in it and below.
#[derive(Default)]
struct Node {
    kind: Kind,
    total: u64,
    count: u64,
    below: BTreeMap<String, Node>,
}

/// What a frame stands for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Function,
    Object,
    Keeper,
}

fn tree(recording: &mut Recording<'_>, waits: Waits) -> Node {
    let mut root = Node::default();
    let has_any = |profile: &Profile| profile.sites.iter().any(|(key, _)| waits.has(key));
    let several = recording.processes.iter().filter(|(profile, _)| has_any(profile)).count() > 1;
    for (profile, symbols) in &mut recording.processes {
        for (key, site) in profile.sites.iter().filter(|(key, _)| waits.has(key)) {
            let mut names = Vec::new();
            if several {
                names.push((format!("process {}", profile.process.pid), Kind::Function));
            }
            names.extend(path(profile, symbols, key));
            root.add(names, site.nanoseconds, site.count);
        }
    }
    root
}

/// From the outermost function to the one that kept the object.
fn path(profile: &Profile, symbols: &mut Symbols<'_>, key: &Key) -> Vec<(String, Kind)> {
    let stack = frames(&profile.process, symbols, key.stack);
    let functions = stack.into_iter().rev().map(|frame| (frame.function, Kind::Function));
    let mut names: Vec<_> = functions.take(DEEPEST).collect();
    names.push((object(key), Kind::Object));
    let keeper = frames(&profile.process, symbols, key.holder_stack);
    if let Some(keeper) = keeper.iter().find(|frame| !is_between(frame)).or(keeper.first()) {
        names.push((format!("kept by {}", keeper.function), Kind::Keeper));
    }
    names
}

impl Node {
    fn add(&mut self, names: Vec<(String, Kind)>, nanoseconds: u64, count: u64) {
        let mut node = self;
        node.grow(nanoseconds, count);
        for (name, kind) in names {
            node = node.below.entry(name).or_default();
            node.kind = kind;
            node.grow(nanoseconds, count);
        }
    }

    fn grow(&mut self, nanoseconds: u64, count: u64) {
        self.total = self.total.saturating_add(nanoseconds);
        self.count = self.count.saturating_add(count);
    }

    /// Places this frame, which begins after `from` of all nanoseconds, and those below.
    fn lay_out<'a>(
        &'a self,
        name: &'a str,
        from: f64,
        all: f64,
        depth: usize,
        boxes: &mut Vec<Placed<'a>>,
    ) {
        let width = if all > 0.0 { self.total as f64 / all } else { 1.0 };
        if width < NARROWEST {
            return;
        }
        let from_share = if all > 0.0 { from / all } else { 0.0 };
        boxes.push(Placed { name, node: self, from: from_share, width, depth });
        let mut from = from;
        for (name, node) in &self.below {
            node.lay_out(name, from, all, depth + 1, boxes);
            from += node.total as f64;
        }
    }
}

/// A frame and its place, in shares of the whole.
struct Placed<'a> {
    name: &'a str,
    node: &'a Node,
    from: f64,
    width: f64,
    depth: usize,
}

impl Placed<'_> {
    fn draw(&self, all: u64) -> Markup {
        let percent = |share: f64| format!("{:.4}%", 100.0 * share);
        let name = printable(self.name);
        let of_all = 100.0 * self.node.total as f64 / all.max(1) as f64;
        let waits = if self.node.count == 1 { "wait" } else { "waits" };
        let title = format!(
            "{name}\n{}, {of_all:.1} %, {} {waits}",
            time(self.node.total),
            self.node.count
        );
        let kind = match self.node.kind {
            Kind::Function => format!("f c{}", colour(self.name)),
            Kind::Object => "f object".to_owned(),
            Kind::Keeper => "f keeper".to_owned(),
        };
        html! {
            svg class=(kind) x=(percent(self.from)) y=(self.depth * HEIGHT)
                width=(percent(self.width)) height=(HEIGHT - GAP)
                data-x=(self.from) data-w=(self.width) data-d=(self.depth) tabindex="0" {
                title { (title) }
                rect width="100%" height="100%" {}
                text x="3" y="12" { (name) }
            }
        }
    }
}

/// One of a few colours, always the same for a function.
fn colour(name: &str) -> u32 {
    const COLOURS: u32 = 6;
    // FNV-1a.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % COLOURS
}

/// Without characters that XML does not allow.
pub(crate) fn printable(text: &str) -> String {
    let is_allowed =
        |letter: char| !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|letter| if is_allowed(letter) { letter } else { '\u{fffd}' }).collect()
}

/// Marks a text as a script that is to be written as it is.
pub(crate) fn script(text: &str) -> Markup {
    debug_assert!(!text.contains("</"), "it would end the element");
    PreEscaped(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use waitword_record::format::Object;

    fn recording(profiles: &[Profile]) -> Recording<'_> {
        Recording::new(profiles, &Rc::default())
    }

    /// The widths of the frames with this name, in percent.
    fn widths(svg: &str, name: &str) -> Vec<String> {
        let frames = svg.split("<svg class=\"f ").skip(1);
        let named = frames.filter(|frame| frame.contains(&format!(">{name}</text>")));
        named
            .map(|it| it.split("width=\"").nth(1).unwrap().split('"').next().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_frame_is_as_wide_as_it_waited_and_work_is_not_among_locks() {
        let profiles = [Profile::of(crate::sites::tests::process())];
        let svg = flamegraph(&mut recording(&profiles), Waits::Locks);
        assert_eq!(widths(&svg, "waiting for locks"), ["100.0000%"]);
        assert_eq!(widths(&svg, "[Mutex]"), ["83.3333%"]);
        assert_eq!(widths(&svg, "kept by 0x30"), ["83.3333%"]);
        assert_eq!(widths(&svg, "[Write]"), ["16.6667%"]);
        assert!(!svg.contains("Condvar"));
        let work = flamegraph(&mut recording(&profiles), Waits::Work);
        assert_eq!(widths(&work, "[Condvar]"), ["100.0000%"]);
        assert!(!work.contains("Mutex"));
        // Without any waits there is an empty frame.
        let empty = flamegraph(&mut recording(&[]), Waits::Locks);
        assert_eq!(widths(&empty, "waiting for locks"), ["100.0000%"]);
        // Two processes are told apart.
        let two = [(); 2].map(|()| Profile::of(crate::sites::tests::process()));
        let svg = flamegraph(&mut recording(&two), Waits::Locks);
        assert_eq!(widths(&svg, "process 0"), ["100.0000%"], "they have the same ID here");
    }

    #[test]
    fn the_file_is_well_formed_whatever_the_names_are() {
        let mut process = crate::sites::tests::process();
        process.maps = crate::read::mappings(
            "0-30 r-xp 0 0:0 1 /</title></svg><script>alert(1)<script>&]]>\u{1}\u{ffff}\"'\n",
        );
        process.waits.retain(|(_, wait)| wait.object() != Some(Object::Condvar));
        let profiles = [Profile::of(process)];
        let svg = flamegraph(&mut recording(&profiles), Waits::Locks);
        assert_eq!(svg.matches("<script").count(), 1);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts = document.descendants().filter_map(|node| node.text());
        assert!(
            texts.into_iter().any(|text| text.contains("script>&]]>\u{fffd}\u{fffd}\"'")),
            "{svg}"
        );
        assert_eq!(printable("a\u{1}b\n\u{ffff}é"), "a\u{fffd}b\u{fffd}\u{fffd}é");
    }
}
