//! Packing of B for AMX.
//!
//! A row of a B tile holds, for each column, the elements of as many consecutive k as fit in four bytes: 2 of bf16, 4
//! of 8 bits (*specified*: Intel SDM volume 2, TDPBF16PS and TDPBSSD, operand 3). A, C and D tiles are plain row-major,
//! with rows of 64 bytes.

/// Bytes of one row of a tile (*specified*: palette 1; detection refuses a CPU that reports less in CPUID.1D.1).
pub(crate) const ROW_BYTES: usize = 64;
/// Rows of a tile.
const ROWS: usize = 16;
/// Bytes of a tile.
pub(crate) const TILE_BYTES: usize = ROW_BYTES * ROWS;

/// Reorders one row-major B tile of `E`-byte elements, `k = 64 / E` rows of 16, into the layout of the tile register.
///
/// Element (k, n) goes to row `k / (4 / E)`, byte `4·n + E·(k mod (4 / E))`.
///
/// # Panics
/// If either slice is not as long as the tile, which is 1024 bytes for any `E`.
pub(crate) fn pack_b<const E: usize>(row_major: &[u8], packed: &mut [u8]) {
    const { assert!(E == 1 || E == 2) }
    assert_eq!(row_major.len(), TILE_BYTES);
    assert_eq!(packed.len(), TILE_BYTES);
    // The 4 / E rows of B that share a row of the tile also have 64 bytes.
    for (rows, packed_row) in row_major.chunks_exact(ROW_BYTES).zip(packed.chunks_exact_mut(ROW_BYTES)) {
        if E == 2 {
            interleave_pairs(rows, packed_row);
        } else {
            let mut pairs = [0; ROW_BYTES];
            for (rows, pairs) in rows.chunks_exact(ROW_BYTES / 2).zip(pairs.chunks_exact_mut(ROW_BYTES / 2)) {
                interleave_bytes(rows, pairs);
            }
            interleave_pairs(&pairs, packed_row);
        }
    }
}

/// Interleaves the bytes of the two halves, the first half's first.
fn interleave_bytes(halves: &[u8], interleaved: &mut [u8]) {
    let (first, second) = halves.split_at(halves.len() / 2);
    for ((first, second), pair) in first.iter().zip(second).zip(interleaved.chunks_exact_mut(2)) {
        // A single store of both bytes, so that the loop vectorises.
        pair.copy_from_slice(&(u16::from(*first) | u16::from(*second) << 8).to_le_bytes());
    }
}

/// Interleaves the byte pairs of the two halves, the first half's first.
fn interleave_pairs(halves: &[u8], interleaved: &mut [u8]) {
    let (first, second) = halves.split_at(halves.len() / 2);
    let elements = first.chunks_exact(2).zip(second.chunks_exact(2));
    for ((first, second), both) in elements.zip(interleaved.chunks_exact_mut(4)) {
        both[..2].copy_from_slice(first);
        both[2..].copy_from_slice(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_pairs_of_consecutive_k_share_four_bytes() {
        // B[k][n] is the number 256·k + n, so that every element identifies its origin.
        let mut row_major = Vec::new();
        for k in 0..32u16 {
            for n in 0..16u16 {
                row_major.extend_from_slice(&(256 * k + n).to_le_bytes());
            }
        }
        let mut packed = [0xffu8; TILE_BYTES];
        pack_b::<2>(&row_major, &mut packed);
        for k in 0..32usize {
            for n in 0..16usize {
                // In 16-bit elements: b[(k/2)·32 + 2·n + (k & 1)] = B[k][n].
                let at = 2 * ((k / 2) * 32 + 2 * n + (k & 1));
                let element = u16::from_le_bytes([packed[at], packed[at + 1]]);
                assert_eq!(usize::from(element), 256 * k + n, "k {k} n {n}");
            }
        }
    }

    #[test]
    fn bytes_of_four_consecutive_k_share_four_bytes() {
        // Two passes, since one byte cannot hold both k and n.
        for (name, value) in [("k", (|k, _| k) as fn(u8, u8) -> u8), ("n", |_, n| n)] {
            let row_major: Vec<u8> = (0..64u8).flat_map(|k| (0..16u8).map(move |n| value(k, n))).collect();
            let mut packed = [0xffu8; TILE_BYTES];
            pack_b::<1>(&row_major, &mut packed);
            for k in 0..64u8 {
                for n in 0..16u8 {
                    let at = usize::from(k / 4) * 64 + 4 * usize::from(n) + usize::from(k & 3);
                    assert_eq!(packed[at], value(k, n), "{name} at k {k} n {n}");
                }
            }
        }
    }

    #[test]
    fn packing_is_a_permutation_of_the_bytes() {
        // Each 16-bit number occurs once, which reveals a dropped or duplicated element.
        let row_major: Vec<u8> = (0..512u16).flat_map(u16::to_le_bytes).collect();
        let mut packed = [0u8; TILE_BYTES];
        pack_b::<2>(&row_major, &mut packed);
        let mut seen: Vec<u16> = packed.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..512).collect::<Vec<u16>>());
    }
}
