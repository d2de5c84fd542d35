//! The names of a recipe's choices in files.

use super::types::{InputShape, MergeOrder, Rest, Share, Start};

/// The name of a choice.
fn name_of<T: Copy + PartialEq>(all: &[(&'static str, T)], value: T) -> &'static str {
    all.iter().find(|(_, other)| *other == value).map_or("", |(name, _)| name)
}

macro_rules! names {
    ($type:ty, $count:literal, $names:expr) => {
        impl $type {
            /// All values, with their names in files.
            pub const ALL: [(&'static str, Self); $count] = $names;

            /// The name in files.
            #[must_use]
            pub fn name(self) -> &'static str {
                name_of(&Self::ALL, self)
            }
        }
    };
}

names!(Share, 2, [("round-up", Self::RoundUp), ("balanced", Self::Balanced)]);
names!(Rest, 3, [("divided", Self::Divided), ("chained", Self::Chained), ("added", Self::Added)]);
names!(
    MergeOrder,
    5,
    [
        ("serial", Self::Serial),
        ("reverse", Self::Reverse),
        ("pairs", Self::Pairs),
        ("halves", Self::Halves),
        ("last-then-slots", Self::LastThenSlots),
    ]
);
names!(Start, 3, [("first", Self::First), ("+0", Self::Zero), ("c", Self::C)]);
names!(
    InputShape,
    4,
    [("scalar", Self::Scalar), ("row", Self::Row), ("column", Self::Column), ("matrix", Self::Matrix)]
);
