//! Golden digests, kept from one screen to the next.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use mxprobe_api::{Error, Operation};
use serde::{Deserialize, Serialize};

use super::golden::{self, Golden, Inputs, Key, Reference};
use crate::report::{Request, to_json};

/// A folder of golden digests, one file for each key.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct File {
    key: Key,
    /// The digest of the inputs: a program that draws other inputs ignores the file.
    operands: String,
    /// The digest of D of each block, in hexadecimal.
    digests: Vec<String>,
}

impl Cache {
    /// A cache in `folder`, which is created when it is needed.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The user's cache: `$XDG_CACHE_HOME/mxprobe/golden`, or `~/.cache/mxprobe/golden`; `None` if neither variable is
    /// set.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let root = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Self::new(root.join("mxprobe/golden")))
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(Request::digest(&to_json(key)) + ".json")
    }

    fn read(&self, key: &Key, operands: u64) -> Option<Vec<u64>> {
        let file: File = serde_json::from_slice(&fs::read(self.path(key)).ok()?).ok()?;
        let fits = file.key == *key && file.operands == hex(operands) && file.digests.len() == key.blocks[0];
        let digests: Result<Vec<u64>, _> = file.digests.iter().map(|digest| u64::from_str_radix(digest, 16)).collect();
        digests.ok().filter(|_| fits)
    }

    /// Writes the digests to a file that only this user can change. Readers see a whole file or none.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, golden: &Golden) -> io::Result<()> {
        let file = File {
            key: golden.key.clone(),
            operands: hex(golden::digest_of_operands(&golden.operands)),
            digests: golden.digests.iter().map(|digest| hex(*digest)).collect(),
        };
        private_folder(&self.folder)?;
        // Only its user can read and write a temporary file.
        let mut temporary = tempfile::NamedTempFile::new_in(&self.folder)?;
        temporary.write_all(to_json(&file).as_bytes())?;
        temporary.persist(self.path(&golden.key)).map_err(|error| error.error)?;
        Ok(())
    }
}

fn hex(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Creates a folder that only its user can enter.
fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

impl Golden {
    /// Returns the golden digests of an operation after a number of instructions, from the cache, else from the model,
    /// and whether they come from the cache. Digests from the model are written to the cache; a folder that cannot be
    /// written is not an error.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn get(
        cache: Option<&Cache>,
        reference: &Reference,
        operation: &Operation,
        inputs: Inputs,
        steps: u32,
    ) -> Result<(Self, bool), Error> {
        let key = golden::key(reference, &operation.id, inputs, steps);
        let operands = golden::operands(reference, operation, inputs, steps)?;
        if let Some(cache) = cache
            && let Some(digests) = cache.read(&key, golden::digest_of_operands(&operands))
        {
            return Ok((Self { key, operands, digests }, true));
        }
        let digests = golden::digests(&reference.right(operation, &operands, steps)?, key.blocks[0]);
        let golden = Self { key, operands, digests };
        if let Some(cache) = cache {
            // If this fails, the next screen asks the model again.
            let _ = cache.write(&golden);
        }
        Ok((golden, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nan_bits::NanBits;

    fn operation() -> (Reference, Operation) {
        let model = mxprobe_models::load("avx512").expect("a model");
        let id = "dot.m1n1k2.f32.bf16.bf16.f32".parse().expect("an id");
        let operation = model.operations[&id].clone();
        (Reference::new(model), operation)
    }

    #[test]
    fn what_is_read_is_what_the_model_gives() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path().join("deep/golden"));
        let (model, operation) = operation();
        let get = |seed, nan, steps| {
            Golden::get(Some(&cache), &model, &operation, Inputs { seed, nan }, steps).expect("an operation of it")
        };
        let (first, cached) = get(3, NanBits::Bits, 1);
        assert!(!cached);
        assert_eq!(get(3, NanBits::Bits, 1), (first.clone(), true));
        for (seed, nan, steps) in [(4, NanBits::Bits, 1), (3, NanBits::Any, 1), (3, NanBits::Bits, 16)] {
            let (other, cached) = get(seed, nan, steps);
            assert!(!cached && other.digests != first.digests);
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!((mode(&cache.folder), mode(&cache.path(&first.key))), (0o700, 0o600));
        }
    }

    #[test]
    fn a_file_that_does_not_fit_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path().to_owned());
        let (model, operation) = operation();
        let inputs = Inputs { seed: 3, nan: NanBits::Bits };
        let get = || Golden::get(Some(&cache), &model, &operation, inputs, 1).expect("an operation of the model");
        let path = cache.path(&get().0.key);
        let text = fs::read_to_string(&path).expect("it was written");
        for (from, to) in [("\"seed\": 3", "\"seed\": 5"), ("\"digests\": [", "\"digests\": [\"0\", "), ("{", "")] {
            assert!(text.contains(from), "{text}");
            fs::write(&path, text.replacen(from, to, 1)).expect("it can be written");
            assert!(!get().1, "{to}");
            assert!(get().1, "it was not written again");
        }
    }
}
