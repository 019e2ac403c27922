//! Changes since an older run.

use crate::cells::table;
use waitword_bench::compare::{Change, Comparison, Direction};
use waitword_report::{figure, interval};

const HEADER: [&str; 9] =
    ["workload", "case", "variant", "figure", "baseline", "was", "is", "is/was", "interval"];

/// Everything that has changed, regressions first, and the number of unchanged figures.
pub(crate) fn comparison(comparison: &Comparison) -> String {
    let mut text = String::from("\n## Changed since the older run\n");
    for (what, then, now) in &comparison.machine {
        text += &format!("Different machine: {what} was {then}, is {now}\n");
    }
    let mut counts = [0; 2];
    let kinds = [(Direction::Worse, "Worse"), (Direction::Better, "Better")];
    for (count, (direction, title)) in counts.iter_mut().zip(kinds) {
        let went = |change: &&Change| change.direction() == direction;
        let changes: Vec<&Change> = comparison.changes.iter().filter(went).collect();
        *count = changes.len();
        if !changes.is_empty() {
            let mut table = table(&HEADER, 5, 4);
            for change in changes {
                table.add_row(row(change));
            }
            text += &format!("\n### {title}\n{table}\n");
        }
    }
    let [worse, better] = counts;
    let all = comparison.changes.len();
    let same =
        comparison.changes.iter().filter(|change| change.direction() == Direction::Same).count();
    let told = comparison.changes.iter().filter(|change| change.interval.is_some());
    let untold = all - told.count();
    text += &format!(
        "\n{all} figures compared: {worse} worse, {better} better, {same} the same, {} undecided",
        all - worse - better - same - untold
    );
    if untold > 0 {
        text += &format!(", {untold} with too few rounds");
    }
    if comparison.alone > 0 {
        text += &format!("; {} are in only one of the runs", comparison.alone);
    }
    text + ".\nOf a hundred unchanged figures, expect two or three false positives: a change that \
            another run does not show was noise.\n"
}

fn row(change: &Change) -> [String; 9] {
    let baseline = change.baseline.as_deref();
    [
        change.workload.clone(),
        change.case.clone(),
        change.variant.clone(),
        change.metric.clone(),
        baseline.unwrap_or("none: absolute").to_owned(),
        figure(change.old),
        figure(change.new),
        figure(change.factor()),
        interval(change.interval),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitword_bench::harness::Better;
    use waitword_bench::stats::Interval;

    fn change(variant: &str, new: f64, better: Better) -> Change {
        Change {
            workload: "mutex".to_owned(),
            case: "t = 2".to_owned(),
            variant: variant.to_owned(),
            metric: "time".to_owned(),
            baseline: Some("glibc".to_owned()),
            old: 1.0,
            new,
            interval: Some(Interval { low: new - 0.03, high: new + 0.03 }),
            better,
        }
    }

    #[test]
    fn what_has_changed_is_listed_and_the_rest_counted() {
        let mut untold = change("untold", 3.0, Better::Less);
        untold.interval = None;
        let text = comparison(&Comparison {
            changes: vec![
                change("slower", 1.1, Better::Less),
                change("faster", 1.2, Better::More),
                change("no other", 1.01, Better::Less),
                untold,
            ],
            alone: 5,
            machine: vec![("kernel", "6.1".to_owned(), "6.18".to_owned())],
        });
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(place("Different machine: kernel was 6.1, is 6.18") < place("### Worse"));
        assert!(place("slower") < place("### Better") && place("### Better") < place("faster"));
        assert!(!text.contains("no other") && !text.contains("untold"), "{text}");
        place(
            "4 figures compared: 1 worse, 1 better, 1 the same, 0 undecided, 1 with too few \
             rounds; 5 are in only one",
        );
    }
}
