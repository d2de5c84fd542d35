//! The matrices of a product, read from files or drawn.

use std::path::Path;

use crate::gemm::{Matrix, Uniform};
use mxprobe_api::OperationId;

use super::variants::drawn;
use crate::cli::{arguments::Gemm, failure::Failure, io::npy};

/// A and B as values, and the path of C.
pub(super) fn inputs<'a>(arguments: &'a Gemm, id: &OperationId) -> Result<(Matrix, Matrix, Option<&'a Path>), Failure> {
    let c = arguments.c.as_deref();
    if let Some([m, n, k]) = arguments.random {
        let mut uniform = Uniform::new(arguments.seed);
        let (low, high) = arguments.interval;
        let (mut a, mut b) = (uniform.matrix(m, k, low, high, true), uniform.matrix(k, n, low, high, true));
        if let Some(drawn) = drawn(arguments, id)? {
            (a, b) = (a.in_words(drawn.a, drawn.words), b.in_words(drawn.b, drawn.words));
        }
        return Ok((a, b, c));
    }
    let named = |path: &Option<_>, name: &str| -> Result<_, Failure> {
        let path: &Option<std::path::PathBuf> = path;
        path.clone().ok_or_else(|| {
            Failure::usage(format!("no {name}: `--{} FILE.npy` names one", name.to_lowercase()))
                .help("`--random M,N,K` draws A and B")
        })
    };
    let (a, b) = (named(&arguments.a, "A")?, named(&arguments.b, "B")?);
    Ok((npy::read(&a, id.a, false)?, npy::read(&b, id.b, true)?, c))
}
