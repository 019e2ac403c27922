//! NUMA nodes: which ones exist, which one this thread runs on, and placement of memory on a node.

use super::call::{Sysno, syscall3, syscall5, syscall6};
use core::ops::Range;

/// The nodes that a process may use, by number, up to 63. Nodes with higher numbers use the memory
/// of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// Bit n: node n.
    mask: u64,
}

impl Nodes {
    pub(crate) const ONE: Self = Self { mask: 1 };

    /// These nodes; node 0 alone if the mask is empty.
    pub(crate) const fn from_mask(mask: u64) -> Self {
        if mask == 0 { Self::ONE } else { Self { mask } }
    }

    pub(crate) const fn count(self) -> u32 {
        self.mask.count_ones()
    }

    /// The position of node `number` among the nodes, counted from 0; `None` if it is not one of
    /// them.
    pub(crate) fn position(self, number: u32) -> Option<u32> {
        let exists = number < u64::BITS && self.mask >> number & 1 == 1;
        exists.then(|| (self.mask & ((1 << number) - 1)).count_ones())
    }

    /// The numbers of the nodes, ascending.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |&number| self.mask >> number & 1 == 1)
    }
}

/// The nodes this process may place memory on; node 0 alone on a kernel without NUMA. One system
/// call; opens no file.
pub(crate) fn nodes() -> Nodes {
    const MPOL_F_MEMS_ALLOWED: usize = 4;
    // The kernel requires room for as many nodes as it was built for (at most 1024).
    let mut mask = [0u64; 16];
    // SAFETY: the kernel writes at most the 1024 bits that the call states, and `mask` has them.
    // With this flag it does not use the address 0.
    let result = unsafe {
        syscall5(
            Sysno::get_mempolicy,
            0,
            mask.as_mut_ptr().expose_provenance(),
            1024,
            0,
            MPOL_F_MEMS_ALLOWED,
        )
    };
    Nodes::from_mask(if result.is_ok() { mask[0] } else { 0 })
}

/// Whether the machine has node `number`, even if this process may not place memory on it. One
/// system call; opens no file.
pub(crate) fn exists(number: u32) -> bool {
    const PREFIX: &[u8] = b"/sys/devices/system/node/node";
    // Ten digits and the terminating zero.
    let mut path = [0u8; PREFIX.len() + 11];
    path[..PREFIX.len()].copy_from_slice(PREFIX);
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for place in path[PREFIX.len()..][..digits].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // SAFETY: the kernel reads the path as a C string: `path` is borrowed for the whole call, and
    // has one byte more than PREFIX and the digits, which is zero.
    let found = unsafe {
        syscall3(
            Sysno::faccessat,
            libc::AT_FDCWD as usize,
            path.as_ptr().addr(),
            libc::F_OK as usize,
        )
    };
    found.is_ok()
}

/// The node of the CPU that the caller runs on.
pub(crate) fn current_node() -> u32 {
    let mut node = 0u32;
    // SAFETY: the kernel writes one `u32` to `node`, a variable here; the null pointer means that
    // the CPU's number is not wanted.
    let _ = unsafe { syscall3(Sysno::getcpu, 0, (&raw mut node).expose_provenance(), 0) };
    node
}

/// Asks the kernel to take the pages of `range` from node `number`. It is a preference, not a
/// condition, so a full node costs speed and does not fail the call (MPOL_PREFERRED).
pub(crate) fn prefer(range: Range<*mut u8>, number: u32) {
    const MPOL_PREFERRED: usize = 1;
    let mask = 1u64 << number;
    // SAFETY: the policy determines where the kernel takes pages of the range from that have none
    // yet. It moves and changes no page, so it does no harm to any memory, whatever the range. The
    // kernel reads 64 bits from `mask`, a variable here.
    let _ = unsafe {
        syscall6(
            Sysno::mbind,
            range.start.expose_provenance(),
            range.end.addr() - range.start.addr(),
            MPOL_PREFERRED,
            (&raw const mask).addr(),
            u64::BITS as usize + 1,
            0,
        )
    };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn positions_count_only_the_nodes_there_are() {
        let nodes = Nodes::from_mask(0b1000_0101);
        assert_eq!(nodes.count(), 3);
        assert_eq!(
            [0, 1, 2, 7, 63, 64, u32::MAX].map(|number| nodes.position(number)),
            [Some(0), None, Some(1), Some(2), None, None, None]
        );
        assert_eq!(nodes.numbers().collect::<Vec<_>>(), [0, 2, 7]);
        assert_eq!(Nodes::from_mask(0), Nodes::ONE);
    }

    #[test]
    fn this_machine_has_the_node_that_we_run_on() {
        let here = current_node();
        assert!(nodes().position(here).is_some() || exists(here));
    }

    #[test]
    fn a_node_exists_if_the_kernel_lists_it() {
        let numa = std::path::Path::new("/sys/devices/system/node");
        for number in [0, 1, 9, 10, 4095, u32::MAX] {
            let listed = numa.join(format!("node{number}")).exists();
            assert_eq!(exists(number), listed, "node {number}");
        }
    }
}
