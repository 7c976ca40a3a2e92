//! One command at a time to a GPU's MPS daemon, across all processes of this machine.
//!
//! The daemon serves one session at a time; another gets an error or, worse, success and silence. So every
//! session is short, has the turn while it lasts, and ends with a question whose answer is known to be a
//! number: without that number nothing was answered. Rejected commands succeed too, and say so in words.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde::{Deserialize, Serialize};

use super::patience::Deadline;
use super::{MpsDirectory, MpsPrograms};

/// What each session ends with: the answer is a percentage with a decimal point, which no process number has.
const LAST_QUESTION: &str = "get_default_active_thread_percentage";

/// Reaches the daemon in one home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Control {
    pub(super) program: PathBuf,
    pub(super) home: MpsDirectory,
    environment: BTreeMap<String, String>,
}

/// Why there is no answer to a command.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ControlError {
    #[error("there is no MPS daemon")]
    NoDaemon,
    #[error("the MPS daemon has no such server")]
    NoServer,
    #[error("the MPS daemon does not know this command")]
    Unsupported,
    #[error("the MPS daemon refused: {0}")]
    Refused(String),
    #[error("the MPS daemon did not answer: {0}")]
    Silent(String),
}

impl Control {
    pub(super) fn new(tools: &MpsPrograms, home: &MpsDirectory) -> Control {
        let mut environment = tools.environment.clone();
        let folders = [("CUDA_MPS_PIPE_DIRECTORY", home.pipe()), ("CUDA_MPS_LOG_DIRECTORY", home.log())];
        let named = folders.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
        environment.extend(named);
        // Later versions speak another language, unless asked.
        environment.insert("CUDA_MPS_PROTOCOL_VERSION".into(), "2".into());
        Control { program: tools.control.clone(), home: home.clone(), environment }
    }

    /// The program with nothing in its environment but what it needs; `PATH` leads to the server.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.environment).current_dir("/");
        command
    }

    /// The lines that the daemon answers; asked again until it does.
    pub(super) fn ask(&self, question: &str, deadline: Deadline) -> Result<Vec<String>, ControlError> {
        let mut silence = "there was no time".to_owned();
        let text = format!("{question}\n{LAST_QUESTION}\n");
        let answer = deadline.wait(|| match self.session(&text, deadline).and_then(|said| answer(&said)) {
            Err(ControlError::Silent(why)) => {
                silence = why;
                None
            }
            told => Some(told),
        });
        answer.unwrap_or(Err(ControlError::Silent(silence)))
    }

    /// Numbers of processes that the daemon answers, one on each line.
    pub(super) fn ask_processes(&self, question: &str, deadline: Deadline) -> Result<Vec<i32>, ControlError> {
        let lines = self.ask(question, deadline)?;
        let numbers: Result<_, _> = lines.iter().map(|line| line.trim().parse()).collect();
        numbers
            .map_err(|_| ControlError::Silent(format!("'{question}' was answered by '{}'", lines.join(" "))))
    }

    /// Tells it something after which it does not answer any more; returns when it has heard it.
    pub(super) fn tell(&self, command: &str, deadline: Deadline) -> Result<(), ControlError> {
        self.session(&format!("{command}\n"), deadline).map(drop)
    }

    /// One session: what the control program said to these commands.
    fn session(&self, commands: &str, deadline: Deadline) -> Result<SessionOutput, ControlError> {
        let turn = self.home.turn(deadline).map_err(silent)?;
        let _turn = turn.ok_or_else(|| ControlError::Silent("another session goes on and on".into()))?;
        let mut command = self.command(&self.program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut session = command.spawn().map_err(silent)?;
        if let Some(mut input) = session.stdin.take() {
            // A program that has ended already does not listen, and says why in its output.
            let _ = input.write_all(commands.as_bytes());
        }
        let (output, errors) = (heard(session.stdout.take()), heard(session.stderr.take()));
        let all_of = |words: Receiver<Vec<u8>>| words.recv_timeout(deadline.left()).ok();
        let Some((output, errors)) = all_of(output).zip(all_of(errors)) else {
            let _ = session.kill().and_then(|()| session.wait());
            let commands = commands.trim_end().replace('\n', "; ");
            return Err(ControlError::Silent(format!("its control program did not end in time: {commands}")));
        };
        let status = deadline.wait(|| session.try_wait().transpose()).and_then(Result::ok);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(SessionOutput { status, output: text(output), errors: text(errors) })
    }
}

/// What a control program said until it ended.
struct SessionOutput {
    /// Unknown where somebody else in this process heard of its end first: executors reap every child.
    status: Option<ExitStatus>,
    output: String,
    errors: String,
}

/// All that comes out of a program, once it is at an end.
fn heard(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (all, heard) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stream.map_or(Ok(0), |mut stream| stream.read_to_end(&mut bytes));
        // Whoever asked may have given up.
        let _ = read.map(|_| all.send(bytes));
    });
    heard
}

fn silent(error: io::Error) -> ControlError {
    ControlError::Silent(error.to_string())
}

/// What a session with one question came to.
fn answer(said: &SessionOutput) -> Result<Vec<String>, ControlError> {
    if said.errors.contains("Cannot find MPS control daemon process") {
        return Err(ControlError::NoDaemon);
    }
    if let Some(status) = said.status.filter(|status| !status.success()) {
        return Err(ControlError::Silent(format!("{status} ({})", said.errors.trim())));
    }
    let text = &said.output;
    let mut lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    let is_last = |line: &String| line.contains('.') && line.parse::<f64>().is_ok();
    if lines.pop().filter(is_last).is_none() {
        return Err(ControlError::Silent(format!("its answer has no end: '{}'", text.trim())));
    }
    lines.iter().find_map(|line| refusal(line)).map_or(Ok(lines), Err)
}

/// The words by which commands are rejected.
fn refusal(line: &str) -> Option<ControlError> {
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

    fn said(code: i32, output: &str, errors: &str) -> Result<Vec<String>, ControlError> {
        let status = Some(ExitStatus::from_raw(code << 8));
        answer(&SessionOutput { status, output: output.into(), errors: errors.into() })
    }

    fn is_silent(answer: &Result<Vec<String>, ControlError>) -> bool {
        matches!(answer, Err(ControlError::Silent(_)))
    }

    #[test]
    fn what_was_said_counts_only_with_the_last_answer() {
        assert_eq!(said(0, "4711\n4712\n100.0\n", ""), Ok(vec!["4711".into(), "4712".into()]));
        assert_eq!(said(0, "100.0\n", ""), Ok(vec![]));
        for cut_short in ["", "\n", "4711\n", "4711\n10"] {
            assert!(is_silent(&said(0, cut_short, "")), "{cut_short:?}");
        }
    }

    #[test]
    fn whose_end_somebody_else_has_heard_of_is_known_by_its_words() {
        let of = |output: &str| {
            answer(&SessionOutput { status: None, output: output.into(), errors: String::new() })
        };
        assert_eq!(of("4711\n100.0\n"), Ok(vec!["4711".into()]));
        assert!(is_silent(&of("4711\n")));
    }

    #[test]
    fn no_daemon_is_told_from_a_daemon_that_is_busy() {
        assert_eq!(said(1, "", "Cannot find MPS control daemon process\n"), Err(ControlError::NoDaemon));
        assert!(is_silent(&said(1, "", "Cannot send command to MPS control daemon process\n")));
        assert!(is_silent(&said(1, "", "")));
    }

    #[test]
    fn rejected_commands_are_known_by_their_words_though_they_succeed() {
        assert_eq!(said(0, "Server 7 not found\n100.0\n", ""), Err(ControlError::NoServer));
        assert_eq!(
            said(0, "Server 7 not found\nServer 7 not found!\n1\n100.0\n", ""),
            Err(ControlError::NoServer)
        );
        assert_eq!(said(0, "Unknown command \"ps\"\n100.0\n", ""), Err(ControlError::Unsupported));
        let words =
            "Insufficient privileges for UID 7. Only the root user may start server for another user.";
        assert_eq!(said(0, &format!("{words}\n100.0\n"), ""), Err(ControlError::Refused(words.into())));
    }

    /// A control program whose behaviour is a shell script of the test's own, in the pipe directory.
    fn scripted(script: &str) -> (TempDir, Control) {
        let state = tempdir().unwrap();
        let home = MpsDirectory::of(state.path(), &DeviceId("GPU-a".into())).unwrap();
        std::fs::write(home.pipe().join("script"), script).unwrap();
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/scripted-control");
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        (state, Control::new(&MpsPrograms { control: program.into(), environment }, &home))
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[test]
    fn a_daemon_that_is_busy_at_first_is_asked_again() {
        let (_state, control) = scripted(
            "cat >/dev/null; echo x >>$CUDA_MPS_PIPE_DIRECTORY/asked
             [ $(wc -l <$CUDA_MPS_PIPE_DIRECTORY/asked) -ge 3 ] && echo 4711 && echo 100.0",
        );
        assert_eq!(control.ask_processes("get_server_list", soon()), Ok(vec![4711]));
    }

    #[test]
    fn a_session_that_hangs_is_ended() {
        let (_state, control) = scripted("exec sleep 1000");
        let brief = Deadline::after(Duration::from_millis(50));
        assert!(is_silent(&control.ask("get_server_list", brief)));
        let again = control.home.turn(Deadline::after(Duration::ZERO)).unwrap();
        assert!(again.is_some(), "the turn is given back");
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
        let seen = |name: &str| std::fs::read_to_string(control.home.pipe().join(name)).unwrap();
        assert_eq!(seen("said"), "quit -t 1\n");
        let environment = seen("env");
        let pipe = format!("CUDA_MPS_PIPE_DIRECTORY={}", control.home.pipe().display());
        assert!(environment.lines().any(|line| line == pipe), "{environment}");
        assert!(environment.contains("CUDA_MPS_PROTOCOL_VERSION=2"));
        assert!(!environment.contains("CARGO"), "{environment}");
    }
}
