//! The table as plain text, for scripts and where there is no terminal.

use super::view::{View, lost, rate, time};
use crate::cells;
use std::fmt::Write as _;

/// The most locks that are printed.
const MOST_LINES: usize = 20;
const HEADER: [&str; 9] =
    ["LOST/s", "WAITS/s", "LONGEST", "NOW", "TOTAL", "LOCK", "WANTED IN", "HELD BY", "WHY"];
/// Where the process stands, if there are several.
const PROCESS: usize = 5;

pub(crate) fn table(view: &View) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {} threads; now {} wait for locks, {} for work or an event",
        view.title, view.threads, view.for_locks, view.for_work,
    );
    if view.lines.is_empty() {
        text += "No thread has waited for a lock.\n";
    } else {
        let _ = writeln!(text, "Time lost waiting for locks in the last {:.1} s:", view.seconds);
        let with_process = |mut cells: Vec<String>, process: &str| {
            if view.says_process {
                cells.insert(PROCESS, process.to_owned());
            }
            cells
        };
        let header = with_process(HEADER.map(str::to_owned).to_vec(), "PROCESS");
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut table = cells::table(&header, 0, PROCESS);
        for line in view.lines.iter().take(MOST_LINES) {
            let cells = vec![
                lost(line.lost),
                rate(line.waits),
                time(line.longest),
                line.waiters.to_string(),
                time(line.total),
                line.name.clone(),
                line.wanted_at.clone(),
                line.held_at.clone(),
                line.why.clone(),
            ];
            table.add_row(with_process(cells, &line.process));
        }
        let _ = writeln!(text, "{table}");
        if view.lines.len() > MOST_LINES {
            let _ = writeln!(text, "and {} more", view.lines.len() - MOST_LINES);
        }
    }
    if view.lost > 0 {
        let _ = writeln!(text, "{} records were lost.", view.lost);
    }
    if let Some(remark) = &view.remark {
        let _ = writeln!(text, "{remark}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_lock() {
        let text = table(&super::super::view::tests::view());
        let lines: Vec<&str> = text.lines().collect();
        let head = "./program (4711): 9 threads; now 4 wait for locks, 3 for work or an event";
        assert_eq!(lines[0], head);
        let cells = |line: &str| -> Vec<String> {
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        assert_eq!(cells(lines[2])[1..10], HEADER);
        let first = ["3.50 s", "120", "40.0 ms", "4", "200 ms", "mutex 0xa0"];
        assert_eq!(cells(lines[4])[1..7], first, "{text}");
        assert_eq!(cells(lines[4])[8], "keeps_a0 program.c:30 [worker 4713]", "{text}");
        assert_eq!(cells(lines[5])[2], "12k", "{text}");
        assert_eq!(lines.len(), 6, "{text}");
    }

    #[test]
    fn of_several_processes_each_lock_has_one() {
        let text = table(&View { says_process: true, ..super::super::view::tests::view() });
        assert!(text.lines().nth(2).unwrap().contains("| PROCESS"), "{text}");
        assert!(text.lines().nth(4).unwrap().contains("| 4711 program | mutex 0xa0 "), "{text}");
    }

    #[test]
    fn without_waits_it_says_so() {
        let view = View { lines: Vec::new(), lost: 3, ..super::super::view::tests::view() };
        let text = table(&view);
        assert!(text.contains("No thread has waited for a lock.\n3 records were lost."), "{text}");
    }
}
