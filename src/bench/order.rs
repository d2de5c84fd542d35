//! The order in which operations are measured.

use std::{cmp::Reverse, collections::BTreeMap};

use mxprobe_api::{OperationId, Shape};

use crate::in_order::InOrder;

/// Sorts operations so that an interrupted measurement contains the most wanted ones: for each family and formats the
/// shape with the most multiply-adds, then the next largest of each, and so on; equal ranks by their multiply-adds.
/// Operations with different formats of A and B, or with qualifiers in their names, follow all others.
pub fn headline_first<T>(operations: &mut [T], id: impl Fn(&T) -> &OperationId) {
    let mut groups: BTreeMap<_, Vec<&OperationId>> = BTreeMap::new();
    for id in operations.iter().map(&id) {
        groups
            .entry((&id.family, [id.d, id.a, id.b, id.c].map(|format| format.name()), &id.qualifiers))
            .or_default()
            .push(id);
    }
    let mut ranks = BTreeMap::new();
    for group in groups.values_mut() {
        group.order_by_key(|id| Reverse(multiply_adds(id.shape)));
        for (rank, id) in group.iter().enumerate() {
            let is_variant = id.a != id.b || !id.qualifiers.is_empty();
            ranks.insert((*id).clone(), (is_variant, rank, Reverse(multiply_adds(id.shape))));
        }
    }
    operations.sort_by(|one, other| ranks[id(one)].cmp(&ranks[id(other)]));
}

fn multiply_adds(shape: Shape) -> usize {
    let (m, n, k) = shape.sizes();
    m * n * k
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&str]) -> Vec<String> {
        let mut ids: Vec<OperationId> = names.iter().map(|name| name.parse().unwrap()).collect();
        headline_first(&mut ids, |id| id);
        ids.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_largest_shape_of_each_family_and_formats_comes_before_any_second_largest() {
        let order = sorted(&[
            "mma.m16n8k16.f32.f16.f16.f32",
            "mma.m16n8k8.f32.f16.f16.f32",
            "mma.m8n8k4.f64.f64.f64.f64",
            "wgmma.m64n256k16.f32.f16.f16.f32",
            "wgmma.m64n256k32.f32.e4m3.e4m3.f32",
            "wgmma.m64n256k32.f32.e4m3.e5m2.f32",
            "wgmma.m64n256k32.s32.s8.s8.s32.satfinite",
            "wgmma.m64n64k32.f32.e4m3.e4m3.f32",
        ]);
        let wanted = [
            "wgmma.m64n256k32.f32.e4m3.e4m3.f32",
            "wgmma.m64n256k16.f32.f16.f16.f32",
            "mma.m16n8k16.f32.f16.f16.f32",
            "mma.m8n8k4.f64.f64.f64.f64",
            "wgmma.m64n64k32.f32.e4m3.e4m3.f32",
            "mma.m16n8k8.f32.f16.f16.f32",
            "wgmma.m64n256k32.f32.e4m3.e5m2.f32",
            "wgmma.m64n256k32.s32.s8.s8.s32.satfinite",
        ];
        assert_eq!(order, wanted);
    }
}
