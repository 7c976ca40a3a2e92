//! One session at a time with a GPU's MPS daemon, across all processes of this host.
//!
//! The daemon serves one session at a time; a second one gets an error or, worse, success without output. So
//! every session is short, holds the directory's lock, and ends with a query whose answer must be a decimal
//! number: without it, the output counts as incomplete. The control program exits with success even when the
//! daemon rejects a command; the rejection is recognised by its text.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::deadline::Deadline;
use super::directory::MpsDirectory;
use super::programs::MpsPrograms;

/// Ends each session. Its answer is a percentage with a decimal point, which no process id has.
const END_QUERY: &str = "get_default_active_thread_percentage";

/// Access to the daemon in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) program: PathBuf,
    pub(super) directory: MpsDirectory,
    /// The complete environment of the control program.
    pub(super) environment: BTreeMap<String, String>,
}

/// Why a command was not answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ControlError {
    #[error("there is no MPS daemon")]
    NoDaemon,
    #[error("the MPS daemon has no such server")]
    NoServer,
    #[error("the MPS daemon does not support this command")]
    Unsupported,
    #[error("the MPS daemon refused: {0}")]
    Refused(String),
    #[error("the MPS daemon did not answer: {0}")]
    Silent(String),
}

impl Control {
    pub(super) fn new(programs: &MpsPrograms, directory: &MpsDirectory) -> Control {
        let mut environment = programs.environment.clone();
        let folders =
            [("CUDA_MPS_PIPE_DIRECTORY", directory.pipe()), ("CUDA_MPS_LOG_DIRECTORY", directory.log())];
        let named = folders.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
        environment.extend(named);
        // Later versions of MPS use another protocol unless told otherwise.
        environment.insert("CUDA_MPS_PROTOCOL_VERSION".into(), "2".into());
        Control { program: programs.control.clone(), directory: directory.clone(), environment }
    }

    /// A program with only the environment that MPS needs; `PATH` includes the directory of the server.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.environment).current_dir("/");
        command
    }

    /// The lines of the daemon's answer. Repeats the query until the daemon answers or the deadline has come.
    pub(super) fn ask(&self, query: &str, deadline: Deadline) -> Result<Vec<String>, ControlError> {
        let mut silence = "no time was left".to_owned();
        let text = format!("{query}\n{END_QUERY}\n");
        let answer =
            deadline.wait(|| match self.session(&text, deadline).and_then(|output| parse_answer(&output)) {
                Err(ControlError::Silent(why)) => {
                    silence = why;
                    None
                }
                answer => Some(answer),
            });
        answer.unwrap_or(Err(ControlError::Silent(silence)))
    }

    /// The process ids in the daemon's answer, one on each line.
    pub(super) fn ask_processes(&self, query: &str, deadline: Deadline) -> Result<Vec<i32>, ControlError> {
        let lines = self.ask(query, deadline)?;
        let numbers: Result<_, _> = lines.iter().map(|line| line.trim().parse()).collect();
        numbers
            .map_err(|_| ControlError::Silent(format!("'{query}' was answered with '{}'", lines.join(" "))))
    }

    /// Sends a command after which the daemon does not answer any more.
    pub(super) fn tell(&self, command: &str, deadline: Deadline) -> Result<(), ControlError> {
        self.session(&format!("{command}\n"), deadline).map(drop)
    }

    /// Runs one session with these commands.
    fn session(&self, commands: &str, deadline: Deadline) -> Result<SessionOutput, ControlError> {
        let lock = self.directory.lock_session(deadline).map_err(silent)?;
        let _lock = lock.ok_or_else(|| ControlError::Silent("another session does not end".into()))?;
        let mut command = self.command(&self.program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut session = command.spawn().map_err(silent)?;
        if let Some(mut input) = session.stdin.take() {
            // A program that has already ended does not read, and says why in its output.
            let _ = input.write_all(commands.as_bytes());
        }
        let (output, errors) = (read_all(session.stdout.take()), read_all(session.stderr.take()));
        let finish = |bytes: Receiver<Vec<u8>>| bytes.recv_timeout(deadline.left()).ok();
        let Some((output, errors)) = finish(output).zip(finish(errors)) else {
            let _ = session.kill().and_then(|()| session.wait());
            let commands = commands.trim_end().replace('\n', "; ");
            return Err(ControlError::Silent(format!("the control program did not end in time: {commands}")));
        };
        let status = deadline.wait(|| session.try_wait().transpose()).and_then(Result::ok);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(SessionOutput { status, output: text(output), errors: text(errors) })
    }
}

/// What the control program printed until it ended.
struct SessionOutput {
    /// `None` where another part of this process reaped it first: executors reap every child.
    status: Option<ExitStatus>,
    output: String,
    errors: String,
}

/// Everything that the program prints, sent when the stream ends.
fn read_all(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stream.map_or(Ok(0), |mut stream| stream.read_to_end(&mut bytes));
        // The receiver may have given up.
        let _ = read.map(|_| sender.send(bytes));
    });
    receiver
}

fn silent(error: io::Error) -> ControlError {
    ControlError::Silent(error.to_string())
}

/// The answer to the one query of a session.
fn parse_answer(session: &SessionOutput) -> Result<Vec<String>, ControlError> {
    if session.errors.contains("Cannot find MPS control daemon process") {
        return Err(ControlError::NoDaemon);
    }
    if let Some(status) = session.status.filter(|status| !status.success()) {
        return Err(ControlError::Silent(format!("{status} ({})", session.errors.trim())));
    }
    let text = &session.output;
    let mut lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    let is_end = |line: &String| line.contains('.') && line.parse::<f64>().is_ok();
    if lines.pop().filter(is_end).is_none() {
        return Err(ControlError::Silent(format!("the answer is incomplete: '{}'", text.trim())));
    }
    lines.iter().find_map(|line| rejection(line)).map_or(Ok(lines), Err)
}

/// The error that a line of the answer stands for, if it is the text of a rejection.
fn rejection(line: &str) -> Option<ControlError> {
    let has = |words: &str| line.contains(words);
    if has("Server") && has("not found") {
        Some(ControlError::NoServer)
    } else if has("Unknown command") {
        Some(ControlError::Unsupported)
    } else if ["nsufficient privilege", "Not enough privilege", "Failed to", "Invalid", "is required"]
        .into_iter()
        .any(has)
    {
        Some(ControlError::Refused(line.to_owned()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;

    use cohabit_types::DeviceId;
    use tempfile::{TempDir, tempdir};

    use super::*;

    fn session(code: i32, output: &str, errors: &str) -> Result<Vec<String>, ControlError> {
        let status = Some(ExitStatus::from_raw(code << 8));
        parse_answer(&SessionOutput { status, output: output.into(), errors: errors.into() })
    }

    fn is_silent(answer: &Result<Vec<String>, ControlError>) -> bool {
        matches!(answer, Err(ControlError::Silent(_)))
    }

    #[test]
    fn an_answer_counts_only_if_it_ends_with_the_end_query() {
        assert_eq!(session(0, "4711\n4712\n100.0\n", ""), Ok(vec!["4711".into(), "4712".into()]));
        assert_eq!(session(0, "100.0\n", ""), Ok(vec![]));
        for cut_short in ["", "\n", "4711\n", "4711\n10"] {
            assert!(is_silent(&session(0, cut_short, "")), "{cut_short:?}");
        }
    }

    #[test]
    fn a_session_without_exit_status_is_rated_by_its_output() {
        let of = |output: &str| {
            parse_answer(&SessionOutput { status: None, output: output.into(), errors: String::new() })
        };
        assert_eq!(of("4711\n100.0\n"), Ok(vec!["4711".into()]));
        assert!(is_silent(&of("4711\n")));
    }

    #[test]
    fn a_missing_daemon_is_distinguished_from_a_busy_one() {
        assert_eq!(session(1, "", "Cannot find MPS control daemon process\n"), Err(ControlError::NoDaemon));
        assert!(is_silent(&session(1, "", "Cannot send command to MPS control daemon process\n")));
        assert!(is_silent(&session(1, "", "")));
    }

    #[test]
    fn rejected_commands_are_recognized_by_their_text_although_they_succeed() {
        assert_eq!(session(0, "Server 7 not found\n100.0\n", ""), Err(ControlError::NoServer));
        assert_eq!(
            session(0, "Server 7 not found\nServer 7 not found!\n1\n100.0\n", ""),
            Err(ControlError::NoServer)
        );
        assert_eq!(session(0, "Unknown command \"ps\"\n100.0\n", ""), Err(ControlError::Unsupported));
        let text = "Insufficient privileges for UID 7. Only the root user may start server for another user.";
        assert_eq!(session(0, &format!("{text}\n100.0\n"), ""), Err(ControlError::Refused(text.into())));
    }

    /// A control program that runs the test's shell script, which lies in the pipe directory.
    fn scripted(script: &str) -> (TempDir, Control) {
        let state = tempdir().unwrap();
        let directory = MpsDirectory::create(state.path(), &DeviceId("GPU-a".into())).unwrap();
        std::fs::write(directory.pipe().join("script"), script).unwrap();
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/scripted-control");
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        (state, Control::new(&MpsPrograms { control: program.into(), environment }, &directory))
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[test]
    fn the_query_is_repeated_while_the_daemon_is_busy() {
        let (_state, control) = scripted(
            "cat >/dev/null; echo x >>$CUDA_MPS_PIPE_DIRECTORY/asked
             [ $(wc -l <$CUDA_MPS_PIPE_DIRECTORY/asked) -ge 3 ] && echo 4711 && echo 100.0",
        );
        assert_eq!(control.ask_processes("get_server_list", soon()), Ok(vec![4711]));
    }

    #[test]
    fn a_session_that_hangs_is_killed() {
        let (_state, control) = scripted("exec sleep 1000");
        let brief = Deadline::after(Duration::from_millis(50));
        assert!(is_silent(&control.ask("get_server_list", brief)));
        // A child that another test is starting keeps a copy of the lock until it executes its program. The
        // session that hangs would keep it for longer than this deadline.
        let again = control.directory.lock_session(soon()).unwrap();
        assert!(again.is_some(), "the lock is released");
    }

    #[test]
    fn two_sessions_never_overlap() {
        let (_state, control) = scripted(
            "cat >/dev/null; mkdir $CUDA_MPS_PIPE_DIRECTORY/busy || { echo overlap; echo 100.0; exit; }
             rmdir $CUDA_MPS_PIPE_DIRECTORY/busy; echo 100.0",
        );
        thread::scope(|scope| {
            let ask = || (0..20).map(|_| control.ask("get_server_list", soon())).collect::<Vec<_>>();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            for answers in threads.into_iter().map(|thread| thread.join().unwrap()) {
                assert!(answers.iter().all(|answer| *answer == Ok(vec![])), "{answers:?}");
            }
        });
    }

    #[test]
    fn the_program_gets_a_clean_environment_and_the_commands() {
        let (_state, control) =
            scripted("env >$CUDA_MPS_PIPE_DIRECTORY/env; cat >$CUDA_MPS_PIPE_DIRECTORY/said");
        control.tell("quit -t 1", soon()).unwrap();
        let seen = |name: &str| std::fs::read_to_string(control.directory.pipe().join(name)).unwrap();
        assert_eq!(seen("said"), "quit -t 1\n");
        let environment = seen("env");
        let pipe = format!("CUDA_MPS_PIPE_DIRECTORY={}", control.directory.pipe().display());
        assert!(environment.lines().any(|line| line == pipe), "{environment}");
        assert!(environment.contains("CUDA_MPS_PROTOCOL_VERSION=2"));
        assert!(!environment.contains("CARGO"), "{environment}");
    }
}
