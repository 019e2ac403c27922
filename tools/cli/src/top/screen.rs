//! The screen of `waitword top`, and what its keys do.

use super::view::{Detail, Line as Row_, View, lost, rate, time, waiters};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};
use waitword_profile::live::rates::Lock;

const KEYS: &str = "↑↓ choose  Enter look into it  Esc back  s sort  f freeze  h help  q quit";
const HELP: [&str; 16] = [
    "LOST/s     time lost by all threads together in one second:",
    "           3 s means that three threads waited all the time",
    "WAITS/s    waits that ended in one second",
    "LONGEST    the longest of them, or how long one lasts already",
    "NOW        threads that wait now",
    "TOTAL      time lost since the beginning",
    "PROCESS    its ID and its name",
    "WANTED IN  the function that waits (the one that lost the most)",
    "HELD BY    the function that releases it late [the thread now]",
    "WHY        what the holder did meanwhile: ran, slept, or was",
    "           preempted (it could run, but had no CPU)",
    "",
    "↑ ↓  choose a lock      Enter  its stacks and threads",
    "s S  sort by another    Esc    back",
    "f    freeze             q      quit (the program ends too,",
    "h    this help                 if top has started it)",
];

/// The least columns and lines that the table fits in.
const LEAST: (u16, u16) = (20, 5);

/// The column that the rows are sorted by; the greatest value comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Lost,
    Waits,
    Longest,
    Now,
    Total,
}

impl Sort {
    const ALL: [Self; 5] = [Self::Lost, Self::Waits, Self::Longest, Self::Now, Self::Total];

    pub(crate) fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }

    pub(crate) fn before(self) -> Self {
        Self::ALL[(self as usize + Self::ALL.len() - 1) % Self::ALL.len()]
    }

    fn title(self) -> &'static str {
        ["LOST/s", "WAITS/s", "LONGEST", "NOW", "TOTAL"][self as usize]
    }

    fn sort(self, lines: &mut [Row_]) {
        // Stable: those that are equal stay in order of the time lost.
        match self {
            Self::Lost => lines.sort_by(|one, other| other.lost.total_cmp(&one.lost)),
            Self::Waits => lines.sort_by(|one, other| other.waits.total_cmp(&one.waits)),
            Self::Longest => lines.sort_by_key(|line| core::cmp::Reverse(line.longest)),
            Self::Now => lines.sort_by_key(|line| core::cmp::Reverse(line.waiters)),
            Self::Total => lines.sort_by_key(|line| core::cmp::Reverse(line.total)),
        }
    }
}

/// What is on the screen.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    view: View,
    sort: Sort,
    /// The chosen lock; none: the first.
    chosen: Option<Lock>,
    /// The lock that is looked into.
    inside: Option<Lock>,
    detail: Option<Detail>,
    needs_detail: bool,
    /// The first line of the detail that is shown.
    scroll: u16,
    is_frozen: bool,
    has_help: bool,
}

impl Screen {
    /// Shows other numbers, unless the user has frozen these. Returns whether it does.
    pub(crate) fn show(&mut self, view: View) -> bool {
        if self.is_frozen {
            return false;
        }
        self.view = view;
        self.sort.sort(&mut self.view.lines);
        self.needs_detail = self.inside.is_some();
        true
    }

    /// The lock whose stacks and threads are wanted.
    pub(crate) fn wants_detail(&self) -> Option<Lock> {
        self.inside.filter(|_| self.needs_detail)
    }

    pub(crate) fn show_detail(&mut self, detail: Detail) {
        self.needs_detail = false;
        self.detail = Some(detail);
    }

    pub(crate) fn sort(&mut self, change: fn(Sort) -> Sort) {
        self.sort = change(self.sort);
        self.sort.sort(&mut self.view.lines);
    }

    pub(crate) fn freeze(&mut self) {
        self.is_frozen = !self.is_frozen;
    }

    pub(crate) fn help(&mut self) {
        self.has_help = !self.has_help;
    }

    pub(crate) fn enter(&mut self) {
        if self.has_help {
            self.has_help = false;
        } else if self.inside.is_none() {
            self.inside = self.view.lines.get(self.row()).map(|line| line.lock);
            self.needs_detail = self.inside.is_some();
            self.scroll = 0;
        }
    }

    pub(crate) fn back(&mut self) {
        if self.has_help {
            self.has_help = false;
        } else {
            (self.inside, self.detail) = (None, None);
        }
    }

    pub(crate) fn go(&mut self, by: isize) {
        if self.inside.is_some() {
            let scroll = (self.scroll as isize).saturating_add(by).clamp(0, 10_000);
            self.scroll = scroll as u16;
            return;
        }
        let last = self.view.lines.len().saturating_sub(1) as isize;
        let row = (self.row() as isize).saturating_add(by).clamp(0, last);
        self.chosen = self.view.lines.get(row as usize).map(|line| line.lock);
    }

    /// Where the chosen lock is.
    fn row(&self) -> usize {
        let is_chosen = |line: &Row_| Some(line.lock) == self.chosen;
        self.view.lines.iter().position(is_chosen).unwrap_or(0)
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let text = format!("too small: {} x {} needed", LEAST.0, LEAST.1);
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
            return;
        }
        let chosen = u16::from(self.inside.is_none() && area.height >= 12) * 3;
        let remark = u16::from(self.view.remark.is_some() || self.view.lost > 0);
        let output = u16::from(!self.view.last_line.is_empty() && area.height >= 8);
        let [head, body, below, remarked, printed, keys] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Fill(1),
            Constraint::Length(chosen),
            Constraint::Length(remark),
            Constraint::Length(output),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_head(frame, head);
        match &self.detail {
            Some(_) if self.inside.is_some() => self.draw_detail(frame, body),
            _ => self.draw_table(frame, body),
        }
        self.draw_chosen(frame, below);
        self.draw_remark(frame, remarked);
        let printed_line = Line::from(vec![
            Span::styled("it prints: ", dim()),
            Span::raw(self.view.last_line.clone()),
        ]);
        frame.render_widget(Paragraph::new(printed_line), printed);
        frame.render_widget(Paragraph::new(Line::styled(KEYS, dim())), keys);
        if self.has_help {
            draw_help(frame, area);
        }
    }

    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect) {
        let view = &self.view;
        let seconds = view.elapsed.as_secs();
        let time = format!("{}:{:02}", seconds / 60, seconds % 60);
        let state = if self.is_frozen { "FROZEN  " } else { "" };
        let right = Line::from(vec![Span::styled(state, Color::Yellow), Span::raw(time)]);
        let processes = match (view.processes, view.ended) {
            (0 | 1, 0) | (0, 1) => String::new(),
            (running, 0) => format!(": {running}"),
            (running, ended) => format!(": {running}, and {ended} ended"),
        };
        let left = Line::from(vec![
            Span::styled("waitword top  ", Modifier::BOLD),
            Span::raw(format!("{}{processes}", view.title)),
        ]);
        let sum: f64 = view.lines.iter().map(|line| line.lost).sum();
        let others = view.threads.saturating_sub(view.for_locks + view.for_work);
        let second = format!(
            "{} lost per second.  {} threads: {} wait for locks, {} for work, {others} for nothing",
            lost(sum),
            view.threads,
            view.for_locks,
            view.for_work,
        );
        let [first_line, second_line] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
        frame.render_widget(Paragraph::new(left), first_line);
        // Not over the title, where it is narrow.
        if area.width >= 60 {
            frame.render_widget(Paragraph::new(right).alignment(Alignment::Right), first_line);
        }
        frame.render_widget(Paragraph::new(second), second_line);
    }

    fn draw_table(&self, frame: &mut Frame<'_>, area: Rect) {
        if self.view.lines.is_empty() {
            let text = "No thread has waited for a lock yet.";
            let middle = Rect { y: area.y + area.height / 3, height: 1.min(area.height), ..area };
            frame.render_widget(Paragraph::new(text).alignment(Alignment::Center), middle);
            return;
        }
        let columns = columns(area.width, self.view.says_process);
        let most = self.view.lines.iter().map(|line| line.lost).fold(1.0, f64::max);
        let titles = columns.iter().map(|(column, _)| {
            let title = match column.sort() {
                Some(sort) if sort == self.sort => format!("{}▼", sort.title()),
                Some(sort) => sort.title().to_owned(),
                None => column.title().to_owned(),
            };
            column.cell(title)
        });
        let rows = self.view.lines.iter().map(|line| {
            let style = if line.lost < 0.0005 && line.waiters == 0 { dim() } else { Style::new() };
            let bar_width = columns.iter().find(|(it, _)| *it == Column::Bar);
            let width = bar_width.map_or(0, |(_, width)| match width {
                Constraint::Length(width) => *width,
                _ => 0,
            });
            Row::new(columns.iter().map(|(it, _)| it.cell(it.text(line, most, width)))).style(style)
        });
        let table = Table::new(rows, columns.iter().map(|(_, width)| *width))
            .header(Row::new(titles).style(Modifier::BOLD))
            .row_highlight_style(Modifier::REVERSED)
            .column_spacing(1);
        let mut state = TableState::new().with_selected(Some(self.row()));
        frame.render_stateful_widget(table, area, &mut state);
    }

    fn draw_chosen(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(line) = self.view.lines.get(self.row()).filter(|_| area.height > 0) else {
            return;
        };
        let or_unknown = |text: &str| match text {
            "" => "unknown".to_owned(),
            text => text.to_owned(),
        };
        let text = vec![
            Line::from(vec![
                Span::styled("lock       ", dim()),
                Span::raw(format!(
                    "{} of {}: now {}",
                    line.name,
                    line.process,
                    waiters(line.waiters)
                )),
            ]),
            Line::from(vec![
                Span::styled("wanted in  ", dim()),
                Span::raw(or_unknown(&line.wanted_at)),
            ]),
            Line::from(vec![
                Span::styled("held by    ", dim()),
                Span::raw(or_unknown(&line.held_at)),
                Span::raw(if line.why.is_empty() { "" } else { ": " }),
                Span::raw(line.why.clone()),
            ]),
        ];
        frame.render_widget(Paragraph::new(text), area);
    }

    fn draw_remark(&self, frame: &mut Frame<'_>, area: Rect) {
        let mut text = String::new();
        if self.view.lost > 0 {
            text = format!("{} records were lost. ", self.view.lost);
        }
        text += self.view.remark.as_deref().unwrap_or_default();
        frame.render_widget(Paragraph::new(Line::styled(text, Color::Yellow)), area);
    }

    fn draw_detail(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let parts = self.detail.iter().flat_map(|detail| &detail.parts);
        let mut lines = Vec::new();
        for (heading, below) in parts {
            lines.push(Line::styled(heading.clone(), Modifier::BOLD));
            lines.extend(below.iter().map(|line| Line::raw(format!("  {line}"))));
            lines.push(Line::raw(""));
        }
        let last = (lines.len() as u16).saturating_sub(area.height);
        self.scroll = self.scroll.min(last);
        frame.render_widget(Paragraph::new(lines).scroll((self.scroll, 0)), area);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Lost,
    Bar,
    Waits,
    Longest,
    Now,
    Total,
    Process,
    WantedIn,
    HeldBy,
    Why,
    Lock,
}

/// The columns that this width has room for, and their own widths.
fn columns(width: u16, says_process: bool) -> Vec<(Column, Constraint)> {
    const ITS_WIDTH: u16 = 16;
    // Where it is narrower, who holds the lock matters more.
    if says_process && width >= 60 + ITS_WIDTH {
        let mut columns = columns(width - ITS_WIDTH - 1, false);
        let at = columns.iter().position(|(it, _)| *it == Column::WantedIn).unwrap_or(0);
        columns.insert(at, (Column::Process, Constraint::Length(ITS_WIDTH)));
        return columns;
    }
    use Column::{Bar, HeldBy, Lock, Longest, Lost, Now, Total, Waits, WantedIn, Why};
    use Constraint::{Fill, Length};
    match width {
        160.. => vec![
            (Lost, Length(8)),
            (Bar, Length(10)),
            (Waits, Length(8)),
            (Longest, Length(8)),
            (Now, Length(4)),
            (Total, Length(8)),
            (Lock, Length(22)),
            (WantedIn, Fill(4)),
            (HeldBy, Fill(4)),
            (Why, Fill(3)),
        ],
        110.. => vec![
            (Lost, Length(8)),
            (Bar, Length(8)),
            (Waits, Length(8)),
            (Longest, Length(8)),
            (Now, Length(4)),
            (Total, Length(8)),
            (WantedIn, Fill(4)),
            (HeldBy, Fill(4)),
            (Why, Length(14)),
        ],
        76.. => vec![
            (Lost, Length(8)),
            (Waits, Length(8)),
            (Longest, Length(8)),
            (Now, Length(4)),
            (WantedIn, Fill(3)),
            (HeldBy, Fill(3)),
            (Why, Length(14)),
        ],
        40.. => vec![(Lost, Length(8)), (Now, Length(4)), (WantedIn, Fill(1)), (HeldBy, Fill(1))],
        _ => vec![(Lost, Length(8)), (WantedIn, Fill(1))],
    }
}

impl Column {
    fn sort(self) -> Option<Sort> {
        match self {
            Self::Lost => Some(Sort::Lost),
            Self::Waits => Some(Sort::Waits),
            Self::Longest => Some(Sort::Longest),
            Self::Now => Some(Sort::Now),
            Self::Total => Some(Sort::Total),
            _ => None,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Process => "PROCESS",
            Self::WantedIn => "WANTED IN",
            Self::HeldBy => "HELD BY",
            Self::Why => "WHY",
            Self::Lock => "LOCK",
            _ => "",
        }
    }

    fn text(self, line: &Row_, most: f64, bar_width: u16) -> String {
        match self {
            Self::Lost => lost(line.lost),
            Self::Bar => bar(line.lost / most, bar_width),
            Self::Waits => rate(line.waits),
            Self::Longest => time(line.longest),
            Self::Now if line.waiters == 0 => "-".to_owned(),
            Self::Now => line.waiters.to_string(),
            Self::Total => time(line.total),
            Self::Process => line.process.clone(),
            Self::WantedIn => line.wanted_in.clone(),
            Self::HeldBy => line.held_by.clone(),
            // There is room for the first cause.
            Self::Why => line.why.split(',').next().unwrap_or_default().to_owned(),
            Self::Lock => line.name.clone(),
        }
    }

    /// Numbers stand on the right.
    fn cell(self, text: String) -> Cell<'static> {
        let alignment = match self.sort() {
            Some(_) => Alignment::Right,
            None => Alignment::Left,
        };
        Cell::new(Line::raw(text).alignment(alignment))
    }
}

/// A bar of eighths of a character.
fn bar(part: f64, width: u16) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * f64::from(width) * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let width = area.width.min(68);
    let height = area.height.min(HELP.len() as u16 + 2);
    let middle = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let lines: Vec<Line<'_>> = HELP.iter().map(|line| Line::raw(*line)).collect();
    frame.render_widget(Clear, middle);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Help ")), middle);
}

#[cfg(test)]
mod tests;
