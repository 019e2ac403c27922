//! Where buckets really are. The tests ask the kernel for the node of each page of each NUMA node's
//! slab (`move_pages(2)`), on whatever nodes the machine has. `scripts/qemu numa` runs this on a
//! machine with four.

use super::bucket::Bucket;
use super::table::Table;
use super::{Awaited, Key, Place, WaiterTable, waiter_table};
use crate::sys::Errno;
use crate::sys::mem::PAGE;
use crate::sys::numa::{self, Nodes};
use crate::{Futex, NumaWord};
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::thread;

/// The node of the page at `address`, which has been touched.
fn node_of<T>(address: *const T) -> Result<u32, Errno> {
    use syscalls::{Sysno, syscall6};
    let (page, mut status) = (address.addr() & !(PAGE - 1), -1i32);
    // SAFETY: without a list of nodes nothing is moved; the kernel reads one address and writes one
    // status.
    let result = unsafe {
        let status = &raw mut status;
        let page = &raw const page;
        syscall6(
            Sysno::move_pages,
            0,
            1,
            page.expose_provenance(),
            0,
            status.expose_provenance(),
            0,
        )
    };
    result.map_err(|error| Errno::from_raw_os_error(error.into_raw()))?;
    u32::try_from(status).map_err(|_| Errno::from_raw_os_error(-status))
}

/// Asserts that the page at `address` is on node `number`; on a kernel without NUMA, that there is
/// only the one node.
#[track_caller]
fn assert_on_node<T>(address: *const T, number: u32) {
    match node_of(address) {
        Err(Errno::NOSYS) => assert_eq!((numa::nodes(), number), (Nodes::ONE, 0)),
        found => assert_eq!(found, Ok(number)),
    }
}

/// Every CPU that this process may use, with its node, according to the kernel's files.
fn cpus_and_nodes() -> Vec<(usize, u32)> {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let node_of_cpu = |cpu: &usize| {
        let listed = |node: &u32| {
            std::path::Path::new(&format!("/sys/devices/system/node/node{node}/cpu{cpu}")).exists()
        };
        (0..64).find(listed).unwrap_or(0)
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .map(|cpu| (cpu, node_of_cpu(&cpu)))
        .collect()
}

fn stay_on(cpu: usize) {
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).unwrap();
}

#[test]
fn every_page_of_a_slab_lies_on_its_node_whichever_thread_touches_it_first() {
    let nodes = numa::nodes();
    for (cpu, _) in cpus_and_nodes() {
        thread::scope(|scope| {
            scope.spawn(|| {
                stay_on(cpu);
                for bits in [6, 9, 13] {
                    let table = Table::allocate(bits, nodes, || ()).unwrap();
                    // SAFETY: not freed while it is in use here.
                    let slabs = unsafe { table.as_ref() }.all().chunks_exact(1 << bits);
                    assert_eq!(slabs.len(), nodes.count() as usize);
                    for (slab, number) in slabs.zip(nodes.numbers()) {
                        for bucket in slab {
                            assert!(bucket.try_lock());
                            assert_on_node(bucket, number);
                        }
                    }
                    // SAFETY: never published.
                    unsafe { Table::free(table) };
                }
            });
        });
    }
}

/// Waits until a thread is queued under `key`; returns the bucket it is queued in.
fn bucket_with_a_waiter(key: Key) -> *const Bucket {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        let queue = waiter_table().lock_queue(key);
        if queue.has_waiters() {
            return queue.held.found.bucket;
        }
        drop(queue);
        assert!(std::time::Instant::now() < deadline, "no waiter came");
        thread::yield_now();
    }
}

#[test]
fn waiters_are_queued_on_the_node_that_their_word_names() {
    for number in numa::nodes().numbers() {
        let pair = NumaWord::new(AtomicU32::new(0), AtomicU32::new(number));
        let key = Key { address: (&raw const pair.value).addr(), place: Place::OnNode(number) };
        for _ in ["in the table that there is", "in one that growth has made"] {
            thread::scope(|scope| {
                let waiter = scope.spawn(|| Futex::numa(&pair).wait(0));
                let before = bucket_with_a_waiter(key);
                assert_on_node(before, number);
                waiter_table().grow(waiter_table().buckets() * 2).unwrap();
                let after = bucket_with_a_waiter(key);
                assert_ne!(after, before);
                assert_on_node(after, number);
                assert_eq!(Futex::numa(&pair).wake(1), Ok(1));
                assert_eq!(waiter.join().unwrap(), Ok(()));
            });
        }
    }
}

#[test]
fn minus_one_is_the_node_of_the_cpu_and_the_waiter_is_queued_there() {
    for (cpu, number) in cpus_and_nodes() {
        let pair = NumaWord::new(AtomicU32::new(0), AtomicU32::new(u32::MAX));
        let key = Key { address: (&raw const pair.value).addr(), place: Place::OnNode(number) };
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                stay_on(cpu);
                Futex::numa(&pair).wait(0)
            });
            assert_on_node(bucket_with_a_waiter(key), number);
            // The waker runs on any CPU.
            assert_eq!(Futex::numa(&pair).wake(1), Ok(1));
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
    }
}

/// The nodes that a process may use can change between one table and the next (`cpuset(7)`).
#[test]
fn a_waiter_is_found_in_a_table_over_other_nodes_than_it_came_to() {
    static WAITER_TABLE: WaiterTable = WaiterTable::new(Some(Nodes::from_mask(0b11_0011)));
    let found_on = |key| {
        let table = WAITER_TABLE.table();
        let slab = table.all().len() / table.nodes().count() as usize;
        let bucket: *const Bucket = table.find(key).bucket;
        (bucket.addr() - table.all().as_ptr().addr()) / size_of::<Bucket>() / slab
    };
    let key = |number| Key { address: 0x5000, place: Place::OnNode(number) };
    let nodes = [
        super::Node::new(key(4), Awaited::Word32, 1, None, 0),
        super::Node::new(key(5), Awaited::Word32, 2, None, 0),
    ];
    for node in &nodes {
        // SAFETY: the nodes stay in place until they are claimed below.
        unsafe { WAITER_TABLE.register(node.key()).push(node) };
    }
    assert_eq!([4, 5].map(|number| found_on(key(number))), [2, 3]);
    let fewer = Nodes::from_mask(0b11_0000);
    let table = Table::allocate(Table::bits_for(1024, fewer), fewer, || ()).unwrap();
    // SAFETY: made just above.
    assert!(unsafe { WAITER_TABLE.replace(WAITER_TABLE.table(), table) });
    assert_eq!([4, 5].map(|number| found_on(key(number))), [0, 1]);
    for node in &nodes {
        let found = WAITER_TABLE.find_waiters(node.key()).unwrap();
        let claimed = WAITER_TABLE.claim(node.key(), found, usize::MAX, u64::MAX);
        assert_eq!(claimed.notify(&WAITER_TABLE.parkers), 1);
    }
}
