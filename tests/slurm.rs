//! The scripts of `examples/fleet/slurm`, run by a real controller and four real nodes on this machine.
#![cfg(all(target_os = "linux", feature = "fault-devices"))]
#![allow(missing_docs)]

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
/// Ends waits that would never end: far longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(600);

/// The arguments of the scripts' screens: a model, and a wrong device for nodes that a file marks.
const RIGHT: &str = "--device sim:h100 --op mma.m16n8k16.f32.f16.f16.f32 --no-cache";
const WRONG: &str = "--device fault:one-lane-wrong --model h100 --op mma.m16n8k16.f32.f16.f16.f32 --no-cache";

/// A controller, its nodes and munge, which end when this is dropped.
struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // munge requires folders for its socket that only their user can write to and that everyone can enter.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let mut cluster = Self { folder, daemons: Vec::new() };
        let at = |name: &str| cluster.path(name).display().to_string();
        fs::write(at("key"), b"a key of this test alone, which no other machine has").expect("it can be written");
        fs::set_permissions(at("key"), fs::Permissions::from_mode(0o600)).expect("it is ours");
        for name in ["state", "spool", "log"] {
            fs::create_dir(at(name)).expect("it can be made");
        }
        cluster.script("prolog");
        cluster.script("health-check");
        cluster.script("epilog");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let host = host.trim().split('.').next().unwrap_or_default();
        // Bound at the same time, so that they are different.
        let listeners: Vec<_> = (0..5).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports: Vec<u16> =
            listeners.iter().map(|listener| listener.local_addr().expect("an address").port()).collect();
        drop(listeners);
        let user = String::from_utf8(Command::new("id").arg("-un").output().expect("a user").stdout).expect("UTF-8");
        let user = user.trim();
        let mut text = format!(
            "ClusterName=mxprobe\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/munge\nAuthInfo=socket={}\nCredType=cred/munge\nStateSaveLocation={}\nSlurmdSpoolDir={}/%n\n\
             SlurmctldPidFile={}\nSlurmdPidFile={}.%n\nSlurmctldLogFile={}/slurmctld\nSlurmdLogFile={}/%n\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\nSwitchType=switch/none\n\
             SelectType=select/linear\nMailProg=/bin/true\nProlog={}\nEpilog={}\nHealthCheckProgram={}\n\
             HealthCheckInterval=5\nHealthCheckNodeState=ANY\nPartitionName=all Nodes=ALL Default=YES State=UP\n",
            ports[0],
            at("munge.socket"),
            at("state"),
            at("spool"),
            at("slurmctld.pid"),
            at("slurmd.pid"),
            at("log"),
            at("log"),
            at("prolog"),
            at("epilog"),
            at("health-check"),
        );
        for (node, port) in NODES.iter().zip(&ports[1..]) {
            text += &format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1\n");
            fs::create_dir(cluster.path("spool").join(node)).expect("it can be made");
        }
        fs::write(at("slurm.conf"), text).expect("it can be written");
        let munged = ["--foreground", "--force"].map(str::to_owned).into_iter().chain(
            [("key-file", "key"), ("socket", "munge.socket"), ("pid-file", "munged.pid"), ("seed-file", "seed")]
                .map(|(option, name)| format!("--{option}={}", at(name))),
        );
        let munged = munged.collect();
        let conf = at("slurm.conf");
        cluster.daemon("munged", munged);
        cluster.until("munge to listen", |cluster| cluster.path("munge.socket").exists());
        cluster.daemon("slurmctld", ["-D", "-f", &conf].map(str::to_owned).into());
        for node in NODES {
            cluster.daemon("slurmd", ["-D", "-N", node, "-f", &conf].map(str::to_owned).into());
        }
        cluster.until("four idle nodes", |cluster| NODES.iter().all(|node| cluster.state(node).starts_with("idle")));
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a script that runs one of the examples with its environment. On nodes with a file `wrong-NAME-NODE`, the
    /// device is a wrong one.
    fn script(&self, name: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/fleet/slurm/{name}.sh"));
        let text = format!(
            "#!/bin/sh\nexport MXPROBE='{}' SLURM_CONF='{}' BUDGET=100ms LOG='{}'\nexport SCREEN_ARGUMENTS='{RIGHT}'\n\
             [ -e '{}'-$SLURMD_NODENAME ] && SCREEN_ARGUMENTS='{WRONG}'\nexec '{}'\n",
            env!("CARGO_BIN_EXE_mxprobe"),
            self.path("slurm.conf").display(),
            self.path(&format!("{name}.jsonl")).display(),
            self.path(&format!("wrong-{name}")).display(),
            script.display(),
        );
        fs::write(self.path(name), text).expect("it can be written");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    fn daemon(&mut self, program: &str, arguments: Vec<String>) {
        let log = fs::File::create(self.path(&format!("log/{program}-{}.err", self.daemons.len()))).expect("a file");
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.path("slurm.conf"));
        let daemon = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect(program);
        self.daemons.push(daemon);
    }

    /// The output of a Slurm command; `None` if it failed, as it does while the controller is busy.
    fn answer(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.path("slurm.conf")).current_dir(self.folder.path());
        let output = command.output().expect(program);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        output.status.success().then(|| text.trim().to_owned())
    }

    /// The output of a Slurm command that is repeated until it succeeds.
    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let mut answer = None;
        self.until(&format!("{program} {arguments:?}"), |cluster| {
            answer = cluster.answer(program, arguments);
            answer.is_some()
        });
        answer.expect("it succeeded")
    }

    /// Whether no job waits, runs or completes.
    fn is_idle(&self) -> bool {
        self.answer("squeue", &["-h"]).is_some_and(|jobs| jobs.is_empty())
    }

    /// The state of a node, with its reason.
    fn state(&self, node: &str) -> String {
        self.ask("sinfo", &["-h", "-n", node, "-o", "%t %E"])
    }

    fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            if start.elapsed() > LIMIT {
                let logs = fs::read_dir(self.path("log")).expect("logs").map(|entry| entry.expect("a log").path());
                let logs: String = logs.filter_map(|path| fs::read_to_string(path).ok()).collect();
                panic!("waited in vain for {what}:\n{logs}");
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Submits a script of the examples with environment variables, and returns the id of the job.
    fn batch(&self, script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/slurm").join(script);
        let mut command = Command::new("sbatch");
        command.args(["--parsable", "--export=ALL"]).args(arguments).arg(script).current_dir(self.folder.path());
        command.env("SLURM_CONF", self.path("slurm.conf")).envs(variables.iter().copied());
        let output = command.output().expect("sbatch");
        if !output.status.success() {
            let files = fs::read_dir(self.folder.path()).expect("a folder").map(|entry| entry.expect("a file").path());
            let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
            let logs = logs.chain([self.path("log/slurmctld")]);
            let logs: String = logs.filter_map(|path| fs::read_to_string(path).ok()).collect();
            panic!("{}\n{logs}", String::from_utf8_lossy(&output.stderr));
        }
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    }

    /// Submits the array that screens.
    fn submit(&self, more: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/slurm/screen-array.sbatch");
        let export = format!(
            "--export=PATH,MXPROBE={},RESULTS={},BUDGET=100ms,SCREEN_ARGUMENTS={RIGHT},RUN_ARGUMENTS={}",
            env!("CARGO_BIN_EXE_mxprobe"),
            self.path("reports").display(),
            "--device sim:h100 --op mma.m16n8k16.f32.f16.f16.f32 --probe determinism",
        );
        let said = self.answer("sbatch", &[more, &[&export, script.to_str().expect("UTF-8")]].concat());
        assert!(said.as_ref().is_some_and(|said| said.starts_with("Submitted batch job")), "{said:?}");
    }
}

fn fleet(path: &Path) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    let output = command.args(["fleet", "--format", "json"]).arg(path).output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    (output.status.code(), serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

#[test]
#[cfg_attr(not(slurm), ignore = "slurmctld, slurmd, munged and sbatch are not all installed")]
fn slurm_screens_its_nodes_and_drains_those_that_are_wrong() {
    let cluster = Cluster::start();
    cluster.submit(&["--array=0-15"]);
    cluster.until("the array to end", Cluster::is_idle);
    let (code, merged) = fleet(&cluster.path("reports"));
    assert_eq!((code, &merged["unhealthy"], merged.get("skipped")), (Some(0), &json!([]), None), "{merged}");
    let logged: usize = NODES
        .iter()
        .filter_map(|node| fs::read_to_string(cluster.path("reports").join(node).join("screens.jsonl")).ok())
        .map(|log| log.lines().count())
        .sum();
    assert_eq!(logged, 16, "{merged}");

    // A prolog that finds wrong bits: the node is drained, and the job waits.
    fs::write(cluster.path("wrong-prolog-n3"), "").expect("it can be written");
    cluster.submit(&["-w", "n3"]);
    cluster.until("n3 to be drained", |cluster| cluster.state("n3").starts_with("drain"));
    assert_ne!(cluster.ask("squeue", &["-h"]), "", "the job ran on a node that is wrong");
    cluster.ask("scancel", &["--state=PENDING"]);

    // An epilog that finds them after the job.
    fs::write(cluster.path("wrong-epilog-n2"), "").expect("it can be written");
    cluster.submit(&["-w", "n2"]);
    cluster.until("n2 to be drained", |cluster| cluster.state("n2").starts_with("drain"));

    // A health check that finds them.
    fs::write(cluster.path("wrong-health-check-n4"), "").expect("it can be written");
    cluster.until("n4 to be drained", |cluster| cluster.state("n4").starts_with("drain"));
    let state = cluster.state("n4");
    assert!(state.contains("mxprobe: fault:one-lane-wrong wrong") && state.contains("lane 127, bit 0"), "{state}");
    assert!(cluster.state("n1").starts_with("idle"), "another is drained too");
    let (code, merged) = fleet(&cluster.path("health-check.jsonl"));
    assert_eq!((code, &merged["unhealthy"][0]["node"]), (Some(1), &json!("n4")), "{merged}");
}

/// Runs a job as one, and as an array of four shards. The third shard is killed after it has saved something, and
/// requeued. Merges the shards, compares the bytes, and returns the third shard's file.
fn array_is_one_run(cluster: &Cluster, job: &str) -> Value {
    let name = job.split(' ').next().expect("a command");
    let (shards, merged, hung) =
        (cluster.path(&format!("{name}-shards")), format!("{name}.json"), format!("{name}-hung"));
    let (shards, merged, hung) = (shards.display().to_string(), cluster.path(&merged), cluster.path(&hung));
    let (merged, binary) = (merged.display().to_string(), env!("CARGO_BIN_EXE_mxprobe"));
    let mut one_run = Command::new(binary);
    one_run.args(job.split(' ')).args(["--out", &merged]).env("SOURCE_DATE_EPOCH", "1700000000");
    assert!(one_run.stdout(Stdio::null()).status().expect("it starts").success());
    let one_run = fs::read_to_string(&merged).expect("it was written");
    fs::remove_file(&merged).expect("it is there");

    // Acts like a node that is lost in the middle of a task: the process is gone, and the task does not end.
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *'--shard 2/4'*)\n  if mkdir '{hung}' 2>/dev/null; then\n    '{binary}' \"$@\" &\n    \
         until grep -q 'mismatches\\|componentwise' '{shards}/2.json' 2>/dev/null; do sleep 0.05; done\n    kill -9 $!\n    \
         touch '{hung}/now'\n    sleep 3600\n  fi ;;\nesac\nexec '{binary}' \"$@\"\n",
        hung = hung.display(),
    );
    let program = cluster.path(&format!("{name}-program"));
    fs::write(&program, text).expect("it can be written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let program = program.display().to_string();
    let variables = [
        ("MXPROBE", program.as_str()),
        ("JOB", job),
        ("SHARDS", &shards),
        ("OUT", &merged),
        ("SOURCE_DATE_EPOCH", "1700000000"),
    ];
    let array = cluster.batch("shards.sbatch", &["--array=0-3"], &variables);
    cluster.until("the third shard to be killed", |_| hung.join("now").exists());
    let task = format!("{array}_2");
    cluster.ask("scontrol", &["requeue", &task]);
    // Slurm delays a requeued task by two minutes, since nodes refuse a credential that is no younger, in whole seconds,
    // than the end of the killed task: the task would fail without having started.
    cluster.until("the third shard to wait", |cluster| {
        cluster.answer("squeue", &["-h", "-j", &task, "-o", "%T"]).is_some_and(|state| state == "PENDING")
    });
    thread::sleep(Duration::from_secs(3));
    cluster.ask("scontrol", &["update", &format!("JobId={task}"), "StartTime=now"]);
    cluster.until("the array to end", Cluster::is_idle);
    let third = fs::read_to_string(Path::new(&shards).join("2.json")).expect("the third shard");
    // Fails unless the job ends with exit code 0.
    cluster.batch("merge.sbatch", &["--wait"], &variables);
    assert_eq!(fs::read_to_string(&merged).expect("it was merged"), one_run);
    serde_json::from_str(&third).expect("JSON")
}

#[test]
#[cfg_attr(not(slurm), ignore = "slurmctld, slurmd, munged and sbatch are not all installed")]
fn a_killed_task_is_queued_again_and_the_shards_of_an_array_are_one_run() {
    let cluster = Cluster::start();
    array_is_one_run(&cluster, "gemm --experiment growth --device sim:h100 --exponents 3,7 -q");
    let verify = "verify --device sim:h100 --model h100 --op mma.m16n8k16.* --count 1000000 -q";
    let third = array_is_one_run(&cluster, verify);
    let all = third["operations"].as_array().map(|all| all.len() as u64);
    let again = third["resumed"][0]["operations"].as_u64();
    assert!(again.is_some() && again < all, "what was compared is compared again: {third}");
}
