//! The time in reports: the system's, or the one that `SOURCE_DATE_EPOCH` fixes.

use std::{
    env,
    time::{Duration, Instant, SystemTime},
};

/// The variable that fixes the time, as <https://reproducible-builds.org/specs/source-date-epoch/> defines it: seconds
/// since 1970. Reports then show that time and durations of 0, so that equal results are equal bytes.
pub const VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// The last second of the year 9999, the last that RFC 3339 can write.
const LAST_SECOND: u64 = 253_402_300_799;

/// The time that the environment fixes, if it fixes one.
///
/// # Errors
/// If the variable is set and is not a whole number of seconds that a date can be.
pub fn fixed() -> Result<Option<SystemTime>, String> {
    env::var_os(VARIABLE).map(|text| parsed(&text.to_string_lossy())).transpose()
}

fn parsed(text: &str) -> Result<SystemTime, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds <= LAST_SECOND);
    let time = seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    time.ok_or_else(|| format!("{VARIABLE} is `{text}`, not a whole number of seconds since 1970"))
}

/// The time of the report, RFC 3339 to the second, UTC.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(fixed().ok().flatten().unwrap_or_else(SystemTime::now)).to_string()
}

/// The seconds since 1970 at a time of a report: RFC 3339 in UTC, which ends with `Z` or an offset of nothing.
pub fn seconds(time: &str) -> Option<u64> {
    let local = time.strip_suffix(['Z', 'z']).or_else(|| time.strip_suffix("+00:00"))?;
    let since = humantime::parse_rfc3339(&format!("{local}Z")).ok()?.duration_since(SystemTime::UNIX_EPOCH);
    since.ok().map(|since| since.as_secs())
}

/// Nanoseconds since `start`, or 0 if the time is fixed.
pub fn elapsed_ns(start: Instant) -> u64 {
    lasted_ns(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// A measured duration as reports show it: 0 if the time is fixed.
pub fn lasted_ns(measured_ns: u64) -> u64 {
    if matches!(fixed(), Ok(None)) { measured_ns } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_seconds_fix_the_time() {
        let shown = |text: &str| humantime::format_rfc3339_seconds(parsed(text).unwrap()).to_string();
        assert_eq!(shown("1700000000"), "2023-11-14T22:13:20Z");
        assert_eq!(shown("0"), "1970-01-01T00:00:00Z");
        assert_eq!(shown(&LAST_SECOND.to_string()), "9999-12-31T23:59:59Z");
        for text in ["", "now", "1.5", "-1", "253402300800", "99999999999999999999"] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn times_of_reports_are_in_utc() {
        for time in ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20+00:00", "2023-11-14T22:13:20.75Z"] {
            assert_eq!(seconds(time), Some(1_700_000_000), "{time}");
        }
        assert!(seconds(&now()) > seconds("2023-11-14T22:13:20Z"));
        for time in
            ["", "Z", "now", "2023-11-14", "2023-11-14T22:13:20", "2023-11-14T23:13:20+01:00", "2023-02-30T00:00:00Z"]
        {
            assert_eq!(seconds(time), None, "{time}");
        }
    }
}
