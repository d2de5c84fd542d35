//! A device and its abilities, as a program describes them.

use std::collections::BTreeMap;

use mxprobe_api::{
    DeviceInfo, DeviceKind, Driver, Error, FreeOperation, Operation, OperationId, Refusal, Scalar, Sizes,
};
use serde::{Deserialize, Serialize};

/// A device and its abilities, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Said", into = "Said")]
pub struct Described {
    /// Its identity.
    pub info: DeviceInfo,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// Operations whose sizes are not fixed yet.
    pub free: Vec<FreeOperation>,
    /// Operations that it lists but that cannot be used.
    pub refusals: Vec<Refusal>,
    /// Its scalar arithmetic.
    pub scalars: Vec<Scalar>,
    /// Whether the status flags that this arithmetic raises can be read.
    pub flags: bool,
    /// The arithmetic that is timed alongside its operations; absent if the device cannot be timed.
    pub yardsticks: Option<Vec<Operation>>,
    /// Details of multiplying whole matrices; absent if it multiplies tile by tile.
    pub matrices: Option<MatricesRecord>,
    /// The units that it can screen individually; absent if it cannot screen itself.
    pub screening: Option<Vec<u32>>,
    /// The number of instructions that its screens should chain, of each operation that is chained.
    pub screening_steps: BTreeMap<OperationId, u32>,
    /// Whether it can show the code passed to its driver, or the driver's output.
    pub code: bool,
}

/// Details of a device that multiplies whole matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatricesRecord {
    /// Whether a product of one element costs as much as a whole tile.
    #[serde(default = "yes")]
    pub has_tiles: bool,
}

fn yes() -> bool {
    true
}

impl Described {
    /// Adds the free operations with their sizes fixed.
    #[must_use]
    pub fn with(mut self, sizes: &Sizes) -> Self {
        for free in &self.free {
            for operation in free.of(sizes) {
                if self.operations.iter().all(|known| known.id != operation.id) {
                    self.operations.push(operation);
                }
            }
        }
        self
    }
}

/// The backend of a program that does not name one.
const PROGRAM: &str = "exec";

/// A device as a program describes it: only the name is required.
#[derive(Serialize, Deserialize)]
struct Said {
    #[serde(default = "program")]
    backend: String,
    #[serde(default = "first")]
    selector: String,
    name: String,
    fingerprint: Option<String>,
    kind: Option<DeviceKind>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    emulated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<Driver>,
    #[serde(default)]
    properties: BTreeMap<String, String>,
    #[serde(default)]
    operations: Vec<SaidOperation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<Refusal>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scalars: Vec<Scalar>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    flags: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    yardsticks: Option<Vec<Operation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matrices: Option<MatricesRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screening: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    screening_steps: BTreeMap<OperationId, u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    code: bool,
}

/// An operation as a program describes it: its id, or an object with more.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "an operation is its id, or an object with `id` and perhaps `scope`, `instruction`, `aliases`"
)]
enum SaidOperation {
    Id(String),
    Whole(WholeOperation),
}

#[derive(Serialize, Deserialize)]
struct WholeOperation {
    /// The id, with `*` for open sizes.
    id: String,
    #[serde(default = "scope")]
    scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
}

impl SaidOperation {
    fn new(id: String, operation: &Operation) -> Self {
        let Operation { scope, instruction, aliases, .. } = operation.clone();
        Self::Whole(WholeOperation { id, scope, instruction, aliases })
    }
}

fn program() -> String {
    PROGRAM.to_owned()
}

fn first() -> String {
    "0".to_owned()
}

fn scope() -> String {
    "program".to_owned()
}

impl TryFrom<Said> for Described {
    type Error = Error;

    fn try_from(said: Said) -> Result<Self, Error> {
        let info = DeviceInfo {
            backend: said.backend,
            selector: said.selector,
            fingerprint: said.fingerprint.unwrap_or_else(|| said.name.clone()),
            name: said.name,
            kind: said.kind.unwrap_or(DeviceKind::Software),
            emulated: said.emulated,
            aliases: said.aliases,
            driver: said.driver,
            properties: said.properties,
        };
        let (mut operations, mut free) = (Vec::new(), Vec::new());
        for operation in said.operations {
            let WholeOperation { id, scope, instruction, aliases } = match operation {
                SaidOperation::Id(id) => WholeOperation { id, scope: scope(), instruction: None, aliases: Vec::new() },
                SaidOperation::Whole(whole) => whole,
            };
            match FreeOperation::read(&id)? {
                Some(open) => free.push(open.described(|operation| {
                    (operation.scope, operation.instruction, operation.aliases) = (scope, instruction, aliases);
                })),
                None => operations.push(Operation { id: id.parse()?, scope, instruction, aliases }),
            }
        }
        let Said { refusals, scalars, flags, yardsticks, matrices, screening, screening_steps, code, .. } = said;
        Ok(Self {
            info,
            operations,
            free,
            refusals,
            scalars,
            flags,
            yardsticks,
            matrices,
            screening,
            screening_steps,
            code,
        })
    }
}

impl From<Described> for Said {
    fn from(described: Described) -> Self {
        let Described {
            info,
            operations,
            free,
            refusals,
            scalars,
            flags,
            yardsticks,
            matrices,
            screening,
            screening_steps,
            code,
        } = described;
        let fixed = operations.iter().map(|operation| SaidOperation::new(operation.id.to_string(), operation));
        let open = free.iter().map(|free| SaidOperation::new(free.pattern().to_owned(), free.least()));
        Self {
            backend: info.backend,
            selector: info.selector,
            name: info.name,
            fingerprint: Some(info.fingerprint),
            kind: Some(info.kind),
            emulated: info.emulated,
            aliases: info.aliases,
            driver: info.driver,
            properties: info.properties,
            operations: fixed.chain(open).collect(),
            refusals,
            scalars,
            flags,
            yardsticks,
            matrices,
            screening,
            screening_steps,
            code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_the_ids_of_operations_are_enough() {
        let said = r#"{"name":"an NPU","operations":["dot.m1n1k4.f32.f16.f16.f32",
            {"id":"gemm.m*n*k*.f32.f16.f16.f32","aliases":["matmul"]}]}"#;
        let device: Described = serde_json::from_str(said).unwrap();
        assert_eq!((device.info.backend.as_str(), device.info.selector.as_str()), ("exec", "0"));
        assert_eq!((device.info.fingerprint.as_str(), device.info.kind), ("an NPU", DeviceKind::Software));
        assert_eq!((device.operations.len(), device.free.len()), (1, 1));
        // Open sizes stay open when the device is described to another process.
        let told = serde_json::to_string(&device).unwrap();
        assert_eq!(serde_json::from_str::<Described>(&told).unwrap(), device, "{told}");
        let fixed = device.with(&Sizes::default());
        let names: Vec<_> = fixed.operations.iter().map(|operation| operation.id.to_string()).collect();
        assert_eq!(names, ["dot.m1n1k4.f32.f16.f16.f32", "gemm.m8n8k16.f32.f16.f16.f32"]);
        assert_eq!(fixed.operations[1].aliases, ["matmul"]);
        assert_eq!(fixed.operations[1].scope, "program");
    }

    #[test]
    fn what_is_wrong_with_a_description_is_said() {
        for (said, reason) in [
            (r#"{"operations":[]}"#, "missing field `name`"),
            (r#"{"name":"x","operations":["matmul"]}"#, "`matmul` is not an operation id"),
            (r#"{"name":"x","operations":["gemm.m*n*k*.f32"]}"#, "`gemm.m*n*k*.f32`, with sizes for `*`"),
            (r#"{"name":"x","operations":[1]}"#, "an operation is its id"),
            (r#"{"name":"x","kind":"magic"}"#, "unknown variant `magic`"),
        ] {
            let error = serde_json::from_str::<Described>(said).unwrap_err().to_string();
            assert!(error.contains(reason), "{said}: {error}");
        }
    }
}
