"""Tests by which routes the driver's compiler accepts PTX: jit.py ORDINAL FOLDER, with the texts as FOLDER/*.ptx.

A route is cuLink with the target of the context, with CU_JIT_TARGET of the device, or with that of its
architecture-specific features, or cuModuleLoadData of the text. Prints a line for each: the outcome, the milliseconds,
the size of the cubin and the compiler's messages; cubins are kept next to the texts. Needs Python and libcuda.so.1.
"""

import ctypes
import os
import sys
import time

# CUjitInputType, CUjit_option and CUdevice_attribute of cuda.h; CU_TARGET_COMPUTE_90A is 65536 + 90.
INPUT_PTX = 1
INFO_LOG, INFO_BYTES, ERROR_LOG, ERROR_BYTES, TARGET, VERBOSE = 3, 4, 5, 6, 9, 12
MAJOR, MINOR = 75, 76
ACCELERATED = 65536
LOG_BYTES = 1 << 16

driver = ctypes.CDLL("libcuda.so.1")


def name(code):
    text = ctypes.c_char_p()
    if code == 0:
        return "OK"
    known = driver.cuGetErrorName(code, ctypes.byref(text)) == 0 and text.value
    return text.value.decode() if known else str(code)


def need(call, code):
    if code:
        sys.exit(f"{call}: {name(code)}")


def link(text, target):
    """Links a text; returns the code, the call that gave it, the error log, and the cubin."""
    info, errors = ctypes.create_string_buffer(LOG_BYTES), ctypes.create_string_buffer(LOG_BYTES)
    options = {
        INFO_LOG: ctypes.addressof(info),
        INFO_BYTES: LOG_BYTES,
        ERROR_LOG: ctypes.addressof(errors),
        ERROR_BYTES: LOG_BYTES,
        VERBOSE: 1,
    }
    if target:
        options[TARGET] = target
    count = len(options)
    keys, values = (ctypes.c_int * count)(*options), (ctypes.c_void_p * count)(*options.values())
    state, out, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    code = driver.cuLinkCreate_v2(count, keys, values, ctypes.byref(state))
    if code:
        return code, "cuLinkCreate", "", b""
    cubin, call = b"", "cuLinkAddData"
    code = driver.cuLinkAddData_v2(
        state, INPUT_PTX, text, ctypes.c_size_t(len(text) + 1), b"kernel.ptx", 0, None, None
    )
    if not code:
        call = "cuLinkComplete"
        code = driver.cuLinkComplete(state, ctypes.byref(out), ctypes.byref(size))
        if not code:
            cubin = ctypes.string_at(out.value, size.value)
    driver.cuLinkDestroy(state)
    return code, call, " | ".join(errors.value.decode(errors="replace").split("\n")).strip(" |")[:300], cubin


def main(ordinal, folder):
    device, context, version = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    need("cuInit", driver.cuInit(0))
    need("cuDriverGetVersion", driver.cuDriverGetVersion(ctypes.byref(version)))
    need("cuDeviceGet", driver.cuDeviceGet(ctypes.byref(device), int(ordinal)))
    capability = 0
    for attribute, factor in ((MAJOR, 10), (MINOR, 1)):
        value = ctypes.c_int()
        need("cuDeviceGetAttribute", driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device))
        capability += factor * value.value
    need("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    need("cuCtxSetCurrent", driver.cuCtxSetCurrent(context))
    print("driver", version.value, "compute capability", capability)
    for file in sorted(os.listdir(folder)):
        base, extension = os.path.splitext(file)
        if extension != ".ptx":
            continue
        path = os.path.join(folder, file)
        with open(path, "rb") as opened:
            text = opened.read()
        print(base)
        for route, target in (("context", 0), ("target", capability), ("accelerated", ACCELERATED + capability)):
            began = time.monotonic()
            code, call, words, cubin = link(text, target)
            milliseconds = 1e3 * (time.monotonic() - began)
            loaded = ""
            if cubin:
                module = ctypes.c_void_p()
                loaded = f", loads: {name(driver.cuModuleLoadData(ctypes.byref(module), cubin))}"
                with open(os.path.join(folder, f"{base}.{route}.cubin"), "wb") as kept:
                    kept.write(cubin)
            print(f"  {route}: {name(code)} of {call}, {milliseconds:.0f} ms, {len(cubin)} bytes{loaded} {words}".rstrip())
        module = ctypes.c_void_p()
        print(f"  text: {name(driver.cuModuleLoadData(ctypes.byref(module), text + bytes(1)))}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
