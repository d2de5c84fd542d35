//! The instructions in a driver's code for an operation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Error, Operation};

/// The instructions that a driver issues for an operation, as far as it discloses them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Issued {
    /// Matrix instructions, and how often each occurs in the code.
    pub matrix: BTreeMap<String, usize>,
    /// Other instructions that make up an emulation, if they were searched for.
    pub others: BTreeMap<String, usize>,
    /// Routines that the driver calls instead of an instruction.
    pub routines: Vec<String>,
    /// The prefix of the mnemonics of the unit that the operation names; `None` if any matrix instruction will do.
    pub unit: Option<String>,
    /// The SHA-256 of the machine code, in hex, if it is available.
    pub code_sha256: Option<String>,
    /// The disassembly, if the driver provides one.
    pub listing: Option<String>,
}

/// A device whose kernels, or the code that the driver compiles them to, can be inspected;
/// [`Device::code`](crate::Device::code) returns it.
pub trait Code: Send + Sync {
    /// The instructions that the driver issues for an operation, read from the code that it compiled; `None` if the
    /// driver does not show its code.
    ///
    /// # Errors
    /// Whatever the driver reports when queried.
    fn issued(&self, operation: &Operation) -> Result<Option<Issued>, Error> {
        let _ = operation;
        Ok(None)
    }

    /// The SHA-256 of the kernel handed to the driver for an operation, in hex, if there is one.
    fn kernel_hash(&self, operation: &Operation) -> Option<String>;
}

impl Issued {
    /// Collects the matrix instructions of a disassembly, which it keeps.
    #[must_use]
    pub fn in_listing(listing: String) -> Self {
        Self { matrix: matrix_instructions(&listing), listing: Some(listing), ..Self::default() }
    }

    /// Whether the operation runs on units other than the one it names: that unit's instruction is absent, or a routine
    /// is called.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        let is_there = match &self.unit {
            Some(unit) => self.matrix.keys().any(|name| name.starts_with(unit.as_str())),
            None => !self.matrix.is_empty(),
        };
        !is_there || !self.routines.is_empty()
    }
}

/// Prefixes of matrix instruction mnemonics: AMD RDNA and CDNA, NVIDIA SASS as NVIDIA and Mesa print it, Intel.
const MNEMONICS: [&str; 19] = [
    "v_wmma_",
    "v_swmmac_",
    "v_mfma_",
    "v_smfmac_",
    "v_dot",
    "hmma",
    "imma",
    "dmma",
    "bmma",
    "qmma",
    "omma",
    "hgmma",
    "igmma",
    "qgmma",
    "bgmma",
    "utchmma",
    "utcimma",
    "utcqmma",
    "dpas",
];

/// Counts the matrix instructions in a disassembly, ordered by name.
///
/// Only the first matrix mnemonic of a line counts, whatever precedes it, such as a predicate or an `=`. Case is kept.
fn matrix_instructions(disassembly: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in disassembly.lines() {
        let words =
            line.split(|letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | '(' | ')' | '{' | '}'));
        if let Some(word) = words.into_iter().find(|word| is_matrix_mnemonic(word)) {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

fn is_matrix_mnemonic(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    MNEMONICS.iter().any(|start| {
        // A prefix that is a whole word may be followed only by a modifier after a dot.
        lower
            .strip_prefix(start)
            .is_some_and(|rest| start.ends_with('_') || rest.is_empty() || rest.starts_with('.') || *start == "v_dot")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_every_vendor_are_counted() {
        let text = "\
            BB0:\n\
            \tv_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], v[0:7] neg_lo:[1,1,0] clamp ; 00000000\n\
            \tv_mov_b32_e32 v0, 0\n\
            \tv_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], v[0:7]\n\
            r4..8 = hmma.m16n8k16.f32 r0..4 r8..10 r4..8\n\
            @P0 HMMA.16816.F32 R4, R8, R12, R4 ;\n\
            hmmask r0\n";
        let issued = Issued::in_listing(text.to_owned());
        let expected = [("HMMA.16816.F32", 1), ("hmma.m16n8k16.f32", 1), ("v_wmma_i32_16x16x16_iu8", 2)];
        assert_eq!(issued.matrix, expected.map(|(name, count)| (name.to_owned(), count)).into());
        assert!(!issued.is_emulated());
    }

    #[test]
    fn code_without_the_units_instruction_is_an_emulation() {
        assert!(Issued::in_listing("s_endpgm\nv_fma_f32 v0, v1, v2, v3".to_owned()).is_emulated());
        let fp8_on_f16 =
            Issued { matrix: [("HMMA".to_owned(), 2)].into(), unit: Some("QMMA".to_owned()), ..Issued::default() };
        assert!(fp8_on_f16.is_emulated());
        let with_routine = Issued {
            matrix: [("IMMA".to_owned(), 2)].into(),
            unit: Some("IMMA".to_owned()),
            routines: vec!["__cuda_sm_9x_mma_sub_byte_internal".to_owned()],
            ..Issued::default()
        };
        assert!(with_routine.is_emulated());
    }
}
