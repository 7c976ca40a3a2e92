//! A terminal with a person before it: a pseudo-terminal in which a command runs, and all that it has shown.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::{Cluster, TIMEOUT, clean};

/// The program of util-linux that starts another one with its standard input as its controlling terminal.
const SET_TERMINAL: [&str; 3] = ["setsid", "--ctty", "--wait"];

/// The terminal.
pub(crate) struct Screen {
    process: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Cluster {
    /// Runs a command line of this cluster in a terminal of 30 lines of 100 characters.
    pub(crate) fn screen(&self, arguments: &[&str]) -> Screen {
        let mut command = clean(Path::new(SET_TERMINAL[0]), self.folder());
        command.env("COHABIT_STATE", self.folder().join("head")).env("TERM", "xterm-256color");
        command.args(&SET_TERMINAL[1..]).arg(&self.program).args(arguments);
        Screen::start(command)
    }
}

impl Screen {
    fn start(mut command: Command) -> Screen {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        let keyboard = File::from(master);
        let screen = |slave: &std::os::fd::OwnedFd| slave.try_clone().unwrap();
        command.stdin(screen(&slave)).stdout(screen(&slave)).stderr(slave);
        let shown = Arc::new(Mutex::new(Vec::new()));
        resize(&keyboard, 30, 100);
        let process = command.spawn().unwrap();
        // The command holds the other ends; without it, reading ends with the process.
        drop(command);
        let (mut reading, record) = (keyboard.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut piece = [0; 65_536];
            while let Ok(length @ 1..) = reading.read(&mut piece) {
                record.lock().unwrap().extend(&piece[..length]);
            }
        });
        Screen { process, keyboard, shown }
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Everything shown so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub(crate) fn until_shown(&self, text: &str) {
        let begin = Instant::now();
        while !self.text().contains(text) {
            assert!(begin.elapsed() < TIMEOUT, "'{text}' is not shown, but\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types this and Enter, and waits until this is shown, which the typed line must not contain.
    #[track_caller]
    pub(crate) fn ask(&mut self, line: &str, answer: &str) {
        assert!(!line.contains(answer), "the echo would do for an answer");
        self.type_keys(&format!("{line}\r"));
        self.until_shown(answer);
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        resize(&self.keyboard, rows, columns);
    }

    /// Whether the terminal is as a shell leaves it: it shows what is typed, and gives lines.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).unwrap();
    }

    /// The exit code, once the command has ended.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

fn resize(terminal: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
