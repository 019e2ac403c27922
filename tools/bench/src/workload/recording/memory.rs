//! The memory of this process, mapping by mapping.

use crate::harness::Failure;
use std::path::Path;

/// The bytes of memory that this process does not share with the file of a program: what has been
/// touched of memory without a file, and all of the mapped files in this directory, and of the
/// kernel's rings of context switches.
pub(super) fn own_bytes(directory: &Path) -> Result<usize, Failure> {
    let maps = std::fs::read_to_string("/proc/self/smaps").map_err(Failure::new)?;
    Ok(bytes_of(&maps, &directory.to_string_lossy()))
}

fn bytes_of(maps: &str, directory: &str) -> usize {
    let mut all_counts = false;
    let mut kilobytes = 0;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(first), second) = (words.next(), words.next()) else {
            continue;
        };
        let value = || second.and_then(|it| it.parse::<usize>().ok()).unwrap_or(0);
        match first {
            "Size:" if all_counts => kilobytes += value(),
            "Anonymous:" if !all_counts => kilobytes += value(),
            _ if !first.ends_with(':') => {
                all_counts = line.contains(directory) || line.contains("[perf_event]");
            }
            _ => {}
        }
    }
    kilobytes << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_added_up() {
        let maps = "\
7f00-7f10 r-xp 00000000 08:01 1  /bin/program
Size:                100 kB
Anonymous:             4 kB
7f10-7f20 rw-s 00000000 08:01 2  /tmp/here/1.2.rings
Size:                 56 kB
Rss:                   8 kB
Anonymous:             0 kB
7f20-7f30 r--s 00000000 00:0e 3  anon_inode:[perf_event]
Size:                  8 kB
7f30-7f40 rw-p 00000000 00:00 0
Size:               1000 kB
Anonymous:            16 kB
";
        assert_eq!(bytes_of(maps, "/tmp/here"), (4 + 56 + 8 + 16) << 10);
    }
}
