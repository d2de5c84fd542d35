//! How many `mma.m16n8k16.f32.f16.f16.f32` the fake driver computes a second, loads and stores included:
//! `cargo run --release -p mxprobe-fake-driver --example multiplies`, after `cargo build --release -p mxprobe-fake-driver`.
#![allow(clippy::print_stdout)]

use std::{error::Error, ffi::c_void, ptr, time::Instant};

use libloading::Library;

const MULTIPLIES: u32 = 1 << 16;

const SOURCE: &std::ffi::CStr = c"
.version 7.0
.target sm_80
.address_size 64
.visible .entry tiles(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u32 count)
{
    .reg .b32 %a<4>, %b<2>, %c<4>, %d<4>, %lane, %p, %stride, %n, %w; .reg .b64 %pa, %pb, %pc, %pd, %at; .reg .pred %more;
    mov.u32 %lane, %tid.x; and.b32 %lane, %lane, 31;
    ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c]; ld.param.u64 %pd, [d]; ld.param.u32 %n, [count];
    mad.wide.u32 %pa, %lane, 4, %pa; mad.wide.u32 %pb, %lane, 4, %pb;
    mad.wide.u32 %pc, %lane, 4, %pc; mad.wide.u32 %pd, %lane, 4, %pd;
    mov.u32 %w, %tid.x; shr.u32 %w, %w, 5; mov.u32 %p, %ctaid.x; mad.lo.u32 %p, %p, 4, %w;
    mov.u32 %stride, %nctaid.x; shl.b32 %stride, %stride, 2;
    setp.lt.u32 %more, %p, %n; @!%more bra finish;
next:
    mad.wide.u32 %at, %p, 512, %pa;
    ld.global.b32 %a0, [%at]; ld.global.b32 %a1, [%at+128]; ld.global.b32 %a2, [%at+256]; ld.global.b32 %a3, [%at+384];
    mad.wide.u32 %at, %p, 256, %pb;
    ld.global.b32 %b0, [%at]; ld.global.b32 %b1, [%at+128];
    mad.wide.u32 %at, %p, 512, %pc;
    ld.global.b32 %c0, [%at]; ld.global.b32 %c1, [%at+128]; ld.global.b32 %c2, [%at+256]; ld.global.b32 %c3, [%at+384];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0,%d1,%d2,%d3}, {%a0,%a1,%a2,%a3}, {%b0,%b1}, {%c0,%c1,%c2,%c3};
    mad.wide.u32 %at, %p, 512, %pd;
    st.global.b32 [%at], %d0; st.global.b32 [%at+128], %d1; st.global.b32 [%at+256], %d2; st.global.b32 [%at+384], %d3;
    add.u32 %p, %p, %stride; setp.lt.u32 %more, %p, %n; @%more bra next;
finish:
    ret;
}
";

macro_rules! call {
    ($library:ident . $name:ident ( $($value:expr => $kind:ty),* )) => {{
        // SAFETY: the types are those of cuda.h, and every pointer is to a variable that outlives the call.
        let code = unsafe {
            $library.get::<unsafe extern "C" fn($($kind),*) -> i32>(stringify!($name).as_bytes())?($($value),*)
        };
        if code != 0 {
            return Err(format!("{} returned {code}", stringify!($name)).into());
        }
    }};
}

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: the library was built from this crate; its initialisers are Rust's.
    let cuda = unsafe { Library::new(mxprobe_fake_driver::library()?) }?;
    let (mut context, mut module, mut function) = (0usize, 0u64, 0u64);
    call!(cuda.cuInit(0 => u32));
    call!(cuda.cuDevicePrimaryCtxRetain(&raw mut context => *mut usize, 0 => i32));
    call!(cuda.cuCtxSetCurrent(context => usize));
    call!(cuda.cuModuleLoadData(&raw mut module => *mut u64, SOURCE.as_ptr() => *const i8));
    call!(cuda.cuModuleGetFunction(&raw mut function => *mut u64, module => u64, c"tiles".as_ptr() => *const i8));
    let mut addresses = [0u64; 4];
    for (address, bytes) in addresses.iter_mut().zip([512, 256, 512, 512]) {
        let len = bytes * MULTIPLIES as usize;
        call!(cuda.cuMemAlloc_v2(ptr::from_mut(address) => *mut u64, len => usize));
        // 0x3b in every byte: 0.9 in f16, 0.003 in f32.
        call!(cuda.cuMemsetD8_v2(*address => u64, 0x3b => u8, len => usize));
    }
    let count = MULTIPLIES;
    let mut parameters: Vec<*const c_void> = addresses.iter().map(|address| ptr::from_ref(address).cast()).collect();
    parameters.push(ptr::from_ref(&count).cast());
    for _ in 0..3 {
        let start = Instant::now();
        call!(cuda.cuLaunchKernel(function => u64, 32 => u32, 1 => u32, 1 => u32, 128 => u32, 1 => u32, 1 => u32, 0 => u32, 0 => u64,
            parameters.as_ptr() => *const *const c_void, ptr::null() => *const c_void));
        call!(cuda.cuCtxSynchronize());
        println!("{:.0} multiplies a second", f64::from(MULTIPLIES) / start.elapsed().as_secs_f64());
    }
    Ok(())
}
