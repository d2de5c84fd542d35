//! The places of wrong words, and what these have in common.

use std::collections::BTreeMap;

use mxprobe_api::{Elements, OperationId, Screened, TileBatch, biased_exponent, lanes};

use crate::{
    nan_bits::NanBits,
    report::{Tally, WrongRecord, WrongWord},
};

/// The most wrong words that are listed.
const LISTED: usize = 20;
/// The most places that are listed by name; more are counted.
const NAMED: usize = 4;

/// The right results and inputs of all blocks, to locate wrong words in the blocks that units kept.
pub(super) struct Places<'a> {
    pub(super) id: &'a OperationId,
    /// The name of a unit.
    pub(super) noun: &'a str,
    /// The right results of all blocks.
    pub(super) right: &'a Elements,
    /// The inputs of all blocks.
    pub(super) operands: &'a TileBatch,
    /// How many blocks there are.
    pub(super) blocks: usize,
}

#[derive(Default)]
struct Tallies {
    units: BTreeMap<u64, u64>,
    lanes: BTreeMap<u64, u64>,
    tiles: BTreeMap<u64, u64>,
    bits: BTreeMap<u64, u64>,
    exponents: BTreeMap<u64, u64>,
}

fn listed(tally: &BTreeMap<u64, u64>) -> Vec<Tally> {
    tally.iter().map(|(at, words)| Tally { at: *at, words: *words }).collect()
}

impl Places<'_> {
    /// Compares the kept blocks word by word.
    pub(super) fn find(&self, units: &[Screened]) -> WrongRecord {
        let (m, n, _) = self.id.shape.sizes();
        let length = self.right.len() / self.blocks;
        let mut found = WrongRecord::default();
        let mut are_nan = true;
        let mut tallies = Tallies::default();
        for screened in units {
            found.blocks += screened.wrong;
            for kept in &screened.kept {
                found.looked_at += length as u64;
                for (at, got) in kept.d.iter().enumerate() {
                    let expected = self.right.get(kept.block * length + at);
                    if got == expected {
                        continue;
                    }
                    found.words += 1;
                    are_nan &= NanBits::Any.alike(self.id.d, got, expected);
                    let lane = at % lanes(self.id);
                    if let Some(unit) = screened.unit {
                        *tallies.units.entry(unit.into()).or_default() += 1;
                    }
                    *tallies.lanes.entry(lane as u64).or_default() += 1;
                    if m * n > 1 {
                        *tallies.tiles.entry((at / (m * n)) as u64).or_default() += 1;
                    }
                    let mask = got ^ expected;
                    (0..64)
                        .filter(|bit| mask >> bit & 1 == 1)
                        .for_each(|bit| *tallies.bits.entry(bit).or_default() += 1);
                    if let Some(exponent) = biased_exponent(self.id.d, expected) {
                        *tallies.exponents.entry(exponent).or_default() += 1;
                    }
                    if found.first.len() < LISTED {
                        found.first.push(WrongWord {
                            unit: screened.unit,
                            pass: kept.pass,
                            block: kept.block as u64,
                            tile: (at / (m * n)) as u64,
                            row: (at / n % m) as u64,
                            column: (at % n) as u64,
                            lane: lane as u64,
                            expected: self.id.d.hex(expected),
                            got: self.id.d.hex(got),
                            mask: self.id.d.hex(mask),
                        });
                    }
                }
            }
        }
        found.place = self.named(units, &tallies, &found);
        if are_nan && found.words > 0 {
            found.place.push("NaN alone, with other bits: `--nan any` screens without NaN".to_owned());
        }
        found.units = listed(&tallies.units);
        found.lanes = listed(&tallies.lanes);
        found.tiles = listed(&tallies.tiles);
        found.bits = listed(&tallies.bits);
        found.exponents = listed(&tallies.exponents);
        found
    }

    /// Names what all wrong words have in common and not all compared words have.
    fn named(&self, units: &[Screened], tallies: &Tallies, found: &WrongRecord) -> Vec<String> {
        let mut place = Vec::new();
        if found.words == 0 {
            let wrong = units.iter().filter(|unit| unit.wrong > 0);
            let wrong = wrong.filter_map(|unit| Some((u64::from(unit.unit?), unit.wrong))).collect();
            place.extend(some_of(self.noun, &wrong, units.len()));
            place.push("the digest alone: every word is right".to_owned());
            return place;
        }
        place.extend(some_of(self.noun, &tallies.units, units.len()));
        place.extend(some_of("lane", &tallies.lanes, lanes(self.id)));
        let (m, n, _) = self.id.shape.sizes();
        let of_block = self.operands.tiles / self.blocks;
        if m * n > 1 && found.words > 1 {
            place.extend(some_of("tile", &tallies.tiles, of_block));
        }
        place.extend(some_of("bit", &tallies.bits, self.id.d.bits() as usize));
        // The exponent of a single word says nothing about others.
        if found.words > 1 && tallies.exponents.len() == 1 {
            place.extend(some_of("exponent", &tallies.exponents, usize::MAX));
        }
        let computed: u64 = units.iter().map(|unit| unit.blocks).sum();
        let share = found.looked_at as f64 / found.words as f64 * (computed as f64 / found.blocks as f64);
        place.push(if share < 1.5 { "every result".to_owned() } else { format!("about one result in {share:.0}") });
        place
    }
}

/// Formats places as `lane 5`, `lanes 5 and 7` or `9 lanes of 16`; `None` if every place is wrong.
fn some_of(noun: &str, tally: &BTreeMap<u64, u64>, all: usize) -> Option<String> {
    let names: Vec<String> = tally.keys().map(u64::to_string).collect();
    match names.as_slice() {
        [] => None,
        names if names.len() == all => None,
        [one] => Some(format!("{noun} {one}")),
        [before @ .., last] if names.len() <= NAMED => Some(format!("{noun}s {} and {last}", before.join(", "))),
        names if all == usize::MAX => Some(format!("{} {noun}s", names.len())),
        names => Some(format!("{} {noun}s of {all}", names.len())),
    }
}
