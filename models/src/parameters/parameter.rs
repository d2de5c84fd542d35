//! The type of a parameter, and how a parameter is read, written and described.

use mxprobe_api::Error;

use super::choices::{Choice, Choices};
use crate::document::{Table, quoted};

/// A value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The key is left out.
    Absent,
    /// A number of bits, or an exponent of 2.
    Whole(i32),
    /// True or false.
    Flag(bool),
    /// The choice at this index.
    Choice(usize),
}

impl Setting {
    /// The setting that selects this choice.
    #[must_use]
    pub fn of(value: impl Choices) -> Self {
        Self::Choice(value.place())
    }

    /// The choice that it selects; the default if it is not a choice.
    #[must_use]
    pub fn chosen<E: Choices>(self) -> E {
        let at = if let Self::Choice(at) = self { at } else { 0 };
        E::ALL[at].0
    }

    pub(super) fn number(self) -> Option<i32> {
        if let Self::Whole(number) = self { Some(number) } else { None }
    }

    pub(super) fn bits(self) -> Option<u32> {
        self.number().and_then(|bits| u32::try_from(bits).ok())
    }
}

/// The type of value that a key of a file takes.
pub(super) enum Takes<T> {
    /// A number of bits in this inclusive range.
    Bits(i32, i32),
    /// A number of bits from 1 to those of the result's format.
    FormatBits(fn(&T) -> u32),
    /// An exponent of 2.
    Exponent,
    /// True or false.
    Flag,
    /// One of some choices, by index.
    Choice(fn(usize) -> Option<&'static Choice>),
    /// Another type: its description, how to read it and how to write it.
    Other(&'static str, fn(&mut T, &Table<'_>) -> Result<(), Error>, fn(&T) -> String),
}

/// The choice at an index.
pub(super) fn nth<E: Choices>(place: usize) -> Option<&'static Choice> {
    E::ALL.get(place).map(|(_, choice)| choice)
}

/// The largest magnitude of an exponent in a file.
pub(super) const EXPONENTS: i32 = 5000;

/// The stage at which a search for a unit's model changes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// With the format of the result.
    Result(u8),
    /// Before the rules of the grid.
    Below,
    /// After the rules of the grid, if there are any.
    Grid(u8),
    /// With the cut of the normalised sum.
    Normalised(u8),
    /// If the operation has block scales.
    Scales,
    /// Separately, by code of its own.
    Apart,
}

/// The values that a search tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// Every choice, or true and false.
    Every,
    /// Absent, if allowed, and these numbers of bits.
    Bits(i32, i32),
    /// Numbers of bits from that of the result's format down to 1.
    FormatBits,
    /// Absent, and exponents near the limits of the formats.
    Exponents,
    /// Absent; other values only together with another parameter.
    Absent,
}

/// A parameter of `T`, an adder or a rule of its grid: everything about it except its effect in the evaluators.
pub struct Parameter<T: 'static> {
    /// Its key in a file.
    pub key: &'static str,
    pub(super) takes: Takes<T>,
    /// For docs/model-format.md: the meaning of a missing key, if that is not the first choice.
    pub(super) absent: &'static str,
    /// For docs/model-format.md: the meaning of the key.
    pub(super) meaning: &'static str,
    /// Whether a file may have it.
    pub(super) applies: fn(&T) -> bool,
    /// Whether it has an effect, given the other values of a file that may have it.
    pub(super) matters: fn(&T) -> bool,
    /// The error for a file that has it although it may not.
    pub(super) refused: Option<&'static str>,
    /// Whether a file must have it.
    pub(super) required: fn(&T) -> bool,
    /// Its value.
    pub get: fn(&T) -> Setting,
    /// Sets its value, and resets whatever depends on the previous value.
    pub set: fn(&mut T, Setting),
    /// The words that `explain` prints.
    pub(super) words: fn(&T) -> Option<String>,
    /// The words in the summary of `identify`.
    pub(super) brief: fn(&T) -> Option<String>,
    /// Whether a non-default value makes a model less simple.
    pub(super) counts: fn(&T) -> bool,
    /// The stage at which a search changes it.
    pub turn: Turn,
    /// The values that a search tries.
    pub tried: Tried,
    /// Neighbouring values: the next ones of a number, or the other choices.
    pub near: fn(&T) -> Vec<Setting>,
    /// The name of a model with a neighbouring value: `carry bits`, of `7 carry bits`.
    pub(super) label: &'static str,
    pub(super) proved: fn(Setting) -> bool,
}

impl<T> std::fmt::Debug for Parameter<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.key)
    }
}

impl<T> Parameter<T> {
    /// A parameter that may always be left out, has no effect then, and has no words.
    pub(super) const fn new(key: &'static str, takes: Takes<T>) -> Self {
        Self {
            key,
            takes,
            absent: "",
            meaning: "",
            applies: |_| true,
            matters: |_| true,
            refused: None,
            required: |_| false,
            get: |_| Setting::Absent,
            set: |_, _| {},
            words: |_| None,
            brief: |_| None,
            counts: |_| false,
            turn: Turn::Apart,
            tried: Tried::Every,
            near: |_| Vec::new(),
            label: "",
            proved: |_| false,
        }
    }

    /// Whether it has an effect, given the other values.
    #[must_use]
    pub fn applies(&self, of: &T) -> bool {
        (self.applies)(of) && (self.matters)(of)
    }

    /// The parameters of a table with a matching turn, ordered by turn.
    pub fn by_turn(table: &'static [Self], turn: fn(Turn) -> bool) -> Vec<&'static Self> {
        let mut found: Vec<_> = table.iter().filter(|parameter| turn(parameter.turn)).collect();
        found.sort_by_key(|parameter| parameter.turn);
        found
    }

    /// Its value if a file leaves it out.
    #[must_use]
    pub fn default(&self) -> Setting {
        match self.takes {
            Takes::Flag => Setting::Flag(false),
            Takes::Choice(_) => Setting::Choice(0),
            _ => Setting::Absent,
        }
    }

    /// Whether it has a value that is less simple than its default.
    #[must_use]
    pub fn complicates(&self, of: &T) -> bool {
        (self.counts)(of) && (self.get)(of) != self.default()
    }

    /// All its choices; true and false for a flag.
    #[must_use]
    pub fn choices(&self) -> Vec<Setting> {
        match self.takes {
            Takes::Flag => vec![Setting::Flag(true), Setting::Flag(false)],
            Takes::Choice(nth) => (0..).take_while(|at| nth(*at).is_some()).map(Setting::Choice).collect(),
            _ => Vec::new(),
        }
    }

    /// The neighbouring values whose models a proof tells from this one, each with a description of the difference.
    #[must_use]
    pub fn proved_neighbours(&self, of: &T) -> Vec<(Setting, String)> {
        if !self.applies(of) {
            return Vec::new();
        }
        let (now, label) = ((self.get)(of), self.label);
        let proved = (self.near)(of).into_iter().filter(|to| *to != now && (self.proved)(*to));
        let what = |to| match (to, &self.takes) {
            (Setting::Whole(number), _) => format!("{number} {label}"),
            (Setting::Choice(at), Takes::Choice(nth)) => format!("{label} {}", nth(at).map_or("", |found| found.name)),
            _ => label.to_owned(),
        };
        proved.map(|to| (to, what(to))).collect()
    }

    pub(super) fn read(&self, table: &Table<'_>, into: &mut T) -> Result<(), Error> {
        if !(self.applies)(into) {
            return match self.refused.filter(|_| table.has(self.key)) {
                Some(refused) => Err(table.place_of(self.key).error(refused)),
                None => Ok(()),
            };
        }
        let whole = |low: i32, high: i32| {
            let found = table.integer(self.key, i64::from(low), i64::from(high))?;
            Ok(found.map(Setting::Whole))
        };
        let found = match self.takes {
            Takes::Other(_, read, _) => return read(into, table),
            Takes::Bits(low, high) => whole(low, high)?,
            Takes::FormatBits(of) => whole(1, of(into).cast_signed())?,
            Takes::Exponent => whole(-EXPONENTS, EXPONENTS)?,
            Takes::Flag => table.boolean(self.key)?.map(Setting::Flag),
            Takes::Choice(nth) => {
                let choices: Vec<_> =
                    (0..).map_while(nth).enumerate().map(|(at, choice)| (choice.name, Setting::Choice(at))).collect();
                table.choice(self.key, &choices)?
            }
        };
        match found {
            Some(to) => (self.set)(into, to),
            None if (self.required)(into) => {
                return Err(table.place().error(format!("`{}` is missing: {}", self.key, self.meaning)));
            }
            None => {}
        }
        Ok(())
    }

    /// Its value as TOML, if a file must state it or it differs from the default.
    pub(super) fn written(&self, of: &T) -> Option<String> {
        if !(self.applies)(of) {
            return None;
        }
        let now = (self.get)(of);
        match self.takes {
            Takes::Other(_, _, write) => Some(write(of)),
            _ if now == self.default() && !(self.required)(of) => None,
            _ => Some(self.text(now)),
        }
    }

    pub(super) fn text(&self, now: Setting) -> String {
        match (now, &self.takes) {
            (Setting::Whole(number), _) => number.to_string(),
            (Setting::Flag(flag), _) => flag.to_string(),
            (Setting::Choice(at), Takes::Choice(nth)) => quoted(nth(at).map_or("", |choice| choice.name)),
            _ => String::new(),
        }
    }

    /// Its row of the table of parameters in docs/model-format.md.
    pub(super) fn row(&self) -> String {
        let takes = match self.takes {
            Takes::Bits(low, high) => format!("bits, {low} to {high}").replace('-', "−"),
            Takes::FormatBits(_) => "bits, 1 to the format's".to_owned(),
            Takes::Exponent => format!("exponent of 2, −{EXPONENTS} to {EXPONENTS}"),
            Takes::Flag => "true, false".to_owned(),
            Takes::Choice(nth) => {
                (0..).map_while(nth).map(|choice| format!("`{}`", choice.name)).collect::<Vec<_>>().join(", ")
            }
            Takes::Other(words, ..) => words.to_owned(),
        };
        let absent = match (self.absent, &self.takes) {
            ("", Takes::Choice(nth)) => format!("`{}`", nth(0).map_or("", |choice| choice.name)),
            ("", Takes::Flag) => "false".to_owned(),
            (absent, _) => absent.to_owned(),
        };
        format!("| `{}` | {takes} | {absent} | {} |\n", self.key, self.meaning)
    }
}
