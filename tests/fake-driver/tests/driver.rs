//! The built library through the C interface, each time in its own process, because the library reads its settings from
//! the environment only once.
#![allow(missing_docs, clippy::print_stdout)]

use std::{
    collections::BTreeMap,
    env,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    process::Command,
    ptr,
    time::{Duration, Instant},
};

use libloading::{Library, Symbol};

/// A kernel in which thread `i` stores `3 i + 1`, and warp 0 stores the product of two matrices of ones after that.
const SOURCE: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry numbers(.param .u64 out, .param .u32 count)
{
    .reg .b64 %out; .reg .b32 %i, %n, %v; .reg .pred %p;
    .reg .b32 %a<4>, %b<2>, %d<4>;
    ld.param.u64 %out, [out]; ld.param.u32 %n, [count];
    mov.u32 %i, %tid.x; setp.ge.u32 %p, %i, %n; @%p bra end;
    mad.wide.u32 %out, %i, 4, %out; mad.lo.u32 %v, %i, 3, 1;
    st.global.u32 [%out], %v;
    mov.b32 %a0, 0x3c003c00; mov.b32 %a1, %a0; mov.b32 %a2, %a0; mov.b32 %a3, %a0; mov.b32 %b0, %a0; mov.b32 %b1, %a0;
    mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0,%d1,%d2,%d3}, {%a0,%a1,%a2,%a3}, {%b0,%b1}, {%d0,%d1,%d2,%d3};
    st.global.b32 [%out+128], %d3;
end:
    ret;
}
";

struct Cuda(Library);

impl Cuda {
    fn open() -> Self {
        // SAFETY: the library was built from this crate and has only Rust's initialisers.
        Self(unsafe { Library::new(mxprobe_fake_driver::library().unwrap()) }.unwrap())
    }

    fn entry<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: the types given below are those of cuda.h.
        unsafe { self.0.get(name.as_bytes()) }.unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

macro_rules! call {
    ($cuda:ident . $name:ident ( $($value:expr => $kind:ty),* )) => {{
        let entry: Symbol<'_, unsafe extern "C" fn($($kind),*) -> c_int> = $cuda.entry(stringify!($name));
        // SAFETY: every pointer is to a variable that outlives the call.
        let code = unsafe { entry($($value),*) };
        println!("{}={code}", stringify!($name));
        code
    }};
}

/// Makes all calls of a run and prints the result code of each, until one fails.
#[test]
#[ignore = "the other tests run it in separate processes"]
fn scenario() {
    run_scenario();
}

fn run_scenario() -> Option<()> {
    let cuda = Cuda::open();
    let succeeded = |code: c_int| (code == 0).then_some(());
    succeeded(call!(cuda.cuInit(0 => c_uint)))?;
    let (mut version, mut major, mut minor) = (0, 0, 0);
    succeeded(call!(cuda.cuDriverGetVersion(&raw mut version => *mut c_int)))?;
    println!("version={version}");
    succeeded(call!(cuda.cuDeviceGetAttribute(&raw mut major => *mut c_int, 75 => c_int, 0 => c_int)))?;
    succeeded(call!(cuda.cuDeviceGetAttribute(&raw mut minor => *mut c_int, 76 => c_int, 0 => c_int)))?;
    println!("capability={major}.{minor}");
    let mut multiprocessors = 0;
    succeeded(call!(cuda.cuDeviceGetAttribute(&raw mut multiprocessors => *mut c_int, 16 => c_int, 0 => c_int)))?;
    println!("multiprocessors={multiprocessors}");
    let mut name = [0; 100];
    succeeded(call!(cuda.cuDeviceGetName(name.as_mut_ptr() => *mut c_char, 100 => c_int, 0 => c_int)))?;
    // SAFETY: the name ends with a NUL.
    println!("name={}", unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().unwrap());
    println!("double={}", call!(cuda.mxprobe_fake_driver()));
    let mut context = 0usize;
    succeeded(call!(cuda.cuDevicePrimaryCtxRetain(&raw mut context => *mut usize, 0 => c_int)))?;
    assert_eq!(call!(cuda.cuCtxSynchronize()), 201, "a thread without a context");
    succeeded(call!(cuda.cuCtxSetCurrent(context => usize)))?;
    let cubin = link(&cuda)?;
    let (mut module, mut function, mut address) = (0u64, 0u64, 0u64);
    succeeded(call!(cuda.cuModuleLoadData(&raw mut module => *mut u64, cubin.as_ptr().cast() => *const c_void)))?;
    let name = c"numbers".as_ptr();
    succeeded(call!(cuda.cuModuleGetFunction(&raw mut function => *mut u64, module => u64, name => *const c_char)))?;
    succeeded(call!(cuda.cuMemAlloc_v2(&raw mut address => *mut u64, 256 => usize)))?;
    succeeded(call!(cuda.cuMemsetD8Async(address => u64, 0xee => u8, 256 => usize, 0 => u64)))?;
    for _ in 0..3 {
        launch(&cuda, function, address)?;
    }
    if call!(cuda.cuCtxSynchronize()) != 0 {
        goes_on_after_a_loss(&cuda);
        return None;
    }
    let mut words = [0u32; 64];
    let to = words.as_mut_ptr().cast();
    succeeded(call!(cuda.cuMemcpyDtoHAsync_v2(to => *mut c_void, address => u64, 256 => usize, 0 => u64)))?;
    println!("words={:x?}", [words[0], words[31], words[32], words[63]]);
    succeeded(call!(cuda.cuMemFree_v2(address => u64)))?;
    succeeded(call!(cuda.cuModuleUnload(module => u64)))
}

/// Shows that a lost context stays lost when it is released and retained, until it is reset.
fn goes_on_after_a_loss(cuda: &Cuda) {
    let mut context = 0usize;
    let usable = || {
        let mut address = 0u64;
        call!(cuda.cuMemAlloc_v2(&raw mut address => *mut u64, 256 => usize))
    };
    println!("lost={}", usable());
    call!(cuda.cuDevicePrimaryCtxRelease_v2(0 => c_int));
    call!(cuda.cuDevicePrimaryCtxRetain(&raw mut context => *mut usize, 0 => c_int));
    call!(cuda.cuCtxSetCurrent(context => usize));
    println!("retained={}", usable());
    call!(cuda.cuDevicePrimaryCtxReset_v2(0 => c_int));
    println!("reset={}", usable());
}

fn launch(cuda: &Cuda, function: u64, address: u64) -> Option<()> {
    let count = 32u32;
    let parameters: [*const c_void; 2] = [ptr::from_ref(&address).cast(), ptr::from_ref(&count).cast()];
    let code = call!(cuda.cuLaunchKernel(function => u64, 1 => c_uint, 1 => c_uint, 1 => c_uint, 64 => c_uint, 1 => c_uint,
        1 => c_uint, 0 => c_uint, 0 => u64, parameters.as_ptr() => *const *const c_void, ptr::null() => *const c_void));
    (code == 0).then_some(())
}

/// Links the source and prints the error log and which opcodes the code has. `MXPROBE_TEST_TARGET` is the value of
/// `CU_JIT_TARGET`.
fn link(cuda: &Cuda) -> Option<Vec<u8>> {
    let mut log = [0u8; 1000];
    let asked = env::var("MXPROBE_TEST_TARGET").ok().map(|target| target.parse::<usize>().unwrap());
    let options: [c_uint; 3] = [5, 6, 9];
    let values: [usize; 3] = [log.as_mut_ptr() as usize, log.len(), asked.unwrap_or_default()];
    let count = if asked.is_some() { 3 } else { 2 };
    let (mut state, mut start, mut len) = (0usize, ptr::null::<u8>(), 0usize);
    let (options, values) = (options.as_ptr(), values.as_ptr());
    call!(cuda.cuLinkCreate_v2(count => c_uint, options => *const c_uint, values => *const usize, &raw mut state => *mut usize));
    let target = env::var("MXPROBE_TEST_TEXT").unwrap_or_else(|_| "sm_80".to_owned());
    let version = if target == "sm_80" { "7.0" } else { "8.0" };
    let source = SOURCE.replace(".target sm_80", &format!(".target {target}")).replace("7.0", version) + "\0";
    let added = call!(cuda.cuLinkAddData_v2(state => usize, 1 => c_uint, source.as_ptr() => *const u8, source.len() => usize,
        c"k".as_ptr() => *const c_char, 0 => c_uint, ptr::null() => *const c_uint, ptr::null() => *const usize));
    if log[0] != 0 {
        println!("log={}", String::from_utf8_lossy(&log).trim_end_matches('\0'));
    }
    if added != 0 {
        return None;
    }
    call!(cuda.cuLinkComplete(state => usize, &raw mut start => *mut *const u8, &raw mut len => *mut usize));
    // SAFETY: the fake driver owns these bytes until the state is destroyed.
    let cubin = unsafe { std::slice::from_raw_parts(start, len) }.to_vec();
    call!(cuda.cuLinkDestroy(state => usize));
    // Sections begin at multiples of 16, and so do instructions.
    let opcode = |chunk: &[u8]| u16::from_le_bytes([chunk[0], chunk[1]]) & 0xfff;
    let has = |wanted: u16| cubin.chunks_exact(16).any(|chunk| opcode(chunk) == wanted);
    println!("hmma={} ffma={}", has(0x23c), has(0x223));
    Some(cubin)
}

/// The lines that the scenario printed, by key, and the exit code of its process.
fn outcome(settings: &[(&str, &str)]) -> (BTreeMap<String, String>, Option<i32>) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "scenario", "--ignored", "--nocapture"]);
    command.envs(settings.iter().map(|(name, value)| (format!("MXPROBE_FAKE_{name}"), value)));
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let mut found = BTreeMap::new();
    for (key, value) in pairs {
        // The test harness prints its own words before the first line.
        let key = key.rsplit(' ').next().unwrap();
        let value = if key == "ffma" { line_end(&text, "hmma=") } else { value.to_owned() };
        found.insert(key.to_owned(), value);
    }
    (found, output.status.code())
}

fn line_end(text: &str, key: &str) -> String {
    text.lines().find_map(|line| line.split_once(key)).map(|(_, rest)| rest.to_owned()).unwrap_or_default()
}

fn faulty(fault: &str) -> BTreeMap<String, String> {
    outcome(&[("MODEL", "a100"), ("FAULT", fault)]).0
}

#[test]
fn without_a_fault_a_kernel_is_compiled_loaded_and_run() {
    let (found, code) = outcome(&[("MODEL", "a100")]);
    assert_eq!(code, Some(0), "{found:?}");
    assert_eq!(found["words"], "[1, 5e, 41800000, 41800000]");
    assert_eq!(found["version"], "13000");
    assert_eq!(found["capability"], "8.0");
    assert_eq!(found["name"], "mxprobe test double of a100 (PTX interpreter, no GPU)");
    assert_eq!(found["double"], "1");
    assert_eq!(found["hmma"], "true ffma=false");
}

#[test]
fn the_environment_decides_what_it_is() {
    let (found, _) = outcome(&[("MODEL", "l40s@zero-exponent-mmasim-1"), ("CAPABILITY", "8.6"), ("DRIVER", "12040")]);
    assert_eq!((&*found["capability"], &*found["version"]), ("8.6", "12040"));
    assert_eq!(found["multiprocessors"], "8");
    let (found, _) = outcome(&[("MULTIPROCESSORS", "132")]);
    assert_eq!(found["multiprocessors"], "132");
    for (name, value) in [
        ("MODEL", "nothing"),
        ("CAPABILITY", "9"),
        ("DRIVER", "new"),
        ("FAULT", "tired"),
        ("AFTER", "-1"),
        ("ERROR", "12345"),
        ("LINKER", "gold"),
        ("JIT", "none"),
        ("MULTIPROCESSORS", "0"),
    ] {
        let (found, _) = outcome(&[(name, value)]);
        assert_eq!(found["cuInit"], "100", "{name}={value}");
        assert_eq!(found.len(), 1, "{found:?}");
    }
}

#[test]
fn initialisation_fails_as_the_drivers_do() {
    for (fault, code) in [("no-device", "100"), ("stub", "34"), ("mismatch", "803")] {
        let found = faulty(fault);
        assert_eq!((found.len(), &*found["cuInit"]), (1, code), "{fault}");
    }
}

#[test]
fn compilation_fails_with_a_code_and_a_log() {
    assert_eq!(faulty("no-jit")["cuLinkAddData_v2"], "221");
    let refused = faulty("invalid-ptx");
    assert_eq!(refused["cuLinkAddData_v2"], "218");
    assert!(refused["log"].contains("line 1; error"), "{refused:?}");
    let (old, _) = outcome(&[("MODEL", "t4")]);
    assert_eq!(old["cuLinkAddData_v2"], "209");
    let (old, _) = outcome(&[("MODEL", "a100"), ("DRIVER", "10020")]);
    assert_eq!(old["cuLinkAddData_v2"], "222");
    assert!(old["log"].contains("Unsupported .version 7.0"), "{old:?}");
}

#[test]
fn memory_and_launches_fail_as_asked() {
    assert_eq!(faulty("oom")["cuMemAlloc_v2"], "2");
    assert_eq!(faulty("launch")["cuLaunchKernel"], "719");
    let later = faulty("launch-async");
    assert_eq!((&*later["cuLaunchKernel"], &*later["cuCtxSynchronize"]), ("0", "719"), "launches do not wait");
    let silent = faulty("silent");
    assert_eq!(silent["words"], "[eeeeeeee, eeeeeeee, eeeeeeee, eeeeeeee]");
    let scalar = faulty("wrong-opcode");
    assert_eq!(scalar["hmma"], "false ffma=true");
    assert_eq!(scalar["words"], "[1, 5e, 41800000, 41800000]");
}

#[test]
fn a_device_gets_lost_after_so_many_launches() {
    let (found, _) = outcome(&[("MODEL", "a100"), ("FAULT", "device-lost"), ("AFTER", "2")]);
    assert_eq!(found["cuLaunchKernel"], "719");
    assert!(!found.contains_key("words"));
    let (found, _) = outcome(&[("MODEL", "a100"), ("FAULT", "device-lost"), ("AFTER", "3")]);
    assert_eq!(found["cuLaunchKernel"], "0");
    assert!(found.contains_key("words"));
}

#[test]
fn a_context_that_is_lost_stays_lost_until_it_is_reset() {
    let (found, _) = outcome(&[("MODEL", "a100"), ("FAULT", "launch-async"), ("ERROR", "999")]);
    assert_eq!(found["cuCtxSynchronize"], "999");
    assert_eq!([&*found["lost"], &*found["retained"], &*found["reset"]], ["999", "999", "0"]);
}

#[test]
fn a_compiler_takes_the_targets_that_it_is_asked_to_take() {
    let linked = |jit: &str, text: &str, asked: &str| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "scenario", "--ignored", "--nocapture"]);
        command.envs([("MXPROBE_FAKE_MODEL", "h100"), ("MXPROBE_FAKE_JIT", jit), ("MXPROBE_TEST_TEXT", text)]);
        if !asked.is_empty() {
            command.env("MXPROBE_TEST_TARGET", asked);
        }
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let code = said.lines().find_map(|line| line.strip_prefix("cuLinkAddData_v2="));
        code.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    // 65626 is CU_TARGET_COMPUTE_90A.
    for (jit, text, asked, code) in [
        ("any", "sm_90a", "", "0"),
        ("any", "sm_90a", "65636", "218"),
        ("explicit-target", "sm_90a", "", "218"),
        ("explicit-target", "sm_90a", "90", "218"),
        ("explicit-target", "sm_90a", "65626", "0"),
        ("explicit-target", "sm_80", "", "0"),
        ("load-only", "sm_90a", "65626", "218"),
        ("load-only", "sm_90", "", "0"),
    ] {
        assert_eq!(linked(jit, text, asked), code, "{jit} {text} {asked}");
    }
}

#[test]
fn linking_may_succeed_with_an_error_in_its_log() {
    let found = faulty("error-in-log");
    assert_eq!(found["cuLinkAddData_v2"], "0");
    assert!(found["log"].contains("error"), "{found:?}");
    assert!(found.contains_key("words"), "{found:?}");
}

#[test]
fn an_abort_ends_the_process_and_a_hang_does_not() {
    let (_, code) = outcome(&[("MODEL", "a100"), ("FAULT", "abort")]);
    assert_eq!(code, None, "ended by a signal");
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "scenario", "--ignored"])
        .envs([("MXPROBE_FAKE_MODEL", "a100"), ("MXPROBE_FAKE_FAULT", "hang")]);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        assert!(child.try_wait().unwrap().is_none(), "the launch returned");
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn it_is_installed_under_the_drivers_names() {
    let folder = tempfile::tempdir().unwrap();
    mxprobe_fake_driver::install(folder.path()).unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        // SAFETY: as above.
        let library = unsafe { Library::new(folder.path().join(name)) }.unwrap();
        // SAFETY: the symbol is looked up and not called.
        assert!(unsafe { library.get::<unsafe extern "C" fn()>(b"cuInit") }.is_ok());
    }
}
