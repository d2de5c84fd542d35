//! Elements from bits, many at a time.

use mxprobe_api::{Elements, Format};

/// Elements of a format from their bits in slices, one after another; bits above the format's width are dropped.
pub(crate) fn elements<'a>(format: Format, parts: impl IntoIterator<Item = &'a [u64]>) -> Elements {
    let (parts, mask) = (parts.into_iter(), format.mask());
    let bytes = match format.storage_bytes() {
        1 => bytes::<1>(parts, mask),
        2 => bytes::<2>(parts, mask),
        4 => bytes::<4>(parts, mask),
        _ => bytes::<8>(parts, mask),
    };
    Elements::from_bytes(format, bytes).expect("whole elements, no wider than the format")
}

/// The low `SIZE` bytes of each word under a mask.
fn bytes<'a, const SIZE: usize>(parts: impl Iterator<Item = &'a [u64]>, mask: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for bits in parts {
        let start = bytes.len();
        bytes.resize(start + bits.len() * SIZE, 0);
        for (slot, bits) in bytes[start..].as_chunks_mut::<SIZE>().0.iter_mut().zip(bits) {
            slot.copy_from_slice(&(bits & mask).to_le_bytes()[..SIZE]);
        }
    }
    bytes
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
