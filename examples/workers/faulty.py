"""A device with one fault, chosen by its argument, to see how mxprobe reports it.

    mxprobe conformance --device 'exec:python3 examples/workers/faulty.py stochastic'

It does not use `mxprobe_worker.py`, which prevents most of these mistakes. Without an argument it is correct:
an f32 chain that starts from c, each product and then each sum rounded to f32.
"""

import array
import json
import os
import random
import sys
import time

FAULTS = {
    "none": "nothing is wrong",
    # How it describes itself.
    "silent": "never answers",
    "ends": "ends before it answers",
    "greets": "prints a line before each answer, which is allowed",
    "not-json": "answers `discover` with a line that is not JSON",
    "not-an-answer": "answers `discover` with `{\"answer\":\"here I am\"}`",
    "other-version": "speaks mxprobe-device/9",
    "no-devices": "has no devices",
    "no-name": "leaves out the device's name",
    "no-operations": "has no operations",
    "bad-id": "has an operation `matmul`",
    "bad-format": "has an operation with the format fp32",
    "refuses": "answers `failed` to `discover`",
    # How it answers `execute`.
    "hangs": "never answers `execute`",
    "dies": "exits with 3 at `execute`",
    "aborts": "aborts at `execute`",
    "raises": "answers `failed` to `execute`",
    "silent-about-why": "answers `failed` without a message",
    "rubbish": "answers `execute` with bytes that are not a message",
    "endless": "answers `execute` with a line of 100 MiB that does not end",
    "half": "ends in the middle of a part",
    "other-answer": "answers `execute` as if it were `open`",
    "fewer-bytes": "returns one element too few",
    "more-bytes": "returns one element too many",
    "odd-bytes": "returns three bytes and a half element",
    "huge-bytes": "announces 10^18 bytes",
    "negative-bytes": "announces -4 bytes",
    "two-parts": "returns D in two parts",
    "no-part": "returns no part",
    "prints-inside": "prints between the line of an answer and its part",
    "one-behind": "answers each `execute` with the previous result, if that has the same size",
    # How it computes.
    "stochastic": "flips the last bit of every result at random",
    "remembers": "adds 1 to the results of every second request",
    "first-tile": "computes the first tile of a request for all of them",
    "nan": "returns a NaN for every element",
    "zeros": "returns zeros",
    "ignores-c": "leaves out c",
    "transposed-b": "reads B as n×k",
    "transposed-d": "writes D by columns",
    "big-endian": "takes and returns elements in the other byte order",
    "fixed-shape": "computes with m = n = 8, whatever sizes are asked for",
}


def main():
    fault = sys.argv[1] if len(sys.argv) == 2 else "none" if len(sys.argv) == 1 else ""
    if fault not in FAULTS:
        width = max(map(len, FAULTS))
        sys.exit("usage: faulty.py FAULT\n" + "".join(f"  {name:{width}}  {what}\n" for name, what in FAULTS.items()))
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    before, count = b"", 0
    while line := requests.readline():
        request = json.loads(line)
        parts = [requests.read(length) for length in request.get("bytes", [])]
        if fault == "silent":
            hang()
        if fault == "ends":
            return
        if fault == "greets":
            answers.write("Vendor runtime 1.0 — ready\n".encode())
        if request["ask"] != "execute":
            answers.write(of_itself(fault, request["ask"]))
        else:
            count += 1
            d = execute(fault, request, parts, count)
            is_behind = fault == "one-behind" and len(before) == len(d)
            answers.write(framed(fault, before if is_behind else d, answers))
            before = d
        answers.flush()


def hang():
    while True:
        time.sleep(3600)


def message(**members):
    return json.dumps(members).encode() + b"\n"


def of_itself(fault, ask):
    """The answer to `discover` or `open`."""
    if ask not in ("discover", "open"):
        return message(answer="failed", kind="unsupported", message=f"`{ask}` is not answered")
    if fault == "not-json":
        return b"{answer: found}\n"
    if fault == "not-an-answer":
        return message(answer="here I am")
    if fault == "refuses":
        return message(answer="failed", kind="missing_driver", message="libvendor.so is not on this machine")
    id = {"bad-id": "matmul", "bad-format": "gemm.m*n*k*.fp32.f32.f32.f32"}.get(fault, "gemm.m*n*k*.f32.f32.f32.f32")
    device = {"selector": "0", "name": f"Faulty ({fault})", "fingerprint": "faulty", "operations": [id]}
    if fault == "no-name":
        del device["name"]
    if fault == "no-operations":
        device["operations"] = []
    if ask == "open":
        return message(answer="opened", device=device)
    version = "mxprobe-device/9" if fault == "other-version" else "mxprobe-device/1"
    return message(answer="found", protocol=version, devices=[] if fault == "no-devices" else [device])


def framed(fault, d, answers):
    """The answer to `execute`."""
    done = {"answer": "done"}
    if fault == "raises":
        return message(answer="failed", kind="driver", message="ZeroDivisionError: division by zero")
    if fault == "silent-about-why":
        return message(answer="failed")
    if fault == "rubbish":
        return bytes(range(256)) * 4 + b"\n"
    if fault == "endless":
        for _ in range(100):
            answers.write(b"x" * (1 << 20))
        answers.flush()
        hang()
    if fault == "half":
        answers.write(message(**done, bytes=[len(d)]) + d[: len(d) // 2])
        answers.flush()
        os._exit(0)
    if fault == "other-answer":
        return of_itself(fault, "open")
    if fault == "fewer-bytes":
        d = d[:-4]
    if fault == "more-bytes":
        d += d[-4:]
    if fault == "odd-bytes":
        d = d[:-1]
    if fault == "huge-bytes":
        return message(**done, bytes=[10**18])
    if fault == "negative-bytes":
        return message(**done, bytes=[-4])
    if fault == "two-parts":
        return message(**done, bytes=[4, len(d) - 4]) + d
    if fault == "no-part":
        return message(**done)
    if fault == "prints-inside":
        return message(**done, bytes=[len(d)]) + b"42 tiles\n" + d
    return message(**done, bytes=[len(d)]) + d


def execute(fault, request, parts, count):
    """D of a batch of tiles."""
    if fault == "hangs":
        hang()
    if fault == "dies":
        print("the vendor's runtime gave up", file=sys.stderr, flush=True)
        os._exit(3)
    if fault == "aborts":
        os.abort()
    shape = request["operation"].split(".")[1][1:].replace("n", " ").replace("k", " ")
    m, n, k = map(int, shape.split())
    a, b, c = (array.array("f", part) for part in parts)
    if fault == "big-endian":
        for operand in (a, b, c):
            operand.byteswap()
    if fault == "fixed-shape":
        m = n = 8
    d = array.array("f")
    for tile in range(request["tiles"]):
        of = 0 if fault == "first-tile" else tile
        one = []
        for row in range(m):
            for column in range(n):
                value = at(c, (of * m + row) * n + column)
                one.append(chain(fault, value, of, (m, n, k), (row, column), a, b))
        if fault == "transposed-d":
            one = [one[row * n + column] for column in range(n) for row in range(m)]
        d.extend(one)
    if fault == "stochastic":
        bits = array.array("I", d.tobytes())
        d = array.array("I", (word ^ random.getrandbits(1) for word in bits))
    if fault == "remembers":
        d = array.array("f", (value + 1 - count % 2 for value in d))
    if fault == "nan":
        d = array.array("f", [float("nan")] * len(d))
    if fault == "zeros":
        d = array.array("f", [0.0] * len(d))
    if fault == "big-endian":
        d.byteswap()
    return d.tobytes()


def chain(fault, value, tile, sizes, place, a, b):
    m, n, k = sizes
    row, column = place
    if fault == "ignores-c":
        value = 0.0
    for step in range(k):
        of_b = column * k + step if fault == "transposed-b" else step * n + column
        product = rounded(at(a, (tile * m + row) * k + step) * at(b, tile * k * n + of_b))
        value = rounded(value + product)
    return value


def rounded(value):
    """A product or a sum of two f32, rounded to f32; the earlier rounding to f64 does not change the result."""
    return array.array("f", [value])[0]


def at(elements, index):
    return elements[index] if index < len(elements) else 0.0


if __name__ == "__main__":
    main()
