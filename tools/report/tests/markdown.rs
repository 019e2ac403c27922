//! The summary as Markdown is complete, and its tables are well formed.

mod sample;

use sample::{HOSTILE, empty, whole};
use waitword_bench::report::Report;
use waitword_bench::standing::{Figure, Outcome, standings};
use waitword_bench::workload::Patch;
use waitword_bench::workloads;
use waitword_report::{Any, Results, Run, markdown};

fn run(file: &str, report: Report) -> Run {
    let file = file.to_owned();
    Run { file, report }
}

fn place(text: &str, part: &str) -> usize {
    text.find(part).unwrap_or_else(|| panic!("no '{part}' in:\n{text}"))
}

#[test]
fn its_chapters_stand_in_order() {
    let text = markdown(&whole());
    let patches = Patch::ALL.map(Patch::title);
    let rest = ["Goals", "Won and lost", "Where we lose, and why"];
    let chapters = ["Measured on"].iter().chain(&patches).chain(&rest);
    let places: Vec<usize> = chapters.map(|of| place(&text, &format!("\n## {of}\n"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    place(
        &text,
        "- peer missing: nsync: not available; run `apt-get install libnsync-dev` and rebuild",
    );
    // A published figure, and a measured one.
    place(&text, "237.407");
    place(&text, "| **waitword** |");
}

#[test]
fn all_rows_of_a_table_have_as_many_columns() {
    let mut report = whole();
    for variant in &mut report.workloads[1].cases[0].variants {
        if variant.name == HOSTILE {
            variant.name = "a | b".to_owned();
        }
    }
    let text = markdown(&report);
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    for (line, next) in text.lines().zip(text.lines().skip(1)) {
        if line.starts_with('|') && next.starts_with('|') {
            assert_eq!(columns(line), columns(next), "{line}\n{next}");
        }
    }
    place(&text, "a \\| b");
}

#[test]
fn every_win_and_loss_is_counted() {
    let report = whole();
    let all = standings(&report);
    let votes = || all.iter().filter(|one| one.figure != Figure::Other);
    let count = |outcome| votes().filter(|one| one.outcome == outcome).count();
    let wanted = Outcome::ALL.map(count);
    assert!(wanted[0] > 0 && wanted[3] > 0, "{wanted:?}");
    let text = markdown(&report);
    let table = &text[place(&text, "| workload | ours |")..];
    let mut counted = [0; 4];
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        for figures in row.split('|').filter(|cell| cell.contains(" / ")) {
            for (sum, part) in counted.iter_mut().zip(figures.split('/')) {
                *sum += part.trim().parse::<usize>().unwrap();
            }
        }
    }
    assert_eq!(counted, wanted);
}

#[test]
fn of_nothing_nothing_is_told() {
    let text = markdown(&empty());
    place(&text, "**Nothing was measured.**");
    place(&text, "Too few rounds for verdicts.");
}

#[test]
fn a_table_names_each_report_that_it_is_made_of_and_no_other() {
    let mut programs = whole();
    programs.workloads.truncate(1);
    programs.workloads[0].name = "programs".to_owned();
    let results = Results {
        runs: vec![run("a.json", programs), run("b.json", whole()), run("c.json", whole())],
        any: Vec::new(),
    };
    let text = results.fill("<!-- results: glance --><!-- results: end -->", "").unwrap();
    assert!(text.contains("b.json"), "{text}");
    assert!(!text.contains("c.json"), "{text}");
}

/// Unusual numbers of threads are measured by a separate command, and so are in another report.
#[test]
fn two_reports_of_one_workload_are_one_of_all_their_cases() {
    let text = |files: &[(&str, &Report)]| {
        let runs = files.iter().map(|&(file, report)| run(file, report.clone()));
        let runs = runs.collect();
        let any = Vec::new();
        Results { runs, any }.markdown()
    };
    let chapters = |text: String| text[place(&text, "\n## Won and lost")..].to_owned();
    let all = whole();
    let (mut few, mut rest) = (all.clone(), all.clone());
    let place_of = |name| all.workloads.iter().position(|of| of.name == name).unwrap();
    let index = place_of("mutex");
    assert!(all.workloads[index].cases.len() > 1);
    few.workloads[index].cases.truncate(1);
    rest.workloads[index].cases.remove(0);
    let both = chapters(text(&[("a.json", &few), ("b.json", &rest)]));
    let alone = chapters(text(&[("a.json", &all)]));
    assert_eq!(both, alone);
    assert_ne!(chapters(text(&[("a.json", &few)])), alone);
    // What either report could not measure is listed, once.
    let index = place_of("programs");
    few.workloads[index].disturbed = vec!["one beside others".to_owned()];
    rest.workloads[index].missing = vec!["one without its package".to_owned()];
    let both = text(&[("a.json", &few), ("b.json", &rest)]);
    for told in ["one beside others", "one without its package"] {
        assert_eq!(both.matches(told).count(), 1, "{told}");
    }
    // A case that both have counts once.
    let twice = chapters(text(&[("a.json", &all), ("b.json", &all)]));
    assert_eq!(twice, alone);
}

#[test]
fn programs_need_fewer_rounds_to_be_published_than_workloads() {
    let mut report = whole();
    assert_eq!(report.rounds_to_publish(), 21);
    report.workloads.truncate(1);
    report.workloads[0].name = "programs".to_owned();
    assert_eq!(report.rounds_to_publish(), 9);
}

#[test]
fn random_loads_that_were_not_measured_are_counted() {
    let mut report = whole().any.unwrap();
    assert_eq!(report.missing(), 0);
    report.cells.pop();
    let file = "any.json".to_owned();
    let text = Results { runs: Vec::new(), any: vec![Any { file, report }] }.markdown();
    place(&text, "Incomplete: 1 of 4 loads were not measured.");
}

#[test]
fn workloads_that_no_report_has_are_named() {
    let published = |report| {
        let runs = vec![run("a.json", report)];
        let any = Vec::new();
        Results { runs, any }.markdown()
    };
    let text = published(whole());
    place(&text, "\nNot measured: ");
    place(&text, "hash, ");
    let mut all = whole();
    for workload in workloads() {
        let mut one = all.workloads[0].clone();
        one.name = workload.name.to_owned();
        one.cases.clear();
        all.workloads.push(one);
    }
    assert!(!published(all).contains("\nNot measured: "));
}

#[test]
fn the_worst_random_loads_stand_in_a_table_with_their_best_peers() {
    let file = "any.json".to_owned();
    let report = whole().any.unwrap();
    let text =
        Results { runs: vec![run("a.json", whole())], any: vec![Any { file, report }] }.markdown();
    let table = &text[place(&text, "The ten worst loads:")..];
    let ratios: Vec<f64> = table
        .lines()
        .skip_while(|line| !line.starts_with("| ---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').nth(5).unwrap().trim().parse().unwrap())
        .collect();
    assert!(!ratios.is_empty() && ratios.len() <= 10);
    assert!(ratios.is_sorted(), "{ratios:?}");
}

/// README's table: one row per comparison, each the same figures as the row "all" of its own table.
#[test]
fn readme_shows_the_random_loads_in_one_row_for_each_comparison() {
    let file = "any.json".to_owned();
    let report = whole().any.unwrap();
    let results = Results { runs: Vec::new(), any: vec![Any { file, report }] };
    let block = |name| {
        let mark = format!("<!-- results: {name} --><!-- results: end -->");
        results.fill(&mark, "").unwrap()
    };
    let figures = |text: &str, is_wanted: fn(&str) -> bool| -> Vec<String> {
        let wanted = text.lines().filter(|line| is_wanted(line));
        // Without the name.
        wanted.map(|line| line.splitn(3, '|').nth(2).unwrap().to_owned()).collect()
    };
    let short = block("random");
    let rows = figures(&short, |line| line.contains("relative to the best"));
    assert!(rows.len() >= 2, "{short}");
    assert_eq!(rows, figures(&block("any"), |line| line.starts_with("| all |")));
    assert!(short.contains("[any.json](any.json)"), "{short}");
}
