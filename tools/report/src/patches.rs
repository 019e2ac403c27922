//! The five patches: the figures that each mail published, and beside them this machine's figures
//! for the same rows.
//!
//! Absolute figures of two machines, two decades apart, cannot be compared. Within one table, the
//! old way and the new way can. So each of today's figures has its ratio to today's baseline beside
//! it.

mod rwlock;
mod today;
mod wanted;

pub(crate) use wanted::{about, claims as claims_table};

use crate::published::{Published, Shown};
use maud::{Markup, html};
use today::Today;
use waitword_bench::report::Report;
use waitword_bench::workload::Patch;

/// The published figures and today's.
pub(crate) fn both(patch: Patch, report: &Report) -> (Shown, Today) {
    let published = Published::load();
    let today = match patch {
        Patch::Wide => rwlock::today(report, &published.wide),
        _ => today::of(wanted::columns(patch, report)),
    };
    (published.of(patch), today)
}

pub(crate) fn section(patch: Patch, anchor: &str, report: &Report) -> Markup {
    let (Shown { source, table, note }, today) = both(patch, report);
    html! {
        section.patch id=(anchor) {
            h2 { (patch.title()) a.self href=(format!("#{anchor}")) aria-label="link" { "#" } }
            div.beside {
                div {
                    h3 { "Published" }
                    p.s { (source) }
                    (table.markup())
                    @if let Some(note) = note { p.s { (note) } }
                }
                div {
                    h3 { "Today" }
                    p.s { "This machine; medians. " (wanted::about(patch)) }
                    (today.table.markup())
                    @for note in &today.notes { p.s { (note) } }
                    @if !today.missing.is_empty() {
                        div.note role="note" {
                            "Not measured in this run:"
                            ul { @for missing in &today.missing { li { (missing) } } }
                        }
                    }
                }
            }
            @if patch == Patch::ThroughputOptimized { (claims(&Published::load(), report)) }
        }
    }
}

/// The claims in the mail's text, beside today's figures.
fn claims(published: &Published, report: &Report) -> Markup {
    html! {
        h3 { "Claims in the mail's text" }
        (wanted::claims(&published.throughput_optimized.claims, report).markup())
    }
}
