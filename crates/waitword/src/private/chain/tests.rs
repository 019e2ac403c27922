use super::super::awaited::Awaited;
use super::super::key::Place;
use super::*;

fn chain() -> Chain {
    Chain { first: Cell::new(ptr::null()) }
}

fn key(address: usize) -> Key {
    Key { address, place: Place::Anywhere }
}

fn node(address: usize, priority: u8) -> Node {
    Node::new(key(address), Awaited::Word32, 1, None, priority)
}

/// All nodes of a word, by taking them out.
fn drain(chain: &Chain, address: usize) -> Vec<*const Node> {
    let mut order = Vec::new();
    // SAFETY: there is one thread, so the chain is as good as locked; the nodes outlive it.
    unsafe { chain.take(key(address), usize::MAX, |_| true, |node| order.push(&raw const *node)) };
    order
}

fn push_all(chain: &Chain, nodes: &[Node]) {
    for node in nodes {
        // SAFETY: as in `drain`.
        unsafe { chain.push(node) };
    }
}

fn addresses<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Vec<*const Node> {
    nodes.into_iter().map(|node| &raw const *node).collect()
}

#[test]
fn a_node_is_one_cache_line() {
    assert_eq!(size_of::<Node>(), 64);
}

#[test]
fn waiters_of_one_word_leave_in_order_of_arrival() {
    let (chain, nodes) = (chain(), [(); 5].map(|()| node(4, 0)));
    push_all(&chain, &nodes);
    assert_eq!(drain(&chain, 4), addresses(&nodes));
    assert!(chain.first.get().is_null());
}

#[test]
fn words_in_one_bucket_do_not_mix() {
    let chain = chain();
    let nodes = [4, 8, 4, 12, 8, 4].map(|address| node(address, 0));
    push_all(&chain, &nodes);
    for address in [8, 4, 12] {
        let of_word = nodes.iter().filter(|node| node.key() == key(address));
        assert_eq!(drain(&chain, address), addresses(of_word));
    }
    assert!(chain.first.get().is_null());
}

#[test]
fn higher_priority_goes_first_and_equal_ones_in_order() {
    let chain = chain();
    let nodes = [0, 5, 0, 9, 5, 9].map(|priority| node(4, priority));
    push_all(&chain, &nodes);
    let order = [3, 5, 1, 4, 0, 2].map(|index| &nodes[index]);
    assert_eq!(drain(&chain, 4), addresses(order));
}

#[test]
fn in_front_is_in_front_of_equal_priority() {
    for priority in [0, 3, 5, 7, 9] {
        let chain = chain();
        let nodes = [0, 5, 0, 9, 5].map(|priority| node(4, priority));
        let (other, first) = (node(8, 0), node(4, priority));
        push_all(&chain, &nodes[..2]);
        push_all(&chain, core::slice::from_ref(&other));
        push_all(&chain, &nodes[2..]);
        // SAFETY: as in `drain`.
        unsafe { chain.push_in_front(&first) };
        let ordered = [3, 1, 4, 0, 2].map(|index| &nodes[index]);
        let place = ordered.partition_point(|node| node.priority > priority);
        let (higher, others) = ordered.split_at(place);
        let expected = [higher, &[&first], others].concat();
        assert_eq!(drain(&chain, 4), addresses(expected), "{priority}");
        assert_eq!(drain(&chain, 8), [&raw const other]);
    }
}

#[test]
fn in_front_of_none_and_behind_all() {
    let chain = chain();
    let (high, low) = (node(4, 9), node(4, 1));
    // SAFETY: as in `drain`.
    unsafe {
        chain.push_in_front(&high);
        chain.push_in_front(&low);
    }
    assert_eq!(drain(&chain, 4), addresses([&high, &low]));
    assert!(chain.first.get().is_null());
}

#[test]
fn a_node_leaves_from_any_place_of_its_ring() {
    for leaving in 0..4 {
        let chain = chain();
        let (nodes, other) = ([(); 4].map(|()| node(4, 0)), node(8, 0));
        push_all(&chain, &nodes[..2]);
        push_all(&chain, core::slice::from_ref(&other));
        push_all(&chain, &nodes[2..]);
        // SAFETY: as in `drain`; the node is queued.
        unsafe { chain.remove(&nodes[leaving]) };
        let rest = nodes.iter().enumerate().filter(|&(index, _)| index != leaving);
        assert_eq!(drain(&chain, 4), addresses(rest.map(|(_, node)| node)));
        assert_eq!(drain(&chain, 8), [&raw const other]);
    }
}

#[test]
fn a_mask_skips_other_waiters_and_a_count_stops() {
    let chain = chain();
    let nodes = [1, 2, 3, 2, 1].map(|mask| Node::new(key(4), Awaited::Word32, mask, None, 0));
    push_all(&chain, &nodes);
    let mut taken = Vec::new();
    // SAFETY: as in `drain`.
    let count = unsafe {
        chain.take(key(4), 2, |node| node.mask & 2 != 0, |node| taken.push(&raw const *node))
    };
    assert_eq!(count, 2);
    assert_eq!(taken, addresses(&nodes[1..3]));
    assert_eq!(drain(&chain, 4), addresses([&nodes[0], &nodes[3], &nodes[4]]));
}

#[test]
fn a_node_taken_from_the_front_leaves_a_whole_ring_behind() {
    for taken in 1..=4 {
        let chain = chain();
        let (nodes, other) = ([(); 4].map(|()| node(4, 0)), node(8, 0));
        push_all(&chain, &nodes[..1]);
        push_all(&chain, core::slice::from_ref(&other));
        push_all(&chain, &nodes[1..]);
        let mut order = Vec::new();
        // SAFETY: as in `drain`.
        unsafe { chain.take(key(4), taken, |_| true, |node| order.push(&raw const *node)) };
        assert_eq!(order, addresses(&nodes[..taken]));
        let late = node(4, 0);
        push_all(&chain, core::slice::from_ref(&late));
        assert_eq!(drain(&chain, 4), addresses(nodes[taken..].iter().chain([&late])));
        assert_eq!(drain(&chain, 8), [&raw const other]);
    }
}

#[test]
fn a_node_that_was_taken_can_join_another_word_in_the_same_bucket() {
    for mask in [u64::MAX, 2] {
        let chain = chain();
        let nodes = [2, 1, 2, 2].map(|mask| Node::new(key(4), Awaited::Word32, mask, None, 0));
        let other = node(8, 0);
        push_all(&chain, core::slice::from_ref(&other));
        push_all(&chain, &nodes);
        let moved = nodes.iter().filter(|node| node.mask & mask != 0);
        let expected = addresses([&other].into_iter().chain(moved.clone()));
        // SAFETY: as in `drain`; each is added behind the nodes of another key.
        let count = unsafe {
            chain.take(
                key(4),
                usize::MAX,
                |node| node.mask & mask != 0,
                |node| {
                    node.set_key(key(8));
                    chain.push(node);
                },
            )
        };
        assert_eq!(count, moved.count());
        assert_eq!(drain(&chain, 8), expected);
        assert_eq!(drain(&chain, 4).len(), 4 - count);
    }
}

#[test]
fn counting_stops_at_the_limit() {
    let (chain, nodes) = (chain(), [(); 3].map(|()| node(4, 0)));
    push_all(&chain, &nodes);
    // SAFETY: as in `drain`.
    let count = |limit| unsafe { chain.count(key(4), limit) };
    assert_eq!([0, 2, 3, 9].map(count), [0, 2, 3, 3]);
    // SAFETY: as in `drain`.
    assert_eq!(unsafe { chain.count(key(8), 9) }, 0);
    assert_eq!(drain(&chain, 4).len(), 3);
}

#[test]
fn rings_move_whole_into_another_bucket() {
    let (from, to) = (chain(), chain());
    let nodes = [4, 8, 4, 4].map(|address| node(address, 0));
    push_all(&from, &nodes);
    let mut lengths = Vec::new();
    // SAFETY: as in `drain`.
    unsafe {
        from.take_rings(|first, length| {
            lengths.push((first.key().address, length));
            to.add_ring(first);
        });
    }
    lengths.sort_unstable();
    assert_eq!(lengths, [(4, 3), (8, 1)]);
    assert!(from.first.get().is_null());
    assert_eq!(drain(&to, 4), addresses([&nodes[0], &nodes[2], &nodes[3]]));
    assert_eq!(drain(&to, 8), addresses([&nodes[1]]));
}
