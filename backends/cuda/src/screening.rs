//! Screening: every multiprocessor computes the same tiles, and reduces D to digests that are compared here.
//!
//! The kernels are those of [`mxprobe_shaders::ptx::screening`]. One block at least runs on every multiprocessor, and
//! stores which one that was. Words are read only to learn the right digests, and once a digest is wrong.

mod compiled;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use cudarc::driver::CudaSlice;
use mxprobe_api::{Drill, Elements, Error, KEPT, OperationId, Screened, WrongBlock, digest};
use mxprobe_shaders::ptx::screening::{EVERY, is_chained, is_screened};
use mxprobe_shaders::ptx::{Instruction, Kind, Target};

use crate::session::Session;
use compiled::Compiled;
use work::{Blocks, Launch, Work};

/// The number of instructions to chain: checking D of one costs less than 5 % of the time of so many (docs/screen.md).
/// D of `wmma` takes longer to check, since it goes through shared memory. 1 if they are not chained.
pub(crate) fn steps(instruction: &Instruction) -> u32 {
    match instruction.kind {
        _ if !is_screened(instruction) || !is_chained(instruction) => 1,
        Kind::Wmma => 1024,
        _ => 256,
    }
}

/// The time that a launch should take, so that starting it costs little.
const LAUNCH_TIME: Duration = Duration::from_millis(50);

/// The maximum number of words that this process digests for a launch.
const DIGESTED: u64 = 1 << 24;

/// The number of launches after which a multiprocessor that ran no block counts as not reached.
const LAUNCHES: usize = 4;

/// The number of wrong blocks that are kept of all multiprocessors, at least one of each.
const MOST_KEPT: usize = 64;

/// How often words are read again in search of a fault that a digest showed.
const READINGS: usize = 16;

/// The kernels compiled so far; `None` for instructions that have none.
#[derive(Default)]
pub(crate) struct Kernels(HashMap<OperationId, Option<Compiled>>);

impl Kernels {
    /// Screens an operation with its kernel, compiled on first use; `None` if it has none.
    ///
    /// # Errors
    /// Whatever the driver and its compiler report; [`Error::is_unsupported`] if the operation is not chained.
    pub(crate) fn screen(
        &mut self,
        session: &Session,
        (instruction, target): (&Instruction, Target),
        drill: &Drill<'_>,
    ) -> Result<Option<Vec<Screened>>, Error> {
        let id = &instruction.id;
        if !self.0.contains_key(id) {
            let compiled = Compiled::compile(session, instruction, target).map_err(|error| error.context(id))?;
            self.0.insert(id.clone(), compiled);
        }
        let Some(compiled) = &self.0[id] else { return Ok(None) };
        let blocks = Blocks::upload(session, &compiled.layouts, drill)?;
        Screen { id, session, drill, work: Work { session, compiled, blocks: &blocks, steps: drill.steps } }
            .go()
            .map(Some)
            .map_err(|error| error.context(id))
    }
}

/// One screen of an operation.
struct Screen<'a> {
    id: &'a OperationId,
    session: &'a Session,
    drill: &'a Drill<'a>,
    work: Work<'a>,
}

/// Bits to invert in D of every block, to test who asks for a screen.
struct Marks {
    /// The bits as a layout packs them, and the multiprocessor on which they are inverted.
    bits: Option<(CudaSlice<u8>, u32)>,
    /// The number of results that met the conditions so far.
    met: u64,
}

impl Marks {
    fn of_launch(&self) -> Option<(&CudaSlice<u8>, u32)> {
        self.bits.as_ref().map(|(bits, at)| (bits, *at))
    }
}

/// The results of one multiprocessor so far.
#[derive(Default)]
struct Tally {
    blocks: u64,
    wrong: u64,
    /// Whether no block moved to another multiprocessor.
    pinned: bool,
    kept: Vec<WrongBlock>,
}

type Tallies = BTreeMap<u32, Tally>;

impl Screen<'_> {
    fn go(&self) -> Result<Vec<Screened>, Error> {
        let start = Instant::now();
        let mut tallies = Tallies::new();
        match self.right()? {
            Some(right) => self.compare_digests(&right, start, &mut tallies)?,
            // At least one block is wrong wherever it is computed.
            None => self.read_words(None, None, &mut tallies)?,
        }
        let elapsed_ns = start.elapsed().as_secs_f64() * 1e9;
        let screened = |(unit, Tally { blocks, wrong, pinned, kept })| Screened {
            unit: Some(unit),
            pinned,
            blocks,
            wrong,
            elapsed_ns,
            kept,
        };
        Ok(tallies.into_iter().map(screened).collect())
    }

    /// Reads D of each block from a multiprocessor that computes it right; `None` if there is none for a block.
    fn right(&self) -> Result<Option<Vec<Elements>>, Error> {
        let launch = |grid, blocks| Launch { grid, passes: 1, only: EVERY, marks: None, words: Some(blocks) };
        let first = self.work.launch(&launch(1, 0..self.drill.digests.len()))?;
        let mut right = Vec::new();
        for (block, wanted) in self.drill.digests.iter().enumerate() {
            let is_right = |d: &Elements| digest(d.bytes()) == *wanted;
            let mut d = self.work.d_of(first.words(), block);
            if !is_right(&d) {
                let everywhere = self.work.launch(&launch(self.work.grid(), block..block + 1))?;
                let Some(found) = everywhere.of_blocks().map(|(_, words)| self.work.d_of(words, 0)).find(is_right)
                else {
                    return Ok(None);
                };
                d = found;
            }
            right.push(d);
        }
        Ok(Some(right))
    }

    /// Makes passes until the drill is over, and compares digests. Reads words once one is wrong.
    fn compare_digests(&self, right: &[Elements], start: Instant, tallies: &mut Tallies) -> Result<(), Error> {
        let expected = self.work.expected(right);
        let mut known = HashMap::new();
        let (mut done, mut passes, mut met, mut launches) = (0, 1, 0, 0);
        loop {
            let marks = self.marks(met, right)?;
            let began = Instant::now();
            let launched = self.work.launch(&Launch {
                grid: self.work.grid(),
                passes,
                only: self.drill.unit.unwrap_or(EVERY),
                marks: marks.of_launch(),
                words: None,
            })?;
            let took = began.elapsed();
            let wanted = known.entry(passes).or_insert_with(|| expected.digests(passes));
            let worked: Vec<_> = launched.blocks(self.work.threads()).filter(|(at, _)| self.computes(at[0])).collect();
            let is_wrong = |(_, digests): &&([u32; 2], &[u32])| *digests != wanted.as_slice();
            let wrong: BTreeSet<u32> = worked.iter().filter(is_wrong).map(|(at, _)| at[0]).collect();
            for (place, _) in worked {
                // How many blocks of a wrong digest are wrong is seen when they are computed again.
                let blocks = if wrong.contains(&place[0]) { 0 } else { passes as usize * self.drill.digests.len() };
                count(tallies, place, blocks as u64);
            }
            if !wrong.is_empty() {
                return self.look(&wrong, (met, right), tallies);
            }
            met = marks.met;
            launches += 1;
            done += u64::from(passes);
            let is_over = done >= self.drill.passes || start.elapsed() >= self.drill.duration;
            let missing = self.missing(tallies);
            if is_over && missing.is_empty() {
                return Ok(());
            }
            if is_over && launches >= LAUNCHES {
                return Err(self.unreached(&missing, launches));
            }
            // Which results are inverted may depend on how many there were: marks are for one pass.
            let is_short = self.drill.inject.is_none() && took < LAUNCH_TIME;
            if is_short && u64::from(passes) * 2 * expected.words() <= DIGESTED {
                passes *= 2;
            }
            let left = self.drill.passes.saturating_sub(done).max(1);
            passes = passes.min(u32::try_from(left).unwrap_or(u32::MAX));
        }
    }

    /// Whether the blocks of a multiprocessor compute.
    fn computes(&self, at: u32) -> bool {
        self.drill.unit.is_none_or(|unit| unit == at)
    }

    /// Reads the words of multiprocessors with wrong digests until some are wrong, as the marks of the launch were
    /// `met` results after the first.
    fn look(
        &self,
        wrong: &BTreeSet<u32>,
        (mut met, right): (u64, &[Elements]),
        tallies: &mut Tallies,
    ) -> Result<(), Error> {
        for _ in 0..READINGS {
            let marks = self.marks(met, right)?;
            self.read_words(Some(wrong), marks.of_launch(), tallies)?;
            if tallies.values().any(|tally| tally.wrong > 0) {
                break;
            }
            met = marks.met;
        }
        for at in wrong {
            let tally = tallies.entry(*at).or_default();
            if tally.wrong == 0 {
                // The fault did not repeat: only the digest shows it.
                tally.wrong = 1;
                tally.kept.push(WrongBlock { pass: 0, block: 0, d: right[0].clone() });
            }
        }
        Ok(())
    }

    /// Computes every block on some multiprocessors, or on all, and keeps those with wrong words.
    fn read_words(
        &self,
        of: Option<&BTreeSet<u32>>,
        marks: Option<(&CudaSlice<u8>, u32)>,
        tallies: &mut Tallies,
    ) -> Result<(), Error> {
        let only = match (self.drill.unit, of) {
            (Some(unit), _) => unit,
            (None, Some(of)) if of.len() == 1 => *of.first().expect("one"),
            _ => EVERY,
        };
        // Enough to name a place, and not more than a message to another process should hold.
        let multiprocessors = of.map_or(self.session.multiprocessors as usize, BTreeSet::len);
        let kept = (MOST_KEPT / multiprocessors).clamp(1, KEPT);
        for (block, wanted) in self.drill.digests.iter().enumerate() {
            let words = Some(block..block + 1);
            let launched = self.work.launch(&Launch { grid: self.work.grid(), passes: 1, only, marks, words })?;
            for (place, words) in launched.of_blocks() {
                let at = place[0];
                if (only != EVERY && only != at) || of.is_some_and(|of| !of.contains(&at)) {
                    continue;
                }
                let tally = count(tallies, place, 1);
                let d = self.work.d_of(words, 0);
                if digest(d.bytes()) != *wanted {
                    tally.wrong += 1;
                    if tally.kept.len() < kept {
                        tally.kept.push(WrongBlock { pass: 0, block, d });
                    }
                }
            }
        }
        Ok(())
    }

    /// The bits to invert in a pass, if `met` results met the conditions before it.
    fn marks(&self, mut met: u64, right: &[Elements]) -> Result<Marks, Error> {
        let Some(inject) = self.drill.inject else { return Ok(Marks { bits: None, met }) };
        let mut bits = Vec::new();
        for d in right {
            let mut marked = d.clone();
            inject.apply(self.id, inject.unit, &mut met, &mut marked);
            let inverted = marked.iter().zip(d.iter()).map(|(marked, d)| marked ^ d);
            bits.extend(self.work.packed(&Elements::from_bits(d.format(), inverted)));
        }
        Ok(Marks { bits: Some((self.session.upload(&bits)?, inject.unit.unwrap_or(EVERY))), met })
    }

    /// The multiprocessors that ran no block.
    fn missing(&self, tallies: &Tallies) -> Vec<u32> {
        let wanted: Vec<u32> =
            self.drill.unit.map_or_else(|| (0..self.session.multiprocessors).collect(), |at| vec![at]);
        wanted.into_iter().filter(|at| !tallies.contains_key(at)).collect()
    }

    fn unreached(&self, missing: &[u32], launches: usize) -> Error {
        let names: Vec<String> = missing.iter().map(u32::to_string).collect();
        Error::driver(format!(
            "{} of {} multiprocessors ran no block in {launches} launches: {}",
            missing.len(),
            self.session.multiprocessors,
            names.join(", ")
        ))
    }
}

/// Counts blocks that a block of threads computed, by its multiprocessor before and after.
fn count(tallies: &mut Tallies, [at, after]: [u32; 2], blocks: u64) -> &mut Tally {
    let tally = tallies.entry(at).or_insert_with(|| Tally { pinned: true, ..Tally::default() });
    tally.blocks += blocks;
    tally.pinned &= at == after;
    tally
}
