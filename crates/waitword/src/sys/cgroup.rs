//! The CPU quota of the process's control groups (cgroups(7)), as containers and systemd set it:
//! `cpu.max` in version 2, `cpu.cfs_quota_us` and `cpu.cfs_period_us` in version 1.
//!
//! Read without the heap: the first wait of a process may come from inside an allocator.

use core::ffi::CStr;
use core::fmt::{self, Write as _};
use core::iter::successors;
use rustix::fs::{Mode, OFlags};

/// Groups stand at most so deep. (The kernel's own limit is the administrator's to set.)
const DEEPEST: usize = 32;

/// The smallest quota of the process's group and of those around it, in thousandths of a CPU. `None`
/// if there is none, or none that this process may read.
///
/// Groups are looked for where distributions and container runtimes mount them. From inside a
/// container the path of its group may lead nowhere; the group itself then stands at the mount
/// point, which is read too.
#[cold]
pub(crate) fn quota() -> Option<u64> {
    let mut text = [0; 4096];
    let groups = read(format_args!("/proc/self/cgroup"), &mut text)?;
    groups.lines().filter_map(|line| of_line(line, read)).min()
}

/// The quota of the groups that one line of `/proc/self/cgroup` names. `read` stands for [`read`].
fn of_line(
    line: &str,
    read: impl for<'a> Fn(fmt::Arguments<'_>, &'a mut [u8]) -> Option<&'a str>,
) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let is_version_2 = controllers.is_empty();
    let mounts = match is_version_2 {
        true => ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
        false if controllers.split(',').any(|name| name == "cpu") => {
            ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        }
        false => return None,
    };
    // "/a/b", "/a" and "", which is the root.
    let innermost = path.trim_end_matches('/');
    let groups =
        || successors(Some(innermost), |group| Some(&group[..group.rfind('/')?])).take(DEEPEST);
    let quota = |mount, group| {
        let mut texts = [[0; 64]; 2];
        let [first, second] = &mut texts;
        let (quota, period) = match is_version_2 {
            true => read(format_args!("{mount}{group}/cpu.max"), first)?.split_once(' ')?,
            false => (
                read(format_args!("{mount}{group}/cpu.cfs_quota_us"), first)?,
                read(format_args!("{mount}{group}/cpu.cfs_period_us"), second)?,
            ),
        };
        // Without a quota the first is "max", or -1.
        let quota: u64 = quota.trim().parse().ok()?;
        quota
            .checked_mul(1000)?
            .checked_div(period.trim().parse().ok()?)
    };
    let of_mount = |mount| groups().filter_map(move |group| quota(mount, group)).min();
    mounts.into_iter().filter_map(of_mount).min()
}

/// What a file says that fits into `text`.
fn read<'a>(path: fmt::Arguments<'_>, text: &'a mut [u8]) -> Option<&'a str> {
    let mut place = Path {
        bytes: [0; 1024],
        len: 0,
    };
    place.write_fmt(path).ok()?;
    let path = CStr::from_bytes_until_nul(&place.bytes).ok()?;
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut len = 0;
    while len < text.len() {
        match rustix::io::read(&file, &mut text[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    core::str::from_utf8(&text[..len]).ok()
}

/// A path that is put together on the stack, and ends with a zero.
struct Path {
    bytes: [u8; 1024],
    len: usize,
}

impl fmt::Write for Path {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.len + part.len();
        // The last byte stays zero.
        if end >= self.bytes.len() {
            return Err(fmt::Error);
        }
        self.bytes[self.len..end].copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quota by one line, with these files.
    fn quota_of(line: &str, files: &[(&str, &'static str)]) -> Option<u64> {
        of_line(line, |path, text| {
            let path = path.to_string();
            let (_, said) = files.iter().find(|(name, _)| *name == path)?;
            text[..said.len()].copy_from_slice(said.as_bytes());
            core::str::from_utf8(&text[..said.len()]).ok()
        })
    }

    #[test]
    fn the_smallest_quota_around_counts_in_version_2() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ];
        assert_eq!(quota_of("0::/a/b", &files), Some(1500));
        assert_eq!(quota_of("0::/a", &files), Some(1500));
        assert_eq!(quota_of("0::/", &files), None);
        let inner = [files[1], ("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n")];
        assert_eq!(quota_of("0::/a/b", &inner), Some(500));
    }

    #[test]
    fn a_group_that_stands_at_the_mount_point_counts() {
        let files = [("/sys/fs/cgroup/cpu.max", "20000 10000\n")];
        assert_eq!(quota_of("0::/docker/0123", &files), Some(2000));
    }

    #[test]
    fn version_1_has_a_file_for_each_number_and_minus_one_for_none() {
        let files = |quota| {
            [
                ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", quota),
                ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
            ]
        };
        assert_eq!(quota_of("4:cpu,cpuacct:/a", &files("25000\n")), Some(250));
        assert_eq!(quota_of("4:cpu,cpuacct:/a", &files("-1\n")), None);
        assert_eq!(quota_of("3:cpuset:/a", &files("25000\n")), None);
    }

    #[test]
    fn what_cannot_be_understood_is_no_quota() {
        let says = |said| quota_of("0::/", &[("/sys/fs/cgroup/cpu.max", said)]);
        for nonsense in ["", "100", "a b", "100 0", "18446744073709551615 1"] {
            assert_eq!(says(nonsense), None, "{nonsense}");
        }
        for line in ["", "0", "0:", "0:cpu"] {
            assert_eq!(quota_of(line, &[]), None, "{line}");
        }
    }

    #[test]
    fn a_file_is_read_as_far_as_there_is_room_and_a_path_without_room_is_none() {
        let mut text = [0; 8];
        assert!(read(format_args!("/proc/self/status"), &mut text).is_some());
        assert_eq!(read(format_args!("/nonexistent"), &mut text), None);
        let long = "a".repeat(2000);
        assert_eq!(read(format_args!("/{long}"), &mut text), None);
    }
}
