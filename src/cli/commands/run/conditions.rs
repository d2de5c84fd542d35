//! Conditions of a device at one moment, as the system reports them: clocks, temperature, power, partitioning.
//!
//! They are read independently of the probed driver, so that nothing here can take down a run: from files of the
//! kernel, and from the program that ships with NVIDIA's driver, which is killed if it takes too long. Readings that
//! are not available are omitted.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    in_order::InOrder,
    report::{DeviceRecord, Kind},
};

/// Readings by name; the names include the unit.
type Readings = BTreeMap<String, String>;

/// The time limit for a program to answer.
const LIMIT: Duration = Duration::from_secs(5);

/// The fields queried from `nvidia-smi` (*specified*: `nvidia-smi --help-query-gpu`), with their names in a report.
const NVIDIA: [(&str, &str); 6] = [
    ("clocks.sm", "clock_sm_mhz"),
    ("clocks.mem", "clock_memory_mhz"),
    ("temperature.gpu", "temperature_c"),
    ("power.draw", "power_w"),
    ("power.limit", "power_limit_w"),
    ("mig.mode.current", "mig"),
];

/// The files that Linux drivers offer for a PCI device (*specified*: the kernel's hwmon/sysfs-interface,
/// gpu/amdgpu/thermal and i915's sysfs): a file, the name of the reading, and the divisor of its number.
const FILES: [(&str, &str, f64); 7] = [
    ("hwmon/*/freq1_input", "clock_mhz", 1e6),
    ("hwmon/*/freq2_input", "clock_memory_mhz", 1e6),
    ("hwmon/*/temp1_input", "temperature_c", 1e3),
    ("hwmon/*/power1_average", "power_w", 1e6),
    ("hwmon/*/power1_input", "power_w", 1e6),
    ("hwmon/*/power1_cap", "power_limit_w", 1e6),
    ("drm/card*/gt_act_freq_mhz", "clock_mhz", 1.0),
];

/// Returns the current conditions of a device; empty for a model, a double or a driver that computes on the CPU.
pub(crate) fn now(device: &DeviceRecord) -> Readings {
    let property = |name: &str| device.properties.get(name).map(String::as_str);
    if device.kind != Kind::Hardware || device.emulated {
        return Readings::new();
    }
    match (property("pci_bus_id"), property("vendor_id")) {
        (Some(place), Some("0x10de")) => nvidia("nvidia-smi", place, LIMIT),
        (Some(place), _) => of_pci(&Path::new("/sys/bus/pci/devices").join(place)),
        (None, _) if device.backend == "cpu" => of_cpu(Path::new("/sys/devices/system/cpu")),
        _ => Readings::new(),
    }
}

/// Asks NVIDIA's program for the readings of the GPU at an address on the bus.
fn nvidia(program: &str, place: &str, limit: Duration) -> Readings {
    let names: Vec<&str> = NVIDIA.iter().map(|(asked, _)| *asked).collect();
    let mut command = Command::new(program);
    command.args(["-i", place, "--format=csv,noheader,nounits"]).arg(format!("--query-gpu={}", names.join(",")));
    let Some(line) = first_line(&mut command, limit) else { return Readings::new() };
    let cells = line.split(',').map(str::trim);
    let known = NVIDIA.iter().zip(cells).filter(|(_, cell)| !cell.is_empty() && !cell.starts_with('['));
    known.map(|((_, name), cell)| ((*name).to_owned(), cell.to_owned())).collect()
}

/// Returns the first line that a program prints, if it exits successfully within a time limit.
fn first_line(command: &mut Command, limit: Duration) -> Option<String> {
    let end = Instant::now() + limit;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    child.stdout.take()?.take(4096).read_to_string(&mut text).ok()?;
    status.success().then(|| text.lines().next().map(str::to_owned)).flatten()
}

/// Reads the kernel's files of a PCI device, given its directory.
fn of_pci(device: &Path) -> Readings {
    let mut readings = Readings::new();
    for (pattern, name, unit) in FILES {
        if let Some(number) = matching(device, pattern) {
            readings.entry(name.to_owned()).or_insert_with(|| (number / unit).to_string());
        }
    }
    readings
}

/// Returns the number in the first file that matches a pattern `FOLDER/GLOB/FILE`.
fn matching(device: &Path, pattern: &str) -> Option<f64> {
    let (folder, rest) = pattern.split_once('/')?;
    let (glob, file) = rest.split_once('/')?;
    let entries = fs::read_dir(device.join(folder)).ok()?.filter_map(Result::ok);
    let mut folders: Vec<_> =
        entries.filter(|entry| crate::session::matches(glob, &entry.file_name().to_string_lossy())).collect();
    folders.order_by_key(fs::DirEntry::file_name);
    folders.iter().find_map(|entry| number(&entry.path().join(file)))
}

fn number(file: &Path) -> Option<f64> {
    fs::read_to_string(file).ok()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns the fastest clock among the CPUs in this directory, if the kernel reports clocks.
fn of_cpu(cpus: &Path) -> Readings {
    let entries = fs::read_dir(cpus).into_iter().flatten().filter_map(Result::ok);
    let clocks = entries.filter_map(|entry| number(&entry.path().join("cpufreq/scaling_cur_freq")));
    let fastest = clocks.reduce(f64::max);
    fastest.map(|khz| ("clock_fastest_mhz".to_owned(), (khz / 1e3).to_string())).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = directory.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        directory
    }

    fn readings(found: &Readings) -> Vec<(&str, &str)> {
        found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    #[test]
    fn files_of_the_kernel_are_read_in_the_units_of_their_names() {
        let device = written(&[
            ("hwmon/hwmon3/freq1_input", "2100000000\n"),
            ("hwmon/hwmon3/temp1_input", "47500\n"),
            ("hwmon/hwmon3/power1_average", "31000000\n"),
            ("hwmon/hwmon3/power1_input", "99000000\n"),
            ("hwmon/hwmon3/power1_cap", "no number"),
        ]);
        let found = of_pci(device.path());
        assert_eq!(readings(&found), [("clock_mhz", "2100"), ("power_w", "31"), ("temperature_c", "47.5")]);
        let intel = written(&[("drm/card1/gt_act_freq_mhz", "1450\n"), ("drm/renderD128/dev", "226:128\n")]);
        assert_eq!(readings(&of_pci(intel.path())), [("clock_mhz", "1450")]);
        let cpus =
            written(&[("cpu0/cpufreq/scaling_cur_freq", "800000\n"), ("cpu1/cpufreq/scaling_cur_freq", "3500000\n")]);
        assert_eq!(readings(&of_cpu(cpus.path())), [("clock_fastest_mhz", "3500")]);
        for nothing in [of_pci(Path::new("/no/such")), of_cpu(Path::new("/no/such"))] {
            assert!(nothing.is_empty());
        }
    }

    /// A program that runs a shell script.
    #[cfg(unix)]
    fn program(script: &str) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        let directory = written(&[("smi", &format!("#!/bin/sh\n{script}\n"))]);
        fs::set_permissions(directory.path().join("smi"), fs::Permissions::from_mode(0o755)).unwrap();
        directory
    }

    #[test]
    #[cfg(unix)]
    fn what_the_program_of_a_driver_does_not_know_is_left_out_and_one_that_hangs_is_stopped() {
        let asked = |script: &str, limit: Duration| {
            let directory = program(script);
            nvidia(directory.path().join("smi").to_str().unwrap(), "0000:01:00.0", limit)
        };
        let found = asked("[ \"$2\" = 0000:01:00.0 ] && echo '1980, 2619, 35, [N/A], 700.00, Disabled'", LIMIT);
        let wanted = [
            ("clock_memory_mhz", "2619"),
            ("clock_sm_mhz", "1980"),
            ("mig", "Disabled"),
            ("power_limit_w", "700.00"),
            ("temperature_c", "35"),
        ];
        assert_eq!(readings(&found), wanted);
        assert!(asked("echo 'Field is not a valid field'; exit 2", LIMIT).is_empty());
        assert!(asked("exit 0", LIMIT).is_empty());
        assert!(nvidia("/no/such/program", "0000:01:00.0", LIMIT).is_empty());
        let start = Instant::now();
        assert!(asked("exec sleep 60", Duration::from_millis(100)).is_empty());
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
