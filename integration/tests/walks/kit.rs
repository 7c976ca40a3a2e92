//! Machines on which a person runs the commands of a document.
//!
//! A machine is a directory with a home, a working directory and a state directory of its own. Daemons are
//! started in the background and ended by their process ids.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Longer than any step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Commands that do not end by themselves, and how they say that they are ready.
const DAEMONS: [(&str, &str); 4] = [
    ("cohabit up", "ready:"),
    ("cohabit head start", "ready:"),
    ("cohabit worker start", "ready:"),
    ("cohabit export", "Serving metrics on"),
];

#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what they could not try")]
pub(crate) fn say(what: &str) {
    eprintln!("{what}");
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let patience = std::env::var("COHABIT_TEST_PATIENCE").map_or(1, |times| times.parse().unwrap());
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < TIMEOUT * patience, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The directory in which `cargo` builds: programs, and examples below.
pub(crate) fn programs() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let programs = tests.parent().and_then(Path::parent).unwrap().to_owned();
    assert!(programs.join("cohabit").exists(), "run `cargo build` or `cargo test --workspace`");
    programs
}

/// The Python interpreter itself, which need not be called `python`. Says so if there is none.
pub(crate) fn python() -> Option<PathBuf> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).args(["-c", "import sys; print(sys.executable)"]).output();
    let found = output.ok().filter(|output| output.status.success());
    if found.is_none() {
        say(&format!("skipped: there is no {python}"));
    }
    Some(String::from_utf8(found?.stdout).unwrap().trim().into())
}

/// A text of a document that is another one here. `{machine}` in the new text is the machine's directory.
struct Substitution {
    from: String,
    to: String,
    applied: bool,
}

/// Commands that are left out, by how they begin.
struct Omission {
    begin: &'static str,
    why: &'static str,
    met: bool,
}

/// A command that runs in the background.
struct Daemon {
    /// As in the document.
    command: String,
    process: Child,
    output: PathBuf,
}

impl Daemon {
    fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }
}

/// What a command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ran {
    /// As in the document.
    command: String,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    fn new(command: &str, output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Ran { command: command.to_owned(), code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// The number of the job that it submitted.
    pub(crate) fn job(&self) -> Option<String> {
        let after = |text: &str| {
            let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
            Some(digits).filter(|digits| !digits.is_empty())
        };
        let submitted = ["Submitted job ", "Submitted batch job "];
        let printed = submitted.iter().find_map(|words| after(self.stdout.split_once(words)?.1));
        let told = || after(self.stderr.split_once("job ")?.1).filter(|_| self.stderr.contains(" submitted"));
        let quiet = || after(&self.stdout).filter(|digits| self.stdout.trim() == digits);
        printed.or_else(told).or_else(quiet)
    }

    #[track_caller]
    pub(crate) fn prints(&self, words: &str) {
        assert!(self.stdout.contains(words), "`{}` prints {words:?}: {self:?}", self.command);
    }

    #[track_caller]
    pub(crate) fn ends_with(&self, code: i32, message: &str) {
        let as_told = self.code == code && self.stderr.contains(message);
        assert!(as_told, "`{}` ends with {code} and {message:?}: {self:?}", self.command);
    }
}

/// A person who goes through a document, and the machines that this person uses.
pub(crate) struct Walk {
    folder: TempDir,
    machine: String,
    substitutions: Vec<Substitution>,
    omissions: Vec<Omission>,
    environment: Vec<(String, String)>,
    /// The directory of commands, below the working directory.
    inside: String,
    /// Lines `export …`, which hold for all commands after them.
    exports: String,
    daemons: Vec<Daemon>,
    done: Vec<Ran>,
}

impl Walk {
    /// A walk that leaves out the commands that begin so, for these reasons.
    pub(crate) fn new(machine: &str, omissions: &[(&'static str, &'static str)]) -> Walk {
        let folder = tempfile::tempdir().unwrap();
        // Jobs of other accounts pass through it.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let omissions = omissions.iter().map(|&(begin, why)| Omission { begin, why, met: false }).collect();
        let mut walk = Walk {
            folder,
            machine: String::new(),
            // Port 7070 may be taken.
            environment: vec![("COHABIT_LISTEN".into(), "127.0.0.1:0".into())],
            substitutions: Vec::new(),
            omissions,
            inside: String::new(),
            exports: String::new(),
            daemons: Vec::new(),
            done: Vec::new(),
        };
        walk.go_to(machine);
        walk
    }

    /// Later commands run on this machine.
    pub(crate) fn go_to(&mut self, machine: &str) {
        self.machine = machine.to_owned();
        for folder in ["work", "home"] {
            fs::create_dir_all(self.root().join(folder)).unwrap();
        }
    }

    /// Later commands have this environment variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// The directory that stands for the root of the machine.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join(&self.machine)
    }

    /// A file in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join("work").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// Adds a program to `PATH`.
    pub(crate) fn install(&self, name: &str, program: &Path) {
        symlink(program, self.folder.path().join("bin").join(name)).unwrap();
    }

    /// From now on, this text of the document is another one.
    pub(crate) fn substitute(&mut self, from: &str, to: &str) {
        self.end_substitution(from);
        self.substitutions.push(Substitution { from: from.to_owned(), to: to.to_owned(), applied: false });
    }

    /// The text is to be taken as it stands again. It must have occurred.
    pub(crate) fn end_substitution(&mut self, from: &str) {
        for old in self.substitutions.extract_if(.., |it| it.from == from) {
            assert!(old.applied, "no command has {from}, which would be {}", old.to);
        }
    }

    /// What a text of the document is here.
    pub(crate) fn substituted(&mut self, text: &str) -> String {
        let machine = self.root().display().to_string();
        let mut text = text.to_owned();
        for it in &mut self.substitutions {
            let new = replace_words(&text, &it.from, &it.to.replace("{machine}", &machine));
            it.applied |= new != text;
            text = new;
        }
        text
    }

    /// A shell on this machine, which knows no settings of the developer.
    fn shell(&self, script: &str) -> Command {
        let root = self.root();
        let path = std::env::var("PATH").unwrap_or_default();
        let own = self.folder.path().join("bin");
        let mut shell = Command::new("sh");
        shell.env_clear().current_dir(root.join("work").join(&self.inside)).stdin(Stdio::null());
        shell.args(["-eu", "-c", &format!("{}{script}", self.exports)]);
        shell.env("PATH", format!("{}:{}:{path}", own.display(), programs().display()));
        shell.env("HOME", root.join("home")).env("COHABIT_STATE", root.join("var/lib/cohabit"));
        // Machines differ in their names.
        shell.env("COHABIT_NAME", &self.machine).envs(self.environment.iter().cloned());
        shell
    }

    /// Runs a command of the test's own.
    pub(crate) fn try_command(&self, command: &str) -> Ran {
        Ran::new(command, &self.shell(command).output().unwrap())
    }

    /// The same, which must succeed. Returns what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, command: &str) -> String {
        let ran = self.try_command(command);
        assert_eq!(ran.code, 0, "{command}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    pub(crate) fn json(&self, command: &str) -> serde_json::Value {
        serde_json::from_str(&self.ok(&format!("{command} --output json"))).unwrap()
    }

    /// A value of what `show` says of a job, as text.
    pub(crate) fn shown(&self, job: &str, key: &str) -> String {
        let shown = self.json(&format!("cohabit show {job}"));
        shown[key].as_str().map_or_else(|| shown[key].to_string(), str::to_owned)
    }

    /// Runs a command of the document, which must succeed.
    #[track_caller]
    pub(crate) fn step(&mut self, command: &str) {
        if let Some(omission) = self.omissions.iter_mut().find(|it| command.starts_with(it.begin)) {
            omission.met = true;
            return;
        }
        let here = self.substituted(command);
        if here.starts_with("export ") {
            self.exports += &format!("{here}\n");
        } else if let Some((_, ready)) = DAEMONS.iter().find(|(begin, _)| is_command(command, begin)) {
            self.start(command, &here, ready);
        } else {
            let ran = Ran::new(command, &self.shell(&here).output().unwrap());
            assert_eq!(ran.code, 0, "`{command}`, here `{here}`: {}{}", ran.stdout, ran.stderr);
            self.done.push(ran);
        }
    }

    /// The same in a directory below the working directory.
    #[track_caller]
    pub(crate) fn step_in(&mut self, folder: &str, command: &str) {
        let outside = std::mem::replace(&mut self.inside, folder.to_owned());
        self.step(command);
        self.inside = outside;
    }

    fn start(&mut self, command: &str, here: &str, ready: &str) {
        let number = self.daemons.len();
        let output = self.folder.path().join(format!("daemon{number}.out"));
        let errors = self.folder.path().join(format!("daemon{number}.err"));
        let mut shell = self.shell(&format!("exec {here}"));
        shell.stdout(File::create(&output).unwrap()).stderr(File::create(&errors).unwrap());
        let process = shell.spawn().unwrap();
        let pid = Pid::from_raw(process.id().try_into().unwrap());
        let daemon = Daemon { command: command.to_owned(), process, output };
        until(&format!("`{command}` is ready"), || {
            let ended = fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| it.contains(") Z "));
            assert!(!ended, "`{here}` ended: {}", fs::read_to_string(&errors).unwrap());
            daemon.output().contains(ready)
        });
        self.daemons.push(daemon);
    }

    /// Runs these commands up to one that begins so, which it leaves.
    #[track_caller]
    pub(crate) fn steps_before(&mut self, commands: &mut Vec<String>, begin: &str) {
        let at = commands.iter().position(|command| command.starts_with(begin));
        let at = at.unwrap_or_else(|| panic!("there is a command {begin} in {commands:#?}"));
        for command in commands.drain(..at) {
            self.step(&command);
        }
    }

    #[track_caller]
    pub(crate) fn steps(&mut self, commands: Vec<String>) {
        for command in commands {
            self.step(&command);
        }
    }

    /// What the last command of the document that begins so did.
    #[track_caller]
    pub(crate) fn ran(&self, begin: &str) -> &Ran {
        let ran = self.done.iter().rfind(|ran| ran.command.starts_with(begin));
        ran.unwrap_or_else(|| panic!("no command began with {begin}"))
    }

    /// The number of the job that the last command of the document submitted that begins so.
    #[track_caller]
    pub(crate) fn job(&self, begin: &str) -> String {
        let ran = self.ran(begin);
        ran.job().unwrap_or_else(|| panic!("`{begin}` submitted a job: {ran:?}"))
    }

    /// What the last daemon printed.
    pub(crate) fn daemon_output(&self) -> String {
        self.daemons.last().unwrap().output()
    }

    /// The address at which the last daemon listens or the head that it joined.
    pub(crate) fn address(&self) -> String {
        let output = self.daemon_output();
        let at = output.find("127.0.0.1:").expect("the ready line names the address");
        output[at..].chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect()
    }

    /// Ends the last daemon whose command begins so, as an operator would.
    #[track_caller]
    pub(crate) fn stop(&mut self, begin: &str) {
        let at = self.daemons.iter().rposition(|daemon| daemon.command.starts_with(begin)).unwrap();
        let mut daemon = self.daemons.remove(at);
        kill(Pid::from_raw(daemon.process.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        daemon.process.wait().unwrap();
    }

    /// Every entry of the tables was needed.
    pub(crate) fn finish(mut self) {
        for it in std::mem::take(&mut self.substitutions) {
            assert!(it.applied, "no command has {}, which would be {}", it.from, it.to);
        }
        for it in &self.omissions {
            assert!(it.met, "no command begins with {}, which is left out because {}", it.begin, it.why);
        }
    }
}

/// Whether it is this command: `cohabit update` is not `cohabit up`.
fn is_command(line: &str, command: &str) -> bool {
    line.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Replaces a text where it is no part of a longer number or word.
fn replace_words(text: &str, from: &str, to: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let is_word = |letter: char| letter.is_ascii_alphanumeric();
        let is_part = from.starts_with(is_word) && before.ends_with(is_word)
            || from.ends_with(is_word) && after.starts_with(is_word);
        result += before;
        result += if is_part { from } else { to };
        rest = after;
    }
    result + rest
}

/// Processes that have this directory in their environment or command line.
fn processes_with(folder: &str) -> Vec<i32> {
    let read = |pid: i32, name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let mentions = |pid: &i32| {
        let files = [read(*pid, "cmdline"), read(*pid, "environ")];
        files.iter().any(|bytes| String::from_utf8_lossy(bytes).contains(folder))
    };
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(mentions).filter(|pid| *pid != std::process::id().cast_signed()).collect()
}

/// Ends daemons by their process ids, then what they started, which names the directory of the walk.
impl Drop for Walk {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.process.kill();
            let _ = daemon.process.wait();
        }
        for pid in processes_with(&self.folder.path().display().to_string()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
