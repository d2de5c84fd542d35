//! Dots and results as lines of JSON in their usual form, without a parser of JSON: a dot takes no longer to read than
//! to compute.

use mxprobe_api::Format;

/// Reads a dot `{"a":["0x3c00",…],"b":["0x4000",…],"c":"0x00000000"}`: as many elements of A as of B, at most `k`, in
/// hexadecimal of the full width of their formats, which are those of A, B and C; a space may follow each colon and
/// comma.
///
/// Appends k elements of A, k of B and one of C, the missing ones +0, and returns the text after the dot. `None` if the
/// text is anything else; elements may then have been appended.
#[must_use]
pub fn read_plain<'t>(
    text: &'t [u8],
    k: usize,
    [of_a, of_b, of_c]: [Format; 3],
    [a, b, c]: [&mut Vec<u64>; 3],
) -> Option<&'t [u8]> {
    let mut line = Line(text);
    line.skip(b'{')?;
    line.key(b'a')?;
    let count = line.list(Hex::of(of_a), k, a)?;
    line.skip(b',')?;
    line.key(b'b')?;
    (line.list(Hex::of(of_b), k, b)? == count).then_some(())?;
    line.skip(b',')?;
    line.key(b'c')?;
    c.push(line.element(Hex::of(of_c))?);
    for elements in [a, b] {
        elements.resize(elements.len() + (k - count), 0);
    }
    match line.0 {
        [b'}', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// Appends a line `{"d":"0x00000000"}` for each result in a format.
pub fn write_answers(format: Format, results: &[u64], into: &mut Vec<u8>) {
    match Hex::of(format).digits {
        1 => write::<1>(results, into),
        2 => write::<2>(results, into),
        4 => write::<4>(results, into),
        8 => write::<8>(results, into),
        _ => write::<16>(results, into),
    }
}

fn write<const DIGITS: usize>(results: &[u64], into: &mut Vec<u8>) {
    const START: &[u8; 8] = b"{\"d\":\"0x";
    const END: &[u8; 3] = b"\"}\n";
    let length = START.len() + DIGITS + END.len();
    let start = into.len();
    into.resize(start + results.len() * length, 0);
    for (line, bits) in into[start..].chunks_exact_mut(length).zip(results) {
        line[..START.len()].copy_from_slice(START);
        for (at, digit) in line[START.len()..][..DIGITS].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(bits >> (4 * (DIGITS - 1 - at)) & 15) as usize];
        }
        line[START.len() + DIGITS..].copy_from_slice(END);
    }
}

/// The width of a format's elements in hexadecimal, and their mask.
#[derive(Clone, Copy)]
struct Hex {
    digits: usize,
    mask: u64,
}

impl Hex {
    fn of(format: Format) -> Self {
        Self { digits: format.bits().div_ceil(4) as usize, mask: format.mask() }
    }
}

/// What is left of a text.
struct Line<'a>(&'a [u8]);

impl Line<'_> {
    /// Skips a byte, and a space after it.
    #[inline(always)]
    fn skip(&mut self, byte: u8) -> Option<()> {
        match self.0 {
            [first, b' ', rest @ ..] | [first, rest @ ..] if *first == byte => {
                self.0 = rest;
                Some(())
            }
            _ => None,
        }
    }

    /// Skips a key of one letter.
    #[inline(always)]
    fn key(&mut self, key: u8) -> Option<()> {
        match self.0 {
            [b'"', letter, b'"', rest @ ..] if *letter == key => self.0 = rest,
            _ => return None,
        }
        self.skip(b':')
    }

    /// Reads one element as its bits.
    #[inline(always)]
    fn element(&mut self, hex: Hex) -> Option<u64> {
        let [b'"', b'0', b'x', text @ ..] = self.0 else { return None };
        let bits = match hex.digits.checked_sub(8) {
            None | Some(0) => number(text, hex.digits)?,
            Some(first) => number(text, first)? << 32 | number(text.get(first..)?, 8)?,
        };
        let [b'"', rest @ ..] = text.get(hex.digits..)? else { return None };
        self.0 = rest;
        (bits <= hex.mask).then_some(bits)
    }

    /// Reads a list of at most `most` elements, and returns their number.
    #[inline(always)]
    fn list(&mut self, hex: Hex, most: usize, into: &mut Vec<u64>) -> Option<usize> {
        self.skip(b'[')?;
        if let [b']', rest @ ..] = self.0 {
            self.0 = rest;
            return Some(0);
        }
        let start = into.len();
        into.resize(start + most, 0);
        for (at, place) in into[start..].iter_mut().enumerate() {
            *place = self.element(hex)?;
            if let [b']', rest @ ..] = self.0 {
                self.0 = rest;
                into.truncate(start + at + 1);
                return Some(at + 1);
            }
            self.skip(b',')?;
        }
        None
    }
}

/// Reads a number of 1 to 8 hexadecimal digits, all at once; `None` if the text ends fewer than eight bytes after its
/// start.
#[inline(always)]
fn number(text: &[u8], digits: usize) -> Option<u64> {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    // The last digit in the highest byte, with zeros before the first.
    let used = 8 * u32::try_from(digits).ok()?;
    let zeros = (ONES * u64::from(b'0')).unbounded_shr(used);
    let word = u64::from_le_bytes(*text.first_chunk()?) << (64 - used) | zeros;
    // The high bit of each byte from `first` to `last`.
    let within = |word: u64, first: u8, last: u8| {
        let at_least = word.wrapping_add(ONES * u64::from(0x80 - first));
        let above = word.wrapping_add(ONES * u64::from(0x7f - last));
        at_least & !above & HIGH
    };
    let (digit, letter) = (within(word, b'0', b'9'), within(word | (ONES * 0x20), b'a', b'f'));
    let values = (word & (ONES * 0xf)) + 9 * (letter >> 7);
    let pairs = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs << 8 | pairs >> 16) & 0x0000_ffff_0000_ffff;
    // Without ASCII, sums above would carry from byte to byte.
    (word & HIGH == 0 && digit | letter == HIGH).then_some((fours << 16 | fours >> 32) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_digit_or_none_at_every_place() {
        for digits in 1..=8 {
            for place in 0..digits {
                for byte in 0..=u8::MAX {
                    let mut text = *b"9aF0c3Be\"}\n";
                    text[place] = byte;
                    let wanted = std::str::from_utf8(&text[..digits]).ok();
                    let wanted = wanted.filter(|text| !text.starts_with('+'));
                    let wanted = wanted.and_then(|text| u64::from_str_radix(text, 16).ok());
                    assert_eq!(number(&text, digits), wanted, "{byte:#x} at {place} of {digits}");
                }
            }
        }
        assert_eq!(number(b"1234567", 4), None);
    }

    #[test]
    fn results_are_written_in_the_width_of_their_format() {
        let mut lines = Vec::new();
        for format in Format::ALL {
            lines.clear();
            let bits = [0x1234_5678_9abc_def0 & format.mask(), format.mask()];
            write_answers(format, &bits, &mut lines);
            let wanted = bits.map(|bits| format!("{{\"d\":\"{}\"}}\n", format.hex(bits))).concat();
            assert_eq!(String::from_utf8_lossy(&lines), wanted);
        }
    }
}
