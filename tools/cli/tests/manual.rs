//! The man pages, read by the real formatters, and the completions, sourced by the real shells.
//! What is not installed is left out, and said.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use waitword_testkit::command::{output, texts};

fn waitword(arguments: &[&str]) -> String {
    texts(output(Command::new(env!("CARGO_BIN_EXE_waitword")).args(arguments))).0
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|directory| directory.join(program).exists());
    if !there {
        eprintln!("not tested: {program} is not installed");
    }
    there
}

/// The subcommands that `waitword --help` lists.
fn subcommands() -> BTreeSet<String> {
    let help = waitword(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // Two columns further in, the line continues a description.
    let names = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    names.map(|line| line.split(' ').next().unwrap().to_owned()).filter(|it| it != "help").collect()
}

/// Writes all pages; returns their directory and paths.
fn pages() -> (tempfile::TempDir, Vec<PathBuf>) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("a/man1");
    waitword(&["man-pages", "--out", directory.to_str().unwrap()]);
    let mut pages: Vec<_> =
        fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    pages.sort();
    (place, pages)
}

fn stem(page: &Path) -> &str {
    page.file_stem().unwrap().to_str().unwrap()
}

/// A page as `man` shows it.
fn shown(page: &Path) -> String {
    let mut man = Command::new("man");
    man.args(["--warnings", "--nj", "--nh", "--encoding=UTF-8", "--local-file"]).arg(page);
    man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").env("MAN_KEEP_FORMATTING", "");
    let (text, complaints) = texts(output(&mut man));
    assert_eq!(complaints, "", "{page:?}");
    text
}

#[test]
fn every_public_subcommand_has_a_page_and_no_other_has() {
    let (_place, pages) = pages();
    let names: BTreeSet<&str> = pages.iter().map(|page| stem(page)).collect();
    let mut wanted: BTreeSet<String> =
        subcommands().iter().map(|name| format!("waitword-{name}")).collect();
    assert!(wanted.contains("waitword-profile"), "{wanted:?}");
    wanted.extend(["waitword", "waitword-bench-any", "waitword-bench-publish"].map(str::to_owned));
    assert_eq!(names, wanted.iter().map(String::as_str).collect());
}

#[test]
fn the_pages_are_well_formed() {
    let (_place, pages) = pages();
    if is_installed("mandoc") {
        let lint = output(Command::new("mandoc").arg("-Tlint").args(&pages));
        assert_eq!(String::from_utf8_lossy(&lint.stdout), "");
    }
    if is_installed("man") {
        for page in &pages {
            let text = shown(page);
            for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"] {
                assert!(text.contains(&format!("\n{heading}\n")), "{page:?}: {heading}\n{text}");
            }
        }
    }
}

#[test]
fn a_page_says_what_help_leaves_out() {
    if !is_installed("man") {
        return;
    }
    let (_place, pages) = pages();
    let of = |name: &str| shown(pages.iter().find(|page| stem(page) == name).unwrap());
    let run = of("waitword-run");
    for part in [
        "\nEXIT STATUS\n",
        " 126 ",
        "\nENVIRONMENT\n",
        " WAITWORD_SPIN_NS\n",
        "\nFILES\n",
        " /var/cache/waitword\n",
        "\nEXAMPLES\n",
        " waitword run --summary -- ./batch\n",
        "waitword-preload(1)",
    ] {
        assert!(run.contains(part), "{part:?}: {run}");
    }
    // A paragraph of the help becomes a section, and an example keeps its explanation.
    let deadlock = of("waitword-deadlock");
    assert!(deadlock.contains("\nNOTES\n       The program need not have"), "{deadlock}");
    assert!(deadlock.contains("jq .waits\n              Every thread that waits"), "{deadlock}");
    assert!(!deadlock.contains("Exit status:") && deadlock.contains(" 1 "), "{deadlock}");
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    let output = output(command.args(["man-pages", "--out", "/dev/null/pages"]));
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("--out /dev/null/pages: "), "{stderr}");
}

/// Runs a script by a shell that has the completions in the file `$1`.
fn by_shell(shell: &str, options: &[&str], script: &str) -> Option<String> {
    if !is_installed(shell) {
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("_waitword");
    fs::write(&file, waitword(&["completions", shell])).unwrap();
    let mut command = Command::new(shell);
    command.args(options).arg("-c").arg(script);
    // fish counts the arguments behind the script from 1, the others from 0.
    if shell != "fish" {
        command.arg(shell);
    }
    command.arg(&file).env("HOME", place.path()).env("XDG_CONFIG_HOME", place.path());
    let (said, complaints) = texts(output(command.env("TERM", "dumb")));
    assert_eq!(complaints, "", "{shell}");
    Some(said)
}

/// What bash offers for these words, of which the last is incomplete.
fn in_bash(words: &str) -> Option<Vec<String>> {
    let script = format!(
        "source \"$1\"
         read -ra COMP_WORDS <<<'{words}'
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
         complete -p waitword | grep -q -- '-F _waitword' || exit 9
         _waitword waitword \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let said = by_shell("bash", &["--norc", "--noprofile"], &script)?;
    Some(said.lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes() {
    let Some(profile) = in_bash("waitword pro") else { return };
    assert_eq!(profile, ["profile"]);
    assert_eq!(in_bash("waitword run --mutex thr").unwrap(), ["throughput"]);
    assert_eq!(in_bash("waitword deadlock --p").unwrap(), ["--pid"]);
    // What is internal is not offered.
    assert_eq!(in_bash("waitword man").unwrap(), [""]);
    assert_eq!(in_bash("waitword me").unwrap(), ["metrics"]);
}

#[test]
fn fish_completes() {
    let script = "source $argv[1]; complete --do-complete 'waitword pro'
                  complete --do-complete 'waitword run --mutex thr'
                  complete --do-complete 'waitword man'";
    let Some(said) = by_shell("fish", &["--no-config"], script) else { return };
    let offered: Vec<&str> = said.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(offered, ["profile", "throughput"], "{said}");
}

/// In a terminal of its own: zsh completes nowhere else.
#[test]
fn zsh_completes() {
    let script = r#"
        zmodload zsh/zpty
        zpty terminal zsh -f -i
        say() { zpty -w terminal "$1" }
        # The shell shows the words that it was given; only its answer has the number 42.
        wait_for() { zpty -r terminal shown "*$1*" }
        say "PS1= PS2= RPS1=; fpath=(${1:h} \$fpath); autoload -Uz compinit"
        say "compinit -D -u; bindkey '^I' complete-word"
        say 'waitword() { print "answer $((6 * 7)): $*." }'
        for words in pro 'run --mutex thr' metr; do
            zpty -w -n terminal "waitword $words"$'\t\n'
            wait_for 'answer 42: *.'
            print -r -- ${${shown##*answer 42: }%%.*}
        done
        zpty -d terminal"#;
    let Some(said) = by_shell("zsh", &["-f"], script) else { return };
    let offered: Vec<&str> = said.lines().map(str::trim_end).collect();
    assert_eq!(offered, ["profile", "run --mutex throughput", "metrics"], "{said:?}");
}
