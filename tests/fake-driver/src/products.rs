//! The products of the fake cuBLASLt: by a recipe, or by the model alone.

use std::collections::BTreeMap;

use mxprobe_api::{Elements, Format, GemmOperands};
use mxprobe_models::recipe::{Case, Count, Division, Program, Recipe};

use crate::settings::Settings;

/// A requested product D = A·B + C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The formats of A and B.
    pub operands: (Format, Format),
    /// The format of C and D.
    pub result: Format,
    /// Whether fast accumulation was requested.
    pub fast: bool,
    /// m, n and k.
    pub sizes: (usize, usize, usize),
}

/// A product that the library can compute, and the bytes of workspace that it takes.
#[derive(Debug)]
pub(crate) struct Offered {
    pub program: Program,
    pub workspace_bytes: usize,
}

/// Returns how the library computes a product; `None` if it does not have it.
///
/// The first case of the recipe applies that has the formats, holds for the shape and fits into the workspace. For fp8,
/// cases whose name begins with `fast` are those with fast accumulation. Without a recipe, D is a chain from C of the
/// model's `mma` operation with the longest k.
pub(crate) fn offered(settings: &Settings, wanted: Wanted, workspace_bytes: usize) -> Option<Offered> {
    let Wanted { operands: (a, b), result, fast, sizes } = wanted;
    let is_fp8 = [Format::E4M3, Format::E5M2].contains(&a);
    if is_fp8 && (settings.capability < 89 || [sizes.0, sizes.1, sizes.2].iter().any(|size| size % 16 != 0)) {
        return None;
    }
    let chain;
    let (recipe, name, model) = match &settings.recipe {
        Some(chosen) => (&chosen.recipe, chosen.case.as_deref(), &chosen.model),
        None => {
            chain = chain_of(settings, wanted)?;
            (&chain, None, &settings.model)
        }
    };
    let is_meant = |case: &&Case| {
        name.is_none_or(|name| case.name == name)
            && case.shapes.contains(sizes)
            && (!is_fp8 || settings.recipe.is_none() || case.name.starts_with("fast") == fast)
    };
    recipe.cases.iter().filter(is_meant).find_map(|case| {
        let id = case.operations.iter().find(|id| (id.a, id.b) == (a, b))?;
        let program = Program::new(recipe, model, case, id, &BTreeMap::new()).ok()?;
        let workspace = workspace_of(case, sizes);
        let fits = workspace <= workspace_bytes && program.format() == result;
        let fits = fits && (!program.reads_c() || program.c_format() == result);
        fits.then_some(Offered { program, workspace_bytes: workspace })
    })
}

/// The workspace for the partial sums of slices, each an m×n matrix of f32.
fn workspace_of(case: &Case, (m, n, _): (usize, usize, usize)) -> usize {
    let Some(Division::Contiguous { slices, .. } | Division::Interleaved { slices, .. }) =
        case.levels.first().map(|level| &level.division)
    else {
        return 0;
    };
    let count = match slices {
        Count::Fixed(count) => *count,
        Count::Parameter(name) => case.parameters.get(name).copied().unwrap_or(1),
    };
    count * m * n * 4
}

/// A recipe that chains the model's operation from C.
fn chain_of(settings: &Settings, wanted: Wanted) -> Option<Recipe> {
    let Wanted { operands: (a, b), result, .. } = wanted;
    let fits =
        |id: &&mxprobe_api::OperationId| (id.a, id.b, id.c, id.d) == (a, b, result, result) && id.qualifiers.is_empty();
    let id = settings.model.operations.keys().filter(fits).max_by_key(|id| (id.family == "mma", id.shape.k))?;
    let text = format!(
        "schema = \"mxprobe-recipe/1\"\nname = \"chain\"\ntitle = \"one chain from c\"\nmodel = \"{}\"\n\
         [sources]\nown = \"the fake library\"\n[[case]]\nname = \"chain\"\noperations = [\"{id}\"]\nstart = \"c\"\n\
         basis = \"assumed\"\nsource = \"own\"\n",
        settings.model_name
    );
    Some(Recipe::parse("chain", &text).expect("it is well formed"))
}

impl Offered {
    /// Computes D, m×n and row-major, from A, B and C as the caller of the library gave them.
    pub(crate) fn multiply(&self, wanted: Wanted, [a, b, c]: [&Elements; 3]) -> Elements {
        let (m, n, k) = wanted.sizes;
        let zeros = Elements::zeros(self.program.c_format(), m * n);
        let c = if self.program.reads_c() { c } else { &zeros };
        let operands = GemmOperands { m, n, k, a, b, c, scale_a: None, scale_b: None };
        self.program.multiply(&operands, &BTreeMap::new(), 1).expect("the product was offered")
    }
}
