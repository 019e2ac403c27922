//! The metrics as text: in the OpenMetrics format, and in the older one of Prometheus, for which
//! the differences are few.

use super::sums::{BOUNDS, Histogram, Snapshot};
use anyhow::Result;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelValue, EncodeMetric as _, LabelValueEncoder, MetricEncoder, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt::{Error, Write as _};

/// A label's value. The encoder does not escape it.
#[derive(Debug)]
struct Escaped<'a>(&'a str);

impl EncodeLabelValue for Escaped<'_> {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), Error> {
        for letter in self.0.chars() {
            match letter {
                '\\' => encoder.write_str("\\\\")?,
                '"' => encoder.write_str("\\\"")?,
                '\n' => encoder.write_str("\\n")?,
                _ => encoder.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Of exemplars, of which there are none.
type NoLabels = [(&'static str, &'static str); 0];

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.encode_locks(&mut encoder)?;
        self.encode_holds(&mut encoder)?;
        self.encode_events(&mut encoder)?;
        self.encode_state(&mut encoder)
    }
}

impl Snapshot {
    fn encode_locks(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut metric = encoder.encode_descriptor(
            "waitword_lock_wait",
            "How long threads waited for locks, by the functions that waited.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for ((site, object), waits) in &self.locks {
            let labels = [("site", Escaped(site)), ("object", Escaped(object))];
            encode_histogram(metric.encode_family(&labels)?, &waits.took)?;
        }
        type Count = fn(&super::sums::Waits) -> u64;
        let counts: [(&str, &str, Count); 3] = [
            (
                "waitword_lock_contentions",
                "How often threads waited for locks for longer than the threshold.",
                |waits| waits.took.count(),
            ),
            (
                "waitword_lock_handoffs",
                "How many of these waits ended because the holder handed the lock over.",
                |waits| waits.handed_over,
            ),
            ("waitword_lock_timeouts", "How many of these waits ended by a deadline.", |waits| {
                waits.timed_out
            }),
        ];
        for (name, help, count) in counts {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for ((site, object), waits) in &self.locks {
                let labels = [("site", Escaped(site)), ("object", Escaped(object))];
                let value = ConstCounter::new(count(waits));
                value.encode(metric.encode_family(&labels)?)?;
            }
        }
        let mut metric = encoder.encode_descriptor(
            "waitword_lock_holder",
            "What the holders did while these threads waited.",
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?;
        for ((site, object), waits) in &self.locks {
            let known = [waits.running, waits.preempted, waits.asleep];
            let known_sum = known.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
            let unknown = waits.took.sum.saturating_sub(known_sum);
            let causes = ["running", "preempted", "asleep", "unknown"];
            for (cause, time) in causes.iter().zip(known.iter().chain([&unknown])) {
                let labels = [
                    ("site", Escaped(site)),
                    ("object", Escaped(object)),
                    ("cause", Escaped(cause)),
                ];
                let value = ConstCounter::new(seconds(*time));
                value.encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_holds(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut metric = encoder.encode_descriptor(
            "waitword_lock_hold",
            "How long threads kept locks while others waited, by the functions that released them.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (site, holds) in &self.holds {
            encode_histogram(metric.encode_family(&[("site", Escaped(site))])?, holds)?;
        }
        Ok(())
    }

    fn encode_events(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut metric = encoder.encode_descriptor(
            "waitword_event_wait",
            "How long threads waited for work or an event: not contention.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (object, events) in &self.events {
            encode_histogram(metric.encode_family(&[("object", Escaped(object))])?, events)?;
        }
        Ok(())
    }

    fn encode_state(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "How many threads wait now.";
        let mut metric =
            encoder.encode_descriptor("waitword_waiters", help, None, MetricType::Gauge)?;
        for (object, count) in &self.waiters {
            let value = ConstGauge::new(*count);
            value.encode(metric.encode_family(&[("object", Escaped(object))])?)?;
        }
        let threads = "How many threads have waited, and have not ended as far as is known.";
        for (name, help, count) in [
            ("waitword_threads", threads, self.threads),
            ("waitword_processes", "How many processes are recorded.", self.processes),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(count).encode(metric)?;
        }
        let help = "How many records were lost.";
        let metric =
            encoder.encode_descriptor("waitword_lost_records", help, None, MetricType::Counter)?;
        ConstCounter::new(self.lost).encode(metric)
    }
}

fn encode_histogram(mut encoder: MetricEncoder<'_>, histogram: &Histogram) -> Result<(), Error> {
    let bounds = BOUNDS.iter().map(|bound| seconds(*bound)).chain([f64::MAX]);
    let buckets: Vec<(f64, u64)> = bounds.zip(histogram.counts).collect();
    let (sum, count) = (seconds(histogram.sum), histogram.count());
    encoder.encode_histogram::<NoLabels>(sum, count, &buckets, None)
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// In the OpenMetrics format, version 1.0.
///
/// # Errors
/// The text cannot be made.
pub(super) fn open_metrics(snapshot: Snapshot) -> Result<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(snapshot));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The same in the format of Prometheus, version 0.0.4: there a counter's `_total` belongs to its
/// name, and there is neither a unit nor an end.
pub(super) fn of_prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(of) = line.strip_prefix("# HELP ") {
            help = of.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        {
            let total = if kind == "counter" { "_total" } else { "" };
            if let Some((name, help)) = help.take() {
                let _ = writeln!(text, "# HELP {name}{total} {help}");
            }
            let _ = writeln!(text, "# TYPE {name}{total} {kind}");
        } else if !line.starts_with('#') {
            text += line;
            text += "\n";
        }
    }
    text
}

#[cfg(test)]
mod tests;
