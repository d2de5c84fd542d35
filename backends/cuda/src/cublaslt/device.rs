//! The library on one CUDA device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::CudaSlice;
use mxprobe_api::{
    Device, DeviceInfo, Elements, Error, FreeOperation, Operation, OperationId, OperationSet, Refusal, Shape, Sizes,
    TileBatch,
};

use super::forms::{Form, operations};
use super::library::{CublasLt, Functions};
use super::product::{Product, stride_of};
use crate::device::{describe, info};
use crate::driver::Driver;
use crate::session::{BYTES_PER_LAUNCH, Session, called};

/// The shape at which the library is asked which products the device has: every size is a multiple of 16, as fp8
/// products need.
const ASKED: Shape = Shape { m: 64, n: 64, k: 64 };

/// cuBLASLt on one CUDA device. Its context is opened when it is examined, since only the library knows what it offers.
pub(super) struct LibraryDevice {
    info: DeviceInfo,
    /// Empty: all sizes are open.
    operations: OperationSet,
    free: Vec<FreeOperation>,
    refusals: Vec<Refusal>,
    opened: Mutex<Opened>,
}

/// The device's context, and the products described so far.
struct Opened {
    products: HashMap<OperationId, Product>,
    library: Arc<CublasLt>,
    /// `None` until the first product.
    workspace: Option<CudaSlice<u8>>,
    workspace_bytes: usize,
    session: Session,
}

impl LibraryDevice {
    /// Opens a device and the library on it, and asks which products it has.
    ///
    /// # Errors
    /// Whatever the driver or the library reports.
    pub(super) fn examine(
        driver: Driver,
        ordinal: i32,
        functions: &Arc<Functions>,
        workspace_bytes: usize,
    ) -> Result<Self, Error> {
        let description = describe(ordinal)?;
        let capability = description.capability;
        let at = usize::try_from(ordinal).expect("an index");
        let session = Session::open(at, description.multiprocessors, capability)?;
        session.context.bind_to_thread().map_err(called("cuCtxSetCurrent"))?;
        let library = Arc::new(CublasLt::create(functions)?);
        let title = library.title();
        let mut info = info(driver, ordinal, &description);
        info.backend = "cublaslt".into();
        info.selector = format!("cublaslt:{ordinal}");
        info.name = format!("{title} on {}", description.name);
        info.fingerprint = format!("{} {}", title.replacen(' ', "-", 1).to_lowercase(), info.fingerprint);
        // These are about PTX.
        info.properties.retain(|key, _| !["kernel_form", "ptx_accepted"].contains(&key.as_str()));
        let more = [
            ("algorithm", "the first of cublasLtMatmulAlgoGetHeuristic".to_owned()),
            ("library", format!("{title} ({})", library.file())),
            ("workspace_bytes", workspace_bytes.to_string()),
        ];
        info.properties.extend(more.map(|(key, value)| (key.to_owned(), value)));
        let (mut free, mut refusals) = (Vec::new(), Vec::new());
        for operation in operations() {
            let first = Form::of(&operation.least().id).first;
            let asked = operation.of(&Sizes { shape: Some(ASKED), ids: Vec::new() });
            let answer = if capability < first {
                let words = format!("compute capability {capability} has no such product; {first} is the first");
                Err(Error::unsupported(words))
            } else {
                asked.iter().try_for_each(|asked| Product::new(&library, &asked.id, workspace_bytes).map(drop))
            };
            match answer {
                Ok(()) => free.push(operation),
                Err(error) if error.is_device_lost() => return Err(error),
                Err(reason) => {
                    refusals.push(Refusal { what: operation.pattern().to_owned(), reason, help: None });
                }
            }
        }
        let opened = Opened { products: HashMap::new(), library, workspace: None, workspace_bytes, session };
        Ok(Self { info, operations: OperationSet::new(), free, refusals, opened: Mutex::new(opened) })
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        // A panic while the lock was held leaves a context and descriptions, all valid.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for LibraryDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn free_operations(&self) -> &[FreeOperation] {
        &self.free
    }

    fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let id = &operation.id;
        let mut opened = self.opened();
        let Opened { products, library, workspace, workspace_bytes, session } = &mut *opened;
        session.context.bind_to_thread().map_err(called("cuCtxSetCurrent"))?;
        if !products.contains_key(id) {
            products.insert(id.clone(), Product::new(library, id, *workspace_bytes)?);
        }
        let product = &products[id];
        let workspace = match workspace {
            Some(workspace) => workspace,
            // An allocation of no bytes is refused.
            none => none.insert(session.filled(0, (*workspace_bytes).max(1))?),
        };
        let (m, n, k) = id.shape.sizes();
        let sizes = [m * k * id.a.storage_bytes(), k * n * id.b.storage_bytes(), m * n * id.d.storage_bytes()];
        let largest = sizes.map(stride_of).into_iter().max().unwrap_or(1);
        let at_once = (BYTES_PER_LAUNCH / largest).max(1);
        let mut d = Vec::with_capacity(batch.tiles * sizes[2]);
        for first in (0..batch.tiles).step_by(at_once) {
            let tiles = first..batch.tiles.min(first + at_once);
            d.extend(product.multiply(session, (workspace, *workspace_bytes), batch, tiles)?);
        }
        Elements::from_bytes(id.d, d)
    }
}
