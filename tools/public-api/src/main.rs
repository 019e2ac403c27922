//! Prints the public interface of a crate, one item per line, from the JSON that rustdoc writes.
//! `scripts/public-api` runs it.

use anyhow::{Context as _, Result};
use public_api::Builder;

fn main() -> Result<()> {
    let json = std::env::args_os().nth(1).context("expected the path of rustdoc's JSON")?;
    let interface = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(false)
        .omit_auto_derived_impls(false)
        .build()?;
    print!("{interface}");
    Ok(())
}
