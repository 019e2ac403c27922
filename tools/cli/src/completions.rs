//! `waitword completions`: the files by which shells complete the command's words.

use crate::out_file::print;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use std::process::ExitCode;

/// The arguments of `waitword completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  waitword completions bash > ~/.local/share/bash-completion/completions/waitword
      For bash, with the package bash-completion.
  waitword completions zsh > ~/.zfunc/_waitword
      For zsh, if its fpath contains ~/.zfunc.
  waitword completions fish > ~/.config/fish/completions/waitword.fish
      For fish.

The Debian package contains these files.")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match print(&text(args.shell)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waitword: {error}");
            ExitCode::FAILURE
        }
    }
}

fn text(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut public(), "waitword", &mut bytes);
    String::from_utf8(bytes).expect("the names of options are UTF-8")
}

/// The command without its hidden subcommands. The generators would list them.
pub(crate) fn public() -> Command {
    let whole = crate::Cli::command();
    let (hidden, shown): (Vec<_>, Vec<_>) =
        whole.get_subcommands().cloned().partition(Command::is_hide_set);
    debug_assert!(!hidden.is_empty(), "or this function is not needed");
    let plain = Command::new("waitword").subcommand_required(true);
    let plain = plain.version(env!("WAITWORD_VERSION"));
    let about = whole.get_about().cloned().unwrap_or_default();
    plain.about(about).subcommands(shown)
}
