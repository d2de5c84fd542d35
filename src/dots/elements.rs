//! Elements from bits, many at a time.

use mxprobe_api::{Elements, Format};

/// Elements of a format from their bits in slices, one after another; bits above the format's width are dropped.
pub(crate) fn elements<'a>(format: Format, parts: impl IntoIterator<Item = &'a [u64]>) -> Elements {
    let mut elements = Elements::zeros(format, 0);
    parts.into_iter().for_each(|part| elements.extend_from_bits(part));
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_become_the_elements_that_their_bits_do() {
        let parts: [&[u64]; 3] = [&[1, u64::MAX, 0x1234_5678_9abc_def0], &[], &[7]];
        for format in Format::ALL {
            let whole = Elements::from_bits(format, parts.iter().flat_map(|part| part.iter().copied()));
            assert_eq!(elements(format, parts), whole, "{format}");
        }
    }
}
