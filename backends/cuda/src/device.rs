use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::{DriverError, result, sys};
use mxprobe_api::{
    Code, Device, DeviceInfo, DeviceKind, Drill, Driver as DriverInfo, Elements, Error, GemmOperands, Issued, Library,
    Load, Matrices, Operation, OperationId, OperationSet, Refusal, Scalar, ScalarFunction, ScalarId, Scalars, Screened,
    Screening, TileBatch, Timed, Timing, screen_by_tiles, self_test,
};
use mxprobe_shaders::ptx::layout::Layouts;
use mxprobe_shaders::ptx::scalar::{self, ScalarKernel};
use mxprobe_shaders::ptx::throughput_loop;
use mxprobe_shaders::ptx::{Capability, Instruction, Kernel, Kind, Steps, Target, instructions, kernel};
use mxprobe_shaders::sha256;

use crate::cublas::Cublas;
use crate::driver::{Driver, failure};
use crate::session::Session;
use crate::timed::{FMA, Timer};
use crate::{calls, product, screening, tiles};

/// A CUDA device; its context is opened when it first computes or compiles.
pub struct CudaDevice {
    ordinal: usize,
    multiprocessors: u32,
    capability: Capability,
    info: DeviceInfo,
    operations: OperationSet,
    refusals: Vec<Refusal>,
    instructions: BTreeMap<OperationId, (Instruction, Target)>,
    scalars: Vec<Scalar>,
    scalar_kernels: BTreeMap<(ScalarId, ScalarFunction), ScalarKernel>,
    yardsticks: [Operation; 1],
    opened: Mutex<Opened>,
}

#[derive(Default)]
struct Opened {
    open: Option<Open>,
    /// Operations whose self-test passed.
    tested: BTreeSet<OperationId>,
}

/// A device's context, and the kernels compiled for it.
struct Open {
    session: Session,
    tiles: tiles::Kernels,
    products: product::Kernels,
    calls: calls::Kernels,
    timer: Timer,
    screens: screening::Kernels,
}

/// The driver's description of a device.
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) capability: Capability,
    memory_bytes: usize,
    pub(crate) multiprocessors: u32,
    clock_khz: i32,
    /// Whether error-correcting memory is on.
    ecc: bool,
    pci: [i32; 3],
    /// The UUID that Vulkan also reports, as 32 hex digits; empty if the driver does not report one.
    uuid: String,
}

/// Asks the driver about a device.
pub(crate) fn describe(ordinal: i32) -> Result<Description, Error> {
    use sys::CUdevice_attribute as Attribute;
    let called = |call: &'static str| move |error: DriverError| failure(call, error);
    let device = result::device::get(ordinal).map_err(called("cuDeviceGet"))?;
    // SAFETY: the driver returned the device.
    let attribute = |attribute: Attribute| unsafe { result::device::get_attribute(device, attribute) };
    let number = |which: Attribute| attribute(which).map_err(called("cuDeviceGetAttribute"));
    let unsigned = |which: Attribute| number(which).map(|value| u32::try_from(value).unwrap_or(0));
    // SAFETY: as above.
    let memory_bytes = unsafe { result::device::total_mem(device) }.map_err(called("cuDeviceTotalMem"))?;
    Ok(Description {
        name: result::device::get_name(device).map_err(called("cuDeviceGetName"))?,
        capability: Capability::new(
            unsigned(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            unsigned(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        memory_bytes,
        multiprocessors: unsigned(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0),
        ecc: number(Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED).is_ok_and(|value| value != 0),
        pci: [
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
        ]
        .map(|which| number(which).unwrap_or(0)),
        uuid: result::device::get_uuid(device).map_or_else(|_| String::new(), hex),
    })
}

/// Formats the 16 bytes of a UUID as hex, in order.
fn hex(uuid: sys::CUuuid) -> String {
    uuid.bytes.iter().map(|byte| format!("{:02x}", byte.cast_unsigned())).collect()
}

impl CudaDevice {
    /// Queries the driver for a device's identity, and lists its operations and scalar functions.
    pub(crate) fn examine(driver: Driver, ordinal: i32) -> Result<Self, Refusal> {
        let description = describe(ordinal).map_err(|reason| Refusal {
            what: format!("cuda:{ordinal}"),
            reason,
            help: Some("`nvidia-smi` shows what the driver sees".into()),
        })?;
        let capability = description.capability;
        let mut device = Self {
            ordinal: usize::try_from(ordinal).expect("an index"),
            multiprocessors: description.multiprocessors.max(1),
            capability,
            info: info(driver, ordinal, &description),
            operations: OperationSet::new(),
            refusals: Vec::new(),
            instructions: BTreeMap::new(),
            scalars: Vec::new(),
            scalar_kernels: BTreeMap::new(),
            yardsticks: [yardstick()],
            opened: Mutex::default(),
        };
        if capability < Capability::new(7, 0) {
            return Err(Refusal {
                what: format!("cuda:{ordinal} {}", description.name),
                reason: Error::unsupported(format!(
                    "compute capability {capability} has no matrix unit; 7.0 is the first"
                )),
                help: None,
            });
        }
        for instruction in instructions() {
            let Some(target) = instruction.availability.target(capability) else { continue };
            if target.version > driver.ptx() {
                device.refusals.push(too_late(instruction.id.to_string(), target, driver));
                continue;
            }
            let operation = operation(&instruction);
            device.operations.insert(instruction.id.clone(), operation);
            device.instructions.insert(instruction.id.clone(), (instruction, target));
        }
        if device.operations.keys().any(|id| id.family == "tcgen05") {
            let words = "tcgen05: its kernels were assembled and run on a test double, and never on a device";
            device.info.properties.insert("untried".to_owned(), words.to_owned());
        }
        device.add_scalars(driver);
        Ok(device)
    }

    fn add_scalars(&mut self, driver: Driver) {
        let mut scalars: BTreeMap<ScalarId, Scalar> = BTreeMap::new();
        for kernel in scalar::kernels(self.capability) {
            if kernel.target.version > driver.ptx() {
                let what = format!("{} of {}", kernel.function, kernel.id);
                self.refusals.push(too_late(what, kernel.target, driver));
                continue;
            }
            let (id, function) = (kernel.id.clone(), kernel.function);
            let empty = || Scalar { id: id.clone(), functions: BTreeMap::new() };
            let functions = &mut scalars.entry(id.clone()).or_insert_with(empty).functions;
            functions.insert(function, Some(kernel.instruction.clone()));
            self.scalar_kernels.insert((id, function), kernel);
        }
        self.scalars = scalars.into_values().collect();
    }

    /// Returns the PTX of an operation's kernel.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the device has no such operation.
    pub fn ptx(&self, operation: &Operation) -> Result<String, Error> {
        let (instruction, target) = self.instruction(&operation.id)?;
        Ok(made(instruction, *target, Steps::One).1.text)
    }

    fn instruction(&self, id: &OperationId) -> Result<&(Instruction, Target), Error> {
        self.instructions.get(id).ok_or_else(|| Error::invalid(format!("{} has no operation {id}", self.info.selector)))
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        // A panic while the lock was held leaves a context and a list, both valid.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles the kernel of an operation and runs the layout self-test, unless already done.
    fn test_once(&self, opened: &mut Opened, operation: &Operation) -> Result<(), Error> {
        if !opened.tested.contains(&operation.id) {
            let (instruction, target) = self.instruction(&operation.id)?;
            let Open { session, tiles, .. } = self.open(opened)?;
            tiles.compiled(session, instruction, || made(instruction, *target, Steps::One))?;
            self_test(operation, |batch| tiles.run(session, &operation.id, batch))?;
            opened.tested.insert(operation.id.clone());
        }
        Ok(())
    }

    fn open<'a>(&self, opened: &'a mut Opened) -> Result<&'a mut Open, Error> {
        if opened.open.is_none() {
            let session = Session::open(self.ordinal, self.multiprocessors, self.capability)?;
            opened.open = Some(Open {
                session,
                tiles: tiles::Kernels::default(),
                products: product::Kernels::default(),
                calls: calls::Kernels::default(),
                timer: Timer::default(),
                screens: screening::Kernels::default(),
            });
        }
        Ok(opened.open.as_mut().expect("just opened"))
    }
}

/// The refusal of a kernel that needs a later version of PTX than the driver accepts.
fn too_late(what: String, target: Target, driver: Driver) -> Refusal {
    let reason = format!(
        "it needs PTX {}, and the driver's CUDA {} accepts up to {}",
        target.version,
        driver.release(),
        driver.ptx()
    );
    Refusal { what, reason: Error::unsupported(reason), help: Some("a later driver brings it".into()) }
}

/// The multiply-add of the scalar units.
fn yardstick() -> Operation {
    let mut operation = Operation::new(FMA.parse().expect("an operation id"), "thread");
    operation.instruction = Some("fma.rn.f32".to_owned());
    operation
}

fn made(instruction: &Instruction, target: Target, steps: Steps) -> (Layouts, Kernel) {
    let layouts = Layouts::new(instruction);
    let kernel = kernel(instruction, &layouts, target, steps);
    (layouts, kernel)
}

fn operation(instruction: &Instruction) -> Operation {
    let scope = match instruction.kind {
        Kind::Warp | Kind::Wmma => "warp",
        Kind::QuadPair => "quarter-warp",
        Kind::Warpgroup => "warpgroup",
        Kind::TensorMemory => "block",
    };
    let mut operation = Operation::new(instruction.id.clone(), scope);
    operation.instruction = Some(instruction.text.clone());
    operation
}

/// The identity of a device.
pub(crate) fn info(driver: Driver, ordinal: i32, description: &Description) -> DeviceInfo {
    let capability = description.capability;
    let [domain, bus, slot] = description.pci;
    let mut properties: BTreeMap<String, String> = [
        ("compute_capability", capability.to_string()),
        ("clock_khz", description.clock_khz.to_string()),
        ("ecc", description.ecc.to_string()),
        ("kernel_form", "PTX".to_owned()),
        ("memory_bytes", description.memory_bytes.to_string()),
        ("multiprocessors", description.multiprocessors.to_string()),
        // A GPU is function 0 of its slot.
        ("pci_bus_id", format!("{domain:04x}:{bus:02x}:{slot:02x}.0")),
        ("ptx_accepted", driver.ptx().to_string()),
        ("vendor_id", "0x10de".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if let Some(library) = mxprobe_api::loaded_library("libcuda.so") {
        properties.insert("driver_library".to_owned(), library);
    }
    if !description.uuid.is_empty() {
        properties.insert("device_uuid".to_owned(), description.uuid.clone());
    }
    DeviceInfo {
        backend: "cuda".into(),
        selector: format!("cuda:{ordinal}"),
        name: description.name.clone(),
        fingerprint: capability.fingerprint(),
        kind: if driver.is_fake { DeviceKind::Software } else { DeviceKind::Hardware },
        emulated: driver.is_fake,
        aliases: Vec::new(),
        driver: Some(DriverInfo {
            name: "NVIDIA".into(),
            version: kernel_module_version().unwrap_or_else(|| format!("of CUDA {}", driver.release())),
            api_version: driver.release(),
        }),
        properties,
    }
}

/// The version of NVIDIA's kernel module: the driver's own version number, which CUDA does not report.
fn kernel_module_version() -> Option<String> {
    let version = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(version.trim().to_owned()).filter(|version| !version.is_empty())
}

impl Device for CudaDevice {
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
        let mut opened = self.opened();
        self.test_once(&mut opened, operation)?;
        let Open { session, tiles, .. } = self.open(&mut opened)?;
        tiles.run(session, &operation.id, batch)
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

    fn screening(&self) -> Option<&dyn Screening> {
        Some(self)
    }

    fn code(&self) -> Option<&dyn Code> {
        Some(self)
    }
}

impl Screening for CudaDevice {
    fn units(&self) -> Vec<u32> {
        (0..self.multiprocessors).collect()
    }

    fn steps(&self, operation: &OperationId) -> u32 {
        self.instruction(operation).map_or(1, |(instruction, _)| screening::steps(instruction))
    }

    /// Screens without the layout self-test, which a wrong unit would fail.
    fn screen(&self, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error> {
        let (instruction, target) = self.instruction(&operation.id)?;
        let mut opened = self.opened();
        let Open { session, screens, .. } = self.open(&mut opened)?;
        if let Some(screened) = screens.screen(session, (instruction, *target), drill)? {
            return Ok(screened);
        }
        drop(opened);
        screen_by_tiles(self, operation, drill)
    }
}

impl Matrices for CudaDevice {
    fn multiply(&self, operation: &Operation, product: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        let (instruction, target) = self.instruction(&operation.id)?;
        let mut opened = self.opened();
        self.test_once(&mut opened, operation)?;
        let Open { session, products, .. } = self.open(&mut opened)?;
        products.multiply(session, (instruction, *target), product)
    }

    fn kernel_ns(&self) -> Option<u64> {
        Some(self.opened().open.as_ref().map_or(0, |open| open.session.kernel_ns()))
    }
}

impl Scalars for CudaDevice {
    fn members(&self) -> &[Scalar] {
        &self.scalars
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        let kernel = self.scalar_kernels.get(&(scalar.id.clone(), function));
        let kernel = kernel
            .ok_or_else(|| Error::invalid(format!("{} has no {function} of {}", self.info.selector, scalar.id)))?;
        let mut opened = self.opened();
        let Open { session, calls, .. } = self.open(&mut opened)?;
        calls.call(session, kernel, operands)
    }
}

impl Code for CudaDevice {
    fn issued(&self, operation: &Operation) -> Result<Option<Issued>, Error> {
        let (instruction, target) = self.instruction(&operation.id)?;
        let mut opened = self.opened();
        let Open { session, tiles, .. } = self.open(&mut opened)?;
        let compiled = tiles.compiled(session, instruction, || made(instruction, *target, Steps::One))?;
        compiled.issued.clone().map(Some)
    }

    fn kernel_hash(&self, operation: &Operation) -> Option<String> {
        let (instruction, target) = self.instruction(&operation.id).ok()?;
        Some(sha256(made(instruction, *target, Steps::One).1.text.as_bytes()))
    }
}

impl Timing for CudaDevice {
    fn yardsticks(&self) -> &[Operation] {
        &self.yardsticks
    }

    fn time(&self, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
        let mut opened = self.opened();
        let Open { session, timer, .. } = self.open(&mut opened)?;
        if self.yardsticks.iter().any(|yardstick| yardstick.id == operation.id) {
            return timer.time(session, None, || (None, throughput_loop::fma()), operation, load);
        }
        let (instruction, target) = self.instruction(&operation.id)?;
        let make = || {
            let (layouts, kernel) = made(instruction, *target, Steps::Many);
            (Some(layouts), kernel)
        };
        timer.time(session, Some(instruction), make, operation, load)
    }

    fn library(&self) -> Result<Box<dyn Library>, Error> {
        let session = Session::open(self.ordinal, self.multiprocessors, self.capability)?;
        Ok(Box::new(Cublas::find(session)?))
    }
}
