//! A report of `waitword bench` as one HTML page, and its summary as Markdown.
//!
//! The terminal's tables are for the user who runs the benchmark. The page is for the reader who
//! doubts it. It shows the published figures of the five patches beside this machine's, the data of
//! every plot below the plot, and every variant in every table, whichever wins. The page is one
//! file, without scripts or network access: it can be mailed, printed, and read in ten years.
//!
//! | module | contents |
//! |---|---|
//! | [`html`] | the page: head, table of contents, order of the sections |
//! | `glance` | the best locks of each case |
//! | `any` | random loads |
//! | `machine`, `bars` | the machine and the conditions; the goals |
//! | [`markdown`] | the summary: won, lost and why |
//! | [`Results`] | the texts that are published from stored reports |
//! | `published`, `patches` | the mails' figures; today's for the same rows |
//! | `workload` | each workload, case by case: tables, and the plots that fit |
//! | `plot` | the plots, as SVG |
//! | `looks` | each variant's colour, marker and dashes, the same on the whole page |
//! | `table`, `number` | tables; numbers with three digits |
//!
//! # Colours
//!
//! A plot is drawn once and shown on a light screen, on a dark screen and on paper. It is therefore
//! drawn in *placeholders*: colours that represent a role ("the grid", "the line of variant 7").
//! The style sheet maps each placeholder to a colour, width and dashes with attribute selectors:
//! `[stroke="#020007"] { stroke: var(--c3) }`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod anchor;
mod any;
mod bars;
mod book;
mod glance;
mod looks;
mod machine;
mod markdown;
mod number;
mod page;
mod patches;
mod plot;
mod publish;
mod published;
mod table;
mod workload;

pub use markdown::markdown;
pub use number::{figure, how_sure, interval, range, ratio_told, told};
pub use page::{any_html, html};
pub use publish::{Any, Results, Run};
