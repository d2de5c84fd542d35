//! A program that multiplies by the recipe that its arguments describe. It shares no code with the search for recipes.
//!
//! The arguments are `in=f32|bf16|e4m3|e5m2|e3m2|e2m3|e2m1`, `unit=fma|mul|six`, levels as `level=DIVISION,MERGE[,+0][,bf16]`
//! (outermost first; DIVISION is `every:N`, `slices:S:TILE`, `balanced:S:TILE` or `lanes:S:TILE`; `bf16` rounds partial
//! sums), and `store=acc|add|bf16|scaled`.

#[path = "../../examples/workers/rust/src/mxprobe_worker.rs"]
mod mxprobe_worker;

use mxprobe_worker::{Device, Tile, serve};

struct Level {
    division: (String, usize, usize),
    merge: String,
    from_zero: bool,
    to_bf16: bool,
}

struct Recipe {
    input: String,
    unit: String,
    levels: Vec<Level>,
    store: String,
}

fn main() -> std::io::Result<()> {
    let recipe = std::rc::Rc::new(described(std::env::args().skip(1)));
    let input = recipe.input.clone();
    let device = Device::new("A recipe");
    let device = if recipe.store == "bf16" {
        device.operation(&format!("gemm.m*n*k*.bf16.{input}.{input}.f32"), move |tile| {
            Ok(multiply(&recipe, tile).into_iter().map(to_bf16).collect::<Vec<u16>>())
        })
    } else {
        device.operation(&format!("gemm.m*n*k*.f32.{input}.{input}.f32"), move |tile| Ok(multiply(&recipe, tile)))
    };
    serve(&[device])
}

fn described(arguments: impl Iterator<Item = String>) -> Recipe {
    let mut recipe =
        Recipe { input: "f32".to_owned(), unit: "fma".to_owned(), levels: Vec::new(), store: "acc".to_owned() };
    for argument in arguments {
        let (key, value) = argument.split_once('=').expect("KEY=VALUE");
        match key {
            "in" => recipe.input = value.to_owned(),
            "unit" => recipe.unit = value.to_owned(),
            "store" => recipe.store = value.to_owned(),
            _ => {
                let words: Vec<&str> = value.split(',').collect();
                let division: Vec<&str> = words[0].split(':').collect();
                let number = |at: usize| division.get(at).map_or(1, |text| text.parse().expect("a number"));
                recipe.levels.push(Level {
                    division: (division[0].to_owned(), number(1), number(2)),
                    merge: words[1].to_owned(),
                    from_zero: words.contains(&"+0"),
                    to_bf16: words.contains(&"bf16"),
                });
            }
        }
    }
    recipe
}

fn multiply(recipe: &Recipe, tile: &Tile) -> Vec<f32> {
    let wide = |bits: Vec<u16>| bits.into_iter().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect();
    let narrow = |bits: Vec<u8>, (exponent, fraction): (u32, u32)| {
        bits.into_iter().map(|bits| of_few_bits(bits, (exponent, fraction))).collect()
    };
    let eight = |format: (u32, u32)| (narrow(tile.a(), format), narrow(tile.b(), format));
    let (a, b): (Vec<f32>, Vec<f32>) = match recipe.input.as_str() {
        "bf16" => (wide(tile.a()), wide(tile.b())),
        "e4m3" => eight((4, 3)),
        "e5m2" => eight((5, 2)),
        "e3m2" => eight((3, 2)),
        "e2m3" => eight((2, 3)),
        "e2m1" => eight((2, 1)),
        _ => (tile.a(), tile.b()),
    };
    let all: Vec<usize> = (0..tile.k).collect();
    let element = |(at, c): (usize, &f32)| {
        let (row, column) = (at / tile.n, at % tile.n);
        let term = |k: usize| (a[row * tile.k + k], b[k * tile.n + column]);
        let sum = sum(recipe, &recipe.levels, &all, &term);
        match recipe.store.as_str() {
            "acc" => sum,
            "scaled" => sum.mul_add(0.5, c * 3.0),
            _ => sum + c,
        }
    };
    tile.c::<f32>().iter().enumerate().map(element).collect()
}

fn sum(recipe: &Recipe, levels: &[Level], products: &[usize], term: &dyn Fn(usize) -> (f32, f32)) -> f32 {
    let Some((level, inner)) = levels.split_first() else {
        return match recipe.unit.as_str() {
            "six" => products.chunks(6).fold(0.0, |sum, six| six_at_once(sum, six, term)),
            unit => products.iter().fold(0.0, |sum, k| {
                let (a, b) = term(*k);
                if unit == "fma" { a.mul_add(b, sum) } else { sum + a * b }
            }),
        };
    };
    let partial = |slice: Vec<usize>| {
        let sum = sum(recipe, inner, &slice, term);
        if level.to_bf16 { f32::from_bits(u32::from(to_bf16(sum)) << 16) } else { sum }
    };
    merged(level, divided(level, products).into_iter().map(partial).collect())
}

/// Adds six products, exact in f64, to the sum so far: each term is cut to 21 bits below the largest exponent, and the
/// sum is cut to f32.
fn six_at_once(sum: f32, six: &[usize], term: &dyn Fn(usize) -> (f32, f32)) -> f32 {
    let exponent = |value: f32| (value.to_bits() >> 23 & 0xff).max(1) as i32 - 127;
    let products = six.iter().map(|k| term(*k));
    let products = products.map(|(a, b)| (f64::from(a) * f64::from(b), exponent(a) + exponent(b)));
    let terms: Vec<(f64, i32)> = products.chain([(f64::from(sum), exponent(sum))]).collect();
    let exact: f64 = terms.iter().map(|(value, _)| value).sum();
    let Some(largest) = terms.iter().filter(|(value, _)| *value != 0.0).map(|(_, exponent)| *exponent).max() else {
        return 0.0;
    };
    if !exact.is_finite() {
        return exact as f32;
    }
    let unit = 2.0_f64.powi(largest - 21);
    let sum: f64 = terms.iter().map(|(value, _)| (value / unit).trunc() * unit).sum();
    // The last place of f32; all subnormal numbers have the same.
    let last = 2.0_f64.powi(((sum.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(-126) - 23);
    ((sum / last).trunc() * last) as f32
}

fn divided(level: &Level, products: &[usize]) -> Vec<Vec<usize>> {
    let (kind, count, tile) = (level.division.0.as_str(), level.division.1, level.division.2);
    let tiles: Vec<&[usize]> = products.chunks(tile).collect();
    let mut slices = vec![Vec::new(); if kind == "every" { products.len().div_ceil(count) } else { count }];
    for (at, tile) in tiles.iter().enumerate() {
        let slice = match kind {
            "every" => at / count,
            "slices" => at / tiles.len().div_ceil(count),
            "balanced" => {
                let (each, more) = (tiles.len() / count, tiles.len() % count);
                if at < more * (each + 1) { at / (each + 1) } else { more + (at - more * (each + 1)) / each }
            }
            _ => at % count,
        };
        slices[slice].extend_from_slice(tile);
    }
    slices
}

fn merged(level: &Level, mut sums: Vec<f32>) -> f32 {
    let count = sums.len();
    match level.merge.as_str() {
        "serial" | "reverse" => {
            if level.merge == "reverse" {
                sums.reverse();
            }
            let start = if level.from_zero { 0.0 } else { sums.remove(0) };
            sums.into_iter().fold(start, |sum, partial| sum + partial)
        }
        "pairs" => {
            while sums.len() > 1 {
                sums =
                    sums.chunks(2).map(|pair| pair.iter().copied().reduce(|one, other| one + other).unwrap()).collect();
            }
            sums[0]
        }
        "halves" => {
            while sums.len() > 1 {
                let kept = sums.len().div_ceil(2);
                let upper = sums.split_off(kept);
                upper.iter().enumerate().for_each(|(at, other)| sums[at] += other);
            }
            sums[0]
        }
        _ => {
            let half = count.div_ceil(2);
            let slot = |at: usize| if at + half < count - 1 { sums[at] + sums[at + half] } else { sums[at] };
            (0..half.min(count - 1)).fold(sums[count - 1], |sum, at| sum + slot(at))
        }
    }
}

/// The value of a finite number with a sign, exponent bits and fraction bits, eight or fewer in all.
fn of_few_bits(bits: u8, (exponent_bits, fraction_bits): (u32, u32)) -> f32 {
    let (exponent_of, fraction_of) = ((1 << exponent_bits) - 1, (1 << fraction_bits) - 1);
    let exponent = i32::from(bits) >> fraction_bits & exponent_of;
    let significand = i32::from(bits) & fraction_of | i32::from(exponent > 0) << fraction_bits;
    let place = exponent.max(1) - (exponent_of >> 1) - fraction_bits as i32;
    let value = significand as f32 * 2.0_f32.powi(place);
    if bits >> (exponent_bits + fraction_bits) == 1 { -value } else { value }
}

fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() { 0x7fff } else { ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16 }
}
