//! Question 4, third part: is a result rounded once, from the whole sum, or via a wider format?
//!
//! A value just above a tie becomes the tie when a bit below the wider format is lost, and is then rounded to the even
//! neighbour; a value just below a tie may also become the tie, and is then moved away from an odd neighbour. The bit
//! must survive alignment: equal terms whose sum carries lift the result above the largest term, and so push the bit
//! below the wider format's last place although the grid keeps it.

use mxprobe_api::{Error, Format, Rounding};

use super::{
    Ask, Leaf, Probe, Subject,
    facts::{Facts, Kept, product_for_c},
    number::Number,
};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Evidence, Finding, Shown, source},
    in_order::InOrder,
};

pub(crate) const PROBE: Probe = Probe {
    name: "rounding.once",
    question: "Is a narrow result rounded once, or by way of a wider one?",
    how: "Sums just above and just below a tie of the result, by a bit that lies further and further down; carries lift \
         them, so that the bit survives alignment and still falls below f32 (below f64, of results of f32).",
    answers: &[
        ("true", "one rounding from the whole sum"),
        (
            "false",
            "by way of a wider format, f32 if the statement says 23 fraction bits: some results are off by one last \
                 place",
        ),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

/// The most carries that lift a sum: eight equal terms.
const MOST_CARRIES: i32 = 3;

/// Leaves that are added at one node, and whether a later node takes their sum in addition to zeros.
struct Site {
    leaves: Vec<Leaf>,
    is_passed_on: bool,
}

/// A sum whose lowest bit lies `depth` places below its leading bit, the sign of that bit, and d if it is rounded once
/// or via a format without that bit.
struct Case {
    site: usize,
    depth: i32,
    above: bool,
    dot: Dot,
    once: u64,
    twice: u64,
    about: String,
}

/// Computes sums whose lowest bit lies lower and lower, as long as it survives alignment.
pub(super) fn ask(subject: &Subject<'_>, facts: &Facts, fraction_bits: i32) -> Result<Finding, Error> {
    if facts.rounding != Some(Rounding::NearestEven) {
        return Ok(Finding::unsupported(PROBE.name, "a second rounding would not show: it is not to nearest"));
    }
    // The next format that a result might pass through.
    let Some(wider) = [Format::F32, Format::F64].into_iter().find(|wider| wide_bits(*wider) > fraction_bits) else {
        return Ok(Finding::unsupported(PROBE.name, "the sum has no wider format to pass through"));
    };
    let wide = wide_bits(wider);
    let sites = sites(subject, facts);
    // A few places below the wider format's last one, since not every depth can be constructed.
    let cases = cases(subject, facts, &sites, fraction_bits, wide + 4);
    let dots: Vec<Dot> = cases.iter().map(|case| case.dot.clone()).collect();
    let answers = subject.ask(&dots)?;
    let show = |at: usize| -> Evidence {
        let case = &cases[at];
        let rivals = [
            ("rounded once, from the whole sum".to_owned(), case.once),
            (format!("rounded to {} fraction bits first", case.depth - 1), case.twice),
        ];
        subject.evidence(case.about.clone(), &case.dot, answers[at], &rivals)
    };
    let is_odd = |at: &usize| {
        let case = &cases[*at];
        !sites[case.site].is_passed_on && ![case.once, case.twice].contains(&answers[*at])
    };
    if let Some(odd) = (0..cases.len()).find(is_odd) {
        return Ok(Finding::inconclusive(PROBE.name, "the result is neither of the two").with(vec![show(odd)]));
    }
    // If a later node takes the sum, this one may round in another way than to nearest, which is another question. If
    // the second rounding is to nearest, at least one depth shows no difference.
    let is_to_nearest = |at: &usize| {
        let case = &cases[*at];
        let of_kind =
            cases.iter().zip(&answers).filter(|(other, _)| (other.site, other.above) == (case.site, case.above));
        !sites[case.site].is_passed_on || of_kind.into_iter().any(|(other, d)| *d == other.once)
    };
    let asked: Vec<usize> = (0..cases.len()).filter(is_to_nearest).collect();
    let lost = asked.iter().copied().filter(|at| answers[*at] == cases[*at].twice).min_by_key(|at| cases[*at].depth);
    if let Some(lost) = lost {
        let (site, depth) = (cases[lost].site, cases[lost].depth);
        let kept = (0..cases.len())
            .filter(|at| {
                let case = &cases[*at];
                case.site == site && case.above == cases[lost].above && case.depth < depth && answers[*at] == case.once
            })
            .max_by_key(|at| cases[*at].depth);
        let through = match kept {
            Some(kept) if cases[kept].depth == depth - 1 => format!("to {} fraction bits", depth - 1),
            _ => format!("to at most {} fraction bits", depth - 1),
        };
        let words = format!("rounded twice: the sum is rounded or cut {through} first, then to the result");
        let shown = kept.into_iter().chain([lost]).map(show).collect();
        return Ok(Finding::measured(PROBE.name, false, words).with(shown));
    }
    let once = asked.iter().copied().filter(|at| answers[*at] == cases[*at].once);
    let deepest = once.max_by_key(|at| cases[*at].depth);
    let shown = deepest.map(show).into_iter().collect();
    let seen = deepest.map_or(0, |at| cases[at].depth);
    Ok(if seen > wide {
        Finding::measured(PROBE.name, true, "the result is rounded once, from the whole sum").with(shown)
    } else if wider == Format::F32 {
        let reason = format!("no bit that survives alignment falls below an intermediate {wider}");
        Finding::inconclusive(PROBE.name, reason).with(shown)
    } else {
        Finding::unsupported(PROBE.name, format!("no sum is long enough to show an intermediate {wider}")).with(shown)
    })
}

fn wide_bits(format: Format) -> i32 {
    format.fraction_bits().cast_signed()
}

/// The last node, the widest one, and c with the first product.
fn sites(subject: &Subject<'_>, facts: &Facts) -> Vec<Site> {
    let Some(structure) = &facts.structure else { return Vec::new() };
    let mut sites: Vec<Site> = Vec::new();
    let mut add = |mut leaves: Vec<Leaf>, is_passed_on: bool| {
        leaves.order_by_key(|leaf| *leaf != Leaf::C);
        if leaves.len() > 1 && sites.iter().all(|site| site.leaves != leaves) {
            sites.push(Site { leaves, is_passed_on });
        }
    };
    let last = structure.tree.as_ref().map(super::Tree::direct_leaves).unwrap_or_default();
    let is_last = |leaves: &[Leaf]| leaves.iter().all(|leaf| last.contains(leaf));
    add(last.clone(), false);
    let of_all = structure.blocks.len() == 1 && structure.blocks[0].len() == subject.k();
    add(structure.site.clone(), !(is_last(&structure.site) || structure.tree.is_none() && of_all));
    let beside_c = vec![Leaf::C, product_for_c(subject, facts)];
    add(beside_c.clone(), !is_last(&beside_c));
    sites
}

/// For each site and depth, one sum just above a tie, and one just below if it can be constructed.
fn cases(subject: &Subject<'_>, facts: &Facts, sites: &[Site], fraction_bits: i32, deepest: i32) -> Vec<Case> {
    // For one product and c, alignment is not known: a bit lost at alignment would be cut before rounding, too.
    let kept = if subject.k() == 1 { deepest } else { facts.kept.map_or(0, Kept::at_least) };
    let mut cases = Vec::new();
    for (site, Site { leaves, is_passed_on }) in sites.iter().enumerate() {
        for depth in fraction_bits + 2..=deepest {
            for above in [true, false] {
                // A later node aligns by the sum: bits lifted by carries are lost there.
                let survives = |carries: &i32| depth <= kept + if *is_passed_on { 0 } else { *carries };
                let made = (0..=MOST_CARRIES).filter(survives).find_map(|carries| {
                    let sum = Sum { leaves, carries, fraction_bits, depth, above };
                    sum.case(subject, site)
                });
                cases.extend(made);
            }
        }
    }
    cases
}

/// 2^carries equal terms, half a last place of the result, and one bit far below it, of either sign.
struct Sum<'a> {
    leaves: &'a [Leaf],
    carries: i32,
    fraction_bits: i32,
    depth: i32,
    above: bool,
}

impl Sum<'_> {
    fn case(&self, subject: &Subject<'_>, site: usize) -> Option<Case> {
        let copies = 1usize << self.carries;
        if self.leaves.len() < copies {
            return None;
        }
        // Tries exponents of the equal terms from 0 outward.
        (0..=40).find_map(|step| {
            let exponent = if step % 2 == 0 { step / 2 } else { -(step + 1) / 2 };
            let top = exponent + self.carries;
            let unit = Number::power(top - self.fraction_bits);
            let half = Number::power(top - self.fraction_bits - 1);
            let bit = Number::power(top - self.depth);
            let even = Number::power(top);
            let odd = even.plus(unit)?;
            let (rest, once, twice, side) = if self.above {
                (vec![half, bit], odd, even, "above")
            } else {
                (vec![unit, half, bit.negated()], odd, even.plus(unit.times(2))?, "below")
            };
            let (once, twice) = (subject.d_bits(once)?, subject.d_bits(twice)?);
            let dot = placed(subject, self.leaves, copies, Number::power(exponent), &rest)?;
            let about = format!("a sum just {side} a tie, by a bit {} places down", self.depth);
            Some(Case { site, depth: self.depth, above: self.above, dot, once, twice, about })
        })
    }
}

/// Places a term at `copies` leaves, and smaller values, the largest first, at others. If leaves are few, values are
/// added to c's term, or combined into one product whose significand holds them all.
fn placed(subject: &Subject<'_>, leaves: &[Leaf], copies: usize, term: Number, rest: &[Number]) -> Option<Dot> {
    let mut terms: Vec<(Leaf, Number)> = leaves.iter().take(copies).map(|leaf| (*leaf, term)).collect();
    let mut rest = rest.to_vec();
    if let Some((Leaf::C, value)) = terms.first_mut() {
        while let Some(sum) = rest.first().and_then(|more| value.plus(*more)) {
            if subject.c_bits(sum).is_none() {
                break;
            }
            *value = sum;
            rest.remove(0);
        }
    }
    let free = &leaves[copies..];
    if free.len() >= rest.len() {
        terms.extend(free.iter().copied().zip(rest));
        return subject.dot(&terms);
    }
    // Scales would have to be chosen with the product.
    let ([Leaf::Product(k)], None) = (free, subject.id().block_scale()) else { return None };
    let together = rest.iter().try_fold(Number::ZERO, |sum, value| sum.plus(*value))?;
    let mut dot = subject.dot(&terms)?;
    (dot.a[*k], dot.b[*k]) = subject.factored_bits(together)?;
    Some(dot)
}
