//! Dots that share no operands, one after another.

use mxprobe_api::{DotOperands, Elements};

use super::{Evaluator, scalar::UnpackedDot, unpack::Unpacked};

impl Evaluator {
    /// Computes d of dots that share no operands, one at a time.
    ///
    /// # Panics
    /// If the operands do not fit the operation; [`DotOperands::validate`] checks this.
    #[must_use]
    pub fn dots(&self, operands: &DotOperands<'_>) -> Elements {
        let DotOperands { count, a, b, c, scale_a, scale_b } = *operands;
        let k = self.id().shape.sizes().2;
        let blocks = self.id().block_scale().map_or(0, |scale| k.div_ceil(scale.block));
        let compiled = &self.compiled;
        let mut scratch = compiled.scratch();
        let room = |length: usize| vec![Unpacked::default(); length];
        let (mut of_a, mut of_b) = (room(k), room(k));
        let (mut scales_of_a, mut scales_of_b) = (room(blocks), room(blocks));
        let mut found = Elements::zeros(self.id().d, count);
        for at in 0..count {
            compiled.a.gather(a, at * k, 1, &mut of_a);
            compiled.b.gather(b, at * k, 1, &mut of_b);
            if let (Some(reader), Some(scale_a), Some(scale_b)) = (compiled.scale, scale_a, scale_b) {
                reader.gather(scale_a, at * blocks, 1, &mut scales_of_a);
                reader.gather(scale_b, at * blocks, 1, &mut scales_of_b);
            }
            let c = c.get(at);
            let dot = UnpackedDot {
                a: &of_a,
                b: &of_b,
                products: &[],
                c: compiled.c.read(c),
                scale_a: &scales_of_a,
                scale_b: &scales_of_b,
            };
            found.set(at, self.one(dot, c, &mut scratch));
        }
        found
    }
}
