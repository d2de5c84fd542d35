//! The arguments of a shard, and those of the run that it is a share of.

use super::provenance::{Tool, without_directories};

/// The option that asks for a share of the work.
const SHARD: &str = "--shard";

impl Tool {
    /// The same program as the whole run has it: without `--shard`, and with other values for some options, by their
    /// names. Of paths the last part is kept, as [`Tool::with_arguments`] does.
    #[must_use]
    pub fn unsharded(&self, values: &[(&str, &str)]) -> Self {
        let mut arguments: Vec<String> = Vec::new();
        let mut given = self.arguments.iter();
        while let Some(argument) = given.next() {
            let (name, joined) = match argument.split_once('=') {
                Some((name, _)) if name.starts_with("--") => (name, true),
                _ => (argument.as_str(), false),
            };
            let new = values.iter().find(|(option, _)| *option == name).map(|(_, value)| without_directories(value));
            match new {
                _ if name == SHARD => {
                    if !joined {
                        given.next();
                    }
                }
                Some(value) if joined => arguments.push(format!("{name}={value}")),
                Some(value) => {
                    given.next();
                    arguments.extend([name.to_owned(), value]);
                }
                None => arguments.push(argument.clone()),
            }
        }
        Self { arguments, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::provenance::tests::tool;

    #[test]
    fn a_whole_run_has_no_shard_and_writes_to_another_file() {
        let given = "verify --model h100 --shard 0/2 --out a/0.json --op=*.f16 --shard=1/2 --report=r/0.json";
        let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
        let tool = tool().with_arguments(&given);
        let whole = tool.unsharded(&[("--out", "b/all.json"), ("--report", "all.json")]);
        let wanted = "verify --model h100 --out …/all.json --op=*.f16 --report=all.json";
        assert_eq!(whole.arguments.join(" "), wanted);
    }
}
