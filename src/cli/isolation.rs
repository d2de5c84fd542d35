//! This end of an isolated device: a child process, a time limit, and what is said when it dies.

use std::{
    io::Write,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, OnceLock,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use mxprobe::report::{RefusalRecord, check};

use super::{
    catalog::Found,
    executable, output,
    stream::{Words, lines},
    worker::{Answer, Request},
};

/// Whether a signal asked for the end, and when the first one came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<OnceLock<Instant>>);

/// Signals closer together than this are one request: `timeout` signals its child, and then its process group, in which the
/// child is (coreutils, `cleanup` in timeout.c).
const SAME_REQUEST: Duration = Duration::from_secs(1);

impl Interrupt {
    /// Catches Ctrl-C, SIGTERM and SIGHUP from now on. A second request ends the process at once.
    pub(crate) fn listen() -> Self {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        // If no handler can be set, signals end the process as usual.
        let _ = ctrlc::set_handler(move || {
            if heard.is_second_request(Instant::now()) {
                std::process::exit(super::failure::INTERRUPTED.into());
            }
        });
        interrupt
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Notes a signal; returns whether it repeats a request made before.
    fn is_second_request(&self, now: Instant) -> bool {
        now.saturating_duration_since(*self.0.get_or_init(|| now)) >= SAME_REQUEST
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
    answers: Receiver<Answer>,
    /// What it says on standard error.
    words: Words,
    /// What it writes on standard output and is no answer: a driver may write there too.
    rubbish: Words,
    /// As long as this is here, the child's standard input is open. A child whose input closes ends itself, so that none
    /// outlives this process, however that ends.
    _input: Sender<()>,
}

/// How often waiting looks around.
const TICK: Duration = Duration::from_millis(50);

/// An answer may not be longer than this.
const LONGEST_ANSWER_BYTES: usize = 64 << 20;

/// Of a line on standard error, more is not looked at.
const LONGEST_WORDS_BYTES: usize = 4096;

impl Worker {
    /// Starts a worker and asks it; what it says on standard error is said on as it comes if `aloud`.
    pub(crate) fn start(request: &Request, aloud: bool) -> Result<Self, String> {
        let mut command = executable::this_program();
        command.arg("__worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its last words are to be a reason, not a trace.
        command.env("RUST_BACKTRACE", "0");
        out_of_reach_of_the_terminal(&mut command);
        let mut child = command.spawn().map_err(|error| format!("the child process did not start: {error}"))?;
        let mut text = serde_json::to_vec(request).expect("a request is JSON");
        text.push(b'\n');
        let (input, end) = mpsc::channel();
        let mut stdin = child.stdin.take().expect("it is piped");
        thread::spawn(move || {
            // A child that died already is noticed when it does not answer.
            let _ = stdin.write_all(&text).and_then(|()| stdin.flush());
            let _ = end.recv();
        });
        let (words, rubbish) = (Words::default(), Words::default());
        let (sender, answers) = mpsc::sync_channel(1);
        let stdout = child.stdout.take().expect("it is piped");
        let beside = rubbish.clone();
        thread::spawn(move || {
            lines(stdout, LONGEST_ANSWER_BYTES, |line| match read(line) {
                Some(answer) => sender.send(answer).is_ok(),
                None => {
                    beside.hear(line);
                    true
                }
            });
        });
        let stderr = child.stderr.take().expect("it is piped");
        let (heard, process) = (words.clone(), child.id());
        thread::spawn(move || {
            lines(stderr, LONGEST_WORDS_BYTES, |line| {
                if let (Some(said), true) = (heard.hear(line), aloud) {
                    output::note(format!("process {process}: {said}"));
                }
                true
            });
        });
        Ok(Self { child, answers, words, rubbish, _input: input })
    }

    /// Waits for the next answer.
    pub(crate) fn next(&mut self, limit: Duration, interrupt: &Interrupt) -> Result<Answer, Ended> {
        let start = Instant::now();
        let mut ticks_after_its_end = 0;
        loop {
            match self.answers.recv_timeout(TICK.min(limit)) {
                Ok(answer) => return Ok(answer),
                Err(_) if interrupt.is_set() => {
                    self.stop();
                    return Err(Ended::Interrupted);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= limit => {
                    self.stop();
                    return Err(Ended::TimedOut(limit));
                }
                Err(RecvTimeoutError::Timeout) => {
                    // Its standard output may stay open: in a process that a driver left behind.
                    ticks_after_its_end += u32::from(matches!(self.child.try_wait(), Ok(Some(_))));
                    if ticks_after_its_end > 4 {
                        return Err(self.ended());
                    }
                }
            }
        }
    }

    /// What it said that is no answer, to stand behind a reason; empty, if it said nothing.
    pub(crate) fn last_words(&self) -> String {
        let said = self.words.last().map_or_else(String::new, |last| format!("; it last said: {last}"));
        let wrote =
            self.rubbish.last().map_or_else(String::new, |last| format!("; on standard output it wrote: {last}"));
        said + &wrote
    }

    fn ended(&mut self) -> Ended {
        let status = self.stop();
        thread::sleep(Duration::from_millis(10)); // what it said last is still on its way
        let how = status.map_or_else(|| "the device's process ended".to_owned(), describe);
        Ended::Died(how + &self.last_words())
    }

    /// Ends the child, if it has not ended, and tells how it ended.
    fn stop(&mut self) -> Option<ExitStatus> {
        // Standard output closes a moment before a child that ends by itself can be waited for.
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

impl Drop for Worker {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A line that is an answer.
fn read(line: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.starts_with('{'))?;
    check::from_json(text).ok()
}

/// Ctrl-C and Ctrl-Z at the terminal are for this process, which then ends the child or lets it wait.
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
    let answer = Worker::start(&Request::Discover(backend.to_owned()), false)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_sent_twice_by_timeout_is_one_request() {
        let interrupt = Interrupt::default();
        let first = Instant::now();
        let after = |milliseconds| first + Duration::from_millis(milliseconds);
        assert!(!interrupt.is_set());
        assert!(!interrupt.is_second_request(first) && interrupt.is_set());
        assert!(!interrupt.is_second_request(first) && !interrupt.is_second_request(after(999)));
        assert!(interrupt.is_second_request(after(1000)));
    }
}
