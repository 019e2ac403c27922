//! What is where on screens of several sizes.

use super::super::view::tests::view;
use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn screen() -> Screen {
    let mut screen = Screen::default();
    assert!(screen.show(view()));
    screen
}

/// The lines of the screen, without blanks at their ends.
fn drawn(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

#[test]
fn a_wide_screen_has_all_columns() {
    let lines = drawn(&mut screen(), 120, 40);
    assert!(lines[0].starts_with("waitword top  ./program (4711)"), "{lines:#?}");
    assert!(lines[0].ends_with("1:15"), "{lines:#?}");
    let head = "3.75 s lost per second.  9 threads: 4 wait for locks, 3 for work, 2 for nothing";
    assert_eq!(lines[1], head);
    let titles: Vec<&str> = lines[2].split_whitespace().collect();
    let expected =
        ["LOST/s▼", "WAITS/s", "LONGEST", "NOW", "TOTAL", "WANTED", "IN", "HELD", "BY", "WHY"];
    assert_eq!(titles, expected);
    let first = "  3.50 s ████████      120  40.0 ms    4   200 ms wants_a0 < work";
    assert!(lines[3].starts_with(first), "{lines:#?}");
    assert!(lines[3].contains("keeps_a0 [worker 4713]") && lines[3].contains("91 % asleep"));
    assert!(lines[4].starts_with("  250 ms ▋             12k   900 µs    -"), "{lines:#?}");
    // The chosen lock, in full.
    assert_eq!(lines[35], "lock       mutex 0xa0 of 4711 program: now 4 threads wait");
    assert!(lines[37].ends_with("keeps_a0 program.c:30 [worker 4713]: 91 % asleep, 9 % running"));
    assert_eq!(lines[38], "it prints: the last line");
    assert!(lines[39].contains("q quit"));
}

#[test]
fn a_narrow_screen_has_the_columns_that_matter_most() {
    let lines = drawn(&mut screen(), 80, 24);
    assert!(lines[2].contains("LOST/s▼") && lines[2].contains("WHY"), "{lines:#?}");
    assert!(!lines[2].contains("TOTAL"), "{lines:#?}");
    assert!(lines[3].contains("wants_a0 < work") && lines[3].contains("keeps_a0"));
    assert!(lines[3].contains("91 % asleep"), "{lines:#?}");
    let lines = drawn(&mut screen(), 40, 10);
    assert!(lines[2].contains("NOW") && !lines[2].contains("WHY"), "{lines:#?}");
    let lines = drawn(&mut screen(), 20, 6);
    assert!(lines[3].starts_with("  3.50 s wants_a0"), "{lines:#?}");
}

#[test]
fn of_many_processes_each_row_says_which_one() {
    let mut screen = Screen::default();
    assert!(screen.show(View { processes: 2, ended: 1, says_process: true, ..view() }));
    for (width, is_there) in [(160, true), (80, true), (70, false), (50, false)] {
        let lines = drawn(&mut screen, width, 24);
        assert_eq!(lines[2].contains("PROCESS"), is_there, "{lines:#?}");
        assert_eq!(lines[3].contains("4711 program"), is_there, "{lines:#?}");
        assert!(lines[3].contains("wants_a0") && lines[3].contains("keeps_a0"), "{lines:#?}");
        assert!(lines[0].contains("2, and 1 ended"), "{lines:#?}");
    }
}

/// However small, and whatever is shown.
#[test]
fn no_size_is_too_small() {
    let mut screen = screen();
    for step in 0..4 {
        for (width, height) in [(1, 1), (2, 3), (5, 2), (10, 40), (200, 1), (20, 5), (300, 90)] {
            let lines = drawn(&mut screen, width, height);
            if width >= 10 {
                let is_too_small = width < LEAST.0 || height < LEAST.1;
                assert_eq!(lines[0].starts_with("too small"), is_too_small, "{lines:#?}");
            }
        }
        match step {
            0 => screen.help(),
            1 => {
                screen.help();
                screen.enter();
                assert!(screen.wants_detail().is_some());
                screen.show_detail(Detail { parts: vec![("part".into(), vec![])] });
            }
            _ => assert!(screen.show(View::default())),
        }
    }
}

#[test]
fn sorting_keeps_the_chosen_lock() {
    let mut screen = screen();
    let second = screen.view.lines[1].lock;
    screen.go(1);
    assert_eq!((screen.row(), screen.chosen), (1, Some(second)));
    screen.sort(Sort::next);
    assert_eq!((screen.sort, screen.row()), (Sort::Waits, 0));
    assert!(drawn(&mut screen, 120, 20)[2].contains("WAITS/s▼"));
    screen.sort(Sort::before);
    assert_eq!(screen.row(), 1);
    screen.go(isize::MIN);
    assert_eq!(screen.row(), 0);
    screen.go(isize::MAX);
    assert_eq!(screen.row(), 1);
}

#[test]
fn a_frozen_screen_does_not_change_and_a_lock_can_be_left_again() {
    let mut screen = screen();
    screen.freeze();
    assert!(!screen.show(View::default()));
    let lines = drawn(&mut screen, 120, 20);
    assert!(lines[0].contains("FROZEN") && lines[3].contains("wants_a0"), "{lines:#?}");
    screen.freeze();
    screen.enter();
    assert!(screen.wants_detail().is_some());
    let stacks = (0..30).map(|n| format!("function {n}")).collect();
    screen.show_detail(Detail { parts: vec![("Who waits".to_owned(), stacks)] });
    assert_eq!(screen.wants_detail(), None);
    let lines = drawn(&mut screen, 80, 24);
    assert_eq!((&*lines[2], &*lines[3]), ("Who waits", "  function 0"));
    // No further than the last line.
    screen.go(1000);
    let lines = drawn(&mut screen, 80, 24);
    assert!(lines.iter().any(|line| line == "  function 29"), "{lines:#?}");
    assert!(screen.show(view()) && screen.wants_detail().is_some());
    screen.back();
    assert!(drawn(&mut screen, 80, 24)[2].contains("LOST/s"));
}

#[test]
fn help_is_above_everything_and_goes_again() {
    let mut screen = screen();
    screen.help();
    let lines = drawn(&mut screen, 80, 24);
    assert!(lines.iter().any(|line| line.contains("Help")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("three threads waited all the time")));
    screen.back();
    assert!(!drawn(&mut screen, 80, 24).iter().any(|line| line.contains("Help")));
}
