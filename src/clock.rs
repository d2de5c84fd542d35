//! The time in reports: the system's, or the one that `SOURCE_DATE_EPOCH` fixes.

use std::{env, time::Instant};

use jiff::Timestamp;

/// The variable that fixes the time, as <https://reproducible-builds.org/specs/source-date-epoch/> defines it: seconds
/// since 1970. Reports then show that time and durations of 0, so that equal results are equal bytes.
pub(crate) const VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// The time that the environment fixes, if it fixes one.
///
/// # Errors
/// If the variable is set and is not a whole number of seconds that a date can be.
pub(crate) fn fixed() -> Result<Option<Timestamp>, String> {
    env::var_os(VARIABLE).map(|text| parsed(&text.to_string_lossy())).transpose()
}

fn parsed(text: &str) -> Result<Timestamp, String> {
    let seconds = text.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    seconds.ok_or_else(|| format!("{VARIABLE} is `{text}`, not a whole number of seconds since 1970"))
}

/// The time of the report, RFC 3339 to the second, UTC.
pub(crate) fn now() -> String {
    let now = fixed().ok().flatten().unwrap_or_else(Timestamp::now);
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Nanoseconds since `start`, or 0 if the time is fixed.
pub(crate) fn elapsed_ns(start: Instant) -> u64 {
    lasted_ns(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// A measured duration as reports show it: 0 if the time is fixed.
pub(crate) fn lasted_ns(measured_ns: u64) -> u64 {
    if matches!(fixed(), Ok(None)) { measured_ns } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_seconds_fix_the_time() {
        assert_eq!(parsed("1700000000").unwrap().to_string(), "2023-11-14T22:13:20Z");
        assert_eq!(parsed("0").unwrap().to_string(), "1970-01-01T00:00:00Z");
        for text in ["", "now", "1.5", "99999999999999999999"] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
