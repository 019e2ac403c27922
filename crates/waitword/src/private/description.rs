//! The waiter table as debuggers read it (`debugger.rs`): from the table's static to the nodes on
//! the waiters' stacks.

use super::awaited::Awaited;
use super::bucket::Bucket;
use super::node::Node;
use super::table::Table;
use super::waiter_table::WaiterTable;
use crate::debugger::Field;
use crate::park::{Group, Pool, Slot};

/// The fields of each structure on the way.
#[repr(C)]
pub(super) struct Fields {
    waiter_table: [Field; WaiterTable::FIELDS.len()],
    table: [Field; Table::FIELDS.len()],
    bucket: [Field; Bucket::FIELDS.len()],
    node: [Field; Node::FIELDS.len()],
    pool: [Field; Pool::FIELDS.len()],
    group: [Field; Group::FIELDS.len()],
    slot: [Field; Slot::FIELDS.len()],
    awaited: [Field; Awaited::FIELDS.len()],
}

pub(super) const FIELDS: Fields = Fields {
    waiter_table: WaiterTable::FIELDS,
    table: Table::FIELDS,
    bucket: Bucket::FIELDS,
    node: Node::FIELDS,
    pool: Pool::FIELDS,
    group: Group::FIELDS,
    slot: Slot::FIELDS,
    awaited: Awaited::FIELDS,
};
