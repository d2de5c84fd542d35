# All tasks of this repository; `just` lists them.

_list:
    @just --list --unsorted

# Probe this machine
run *arguments:
    cargo run --release -- {{ arguments }}

# Run every check of this repository: formatting, lints, tests, documentation
test:
    ./scripts/test

# Run the tests of one crate, or those with a name: `just only -p mxprobe-models`
only *arguments:
    cargo test --all-features {{ arguments }}

# Run the command's own tests
commands:
    cargo test --features fault-devices --test commands

# Fetch Vulkan drivers that need no GPU
vulkan-drivers:
    ./scripts/vulkan-drivers

# Run mxprobe with such a driver: `just vulkan radv:gfx1201 list`
vulkan driver *arguments: vulkan-drivers
    cargo build --release
    MXPROBE_VULKAN_DRIVER={{ driver }} .vulkan/run target/release/mxprobe {{ arguments }}

# Rewrite golden files from the drivers' current output
bless: vulkan-drivers
    MXPROBE_BLESS=1 cargo test -p mxprobe-shaders --all-features --test rendered
    MXPROBE_BLESS=1 cargo test -p mxprobe-vulkan
    MXPROBE_BLESS=1 cargo test --test commands --test readme

# Build the archive of a release
archive:
    ./scripts/archive

# Check licences, bans, advisories and sources of the dependencies
deny:
    cargo deny check

# Format the code
fmt:
    cargo fmt --all

# Open the documentation in a browser
doc:
    cargo doc --workspace --no-deps --open
