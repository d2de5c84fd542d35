//! Samples: dots unpacked once, for many evaluators of one operation.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use mxprobe_api::{Decoded, DotOperands, Error, OperationId};

use super::{
    Evaluator, Path,
    path::fastest,
    products::{OfDot, POSITIVE_ZERO, Products},
    scalar::{DOTS, Known, Room, ScratchOf, Source, UnpackedDot, significand_bits},
    unpack::{Reader, SPECIAL, Unpacked, ZERO, kind_of_product},
};
use crate::{
    adder::Adder,
    convert::Conversion,
    exact::Dot,
    model::{Flush, Unit, check_plan},
    provenance::{Basis, Origin, Provenance},
    tree::{Plan, Tree},
};

/// The number of products per dot for which there is room from the start.
const MANY_PRODUCTS: usize = 32;

/// Dots of one operation, read with one flushing rule.
///
/// Of each dot, the products that are not +0 are stored with their factors, then C, and scales if the operation has them.
#[derive(Clone, Debug)]
pub struct Sample {
    k: usize,
    scale_blocks: usize,
    flush: Flush,
    /// How A and B are converted before they are read, if they are.
    converted: Option<[Conversion; 2]>,
    path: Path,
    of_a: Reader,
    of_b: Reader,
    of_c: Reader,
    of_scales: Option<Reader>,
    added: Added,
    products: Products,
    /// Whether products of A and B fit a word.
    has_products: bool,
    /// Whether the bits 0 in A and in B are +0.
    reads_zeros: bool,
    c: Vec<Unpacked>,
    scale_a: Vec<Unpacked>,
    scale_b: Vec<Unpacked>,
    stamp: Stamp,
}

/// A number that no other sample has. While a sample keeps it, dots are only added, so that those that it has stay the same:
/// a copy, and a sample whose dots are removed, get a new one.
#[derive(Debug)]
struct Stamp(u64);

impl Stamp {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for Stamp {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Sample {
    /// An empty sample for evaluators with this flushing.
    #[must_use]
    pub fn new(id: &OperationId, flush: Flush) -> Self {
        Self::with_path(id, flush, Path::Avx512)
    }

    /// The same, with dots computed on `path`, or on the fastest one below it that the processor supports: eight side
    /// by side from [`Path::Avx2`] on, one by one below it.
    #[must_use]
    pub fn with_path(id: &OperationId, flush: Flush, path: Path) -> Self {
        let k = id.shape.sizes().2;
        let scale_blocks = id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
        let [of_a, of_b] = [(id.a, flush.a), (id.b, flush.b)].map(|(format, own)| match flush.converted {
            Some(to) => Reader::new(to, false, false),
            None => Reader::new(format, own, flush.to_positive),
        });
        Self {
            k,
            scale_blocks,
            flush,
            converted: Conversion::of_operands(id, flush),
            path: path.min(fastest()),
            has_products: significand_bits(of_a.format) + significand_bits(of_b.format) <= 64,
            reads_zeros: [id.a, id.b]
                .iter()
                .all(|format| matches!(format.decode(0), Decoded::Zero { negative: false })),
            of_a,
            of_b,
            of_c: Reader::new(id.c, flush.c, flush.to_positive),
            of_scales: id.block_scale().map(|scale| Reader::new(scale.format, false, false)),
            added: Added::default(),
            products: Products::default(),
            c: Vec::new(),
            scale_a: Vec::new(),
            scale_b: Vec::new(),
            stamp: Stamp::new(),
        }
    }

    /// The flushing with which operands are read.
    #[must_use]
    pub fn flush(&self) -> Flush {
        self.flush
    }

    /// The number of dots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.c.len()
    }

    /// Whether it holds no dots.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.c.is_empty()
    }

    /// Makes room for so many more dots.
    pub fn reserve(&mut self, dots: usize) {
        let of_scales = dots * self.scale_blocks;
        self.c.reserve(dots);
        // Most products of long dots are +0.
        self.products.reserve(dots * self.k.min(MANY_PRODUCTS), self.has_products);
        self.scale_a.reserve(of_scales);
        self.scale_b.reserve(of_scales);
    }

    /// Adds a dot.
    ///
    /// # Panics
    /// If the number of products or scales differs from the operation's.
    pub fn push(&mut self, dot: Dot<'_>) {
        assert!(dot.a.len() == self.k && dot.b.len() == self.k, "k is {}", self.k);
        let Added { places, bits, a, b } = &mut self.added;
        let is_read = |(_, (a, b)): &(u32, (&u64, &u64))| !self.reads_zeros | (**a | **b != 0);
        places.clear();
        places.extend((0..).zip(dot.a.iter().zip(dot.b)).filter(is_read).map(|(place, _)| place));
        for (from, reader, into, conversion) in [(dot.a, self.of_a, &mut *a, 0), (dot.b, self.of_b, &mut *b, 1)] {
            bits.clear();
            bits.extend(places.iter().map(|place| from[*place as usize]));
            if let Some(conversions) = &self.converted {
                bits.iter_mut().for_each(|bits| *bits = conversions[conversion].bits(*bits));
            }
            reader.read_all(bits, into);
        }
        self.multiply();
        self.c.push(self.of_c.read(dot.c));
        if let (Some(reader), Some((of_a, of_b))) = (self.of_scales, dot.scales) {
            assert!(of_a.len() == self.scale_blocks && of_b.len() == self.scale_blocks, "{} scales", self.scale_blocks);
            reader.read_all(of_a, &mut self.scale_a);
            reader.read_all(of_b, &mut self.scale_b);
        }
    }

    /// Adds dot number `at` of operands that fit the operation and are not converted.
    pub(super) fn push_from(&mut self, operands: &DotOperands<'_>, at: usize) {
        let DotOperands { a, b, c, scale_a, scale_b, .. } = *operands;
        let (k, blocks) = (self.k, self.scale_blocks);
        let added = &mut self.added;
        added.places.clear();
        added.places.extend((0..).take(k));
        self.of_a.append(a, at * k, k, &mut added.a);
        self.of_b.append(b, at * k, k, &mut added.b);
        self.multiply();
        self.c.push(self.of_c.read(c.get(at)));
        if let (Some(reader), Some(scale_a), Some(scale_b)) = (self.of_scales, scale_a, scale_b) {
            reader.append(scale_a, at * blocks, blocks, &mut self.scale_a);
            reader.append(scale_b, at * blocks, blocks, &mut self.scale_b);
        }
    }

    /// Keeps the products of the dot that is added.
    fn multiply(&mut self) {
        let Added { places, a, b, .. } = &mut self.added;
        self.products.push(places, (a, b), self.has_products);
        a.clear();
        b.clear();
    }

    /// Removes all dots and keeps their allocations.
    pub fn clear(&mut self) {
        self.stamp = Stamp::new();
        self.products.clear();
        [&mut self.c, &mut self.scale_a, &mut self.scale_b].into_iter().for_each(Vec::clear);
    }

    /// Computes d of a dot by the exact evaluator, which takes bits.
    #[cold]
    fn exact(&self, dot: UnpackedDot<'_>, evaluator: &Evaluator) -> u64 {
        let bits =
            |reader: Reader, of: &[Unpacked]| of.iter().map(|element| reader.write(*element)).collect::<Vec<_>>();
        let scales = self.of_scales.map(|reader| (bits(reader, dot.scale_a), bits(reader, dot.scale_b)));
        let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        let c = self.of_c.write(dot.c);
        evaluator.exact(Dot { a: &bits(self.of_a, dot.a), b: &bits(self.of_b, dot.b), c, scales })
    }

    fn source(&self) -> Source<'_> {
        let scales = [&self.scale_a[..], &self.scale_b[..]];
        Source { products: &self.products, c: &self.c, scales, stamp: self.stamp.0 }
    }

    /// Calls `with` with all elements of a dot.
    fn with_whole<R>(&self, at: usize, whole: &mut Whole, with: impl FnOnce(UnpackedDot<'_>) -> R) -> R {
        self.with_some(at, whole, |_| true, with)
    }

    /// The kinds and the exponents of the products of a dot that are not +0, and of c.
    fn kinds(&self, at: usize) -> impl Iterator<Item = (u32, i32)> {
        let (dot, c) = (self.products.of(at), self.c[at]);
        let of_products =
            dot.a.iter().zip(dot.b).map(|(a, b)| (kind_of_product(a.kind, b.kind), a.exponent + b.exponent));
        of_products.chain([(c.kind, c.exponent)])
    }

    /// Whether a product of a dot, or c, is NaN or infinite.
    fn has_special(&self, at: usize) -> bool {
        self.kinds(at).any(|(kind, _)| kind & SPECIAL != 0)
    }

    /// Calls `with` with c and the factors of products of a dot as far as these are NaN or infinite; all others are +0.
    /// Returns `None` if a finite number has a larger exponent than `most`.
    fn with_specials<R>(
        &self,
        at: usize,
        whole: &mut Whole,
        most: i32,
        with: impl FnOnce(UnpackedDot<'_>) -> Option<R>,
    ) -> Option<R> {
        if self.kinds(at).any(|(kind, exponent)| kind & (SPECIAL | ZERO) == 0 && exponent > most) {
            return None;
        }
        self.with_some(at, whole, |kind| kind & SPECIAL != 0, with)
    }

    /// Calls `with` with the elements of a dot that are of some kind, or with the factors of products that are; all others
    /// are +0.
    fn with_some<R>(
        &self,
        at: usize,
        whole: &mut Whole,
        is_of_kind: impl Fn(u32) -> bool,
        with: impl FnOnce(UnpackedDot<'_>) -> R,
    ) -> R {
        let (dot, blocks) = (self.products.of(at), self.scale_blocks);
        whole.write(&dot, self.k, &is_of_kind);
        let result = with(UnpackedDot {
            a: &whole.a,
            b: &whole.b,
            products: if self.has_products { &whole.products } else { &[] },
            c: if is_of_kind(self.c[at].kind) { self.c[at] } else { POSITIVE_ZERO },
            scale_a: &self.scale_a[at * blocks..][..blocks],
            scale_b: &self.scale_b[at * blocks..][..blocks],
        });
        whole.erase(&dot);
        result
    }
}

/// The factors of the dot that is added, without those of products that are obviously +0.
#[derive(Clone, Debug, Default)]
struct Added {
    places: Vec<u32>,
    bits: Vec<u64>,
    a: Vec<Unpacked>,
    b: Vec<Unpacked>,
}

/// All factors and products of one dot. Between dots, all are +0.
#[derive(Default)]
struct Whole {
    a: Vec<Unpacked>,
    b: Vec<Unpacked>,
    products: Vec<Unpacked>,
}

impl Whole {
    fn write(&mut self, dot: &OfDot<'_>, k: usize, is_of_kind: impl Fn(u32) -> bool) {
        for all in [&mut self.a, &mut self.b, &mut self.products] {
            all.resize(k, POSITIVE_ZERO);
        }
        for (at, k) in dot.places.iter().map(|k| *k as usize).enumerate() {
            if !is_of_kind(kind_of_product(dot.a[at].kind, dot.b[at].kind)) {
                continue;
            }
            (self.a[k], self.b[k]) = (dot.a[at], dot.b[at]);
            if let Some(product) = dot.products.get(at) {
                self.products[k] = *product;
            }
        }
    }

    fn erase(&mut self, dot: &OfDot<'_>) {
        for k in dot.places.iter().map(|k| *k as usize) {
            (self.a[k], self.b[k], self.products[k]) = (POSITIVE_ZERO, POSITIVE_ZERO, POSITIVE_ZERO);
        }
    }
}

impl Evaluator {
    /// An evaluator of adders and a plan over them that do not come from a file, for fitting a model. What is made of a
    /// shared adder, or of a plan, is kept for the thread's next evaluator.
    ///
    /// # Errors
    /// If the plan does not fit the operation: its result has another format than D, it is empty, or it refers to a
    /// missing adder.
    pub fn of_plan(
        adders: impl IntoIterator<Item: Into<Arc<Adder>>>,
        flush: Flush,
        plan: &Arc<Plan>,
        id: &OperationId,
        path: Path,
    ) -> Result<Self, Error> {
        let adders: Vec<Arc<Adder>> = adders.into_iter().map(Into::into).collect();
        if plan.nodes.is_empty() || plan.nodes.iter().any(|node| node.adder >= adders.len()) {
            return Err(Error::invalid(format!(
                "the plan is empty or refers to an adder beyond the {} given",
                adders.len()
            )));
        }
        check_plan(id, plan, &adders).map_err(|error| Error::invalid(format!("{id}: {error}")))?;
        let origin = Origin { basis: Basis::Assumed, source: String::new() };
        let unit = Unit {
            name: None,
            operations: Vec::new(),
            tree: String::new(),
            parsed: Tree::None,
            flush,
            note: None,
            provenance: Provenance { origin, exceptions: std::collections::BTreeMap::new() },
        };
        Ok(Self::of(adders, unit, Arc::clone(plan), id, path))
    }

    /// Computes d of those dots of a sample whose indices `which` yields, in that order, until `visit` returns false.
    /// Returns the number of dots that took the exact evaluator, which is about 30 times slower.
    ///
    /// # Panics
    /// If the sample belongs to another operation or was read with other flushing, or an index is out of range.
    pub fn visit(
        &self,
        sample: &Sample,
        which: impl IntoIterator<Item = usize>,
        visit: impl FnMut(usize, u64) -> bool,
    ) -> usize {
        assert!([self.flush(), self.unit.flush].contains(&sample.flush), "a sample read as {:?}", sample.flush);
        let (mut room, mut scratch) = (self.room_abreast(sample), None);
        let exact = self.visit_in((room.as_deref_mut(), &mut scratch), sample, which, visit);
        if let Some(room) = room {
            room.keep();
        }
        if let Some(scratch) = scratch {
            scratch.keep();
        }
        exact
    }

    #[inline(never)]
    fn room_abreast(&self, sample: &Sample) -> Option<Box<Room>> {
        let abreast = sample.path >= Path::Avx2;
        abreast.then(|| self.compiled.room_abreast(&self.plan, sample.k, sample.has_products)).flatten()
    }

    fn visit_in(
        &self,
        (mut room, scratch): (Option<&mut Room>, &mut Option<ScratchOf>),
        sample: &Sample,
        which: impl IntoIterator<Item = usize>,
        mut visit: impl FnMut(usize, u64) -> bool,
    ) -> usize {
        let from = sample.source();
        let mut whole = Whole::default();
        let mut which = which.into_iter();
        let (mut places, mut exact) = ([0; DOTS], 0);
        let mut are_first = true;
        loop {
            let mut count = 0;
            places.iter_mut().zip(which.by_ref()).for_each(|(place, at)| {
                *place = at;
                count += 1;
            });
            if count == 0 {
                return exact;
            }
            let found = match &mut room {
                Some(room) => {
                    // An incomplete last group of eight is filled up with copies of its first dot.
                    let first = places[0];
                    places[count..].fill(first);
                    let dots = (&places, std::mem::replace(&mut are_first, false));
                    self.compiled.evaluate_abreast(sample.path, from, dots, room)
                }
                None => [Known::Special; DOTS],
            };
            for (at, d) in places.into_iter().zip(found).take(count) {
                let d = if let Known::Bits(d) = d {
                    d
                } else {
                    // Few dots need it.
                    let made = || self.compiled.scratch_for_zeros(&self.plan);
                    let scratch = &mut *scratch.get_or_insert_with(made).scratch;
                    let most = if sample.has_special(at) { scratch.finite_up_to(&self.compiled) } else { None };
                    let of_specials = most.and_then(|most| {
                        sample.with_specials(at, &mut whole, most, |dot| self.compiled.evaluate_special(dot, scratch))
                    });
                    let of_all = |dot: UnpackedDot<'_>| {
                        let known = if d == Known::Wide {
                            self.compiled.evaluate_wide(dot, scratch)
                        } else {
                            self.compiled.evaluate(dot, scratch)
                        };
                        known.unwrap_or_else(|| {
                            exact += 1;
                            sample.exact(dot, self)
                        })
                    };
                    of_specials.unwrap_or_else(|| sample.with_whole(at, &mut whole, of_all))
                };
                if !visit(at, d) {
                    return exact;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mxprobe_api::{Format, Random};

    use super::*;
    use crate::shipped;

    #[test]
    fn ordinary_dots_are_known_side_by_side() {
        let paths: Vec<Path> = Path::available().into_iter().filter(|path| *path >= Path::Avx2).collect();
        let (mut random, mut operations, mut of_f64) = (Random(1), 0, 0);
        for model in shipped() {
            for id in model.operations.keys() {
                let evaluator = Evaluator::with_path(model, id, Path::Scalar).unwrap();
                let compiled = &evaluator.compiled;
                let k = id.shape.sizes().2;
                let mut sample = Sample::new(id, evaluator.flush());
                let room = compiled.room_abreast(&evaluator.plan, k, sample.has_products);
                let Some(mut room) = room else { continue };
                for _ in 0..DOTS {
                    let mut one = |format: Format| {
                        let sign = format.negative_zero().unwrap_or(0);
                        [format.one(), format.one() | sign, 0][random.below(3)]
                    };
                    let a: Vec<u64> = (0..k).map(|_| one(id.a)).collect();
                    let b: Vec<u64> = (0..k).map(|_| one(id.b)).collect();
                    let scales = id.block_scale().map(|scale| {
                        let count = k.div_ceil(scale.block);
                        [(); 2].map(|()| (0..count).map(|_| one(scale.format)).collect::<Vec<u64>>())
                    });
                    let scales = scales.as_ref().map(|[a, b]| (&a[..], &b[..]));
                    sample.push(Dot { a: &a, b: &b, c: one(id.c), scales });
                }
                let from = sample.source();
                for path in &paths {
                    let dots = (&std::array::from_fn(|lane| lane), false);
                    let found = compiled.evaluate_abreast(*path, from, dots, &mut room);
                    assert!(
                        found.iter().all(|known| matches!(known, Known::Bits(_))),
                        "{}:{id} {path:?}: {found:?}",
                        model.name
                    );
                }
                operations += 1;
                of_f64 += usize::from(id.a == Format::F64);
            }
        }
        assert!(operations > 100, "{operations}");
        // Products of f64 fit no word.
        assert!(of_f64 >= 10, "{of_f64}");
    }
}
