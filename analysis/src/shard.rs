//! One of several equal shares of a job.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Share `I` of `N` of a job, written `I/N`. `I` counts from 0, as the tasks of a Slurm array (`--array=0-7`) and the
/// pods of an indexed Kubernetes Job do.
///
/// ```
/// let shard: mxprobe_analysis::Shard = "1/3".parse()?;
/// assert_eq!((0..7).filter(|item| shard.has(*item)).collect::<Vec<_>>(), [1, 4]);
/// assert!("3/3".parse::<mxprobe_analysis::Shard>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: u64,
    of: u64,
}

impl Shard {
    /// Share `index` of `of`.
    ///
    /// # Errors
    /// If `index` is not below `of`.
    pub fn new(index: u64, of: u64) -> Result<Self, String> {
        match of.checked_sub(1) {
            Some(last) if index <= last => Ok(Self { index, of }),
            Some(last) => Err(format!("`{index}/{of}`: shards count from 0, so the last of {of} is {last}/{of}")),
            None => Err(format!("`{index}/0`: there is at least one shard, 0/1")),
        }
    }

    /// Which share, from 0.
    #[must_use]
    pub fn index(self) -> u64 {
        self.index
    }

    /// How many shares there are.
    #[must_use]
    pub fn of(self) -> u64 {
        self.of
    }

    /// Whether item `item` of the job, from 0, is in this share. Shares take turns.
    #[must_use]
    pub fn has(self, item: u64) -> bool {
        item % self.of == self.index
    }

    /// How many of `items` items are in this share.
    #[must_use]
    pub fn count(self, items: u64) -> u64 {
        items / self.of + u64::from(items % self.of > self.index)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        let (index, of) = numbers.ok_or_else(|| format!("`{text}` is not a shard such as 0/4"))?;
        Self::new(index, of)
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_in_one_shard() {
        for of in [1, 2, 3, 5] {
            let shards: Vec<Shard> = (0..of).map(|index| Shard::new(index, of).unwrap()).collect();
            for items in 0..12 {
                let has = |item: u64| shards.iter().filter(|shard| shard.has(item)).count();
                assert!((0..items).all(|item| has(item) == 1));
                for shard in &shards {
                    let own = (0..items).filter(|item| shard.has(*item)).count();
                    assert_eq!(shard.count(items), own as u64, "{shard} of {items}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_a_shard_is_refused_with_its_limit() {
        for (text, limit) in [("5/3", "2/3"), ("3/3", "2/3"), ("0/0", "0/1"), ("1", "0/4"), ("-1/3", "0/4")] {
            let error = text.parse::<Shard>().unwrap_err();
            assert!(error.contains(&format!("`{text}`")) && error.contains(limit), "{error}");
        }
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
    }
}
