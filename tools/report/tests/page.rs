//! The page as text: it contains everything in the report and nothing from elsewhere, and no name
//! is taken for markup.

mod sample;

use sample::{HOSTILE, empty, whole};
use std::collections::HashSet;
use waitword_bench::report::Report;
use waitword_report::html;

const ESCAPED: &str = "&lt;script&gt;alert(";

/// The texts between each `before` and the next `after`.
fn all_between<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).map(move |rest| rest.split(after).next().unwrap())
}

#[test]
fn names_are_not_taken_for_markup() {
    let page = html(&whole());
    assert!(!page.contains("<script"), "a name became a script");
    assert!(page.matches(ESCAPED).count() > 10);
    // As many end tags as start tags: no name has ended a picture.
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let page = html(&whole());
    for load in ["src=", "@import", "url(", "<link", "href=\"http"] {
        assert!(!page.contains(load), "{load}");
    }
}

#[test]
fn every_link_has_its_place_and_no_place_has_two() {
    let page = html(&whole());
    let ids: Vec<&str> = all_between(&page, " id=\"", '"').collect();
    let places: HashSet<&str> = ids.iter().copied().collect();
    assert_eq!(places.len(), ids.len());
    let mut links = 0;
    for link in all_between(&page, "href=\"#", '"') {
        assert!(places.contains(link), "{link}");
        links += 1;
    }
    assert!(links > 50, "{links}");
}

#[test]
fn every_variant_case_and_workload_of_the_report_is_in_the_page() {
    let report = whole();
    let page = html(&report);
    for workload in &report.workloads {
        let heading = format!("<h2>{}<a", workload.name);
        let section = page.split(&heading).nth(1).unwrap_or_else(|| panic!("{heading}"));
        let mut section = section.split("<section class=\"workload\"").next().unwrap();
        for case in workload.cases.iter().filter(|case| case.name != HOSTILE) {
            let heading = format!("<h3>{}<a", case.name);
            section = section.split_once(&heading).unwrap_or_else(|| panic!("{heading}")).1;
            let of_case = section.split("<h3>").next().unwrap();
            for variant in &case.variants {
                let name = if variant.name == HOSTILE { ESCAPED } else { &variant.name };
                assert!(of_case.contains(&format!(">{name}")), "{}: {name}", case.name);
            }
        }
    }
}

#[test]
fn the_five_patches_stand_in_order_each_with_what_was_published() {
    let page = html(&whole());
    let published = ["237.407", "0.382", "FUTEX_WAIT_PRIVATE", "26,639,730,750", "9.320"];
    let places = published.map(|figure| page.find(figure).unwrap_or_else(|| panic!("{figure}")));
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn what_was_not_measured_is_said_with_how_to_measure_it() {
    let page = html(&whole());
    for (missing, how) in [
        ("cond-perf -r 1000 -n 100, mutex free", "waitword bench cond-perf --full"),
        ("pp -n 1024 -i 10 -S 32768", "waitword bench pp"),
        ("wait, wrong value, private, mixing two", "waitword bench calls"),
        ("3, 5, 6, 7, 8,", "waitword bench rwlock --threads 3,5,6,7,8,9,"),
    ] {
        let note = format!("<li>{missing}");
        let rest = page.split(&note).nth(1).unwrap_or_else(|| panic!("{note}"));
        assert!(rest.split("</li>").next().unwrap().contains(how), "{missing}");
    }
}

/// This run has 25 rounds, the mail has 100.
#[test]
fn a_round_is_counted_as_often_as_in_the_mail() {
    let report = whole();
    let case =
        &report.workloads.iter().find(|workload| workload.name == "cond-perf").unwrap().cases[0];
    let seconds = case.variants[0].metrics[0].summary.median * (100.0 / 1e6);
    let page = html(&report);
    assert!(page.contains(&format!("data-value=\"{seconds}\"")), "{seconds}");
}

#[test]
fn what_a_reader_must_know_stands_first() {
    let notes = |report: &Report| -> Vec<String> {
        let page = html(report);
        let head = page.split("<h2>").next().unwrap();
        all_between(head, "role=\"note\">", '<').map(str::to_owned).collect()
    };
    let report = whole();
    assert_eq!(notes(&report).len(), 2, "what was disturbed, and what failed");
    assert!(notes(&report)[0].starts_with("Not on a quiet machine: "));
    assert!(notes(&report)[1].starts_with("programs failed: it broke: "));
    let few = Report { rounds: 3, complete: false, ..report };
    assert!(notes(&few)[0].contains("Too few rounds (3)"));
    assert!(notes(&few)[2].contains("the run was stopped"));
    let trial = Report { rounds: 7, window_milliseconds: 40, ..few.clone() };
    assert!(notes(&trial)[0].contains("a trial") && notes(&trial)[1].contains("Short runs"));
    let quotable = Report { rounds: 21, ..empty() };
    assert_eq!(notes(&quotable), ["Nothing was measured."]);
    let page = html(&few);
    assert!(page.contains("nsync: not available; run <code>apt-get install libnsync-dev</code>"));
    assert!(page.contains("2026-01-01 00:00 UTC, in 72 s"));
    assert!(page.contains("3 discarded because of other load, 1 kept on request despite it"));
    assert!(page.contains("0123456789abcdef, with uncommitted changes"));
    assert!(page.contains("Not measured (not installed): x264 (apt-get install x264)"));
}

#[test]
fn a_report_of_nothing_is_a_page_too() {
    let page = html(&empty());
    assert!(page.contains("Nothing was measured."));
    assert!(page.contains("237.407") && page.ends_with("</html>"));
    let mut without_figures = whole();
    for case in without_figures.workloads.iter_mut().flat_map(|workload| &mut workload.cases) {
        case.variants.iter_mut().for_each(|variant| variant.metrics.clear());
    }
    assert!(html(&without_figures).ends_with("</html>"));
    for workload in &mut without_figures.workloads {
        workload.cases.iter_mut().for_each(|case| case.variants.clear());
    }
    assert!(html(&without_figures).ends_with("</html>"));
}

#[test]
fn what_is_no_number_is_a_dash() {
    let page = html(&whole());
    let heading = format!("<h3>{ESCAPED}");
    let case = page.split(&heading).nth(1).unwrap();
    assert!(case.contains("data-value=\"NaN\">–<"), "the median");
    assert!(case.contains(">0––<"), "the range, to infinity");
}

#[test]
fn bars_are_counted_and_all_that_are_not_met_are_named() {
    let page = html(&empty());
    assert!(page.contains("Of 3 goals: 1 met, 1 not met, 1 not measured"));
    assert!(page.contains("1 more not certainly met") && page.contains("somebody: 2: 2 (2–2)"));
    assert!(!page.contains("somebody: 0.5: "));
}

/// A visitor first wants to know which lock is best. The machine and our own goals come later.
#[test]
fn the_best_locks_stand_first_and_our_own_goals_later() {
    let page = html(&whole());
    let titles = ["Best lock for each case", "Loads drawn at random", "Measured on", "Goals"];
    let places = titles.map(|title| page.find(&format!("<h2>{title}</h2>")).expect(title));
    assert!(places.is_sorted(), "{places:?}");
    let glance = &page[places[0]..places[1]];
    for row in ["broadcast to 200, free", "16 threads read", "16 threads sleep inside"] {
        assert!(glance.contains(row), "{row}");
    }
    assert!(
        glance.contains("absl, Debian's* <span") && glance.contains("absl, Debian's*: Debian"),
        "{glance}"
    );
    // A report of random loads alone is a page, too. Without random loads, their chapter is
    // missing.
    let alone = waitword_report::any_html(whole().any.as_ref().unwrap());
    assert!(alone.contains("mutex: throughput") && alone.ends_with("</html>"));
    assert!(!html(&empty()).contains("Loads drawn at random"));
}

#[test]
fn random_loads_have_a_plot_for_each_family_and_the_worst_is_first() {
    let page = html(&whole());
    let start = page.find("<h2>Loads drawn at random</h2>").unwrap();
    let section = page[start..].split("</section>").next().unwrap();
    for family in ["mutex", "queue"] {
        let caption = format!("{family}: throughput relative to the best peer, load by load");
        assert!(section.contains(&caption), "{caption}");
    }
    assert!(!section.contains("rwlock: throughput"));
    // 1/1.5 of absl's, and 2/2.5. The worst load is the first.
    let data = section.split("the data").nth(1).unwrap();
    let worst = data.find(&format!("data-value=\"{}\"", 1.0 / 1.5)).unwrap();
    let other = data.find(&format!("data-value=\"{}\"", 2.0 / 2.5)).unwrap();
    assert!(worst < other);
    assert!(
        section.contains("absl*</th>")
            && section.matches("absl*: with its assertions").count() == 2
    );
    assert!(section.contains("relative to the best of its own flavours"));
    assert!(section.contains("Not measured (other load): pool/quiet/4711/3"));
}

/// Each program is a case. The table above the cases has both runs of a program in one row.
#[test]
fn a_program_stands_in_one_row_plain_and_on_waitword() {
    let report = whole();
    let programs = report.workloads.iter().find(|workload| workload.name == "programs").unwrap();
    let [plain, ours] = &programs.cases[0].variants[..] else { panic!("both") };
    let median = |of: &waitword_bench::report::VariantReport| of.metrics[0].summary.median;
    let row = format!(
        "<td>xz, 4 threads</td><td>MB/s</td><td class=\"n\" data-value=\"{}\">",
        median(plain)
    );
    let page = html(&report);
    let rest = page.split(&row).nth(1).unwrap_or_else(|| panic!("{row}"));
    let rest = rest.split("</tr>").next().unwrap();
    assert!(rest.contains(&format!("data-value=\"{}\"", median(ours))), "{rest}");
    let ratios = ours.metrics.iter().filter_map(|metric| metric.ratio);
    let missing = ratios
        .take(3)
        .map(|ratio| ratio.summary.median)
        .find(|ratio| !rest.contains(&format!("data-value=\"{ratio}\"")));
    assert_eq!(missing, None, "{rest}");
}
