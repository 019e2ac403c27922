//! The page of a recording in a real browser: it loads nothing and has no errors, its numbers are
//! those of the recording, and its table, flame graph and timeline do what a click asks for.

#[path = "../../report/tests/harness/mod.rs"]
mod harness;

use harness::{Page, path};
use std::rc::Rc;
use waitword_profile::export::{Recording, page::page};
use waitword_profile::profile::Profile;
use waitword_profile::read::{Mapping, Process};
use waitword_record::format::{Causes, Object, Tag, Wait};
use waitword_testkit::watch;

/// A name that would run as a script if it were not escaped.
const HOSTILE: &str =
    "<img src=x onerror='window.hacked = 1'>\"'><script>window.hacked = 2</script>";

fn wait(address: u64, began: u64, took: u64, stack: u32) -> Wait {
    Wait {
        tag: Tag::Wait as u8,
        object: Object::Mutex as u8,
        ended: 0,
        weight_shift: 0,
        stack,
        began,
        took,
        address,
        holder: 2,
        holder_stack: 3,
        waker: 2,
        in_vain: 1,
        passed: 0,
        running: 0,
        preempted: 100,
        asleep: 900,
        call: 1,
        next: 0,
    }
}

/// A few long waits for one lock, many short ones for another, and one for work.
fn process() -> Process {
    let mut process = Process {
        pid: 4711,
        began: 1_000_000,
        threshold: 10_000,
        causes: Some(Causes::Switches),
        ..Process::default()
    };
    for turn in 0..5 {
        process.waits.push((1, wait(0x7000, 2_000_000 + 40_000_000 * turn, 20_000_000, 1)));
    }
    for turn in 0..150 {
        process.waits.push((3, wait(0x8000, 2_000_000 + 1_000_000 * turn, 100_000 + turn, 2)));
    }
    let work = Wait { object: Object::Condvar as u8, ..wait(0x9000, 0, 900_000_000, 2) };
    process.waits.push((4, work));
    process.threads.insert(1, "worker".to_owned());
    process.threads.insert(3, HOSTILE.to_owned());
    process.stacks.insert(1, vec![0x1010, 0x1020]);
    process.stacks.insert(2, vec![0x2010, 0x1020]);
    process.stacks.insert(3, vec![0x1030]);
    let hostile = format!("/{}", HOSTILE.replace('/', "\\"));
    for (start, file) in [(0x1000, "/bin/program"), (0x2000, hostile.as_str())] {
        let end = start + 0x1000;
        process.maps.push(Mapping { start, end, file: file.into(), ..Mapping::default() });
    }
    process
}

#[test]
fn the_page_answers_clicks_and_runs_no_name() {
    let Some(browser) = path() else { return };
    let watchdog = watch();
    let profiles = [Profile::of(process())];
    let page = Page::open(browser, &page(&mut Recording::new(&profiles, &Rc::default())));
    for check in [
        the_first_screen_has_the_answer,
        the_table_is_sorted_and_opened,
        the_flame_graph_zooms,
        a_wait_is_picked,
        light_and_dark_differ,
        nothing_overflows,
        nothing_is_loaded_and_nothing_is_wrong,
    ] {
        watchdog.pat();
        check(&page);
    }
}

fn text(page: &Page, selector: &str) -> String {
    page.each::<String>(selector, "e.innerText").join("\n")
}

fn click(page: &Page, selector: &str) {
    page.tab.find_element(selector).unwrap().click().unwrap();
}

fn the_first_screen_has_the_answer(page: &Page) {
    assert_eq!(text(page, "h1"), "115 ms lost waiting for locks");
    let head = text(page, "header");
    assert!(head.contains("155 waits of 2 threads for 2 locks"), "{head}");
    assert!(head.contains("Not counted: 900 ms"), "{head}");
    assert!(head.contains("87 % of it at one mutex, mostly in program+0x10"), "{head}");
    assert!(head.contains("asleep in read for 90 % of the time"), "{head}");
    let widths: Vec<String> = page.each("header .causes i", "e.className + e.style.width");
    assert_eq!(widths, ["preempted10%", "asleep90%"]);
    // All of it without scrolling, and the first lock too.
    let [row, height]: [f64; 2] = page.eval(
        "[document.querySelector('tr.lock').getBoundingClientRect().bottom, window.innerHeight]",
    );
    assert!(row < height, "{row} of {height}");
}

/// The locks in the order of the rows.
fn rows(page: &Page) -> Vec<String> {
    page.each("tr.lock .kind", "e.innerText.trim()")
}

/// Whether the details of each row are visible.
fn open(page: &Page) -> Vec<bool> {
    page.each("tr.details", "e.getBoundingClientRect().height > 0")
}

fn the_table_is_sorted_and_opened(page: &Page) {
    let (long, many) = ("mutex 0x7000", "mutex 0x8000");
    assert_eq!(rows(page), [long, many], "by time");
    let columns: Vec<String> = page.each("tbody:first-of-type tr.lock td.n", "e.innerText");
    assert_eq!(columns[..3], ["100 ms", "86.9 %", "5"]);
    click(page, "button[data-sort=waits]");
    assert_eq!(rows(page), [many, long]);
    click(page, "button[data-sort=waits]");
    assert_eq!(rows(page), [long, many], "the other way round");
    let sorted: Vec<String> = page.each("th[aria-sort]", "e.innerText.split(' ')[0] + e.ariaSort");
    assert_eq!(sorted, ["Waitsascending"]);
    assert_eq!(open(page), [false; 2]);
    let second = "tbody:nth-of-type(2)";
    click(page, &format!("{second} tr.lock th"));
    assert_eq!(open(page), [false, true]);
    let details = text(page, &format!("{second} tr.details"));
    assert!(details.contains("150 times a waiter was woken"), "{details}");
    assert!(details.contains(HOSTILE), "the name of the thread as text: {details}");
    assert!(details.contains("program+0x30 (program)"), "{details}");
    click(page, &format!("{second} tr.lock th"));
    assert_eq!(open(page), [false; 2], "closed again");
    let columns: Vec<usize> = page.each("svg.histogram", "e.querySelectorAll('rect').length");
    assert_eq!(columns.len(), 2);
    assert!(columns.iter().all(|count| *count > 0), "{columns:?}");
}

/// The widths of the visible frames with this text, in pixels.
fn widths(page: &Page, name: &str) -> Vec<f64> {
    let all: Vec<(String, f64)> = page.each(
        ".of-locks svg.f",
        "[e.querySelector('text').textContent, \
         e.querySelector('rect').getBoundingClientRect().width]",
    );
    all.into_iter().filter(|(of, width)| of == name && *width > 0.0).map(|(_, it)| it).collect()
}

fn the_flame_graph_zooms(page: &Page) {
    let whole = widths(page, "waiting for locks")[0];
    let share = |name: &str| widths(page, name).iter().sum::<f64>() / whole;
    assert!((share("program+0x10") - 0.87).abs() < 0.01, "{}", share("program+0x10"));
    assert_eq!(widths(page, "[Mutex]").len(), 2);
    assert_eq!(widths(page, "[Condvar]").len(), 0, "work is not among the locks");
    let click_on = |name: &str| {
        page.eval::<bool>(&format!(
            "[...document.querySelectorAll('.of-locks svg.f')].find(e => \
             e.querySelector('text').textContent === {name:?}) \
             .dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
        ))
    };
    click_on("program+0x10");
    assert!((share("program+0x10") - 1.0).abs() < 0.01, "{}", share("program+0x10"));
    assert!((share("program+0x20") - 1.0).abs() < 0.01, "above it, the caller");
    assert_eq!(widths(page, "[Mutex]").len(), 1, "the other one is hidden");
    click_on("waiting for locks");
    assert!((share("program+0x10") - 0.87).abs() < 0.01, "as before");
    assert_eq!(widths(page, "[Mutex]").len(), 2);
    let is_shown = |of: &str| -> bool {
        page.eval(&format!("document.querySelector('.{of}').getBoundingClientRect().height > 0"))
    };
    assert!(is_shown("of-locks") && !is_shown("of-work"));
    click(page, "label[for=show-work]");
    assert!(is_shown("of-work") && !is_shown("of-locks"));
    click(page, "label[for=show-locks]");
}

fn a_wait_is_picked(page: &Page) {
    let waits: Vec<[f64; 2]> =
        page.each("button.wait", "[Number(e.dataset.wait), e.getBoundingClientRect().width]");
    assert_eq!(waits.len(), 100);
    assert!(waits.iter().all(|[_, width]| *width >= 3.0), "all can be clicked");
    let names = text(page, ".timeline .name");
    assert!(names.contains("worker 1") && names.contains(HOSTILE), "{names}");
    assert_eq!(text(page, "#picked"), "");
    click(page, "button.wait[data-wait='0']");
    let picked = text(page, "#picked");
    for part in ["worker 1", "Mutex 0x7000", "20.0 ms", "1.00 ms after", "90 % asleep in read"] {
        assert!(picked.contains(part), "{part}: {picked}");
    }
    click(page, "button.wait[data-wait='99']");
    let picked = text(page, "#picked");
    assert!(picked.contains("Mutex 0x8000") && picked.contains(HOSTILE), "{picked}");
    let chosen: Vec<String> = page.each("button.wait.chosen", "e.dataset.wait");
    assert_eq!(chosen, ["99"]);
}

fn light_and_dark_differ(page: &Page) {
    let colours = |scheme: &str| -> Vec<String> {
        page.show_as("screen", scheme);
        let of = |selector: &str, property: &str| -> String {
            page.eval(&format!("getComputedStyle(document.querySelector('{selector}')).{property}"))
        };
        vec![
            of("body", "backgroundColor"),
            of("body", "color"),
            of("svg.f text", "fill"),
            of("svg.f rect", "fill"),
        ]
    };
    let (light, dark) = (colours("light"), colours("dark"));
    for (light, dark) in light.iter().zip(&dark) {
        assert_ne!(light, dark);
    }
    page.show_as("screen", "light");
}

fn nothing_overflows(page: &Page) {
    for width in [1280, 390] {
        page.set_width(width);
        let widths: [u32; 2] =
            page.eval("[document.documentElement.scrollWidth, window.innerWidth]");
        assert_eq!(widths, [width; 2]);
    }
    page.set_width(1280);
}

/// Last: after all clicks.
fn nothing_is_loaded_and_nothing_is_wrong(page: &Page) {
    assert_eq!(page.eval::<String>("document.readyState"), "complete");
    assert!(!page.eval::<bool>("'hacked' in window"));
    assert_eq!(page.eval::<usize>("document.images.length"), 0);
    assert_eq!(page.eval::<usize>("document.scripts.length"), 2);
    assert_eq!(page.eval::<usize>("performance.getEntriesByType('resource').length"), 0);
    assert_eq!(*page.errors.lock().unwrap(), [""; 0]);
}
