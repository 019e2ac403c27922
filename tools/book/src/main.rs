//! Prepares the book of waitword for mdBook, and checks what the book says.
//!
//! `scripts/book` runs it twice. mdBook calls `waitword-book preprocess` with all pages, to get
//! them back with the measured tables and the pictures in place (`pages`, `diagram`, `links`).
//! `waitword-book check` then reads the finished pages: it compiles each block of C and C++, runs
//! each command and compares its output (`blocks`, `c`, `shell`), and follows each link. What
//! Rust blocks there are, rustdoc compiles and runs: the package in `book` hands it the pages.
//!
//! book/README.md describes what a page may contain.

mod blocks;
mod c;
mod check;
mod diagram;
mod expected;
mod links;
mod pages;
mod shell;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Speaks mdBook's protocol: reads the pages from stdin and writes them to stdout
    Preprocess {
        /// mdBook's question whether a renderer is supported: `supports NAME`
        question: Vec<String>,
    },
    /// Compiles the blocks, runs the commands and follows the links of a rendered book
    Check(check::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        // Every renderer is.
        Command::Preprocess { question } if !question.is_empty() => Ok(()),
        Command::Preprocess { .. } => preprocess(),
        Command::Check(args) => check::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn preprocess() -> Result<(), String> {
    let input = std::io::read_to_string(std::io::stdin())
        .map_err(|error| format!("cannot read the pages: {error}"))?;
    println!("{}", pages::prepare(&input)?);
    Ok(())
}
