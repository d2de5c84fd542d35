use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mxprobe_api::{
    Code, Device, DeviceInfo, Elements, Error, Operation, OperationId, OperationSet, Refusal, Scalar, ScalarFunction,
    Scalars, TileBatch, self_test,
};
use mxprobe_shaders::sha256;
use mxprobe_shaders::wgsl::Kernel;
use mxprobe_shaders::wgsl::scalar::{self, CALLS};

use crate::adapter::Found;
use crate::session::{Session, Work};

/// A wgpu adapter; its device is opened when it first computes.
pub struct WgpuDevice {
    found: Found,
    timeout: Duration,
    opened: Mutex<Opened>,
}

#[derive(Default)]
struct Opened {
    session: Option<Session>,
    /// Operations whose self-test passed.
    tested: BTreeSet<OperationId>,
}

impl WgpuDevice {
    pub(crate) fn new(found: Found, timeout: Duration) -> Self {
        Self { found, timeout, opened: Mutex::default() }
    }

    fn kernels(&self) -> &BTreeMap<OperationId, Kernel> {
        &self.found.kernels
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        // A panic while the lock was held leaves handles and a list, both valid.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session<'a>(&self, opened: &'a mut Opened) -> Result<&'a mut Session, Error> {
        if opened.session.is_none() {
            opened.session = Some(Session::open(&self.found.adapter, self.found.features, self.timeout)?);
        }
        Ok(opened.session.as_mut().expect("just opened"))
    }

    fn run(
        &self,
        opened: &mut Opened,
        kernel: &Kernel,
        id: &OperationId,
        batch: &TileBatch,
    ) -> Result<Elements, Error> {
        let inputs = [batch.a.bytes(), batch.b.bytes(), batch.c.bytes()];
        let session = self.session(opened)?;
        let work =
            Work { source: &kernel.shader(), inputs: &inputs, tile_bytes: &kernel.tile_bytes(), tiles: batch.tiles };
        let bytes = session.run(&work);
        Elements::from_bytes(id.d, bytes.map_err(|error| error.context(id))?)
    }
}

impl Device for WgpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.found.info
    }

    fn operations(&self) -> &OperationSet {
        &self.found.operations
    }

    fn refusals(&self) -> &[Refusal] {
        &self.found.refusals
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let id = &operation.id;
        let kernel = self.kernels().get(id);
        let kernel = kernel.ok_or_else(|| Error::invalid(format!("{} has no operation {id}", self.info().selector)))?;
        let mut opened = self.opened();
        if !opened.tested.contains(id) {
            self_test(operation, |batch| self.run(&mut opened, kernel, id, batch))?;
            opened.tested.insert(id.clone());
        }
        self.run(&mut opened, kernel, id, batch)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        Some(self)
    }

    fn code(&self) -> Option<&dyn Code> {
        Some(self)
    }
}

impl Scalars for WgpuDevice {
    fn members(&self) -> &[Scalar] {
        &self.found.scalars
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        let format = scalar.id.format;
        let result = function.result(format);
        let (calls, workgroup) = (operands.len() / function.arity(), CALLS as usize);
        let workgroups = calls.div_ceil(workgroup);
        let tile_bytes = [workgroup * function.arity() * format.storage_bytes(), workgroup * result.storage_bytes()];
        // The rest of the last workgroup is padded with calls on zeros, whose results are discarded.
        let mut padded = operands.bytes().to_vec();
        padded.resize(workgroups * tile_bytes[0], 0);
        let mut opened = self.opened();
        let session = self.session(&mut opened)?;
        let source = scalar::shader(format, function);
        let work = Work { source: &source, inputs: &[&padded], tile_bytes: &tile_bytes, tiles: workgroups };
        let bytes = session.run(&work);
        let mut bytes = bytes.map_err(|error| error.context(format!("{function} of {}", scalar.id)))?;
        bytes.truncate(calls * result.storage_bytes());
        Elements::from_bytes(result, bytes)
    }
}

impl Code for WgpuDevice {
    /// The hash of the WGSL. The version of naga, which translates it for the driver, is among the properties.
    fn kernel_hash(&self, operation: &Operation) -> Option<String> {
        Some(sha256(self.kernels().get(&operation.id)?.shader().as_bytes()))
    }
}
