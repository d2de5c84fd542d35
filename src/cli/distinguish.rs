//! `distinguish`: a dot on which two models differ, or a proof that there is none.

use std::{fmt::Write as _, time::Instant};

use mxprobe::{
    dots::Dot,
    proof::search::{Rivals, Witness, as_input},
};
use mxprobe_api::OperationId;
use mxprobe_sim::Trace;

use super::{
    Outcome,
    arguments::{Distinguish, Screen},
    failure::{Failure, INCOMPLETE, NO},
    models::{self, Chosen},
    output, select,
};

/// Dots that the search tries.
const TRIES: u64 = 1_000_000;

/// Compares two models on an operation.
pub(crate) fn distinguish(arguments: &Distinguish, _screen: Screen) -> Outcome {
    let end = Instant::now() + arguments.budget;
    let chosen = [models::chosen(&arguments.one)?, models::chosen(&arguments.other)?];
    let id = common_operation(&arguments.op, &chosen)?;
    let models = chosen.each_ref().map(|chosen| &chosen.model);
    let rivals = Rivals::new(models, &id).map_err(Failure::usage)?;
    let searched = rivals.search(arguments.seed, TRIES, !arguments.finite, end);
    if let Some(witness) = &searched.witness {
        let how = format!("found in {} tries", searched.tried);
        output::print(differ(&chosen, &id, witness, &how).as_bytes())?;
        return Ok(NO);
    }
    let [one, other] = chosen.each_ref().map(|chosen| chosen.name.as_str());
    let text = format!("{one} and {other} on {id}: not decided; no difference in {} tries\n", searched.tried);
    output::print(text.as_bytes())?;
    Ok(INCOMPLETE)
}

/// The operation that a name means in both models.
fn common_operation(name: &str, chosen: &[Chosen; 2]) -> Result<OperationId, Failure> {
    let [one, other] = chosen;
    let id = &select::one_operation(name, &one.listed)?.id;
    if other.model.operations.contains_key(id) {
        return Ok(id.clone());
    }
    Err(select::no_operation(&[id.to_string()], &[&other.listed]).cause(format!("{} has it", one.name)))
}

/// A witness: the dot, both results, and how each model comes to its own.
fn differ(chosen: &[Chosen; 2], id: &OperationId, witness: &Witness, how: &str) -> String {
    let [one, other] = chosen.each_ref().map(|chosen| chosen.name.as_str());
    let mut text = format!("{one} and {other} differ on {id}: {how}\n\n{}\n", line(id, &witness.dot));
    let width = one.len().max(other.len());
    for (chosen, value) in chosen.iter().zip(witness.values) {
        let _ = writeln!(text, "{:width$}  d = {} = {}", chosen.name, id.d.hex(value), id.d.to_f64(value));
    }
    for chosen in chosen {
        let trace = Trace::of(&chosen.model, id, as_input(&witness.dot)).expect("the model has the operation");
        let _ = write!(text, "\n{}\n{}", chosen.name, trace.text(&chosen.model, id, as_input(&witness.dot)));
    }
    text
}

/// The dot as `eval` takes it, without the zeros at its end.
fn line(id: &OperationId, dot: &Dot) -> String {
    let filled = dot.a.iter().zip(&dot.b).rposition(|(a, b)| (*a, *b) != (0, 0)).map_or(0, |last| last + 1);
    let hex = |format: mxprobe_api::Format, bits: &[u64]| {
        bits.iter().map(|bits| format!("\"{}\"", format.hex(*bits))).collect::<Vec<_>>().join(",")
    };
    let mut line = format!(
        r#"{{"a":[{}],"b":[{}],"c":"{}""#,
        hex(id.a, &dot.a[..filled]),
        hex(id.b, &dot.b[..filled]),
        id.c.hex(dot.c)
    );
    if let (Some(scale), Some((a, b))) = (id.block_scale(), &dot.scales) {
        let _ = write!(line, r#","scale_a":[{}],"scale_b":[{}]"#, hex(scale.format, a), hex(scale.format, b));
    }
    line + "}"
}
