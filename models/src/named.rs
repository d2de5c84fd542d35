//! Looking up a model's operations by the names that people use.

use mxprobe_api::{Error, Format, Operation};

use crate::model::Model;

impl Model {
    /// Finds the operation with this id, instruction, alias, or pair of input and output formats.
    ///
    /// `f16->f32` is the operation that multiplies f16 and gives f32, with C in f32 as well; `e4m3*e5m2->f32` names A
    /// and B separately. If several match, the one with the largest k and no qualifier is chosen; those must compute
    /// alike.
    ///
    /// ```
    /// let model = mxprobe_models::load("h100")?;
    /// assert_eq!(model.operation_named("f16->f16")?.id.to_string(), "mma.m16n8k16.f16.f16.f16.f16");
    /// # Ok::<(), mxprobe_api::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no operation has this name, or several that compute differently do.
    pub fn operation_named(&self, name: &str) -> Result<&Operation, Error> {
        let is_name = |operation: &&Operation| {
            operation.is_named(name) || operation.instruction.as_deref().is_some_and(|word| word == name)
        };
        if let Some(operation) = self.operations.values().find(|operation| operation.id.to_string() == name) {
            return Ok(operation);
        }
        let named: Vec<&Operation> = self.operations.values().filter(is_name).collect();
        if !named.is_empty() {
            return self.alike(name, &named);
        }
        let Some((operands, d)) = name.split_once("->") else { return Err(self.missing(name)) };
        let (a, b) = operands.split_once('*').unwrap_or((operands, operands));
        let [a, b, d] = [Format::named(a.trim())?, Format::named(b.trim())?, Format::named(d.trim())?];
        let fits = |operation: &&Operation| {
            let id = &operation.id;
            (id.a, id.b, id.c, id.d) == (a, b, d, d)
        };
        let mut fitting: Vec<&Operation> = self.operations.values().filter(fits).collect();
        if fitting.iter().any(|operation| operation.id.qualifiers.is_empty()) {
            fitting.retain(|operation| operation.id.qualifiers.is_empty());
        }
        let Some(longest) = fitting.iter().map(|operation| operation.id.shape.k).max() else {
            return Err(self.missing(name));
        };
        fitting.retain(|operation| operation.id.shape.k == longest);
        self.alike(name, &fitting)
    }

    /// The first of several operations, if they all compute alike.
    fn alike<'a>(&self, name: &str, operations: &[&'a Operation]) -> Result<&'a Operation, Error> {
        let first = operations[0];
        let computes_like = |one: &Operation, other: &Operation| {
            let (one_unit, other_unit) = (self.unit(&one.id), self.unit(&other.id));
            let unit = one_unit
                .zip(other_unit)
                .is_some_and(|(one, other)| (&one.tree, one.flush) == (&other.tree, other.flush));
            unit && one.id.qualifiers == other.id.qualifiers
        };
        if operations.iter().all(|operation| computes_like(operation, first)) {
            return Ok(first);
        }
        let ids: Vec<String> = operations.iter().map(|operation| operation.id.to_string()).collect();
        Err(Error::invalid(format!(
            "`{name}` matches {} operations of {}, which compute differently: {}",
            ids.len(),
            self.name,
            ids.join(", ")
        )))
    }

    fn missing(&self, name: &str) -> Error {
        let ids: Vec<String> = self.operations.keys().map(ToString::to_string).collect();
        Error::invalid(format!("{} has no operation `{name}`; it has {}", self.name, ids.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use crate::{load, shipped};

    #[test]
    fn formats_name_the_longest_operation_of_a_model() {
        let named = |model: &str, name: &str| {
            load(model)
                .unwrap()
                .operation_named(name)
                .map(|found| found.id.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(named("h100", "f16->f32").unwrap(), "mma.m16n8k16.f32.f16.f16.f32");
        assert_eq!(named("h100", "wgmma.m64n8k16.f32.f16.f16.f32").unwrap(), "wgmma.m64n8k16.f32.f16.f16.f32");
        // On V100 `wmma` takes 16 products and `mma` takes 4.
        let longest = named("v100", "f16->f32").unwrap();
        assert!(longest.starts_with("wmma.") && longest.ends_with("k16.f32.f16.f16.f32"), "{longest}");
        let ambiguous = named("h100", "e4m3->f32").unwrap_err();
        assert!(
            ambiguous.contains("compute differently: mma.m16n8k32.f32.e4m3.e4m3.f32, wgmma.m64n8k32"),
            "{ambiguous}"
        );
        let missing = named("v100", "bf16->f32").unwrap_err();
        assert!(missing.starts_with("v100 has no operation `bf16->f32`; it has mma.m8n8k4.f16"), "{missing}");
        assert!(named("v100", "f17->f32").unwrap_err().contains("f17"));
    }

    #[test]
    fn every_operation_is_meant_by_its_id() {
        for model in shipped() {
            for id in model.operations.keys() {
                assert_eq!(model.operation_named(&id.to_string()).unwrap().id, *id);
            }
        }
    }
}
