//! The five patches: what each mail published, and beside it what this machine says today of the same rows.
//!
//! Absolute figures of two machines, two decades apart, say nothing to each other. What can be compared is what stands in one table: the old
//! way and the new. So each of today's figures has its ratio to today's baseline beside it.

mod rwlock;
mod today;
mod wanted;

pub(crate) use wanted::about;

use crate::published::{Published, Shown};
use crate::table::Table;
use maud::{Markup, html};
use waitword_bench::report::Report;
use waitword_bench::workload::Patch;

/// Today's table, and what is to be said of it.
pub(crate) struct Today {
    pub(crate) table: Table,
    pub(crate) notes: Vec<String>,
    /// How the rows that are missing can be had.
    pub(crate) missing: Vec<String>,
}

/// Then and now.
pub(crate) fn both(patch: Patch, report: &Report) -> (Shown, Today) {
    let published = Published::load();
    let today = match patch {
        Patch::Wide => rwlock::today(report, &published.wide),
        _ => today::of(wanted::columns(patch, report)),
    };
    (published.of(patch), today)
}

pub(crate) fn section(patch: Patch, anchor: &str, report: &Report) -> Markup {
    let (
        Shown {
            source,
            table,
            note,
        },
        today,
    ) = both(patch, report);
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

/// What the mail says in its text, beside today's.
fn claims(published: &Published, report: &Report) -> Markup {
    html! {
        h3 { "And in the mail's text" }
        (wanted::claims(&published.throughput_optimized.claims, report).markup())
    }
}
