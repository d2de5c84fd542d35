//! Launches of screening kernels, and the digests that they should give.

use std::ops::Range;

use cudarc::driver::{CudaSlice, CudaView, PushKernelArg};
use mxprobe_api::{
    Drill, Elements, Error, TileBatch,
    written::{FILLINGS, is_all},
};
use mxprobe_shaders::ptx::layout::{Layout, Layouts};
use mxprobe_shaders::ptx::screening::{Control, step};

use super::compiled::Compiled;
use crate::session::{Session, called, grid};

/// The blocks of a drill on the device.
pub(super) struct Blocks {
    /// A, B, C, and scales if there are any, each with the bytes of one group.
    inputs: Vec<(CudaSlice<u8>, usize)>,
    /// The number of tiles and of groups in a block.
    tiles: usize,
    groups: usize,
    count: usize,
}

impl Blocks {
    /// Packs each block in whole groups; tiles beyond its last are zeros.
    pub(super) fn upload(session: &Session, layouts: &Layouts, drill: &Drill<'_>) -> Result<Self, Error> {
        let blocks = drill.blocks();
        let (tiles, group) = (drill.block_tiles(), layouts.d.group());
        let groups = tiles.div_ceil(group);
        let upload = |layout: &Layout, of: &dyn Fn(&TileBatch) -> Option<Elements>| {
            let packed = |block| of(block).map(|elements| layout.pack(&elements, 0, groups)).unwrap_or_default();
            let bytes: Vec<u8> = blocks.iter().flat_map(packed).collect();
            session.upload(&bytes).map(|slice| (slice, layout.bytes()))
        };
        let mut inputs = vec![
            upload(&layouts.a, &|block| Some(block.a.clone()))?,
            upload(&layouts.b, &|block| Some(block.b.clone()))?,
            upload(&layouts.c, &|block| Some(block.c.clone()))?,
        ];
        if let Some((of_a, of_b)) = &layouts.scales {
            inputs.push(upload(of_a, &|block| block.scale_a.clone())?);
            inputs.push(upload(of_b, &|block| block.scale_b.clone())?);
        }
        Ok(Self { inputs, tiles, groups, count: blocks.len() })
    }
}

/// What to launch.
pub(super) struct Launch<'a> {
    /// The number of blocks of threads.
    pub(super) grid: u32,
    pub(super) passes: u32,
    /// The only multiprocessor that computes, or all.
    pub(super) only: u32,
    /// Bits to invert in D of all blocks, and the multiprocessor on which to do so.
    pub(super) marks: Option<(&'a CudaSlice<u8>, u32)>,
    /// The blocks of the drill whose words are read; if `None`, all are computed and none is read.
    pub(super) words: Option<Range<usize>>,
}

/// The output of a launch.
pub(super) struct Launched {
    /// For each block of threads, its multiprocessor before and after.
    places: Vec<[u32; 2]>,
    digests: Vec<u32>,
    /// D of each block of threads, packed; empty if it was not asked for.
    words: Vec<u8>,
}

impl Launched {
    /// D of the groups of all blocks of threads, packed.
    pub(super) fn words(&self) -> &[u8] {
        &self.words
    }

    /// The place and the words of each block of threads.
    pub(super) fn of_blocks(&self) -> impl Iterator<Item = ([u32; 2], &[u8])> {
        self.places.iter().copied().zip(self.words.chunks(self.words.len() / self.places.len()))
    }

    /// The place and the digests of each block of threads.
    pub(super) fn blocks(&self, threads: usize) -> impl Iterator<Item = ([u32; 2], &[u32])> {
        self.places.iter().copied().zip(self.digests.chunks(threads))
    }
}

/// The part of an operand of all groups that belongs to some, each with this number of bytes.
fn part<'a>(operand: &'a CudaSlice<u8>, groups: &Range<usize>, bytes: usize) -> CudaView<'a, u8> {
    operand.slice(groups.start * bytes..groups.end * bytes)
}

/// A kernel and the blocks that it computes.
pub(super) struct Work<'a> {
    pub(super) session: &'a Session,
    pub(super) compiled: &'a Compiled,
    pub(super) blocks: &'a Blocks,
    pub(super) steps: u32,
}

impl Work<'_> {
    /// As many blocks of threads as the device holds at once.
    pub(super) fn grid(&self) -> u32 {
        self.session.multiprocessors * self.compiled.blocks
    }

    /// The number of threads in a block.
    pub(super) fn threads(&self) -> usize {
        self.compiled.kernel.threads as usize
    }

    fn d(&self) -> &Layout {
        &self.compiled.layouts.d
    }

    /// Unpacks D of the block at `at` of some words.
    pub(super) fn d_of(&self, words: &[u8], at: usize) -> Elements {
        let bytes = self.blocks.groups * self.d().bytes();
        self.d().unpack(&words[at * bytes..][..bytes], self.compiled.d, self.blocks.tiles)
    }

    /// Packs D of a block.
    pub(super) fn packed(&self, d: &Elements) -> Vec<u8> {
        self.d().pack(d, 0, self.blocks.groups)
    }

    /// Launches the kernel and reads its output.
    ///
    /// # Errors
    /// Whatever the driver reports; [`Error::is_nothing_written`] if a block of threads did not store its place.
    pub(super) fn launch(&self, launch: &Launch<'_>) -> Result<Launched, Error> {
        let (session, blocks) = (self.session, self.blocks);
        let groups = match &launch.words {
            Some(range) => range.start * blocks.groups..range.end * blocks.groups,
            None => 0..blocks.count * blocks.groups,
        };
        let (marks, marked) = launch.marks.unzip();
        let control =
            Control { steps: self.steps, passes: launch.passes, only: launch.only, marked: marked.unwrap_or(0) };
        let control = session.upload(&control.bytes())?;
        let count = u32::try_from(groups.len()).map_err(|_| Error::invalid("a drill of 2^32 groups of tiles"))?;
        let (threads, of_blocks) = (self.threads(), launch.grid as usize);
        let words_bytes = if launch.words.is_some() { of_blocks * groups.len() * self.d().bytes() } else { 0 };
        let mut places = session.filled(FILLINGS[0], of_blocks * 8)?;
        let mut digests = session.filled(FILLINGS[0], of_blocks * threads * 4)?;
        let mut words = if words_bytes > 0 { Some(session.filled(FILLINGS[0], words_bytes)?) } else { None };
        let inputs: Vec<_> = blocks.inputs.iter().map(|(slice, bytes)| part(slice, &groups, *bytes)).collect();
        let marks = marks.map(|marks| part(marks, &groups, self.d().bytes()));
        let null = 0u64;
        let mut builder = session.stream.launch_builder(&self.compiled.function);
        inputs.iter().for_each(|input| {
            builder.arg(input);
        });
        builder.arg(&control).arg(&mut places).arg(&mut digests);
        match &marks {
            Some(marks) => builder.arg(marks),
            None => builder.arg(&null),
        };
        match &mut words {
            Some(words) => builder.arg(words),
            None => builder.arg(&null),
        };
        builder.arg(&count);
        let started = session.started()?;
        // SAFETY: the parameters are those of the kernel's text, pointers then a count, with null for those that may be;
        // every buffer holds what that many groups and blocks read and write, and all outlive the synchronisation below.
        unsafe { builder.launch(grid(launch.grid, self.compiled.kernel.threads)) }.map_err(called("cuLaunchKernel"))?;
        session.ended(&started)?;
        let places = session.download(&places, of_blocks * 8)?;
        if let Some(at) = places.chunks(8).position(|place| is_all(&place[..4], FILLINGS[0])) {
            let words = format!("the launch succeeded and block {at} of {of_blocks} did not store its multiprocessor");
            return Err(Error::nothing_written(words));
        }
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let digests = session.download(&digests, of_blocks * threads * 4)?;
        Ok(Launched {
            places: places.chunks(8).map(|place| [word(&place[..4]), word(&place[4..])]).collect(),
            digests: digests.chunks(4).map(word).collect(),
            words: words.map_or_else(|| Ok(Vec::new()), |words| session.download(&words, words_bytes))?,
        })
    }

    /// The words that each thread of a block digests in a pass with these results.
    pub(super) fn expected(&self, right: &[Elements]) -> Expected {
        let layout = self.d();
        // The threads that compute a group, and how many groups a block computes at once.
        let at_once = self.compiled.kernel.groups_at_once as usize;
        let threads = self.threads() / at_once;
        let register_bytes = layout.register_bytes();
        let mut of_threads = vec![Vec::new(); self.threads()];
        let packed: Vec<u8> = right.iter().flat_map(|d| self.packed(d)).collect();
        for (group, words) in packed.chunks(layout.bytes()).enumerate() {
            let first = group % at_once * threads;
            for (at, register) in words.chunks(register_bytes).enumerate() {
                let words = register.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
                of_threads[first + at % threads].extend(words);
            }
        }
        Expected(of_threads)
    }
}

/// The words that each thread of a block digests in a pass.
pub(super) struct Expected(Vec<Vec<u32>>);

impl Expected {
    /// The number of words of all threads.
    pub(super) fn words(&self) -> u64 {
        self.0.iter().map(|words| words.len() as u64).sum()
    }

    /// The digest of each thread after some passes.
    pub(super) fn digests(&self, passes: u32) -> Vec<u32> {
        let of =
            |words: &Vec<u32>| (0..passes).fold(0, |digest, _| words.iter().fold(digest, |at, word| step(at, *word)));
        self.0.iter().map(of).collect()
    }
}
