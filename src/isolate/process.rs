//! A child process that speaks the protocol: sends requests, receives answers, enforces a time limit, and reports how
//! the process ended.

use std::{
    io::BufReader,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    protocol::{Answer, Frame, Next, PROTOCOL, read},
    words::{Words, lines},
};

/// How often a wait checks for an interrupt.
const TICK: Duration = Duration::from_millis(50);
/// How long to wait for the end of standard error after the process has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Longer lines on standard error are split.
const LONGEST_WORDS_BYTES: usize = 4096;

/// Receives each line of a child's standard error while it runs: the child's process id and the line.
pub type Listener = Arc<dyn Fn(u32, &str) + Send + Sync>;

/// Why no answer came.
#[derive(Debug)]
pub(super) enum Ended {
    /// The process was silent for this long and was killed.
    TimedOut(Duration),
    /// The process died or broke the protocol; the text says how.
    Died(String),
    /// The caller asked to stop, for this reason.
    Stopped(String),
}

/// A child process that answers requests.
pub(super) struct Process {
    child: Child,
    /// Holds the child's standard input open. A child exits when its input closes, so that none outlives this process,
    /// however that ends.
    requests: Sender<Vec<u8>>,
    answers: Receiver<Result<Frame<Answer>, String>>,
    /// The most bytes that the parts of the next answer may have.
    most_bytes: Arc<AtomicUsize>,
    /// The last lines of its standard error.
    words: Words,
    /// The last lines of its standard output that are not answers: a driver may print there too.
    stray: Words,
    /// The thread that reads standard error to its end.
    hearing: thread::JoinHandle<()>,
}

impl Process {
    /// Starts a child; `listener` receives its standard error line by line.
    ///
    /// # Errors
    /// If the program cannot be started, with the reason.
    pub(super) fn start(mut command: Command, listener: Option<Listener>) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its last lines should be a reason, not a backtrace.
        command.env("RUST_BACKTRACE", "0");
        out_of_reach_of_the_terminal(&mut command);
        let mut child = command.spawn().map_err(|error| {
            format!("the process of the device did not start: {}: {error}", command.get_program().display())
        })?;
        let (words, stray) = (Words::default(), Words::default());
        let most_bytes = Arc::new(AtomicUsize::new(0));
        let (requests, pending) = mpsc::channel::<Vec<u8>>();
        let mut stdin = child.stdin.take().expect("it is piped");
        widen(&stdin);
        thread::spawn(move || {
            use std::io::Write;
            // A child that has already died is noticed when it does not answer.
            pending.iter().try_for_each(|bytes| stdin.write_all(&bytes).and_then(|()| stdin.flush()))
        });
        let (sender, answers) = mpsc::sync_channel(1);
        let stdout = child.stdout.take().expect("it is piped");
        widen(&stdout);
        let mut stdout = BufReader::with_capacity(1 << 16, stdout);
        let (beside, most) = (stray.clone(), most_bytes.clone());
        thread::spawn(move || {
            while let Ok(next) = read(&mut stdout, || most.load(Ordering::Acquire)) {
                let sent = match next {
                    Next::Message(frame) => sender.send(Ok(frame)),
                    Next::Stray(line) => {
                        beside.hear(&line);
                        continue;
                    }
                    Next::Wrong(line, why) => {
                        beside.hear(&line);
                        let _ = sender.send(Err(format!(
                            "the device's process gave an answer that is not valid in {PROTOCOL}: {why}"
                        )));
                        return;
                    }
                    Next::TooLong(bytes) => {
                        let most = most.load(Ordering::Acquire);
                        let _ = sender.send(Err(format!(
                            "the device's process announced {bytes} bytes, at most {most} can follow"
                        )));
                        return;
                    }
                    Next::End => return,
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        let stderr = child.stderr.take().expect("it is piped");
        let (heard, process) = (words.clone(), child.id());
        let hearing = thread::spawn(move || {
            lines(stderr, LONGEST_WORDS_BYTES, |line| {
                if let (Some(said), Some(listener)) = (heard.hear(line), &listener) {
                    listener(process, &said);
                }
                true
            });
        });
        Ok(Self { child, requests, answers, most_bytes, words, stray, hearing })
    }

    /// Sends a request and waits for its answer, whose parts may have `most_bytes` in total.
    ///
    /// Polls `stop` while waiting; a reason that it returns ends the wait.
    pub(super) fn ask<M: Serialize, P: AsRef<[u8]>>(
        &mut self,
        request: &Frame<M, P>,
        most_bytes: usize,
        limit: Duration,
        stop: &dyn Fn() -> Option<String>,
    ) -> Result<Frame<Answer>, Ended> {
        let mut text = Vec::with_capacity(256 + request.parts.iter().map(|part| part.as_ref().len()).sum::<usize>());
        request.write(&mut text).expect("memory takes every byte");
        self.most_bytes.store(most_bytes, Ordering::Release);
        // A writer thread that is gone is noticed when no answer comes.
        let _ = self.requests.send(text);
        let start = Instant::now();
        let mut ticks_after_its_end = 0;
        loop {
            match self.answers.recv_timeout(TICK.min(limit)) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(how)) => {
                    self.kill();
                    return Err(Ended::Died(how + &self.last_words()));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(reason) = stop() {
                        self.kill();
                        return Err(Ended::Stopped(reason));
                    }
                    if start.elapsed() >= limit {
                        self.kill();
                        return Err(Ended::TimedOut(limit));
                    }
                    // Its standard output may stay open in a process that a driver left behind.
                    ticks_after_its_end += u32::from(matches!(self.child.try_wait(), Ok(Some(_))));
                    if ticks_after_its_end > 4 {
                        return Err(self.ended());
                    }
                }
            }
        }
    }

    /// Closes its standard input, and returns whether the process exits within the limit.
    pub(super) fn ends(mut self, limit: Duration) -> bool {
        let (closed, _) = mpsc::channel();
        drop(std::mem::replace(&mut self.requests, closed));
        let end = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
                Ok(ended) => return ended.is_some(),
                Err(_) => return false,
            }
        }
    }

    /// Formats its last lines outside the protocol, to be appended to a reason; empty if there are none.
    pub(super) fn last_words(&self) -> String {
        let said = self.words.last().map_or_else(String::new, |last| format!("; it last said: {last}"));
        let wrote = self.stray.last().map_or_else(String::new, |last| format!("; on standard output it wrote: {last}"));
        said + &wrote
    }

    fn ended(&mut self) -> Ended {
        let status = self.kill();
        // Its last lines may still be in the pipe. A process that it left behind may keep standard error open.
        let end = Instant::now() + LAST_WORDS;
        while !self.hearing.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        let how = status.map_or_else(|| "the device's process ended".to_owned(), describe);
        Ended::Died(how + &self.last_words())
    }

    /// Kills the child if it is still running, and returns its exit status.
    fn kill(&mut self) -> Option<ExitStatus> {
        // Standard output closes shortly before a child that exits on its own can be reaped.
        for _ in 0..20 {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if !matches!(self.answers.try_recv(), Err(mpsc::TryRecvError::Disconnected)) => break,
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Err(_) => break,
            }
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Lets a pipe hold as much as Linux allows every user, if it does: matrices then take a sixteenth of the switches
/// between the two processes.
#[cfg(target_os = "linux")]
fn widen(pipe: impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
}

#[cfg(not(target_os = "linux"))]
fn widen<T>(_: T) {}

/// Puts the child in its own process group: Ctrl-C and Ctrl-Z at the terminal reach only this process, which then ends
/// the child or lets it wait.
#[cfg(unix)]
fn out_of_reach_of_the_terminal(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn out_of_reach_of_the_terminal(_: &mut Command) {}

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
