//! The messages of the device protocol that screen a device.

use std::time::Duration;

use mxprobe_api::{Drill, Elements, Error, Format, Injection, OperationId, Screened, TileBatch, WrongBlock};
use serde::{Deserialize, Serialize};

/// A drill without its operands, which follow as the parts of the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScreenRecord {
    /// The device's selector.
    pub device: String,
    /// The operation.
    pub operation: OperationId,
    /// The number of tiles sent, over all blocks.
    pub tiles: usize,
    /// The digest of D of each block, in hex.
    pub digests: Vec<String>,
    /// How long each unit computes, in milliseconds.
    pub duration_ms: u64,
    /// Passes over all blocks, at most.
    pub passes: u64,
    /// Instructions that each tile executes, D of one being C of the next; 1 if absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub steps: u32,
    /// The unit to screen; all units if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u32>,
    /// The error to inject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inject: Option<Injection>,
    #[serde(skip)]
    words: Vec<u64>,
}

/// The number of instructions that are not chained.
pub(super) fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_one(steps: &u32) -> bool {
    *steps == 1
}

impl ScreenRecord {
    /// Describes a drill of a device.
    pub(super) fn new(device: &str, operation: &OperationId, drill: &Drill<'_>) -> Self {
        Self {
            device: device.to_owned(),
            operation: operation.clone(),
            tiles: drill.operands.tiles,
            digests: drill.digests.iter().map(|digest| format!("{digest:016x}")).collect(),
            duration_ms: u64::try_from(drill.duration.as_millis()).unwrap_or(u64::MAX),
            passes: drill.passes,
            steps: drill.steps,
            unit: drill.unit,
            inject: drill.inject,
            words: Vec::new(),
        }
    }

    /// Reads the digests.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if one is not a 64-bit number in hex.
    pub(super) fn read(mut self) -> Result<Self, Error> {
        let word = |text: &String| {
            u64::from_str_radix(text, 16)
                .map_err(|_| Error::invalid(format!("`{text}` is not a digest of 16 hex digits")))
        };
        self.words = self.digests.iter().map(word).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Returns the drill with its operands; the digests must have been [read](Self::read).
    pub(super) fn drill<'a>(&'a self, operands: &'a TileBatch) -> Drill<'a> {
        Drill {
            operands,
            digests: &self.words,
            duration: Duration::from_millis(self.duration_ms),
            passes: self.passes,
            steps: self.steps,
            unit: self.unit,
            inject: self.inject,
        }
    }
}

/// [`Screened`] without the elements of its wrong blocks, which follow as parts of the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScreenedRecord {
    /// The unit, if units can be told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u32>,
    /// Whether this unit is certain to have done the computation.
    #[serde(default)]
    pub pinned: bool,
    /// Blocks computed.
    pub blocks: u64,
    /// Blocks whose digest was wrong.
    pub wrong: u64,
    /// The time taken, in nanoseconds.
    pub elapsed_ns: f64,
    /// The pass and block of each wrong block that is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<(u64, usize)>,
}

impl ScreenedRecord {
    /// Splits results into records and the elements of the wrong blocks that are kept, in order.
    pub(super) fn split(found: Vec<Screened>) -> (Vec<Self>, Vec<Elements>) {
        let mut parts = Vec::new();
        let units = found
            .into_iter()
            .map(|Screened { unit, pinned, blocks, wrong, elapsed_ns, kept }| {
                let places = kept.iter().map(|kept| (kept.pass, kept.block)).collect();
                parts.extend(kept.into_iter().map(|kept| kept.d));
                Self { unit, pinned, blocks, wrong, elapsed_ns, kept: places }
            })
            .collect();
        (units, parts)
    }

    /// Joins records with the parts that followed them.
    ///
    /// # Errors
    /// If the number of parts differs from the number of wrong blocks kept, or a part is not of the format.
    pub(super) fn join(units: Vec<Self>, parts: Vec<Vec<u8>>, format: Format) -> Result<Vec<Screened>, Error> {
        let (given, wanted) = (parts.len(), units.iter().map(|unit| unit.kept.len()).sum::<usize>());
        if given != wanted {
            return Err(Error::driver(format!("the device's process returned {given} parts instead of {wanted}")));
        }
        let mut parts = parts.into_iter();
        let mut part = |(pass, block): (u64, usize)| {
            let bytes = parts.next().unwrap_or_default();
            let d = Elements::from_bytes(format, bytes).map_err(|error| Error::driver(error.to_string()))?;
            Ok(WrongBlock { pass, block, d })
        };
        units
            .into_iter()
            .map(|Self { unit, pinned, blocks, wrong, elapsed_ns, kept }| {
                let kept = kept.into_iter().map(&mut part).collect::<Result<_, Error>>()?;
                Ok(Screened { unit, pinned, blocks, wrong, elapsed_ns, kept })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_units_computed_is_joined_as_it_was_split() {
        let block = |pass, bits| WrongBlock { pass, block: 2, d: Elements::from_bits(Format::F16, [bits, 7]) };
        let unit = |unit, kept: Vec<WrongBlock>| Screened {
            unit: Some(unit),
            pinned: true,
            blocks: 9,
            wrong: kept.len() as u64,
            elapsed_ns: 1.5,
            kept,
        };
        let found = vec![unit(0, vec![block(1, 5), block(2, 6)]), unit(1, Vec::new()), unit(2, vec![block(0, 8)])];
        let (units, parts) = ScreenedRecord::split(found.clone());
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.bytes().to_vec()).collect();
        assert_eq!(ScreenedRecord::join(units.clone(), parts.clone(), Format::F16).unwrap(), found);
        assert!(ScreenedRecord::join(units, parts[1..].to_vec(), Format::F16).is_err());
    }

    #[test]
    fn a_digest_that_is_none_is_refused() {
        let text = r#"{"device":"x","operation":"dot.m1n1k2.f32.bf16.bf16.f32","tiles":1,"digests":["fg"],"duration_ms":1,"passes":1}"#;
        let record: ScreenRecord = serde_json::from_str(text).unwrap();
        assert_eq!(record.read().unwrap_err().to_string(), "`fg` is not a digest of 16 hex digits");
    }
}
