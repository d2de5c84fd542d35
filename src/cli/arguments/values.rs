//! Parsers of argument values: durations, sizes, ranges.

use std::time::Duration;

use mxprobe_api::{Format, Injection, Shape};

use crate::proof::conditions::Exponents;

/// Parses numbers separated by commas.
pub(super) fn numbers<T: std::str::FromStr, const N: usize>(text: &str) -> Result<[T; N], String> {
    let wrong = || format!("`{text}` is not {N} numbers separated by commas");
    let found: Vec<T> =
        text.split(',').map(|part| part.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    found.try_into().map_err(|_| wrong())
}

pub(super) fn sizes(text: &str) -> Result<[usize; 3], String> {
    let sizes: [usize; 3] = numbers(text)?;
    let elements = sizes[0].saturating_mul(sizes[2]).max(sizes[1].saturating_mul(sizes[2]));
    if sizes.contains(&0) || elements > 1 << 30 || sizes[0].saturating_mul(sizes[1]) > 1 << 30 {
        return Err(format!("`{text}`: sizes must be at least 1, and no matrix may have more than 2^30 elements"));
    }
    Ok(sizes)
}

pub(super) fn shape(text: &str) -> Result<Shape, String> {
    let wrong = || format!("`{text}` is not a shape such as 16x16x64, with sizes from 1 to 65536");
    let sizes: Vec<u32> = text.split('x').map(|size| size.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    match sizes[..] {
        [m, n, k] if sizes.iter().all(|size| (1..=1 << 16).contains(size)) => Ok(Shape { m, n, k }),
        _ => Err(wrong()),
    }
}

pub(super) fn interval(text: &str) -> Result<(f64, f64), String> {
    let [low, high]: [f64; 2] = numbers(text)?;
    if low < high && low.is_finite() && high.is_finite() {
        Ok((low, high))
    } else {
        Err(format!("`{text}`: the first end must be below the second, and both must be finite"))
    }
}

pub(super) fn exponents(text: &str) -> Result<(u32, u32), String> {
    let [first, last]: [u32; 2] = numbers(text)?;
    if first <= last && last <= 24 {
        Ok((first, last))
    } else {
        Err(format!("`{text}`: exponents must be from 0 to 24, the first not above the last"))
    }
}

/// Parses `NAME=VALUE`.
pub(super) fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not a name and a value such as scale_a=0.5")),
    }
}

/// Parses the name of a number format.
pub(super) fn number_format(text: &str) -> Result<Format, String> {
    Format::named(text).map_err(|error| error.to_string())
}

/// Parses `a=-14..15`: an input, and the exponents that its values may have.
pub(super) fn exponent_range(text: &str) -> Result<(char, Exponents), String> {
    let wrong = || format!("`{text}` is not an input and a range of exponents such as a=-14..15");
    let (input, range) = text.split_once('=').ok_or_else(wrong)?;
    let input = match input.trim() {
        "a" => 'a',
        "b" => 'b',
        "c" => 'c',
        other => return Err(format!("`{text}`: `{other}` is not one of a, b and c")),
    };
    let (low, high) = range.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse().map_err(|_| wrong());
    let (low, high) = (number(low)?, number(high)?);
    if low > high {
        return Err(format!("`{text}`: the first exponent is above the last"));
    }
    Ok((input, Exponents { low, high }))
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("`{text}` is not above 0 and at most 86400 seconds"))
    }
}

pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    let milliseconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of milliseconds"))?;
    if milliseconds > 0.0 && milliseconds <= 60_000.0 {
        Ok(Duration::from_secs_f64(milliseconds / 1e3))
    } else {
        Err(format!("`{text}` is not above 0 and at most 60000 milliseconds"))
    }
}

/// Parses a number with the suffix `ms`, `s`, `m` or `h`; seconds without a suffix.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let unit = units.iter().find_map(|(name, seconds)| Some((text.strip_suffix(name)?, *seconds)));
    let (number, unit) = unit.unwrap_or((text, 1.0));
    let number: f64 = number.trim().parse().map_err(|_| format!("`{text}` is not a time such as 10s, 500ms or 2m"))?;
    let seconds = number * unit;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("`{text}` is not above 0 and at most 24 hours"))
    }
}

/// Parses an injected fault: `bit=3,lane=5`.
pub(super) fn injection(text: &str) -> Result<Injection, String> {
    let wrong = || format!("`{text}` is not a fault such as bit=3,lane=5,core=1,exponent=130,every=1000000");
    let mut injection = Injection::default();
    let mut has_bit = false;
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let value: u64 = value.trim().parse().map_err(|_| wrong())?;
        let small = u32::try_from(value).map_err(|_| wrong());
        match name.trim() {
            "bit" => (injection.bit, has_bit) = (small?, true),
            "lane" => injection.lane = Some(small?),
            "core" | "multiprocessor" => injection.unit = Some(small?),
            "exponent" => injection.exponent = Some(value),
            "every" if value > 0 => injection.every = value,
            _ => return Err(wrong()),
        }
    }
    if has_bit { Ok(injection) } else { Err(format!("`{text}` names no bit, such as bit=3")) }
}
