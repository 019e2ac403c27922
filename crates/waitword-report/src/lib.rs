//! A report of `waitword bench` as one HTML page, and its summary as Markdown.
//!
//! The terminal's tables are for whoever runs the benchmark. The page is for whoever doubts it: what was published for
//! each of the five patches stands beside what this machine says today, every plot has its data beneath, every variant is
//! in every table, whoever wins. One file, no script and nothing from the network: it can be sent by mail, printed, and read in ten years.
//!
//! | room | what lives there |
//! |---|---|
//! | [`html`] | the page: head, contents, the order of things |
//! | `glance` | which lock is best at what |
//! | `any` | loads drawn at random |
//! | `machine`, `bars` | on what it was measured; what must be reached |
//! | [`markdown`] | the summary: won, lost and why |
//! | [`Results`] | stored reports, as what is published of them |
//! | `published`, `patches` | the mails' figures; today's for the same rows |
//! | `workload` | each workload, case by case: tables, and which plots fit |
//! | `plot` | the plots, as SVG |
//! | `looks` | each variant's colour, marker and dashes, the same all over the page |
//! | `table`, `number` | tables; numbers with three digits |
//!
//! # Colours
//!
//! A plot is drawn once and shown in light, in dark and on paper. So it is drawn in *placeholders*, colours that stand for a
//! role ("the grid", "the line of variant 7"), and the style sheet gives each role its colour, width and dashes by what the
//! attribute says: `[stroke="#020007"] { stroke: var(--c3) }`.

mod anchor;
mod any;
mod bars;
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

use waitword_bench::bars::judge as bars_of;

pub use markdown::markdown;
pub use number::{figure, how_sure, interval, range, ratio_told, told};
pub use page::{any_html, html};
pub use publish::{Any, Results, Run};
