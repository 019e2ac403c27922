//! The names that values have on the command line and in records.

use clap::ValueEnum;

/// The name on the command line.
pub(crate) fn name_of(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}
