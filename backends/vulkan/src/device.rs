use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mxprobe_api::{
    Code, Device, DeviceInfo, Elements, Error, GemmOperands, Issued, Load, Matrices, Operation, OperationId,
    OperationSet, Refusal, Scalar, ScalarFunction, ScalarId, Scalars, SelfTest, TileBatch, Timed, Timing, self_test,
};
use mxprobe_shaders::sha256;
use mxprobe_shaders::spirv::scalar::{self, CALLS};
use mxprobe_shaders::spirv::{Asked, Kernel};

use crate::disassembly::assembly;
use crate::physical::{Found, Physical};
use crate::product;
use crate::session::{Groups, Session};
use crate::timed;

/// The maximum number of multiply-adds chained in one kernel.
const MOST_STEPS: u32 = 256;

/// A physical device; a logical device is opened when it first computes or compiles.
pub struct VulkanDevice {
    info: DeviceInfo,
    operations: OperationSet,
    refusals: Vec<Refusal>,
    kernels: BTreeMap<OperationId, Kernel>,
    scalars: Vec<Scalar>,
    modes: BTreeMap<ScalarId, Asked>,
    physical: Physical,
    timeout: Duration,
    yardsticks: [Operation; 1],
    opened: Mutex<Opened>,
}

#[derive(Default)]
struct Opened {
    session: Option<Session>,
    /// Operations whose self-test passed.
    tested: BTreeSet<OperationId>,
}

impl VulkanDevice {
    pub(crate) fn new(found: Found, timeout: Duration) -> Self {
        let Found { physical, info, operations, kernels, scalars, modes, refusals } = found;
        let mut yardstick = Operation::new(timed::FMA.parse().expect("an operation id"), "invocation");
        yardstick.instruction = Some("Fma".to_owned());
        Self {
            info,
            operations,
            refusals,
            kernels,
            scalars,
            modes,
            physical,
            timeout,
            yardsticks: [yardstick],
            opened: Mutex::default(),
        }
    }

    /// The SPIR-V module handed to the driver for an operation, with `steps` multiply-adds chained.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the device has no such operation or `steps` is out of range; [`Error::is_unsupported`]
    /// if the operation cannot be chained.
    pub fn spirv(&self, operation: &Operation, steps: u32) -> Result<Vec<u32>, Error> {
        self.check_steps(operation, steps)?;
        Ok(self.kernel(&operation.id)?.words(steps))
    }

    /// Compiles the kernel of an operation without running it.
    ///
    /// # Errors
    /// Whatever the driver reports.
    pub fn compile(&self, operation: &Operation) -> Result<(), Error> {
        let kernel = self.kernel(&operation.id)?;
        let mut opened = self.opened();
        self.session(&mut opened)?.pipeline(&kernel.words(1), Groups::Subgroup).map(drop)
    }

    /// Computes sums of small integers that are exact in every format, and compares every element.
    ///
    /// The same check runs automatically before the first [`execute`](Device::execute) of an operation.
    ///
    /// # Errors
    /// [`Error::is_self_test`] with row, column, expected and computed value; [`Error::is_nothing_written`] if the
    /// device wrote nothing; otherwise whatever the driver reports.
    pub fn self_test(&self, operation: &Operation) -> Result<SelfTest, Error> {
        let kernel = self.kernel(&operation.id)?;
        let mut opened = self.opened();
        let passed = self.self_test_in(&mut opened, operation, kernel)?;
        opened.tested.insert(operation.id.clone());
        Ok(passed)
    }

    /// Computes D = A·B + C for a k that is `steps` times the operation's, in one kernel: the D of each multiply-add is
    /// the C of the next, k ascending.
    ///
    /// A tile of A is m×(k·steps) and one of B (k·steps)×n, row-major; C and D are unchanged.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the lengths do not fit or `steps` is not between 1 and 256; [`Error::is_unsupported`]
    /// if C and D differ in format; otherwise as for [`execute`](Device::execute).
    pub fn execute_chained(&self, operation: &Operation, batch: &TileBatch, steps: u32) -> Result<Elements, Error> {
        self.check_steps(operation, steps)?;
        let id = &operation.id;
        let (m, n, k) = id.shape.sizes();
        let long_k = k * steps as usize;
        for (name, elements, format, per_tile) in
            [("a", &batch.a, id.a, m * long_k), ("b", &batch.b, id.b, long_k * n), ("c", &batch.c, id.c, m * n)]
        {
            if elements.format() != format || elements.len() != batch.tiles * per_tile {
                return Err(Error::invalid(format!(
                    "{name} holds {} elements of {}, but {} tiles of {steps} chained {id} take {} of {format}",
                    elements.len(),
                    elements.format(),
                    batch.tiles,
                    batch.tiles * per_tile
                )));
            }
        }
        self.execute_steps(operation, batch, steps)
    }

    /// Compiles a kernel that saturates if the configuration does not, and vice versa.
    ///
    /// Unless the driver also lists that configuration, validation layers must report
    /// `VUID-RuntimeSpirv-OpCooperativeMatrixMulAddKHR-10060`; drivers need not fail. For tests of the layers.
    ///
    /// # Errors
    /// Whatever the driver reports.
    #[doc(hidden)]
    pub fn compile_with_other_saturation(&self, operation: &Operation) -> Result<(), Error> {
        let mut kernel = self.kernel(&operation.id)?.clone();
        kernel.saturating = !kernel.saturating;
        let mut opened = self.opened();
        self.session(&mut opened)?.try_compile(&kernel.words(1))
    }

    /// The instructions that the driver issues for the timing shader. For tests of that shader.
    ///
    /// # Errors
    /// Whatever the driver reports.
    #[doc(hidden)]
    pub fn issued_when_timed(&self, operation: &Operation) -> Result<Option<Issued>, Error> {
        let words = self.kernel(&operation.id)?.throughput_words();
        let mut opened = self.opened();
        let texts = self.session(&mut opened)?.representations(&words)?;
        Ok(texts.map(|texts| Issued::in_listing(assembly(texts))))
    }

    fn check_steps(&self, operation: &Operation, steps: u32) -> Result<(), Error> {
        let id = &operation.id;
        if !(1..=MOST_STEPS).contains(&steps) {
            return Err(Error::invalid(format!("{steps} steps of {id} cannot be chained; 1 to {MOST_STEPS} can")));
        }
        if steps > 1 && id.c != id.d {
            return Err(Error::unsupported(format!("{id} cannot be chained: C is {} and D is {}", id.c, id.d)));
        }
        Ok(())
    }

    fn kernel(&self, id: &OperationId) -> Result<&Kernel, Error> {
        self.kernels.get(id).ok_or_else(|| Error::invalid(format!("{} has no operation {id}", self.info.selector)))
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        // A panic while the lock was held leaves handles and a list, both valid.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session<'a>(&self, opened: &'a mut Opened) -> Result<&'a mut Session, Error> {
        if opened.session.is_none() {
            opened.session = Some(Session::open(&self.physical, self.timeout)?);
        }
        Ok(opened.session.as_mut().expect("just opened"))
    }

    fn self_test_in(&self, opened: &mut Opened, operation: &Operation, kernel: &Kernel) -> Result<SelfTest, Error> {
        self_test(operation, |batch| self.run(opened, operation, kernel, batch, 1))
    }

    fn execute_steps(&self, operation: &Operation, batch: &TileBatch, steps: u32) -> Result<Elements, Error> {
        let kernel = self.kernel(&operation.id)?;
        let mut opened = self.opened();
        self.test_once(&mut opened, operation, kernel)?;
        self.run(&mut opened, operation, kernel, batch, steps)
    }

    fn test_once(&self, opened: &mut Opened, operation: &Operation, kernel: &Kernel) -> Result<(), Error> {
        if !opened.tested.contains(&operation.id) {
            self.self_test_in(opened, operation, kernel)?;
            opened.tested.insert(operation.id.clone());
        }
        Ok(())
    }

    fn run(
        &self,
        opened: &mut Opened,
        operation: &Operation,
        kernel: &Kernel,
        batch: &TileBatch,
        steps: u32,
    ) -> Result<Elements, Error> {
        let id = &operation.id;
        let (m, n, k) = id.shape.sizes();
        let long_k = k * steps as usize;
        let [a, b, c, d] = [id.a, id.b, id.c, id.d].map(mxprobe_api::Format::storage_bytes);
        let tile_bytes = [m * long_k * a, long_k * n * b, m * n * c, m * n * d];
        let session = self.session(opened)?;
        let pipeline = session.pipeline(&kernel.words(steps), Groups::Subgroup)?;
        let inputs = [batch.a.bytes(), batch.b.bytes(), batch.c.bytes()];
        let bytes = session.run(pipeline, inputs, tile_bytes, batch.tiles);
        Elements::from_bytes(id.d, bytes.map_err(|error| error.context(id))?)
    }
}

impl Device for VulkanDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        self.execute_steps(operation, batch, 1)
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        Some(self)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        Some(self)
    }

    fn timing(&self) -> Option<&dyn Timing> {
        Some(self)
    }

    fn code(&self) -> Option<&dyn Code> {
        Some(self)
    }
}

impl Matrices for VulkanDevice {
    fn multiply(&self, operation: &Operation, product: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        let kernel = self.kernel(&operation.id)?;
        let mut opened = self.opened();
        self.test_once(&mut opened, operation, kernel)?;
        let multiplied = product::multiply(self.session(&mut opened)?, operation, kernel, product);
        multiplied.map_err(|error| error.context(&operation.id))
    }
}

impl Scalars for VulkanDevice {
    fn members(&self) -> &[Scalar] {
        &self.scalars
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        let format = scalar.id.format;
        let result = function.result(format);
        let unknown = || Error::unsupported(format!("no kernel computes {function} of {}", scalar.id));
        let words = scalar::words(format, function, self.modes.get(&scalar.id)).ok_or_else(unknown)?;
        let (calls, workgroup) = (operands.len() / function.arity(), CALLS as usize);
        let workgroups = calls.div_ceil(workgroup);
        let of_operands = workgroup * function.arity() * format.storage_bytes();
        // The rest of the last workgroup is padded with calls on zeros, whose results are discarded.
        let mut padded = operands.bytes().to_vec();
        padded.resize(workgroups * of_operands, 0);
        let mut opened = self.opened();
        let session = self.session(&mut opened)?;
        let pipeline = session.pipeline(&words, Groups::Invocations)?;
        let tile_bytes = [of_operands, 0, 0, workgroup * result.storage_bytes()];
        let bytes = session.run(pipeline, [&padded, &[], &[]], tile_bytes, workgroups);
        let mut bytes = bytes.map_err(|error| error.context(format!("{function} of {}", scalar.id)))?;
        bytes.truncate(calls * result.storage_bytes());
        Elements::from_bytes(result, bytes)
    }
}

impl Code for VulkanDevice {
    fn issued(&self, operation: &Operation) -> Result<Option<Issued>, Error> {
        let kernel = self.kernel(&operation.id)?;
        let mut opened = self.opened();
        let texts = self.session(&mut opened)?.representations(&kernel.words(1))?;
        Ok(texts.map(|texts| Issued::in_listing(assembly(texts))))
    }

    fn kernel_hash(&self, operation: &Operation) -> Option<String> {
        let words = self.kernels.get(&operation.id)?.words(1);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Some(sha256(&bytes))
    }
}

impl Timing for VulkanDevice {
    fn yardsticks(&self) -> &[Operation] {
        &self.yardsticks
    }

    fn time(&self, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
        let is_yardstick = self.yardsticks.iter().any(|yardstick| yardstick.id == operation.id);
        let kernel = if is_yardstick { None } else { Some(self.kernel(&operation.id)?) };
        let mut opened = self.opened();
        let session = self.session(&mut opened)?;
        timed::time(session, operation, kernel, load).map_err(|error| error.context(&operation.id))
    }
}
