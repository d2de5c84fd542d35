//! cuBLASLt as a device: its products of whole matrices, of any size, as operations.
//!
//! The library is opened at run time and never linked. Each product is one `cublasLtMatmul` with the first algorithm of
//! the library's heuristic; D = A·B + C, with alpha and beta 1.

mod backend;
mod device;
mod forms;
mod library;
mod product;

pub use backend::CublasLtBackend;
