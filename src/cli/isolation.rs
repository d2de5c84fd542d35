//! This end of an isolated device: a child process, a time limit, and what is said when it dies.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use mxprobe::report::{RefusalRecord, check};

use super::{
    catalog::Found,
    executable,
    worker::{Answer, Request},
};

/// Somebody pressed Ctrl-C.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes Ctrl-C and a request to terminate from now on; the second one ends the process at once.
    pub(crate) fn listen() -> Self {
        let interrupt = Self::default();
        let flag = interrupt.clone();
        // Without a handler, Ctrl-C ends the process as ever.
        let _ = ctrlc::set_handler(move || {
            if flag.0.swap(true, Ordering::SeqCst) {
                std::process::exit(super::failure::INTERRUPTED.into());
            }
        });
        interrupt
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// How waiting for a worker ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It said nothing for this long, and was stopped.
    TimedOut(Duration),
    /// It died; in words.
    Died(String),
    /// Ctrl-C.
    Interrupted,
}

/// A child process that answers.
pub(crate) struct Worker {
    child: Child,
    lines: Receiver<String>,
    words: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    /// Starts a worker and asks it.
    pub(crate) fn start(request: &Request) -> Result<Self, String> {
        let mut command = executable::this_program();
        command.arg("__worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("the child process did not start: {error}"))?;
        let text = serde_json::to_vec(request).expect("a request is JSON");
        if let Some(mut stdin) = child.stdin.take() {
            // A child that died already is noticed when it does not answer.
            let _ = stdin.write_all(&text);
        }
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take().expect("it is piped");
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let words = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&words);
        let stderr = child.stderr.take().expect("it is piped");
        thread::spawn(move || listen(stderr, &heard));
        Ok(Self { child, lines, words })
    }

    /// Waits for the next answer.
    pub(crate) fn next(&mut self, limit: Duration, interrupt: &Interrupt) -> Result<Answer, Ended> {
        let start = Instant::now();
        loop {
            match self.lines.recv_timeout(Duration::from_millis(50).min(limit)) {
                // A driver may write on standard output too: what is no answer is not ours.
                Ok(line) => {
                    if let Ok(answer) = check::from_json(&line) {
                        return Ok(answer);
                    }
                }
                Err(_) if interrupt.is_set() => {
                    self.stop();
                    return Err(Ended::Interrupted);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.stop();
                    return Err(Ended::Died(self.last_words(status)));
                }
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= limit => {
                    self.stop();
                    return Err(Ended::TimedOut(limit));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Ends the child, if it has not ended, and tells how it ended.
    fn stop(&mut self) -> Option<ExitStatus> {
        // Standard output closes a moment before a child that ends by itself can be waited for.
        for _ in 0..20 {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if !matches!(self.lines.try_recv(), Err(mpsc::TryRecvError::Disconnected)) => break,
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Err(_) => break,
            }
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    fn last_words(&self, status: Option<ExitStatus>) -> String {
        thread::sleep(Duration::from_millis(10)); // what it said last is still on its way
        let mut text = status.map_or_else(|| "the device's process ended".to_owned(), describe);
        if let Ok(words) = self.words.lock()
            && let Some(last) = words.last()
        {
            text.push_str("; it last said: ");
            text.push_str(last);
        }
        text
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Keeps what a child says on standard error: its last lines.
fn listen(stderr: impl Read, words: &Mutex<Vec<String>>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if line.is_empty() || line.starts_with("note: run with `RUST_BACKTRACE") {
            continue;
        }
        if let Ok(mut words) = words.lock() {
            if words.len() >= 4 {
                words.remove(0);
            }
            words.push(line);
        }
    }
}

#[cfg(unix)]
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    // The numbers that Linux gives these signals on every architecture mxprobe is built for.
    let names =
        [(4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (9, "SIGKILL"), (11, "SIGSEGV"), (15, "SIGTERM")];
    match (status.signal(), status.code()) {
        (Some(signal), _) => match names.iter().find(|(number, _)| *number == signal) {
            Some((_, name)) => format!("the device's process was ended by signal {signal} ({name})"),
            None => format!("the device's process was ended by signal {signal}"),
        },
        (None, Some(code)) => format!("the device's process ended with exit code {code}"),
        (None, None) => "the device's process ended".to_owned(),
    }
}

#[cfg(not(unix))]
fn describe(status: ExitStatus) -> String {
    format!("the device's process ended: {status}")
}

/// Lets a backend look for its devices in a process of its own.
pub(crate) fn discover(backend: &str, limit: Duration) -> Found {
    let refused = |reason: String| Found {
        backend: backend.to_owned(),
        devices: Vec::new(),
        refusals: vec![RefusalRecord {
            what: format!("the search for {backend} devices"),
            reason,
            help: Some(format!("`mxprobe list --backend {backend} --no-isolation` repeats it in one process")),
        }],
    };
    let answer = Worker::start(&Request::Discover(backend.to_owned()))
        .map(|mut worker| worker.next(limit, &Interrupt::default()));
    match answer {
        Ok(Ok(Answer::Found(found))) => found,
        Ok(Ok(_)) => refused("the child process answered something else".to_owned()),
        Ok(Err(Ended::Died(how))) => refused(how),
        Ok(Err(Ended::TimedOut(limit))) => refused(format!("no answer after {} s", limit.as_secs())),
        Ok(Err(Ended::Interrupted)) => refused("interrupted".to_owned()),
        Err(reason) => refused(reason),
    }
}
