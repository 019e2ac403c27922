//! Enumerations whose values have names in commands and reports.

/// Defines an enumeration from its values' names; `$what` is what an unknown name is not.
macro_rules! named {
    (
        $(#[$doc:meta])* $type:ident, $what:literal;
        $($(#[$of_value:meta])* $value:ident = $name:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum $type {
            $($(#[$of_value])* $value,)*
        }

        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// The name in commands and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }
        }

        impl core::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.into_iter().find(|each| each.name() == text);
                found.ok_or_else(|| {
                    let names = Self::ALL.map(Self::name).join(", ");
                    format!("unknown {}: `{text}`; known: {names}", $what)
                })
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(super) use named;
