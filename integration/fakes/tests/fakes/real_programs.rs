//! NVIDIA's own control programs beside the fake, which must answer as they do. They need no GPU to start.
//!
//! `integration/mps/fetch` gets some of them. The variable `COHABIT_MPS_PROGRAMS` names the directory;
//! without it these tests say that they are skipped.
#![expect(clippy::print_stderr, reason = "whoever runs the tests should know what they could not try")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cohabit_fakes::StartScript;
use cohabit_gpu::mps::{MpsDaemon, MpsPrograms, ServedUsers};
use nix::unistd::geteuid;

use crate::kit::{Bench, Ran};

/// Commands of a session, each sent alone. There is no server, because there is no GPU.
const COMMANDS: [&str; 25] = [
    "get_server_list",
    "get_server_status",
    "get_server_status 7",
    "get_client_list 7",
    "shutdown_server 7",
    "terminate_client 7 8",
    "ps",
    "ps -p 7",
    "get_default_active_thread_percentage",
    "set_default_active_thread_percentage 50",
    "get_default_active_thread_percentage",
    "set_default_active_thread_percentage 25.5",
    "set_default_active_thread_percentage 0",
    "set_default_active_thread_percentage x",
    "set_active_thread_percentage 7 50",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 8G",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 1536M",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 8192MB",
    "get_default_device_pinned_mem_limit 0",
    "set_device_pinned_mem_limit 7 0 8G",
    "no_such_command",
    "no_such_command 7",
];

/// The programs of one driver, unpacked into a directory.
struct RealPrograms {
    driver: String,
    root: PathBuf,
}

impl RealPrograms {
    /// All that there are.
    fn all() -> Vec<RealPrograms> {
        let Some(folder) = std::env::var_os("COHABIT_MPS_PROGRAMS") else {
            eprintln!("skipped: COHABIT_MPS_PROGRAMS names no NVIDIA programs (integration/mps/fetch)");
            return Vec::new();
        };
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let driver = |root: &PathBuf| root.file_name().unwrap().to_str().unwrap().to_owned();
        entries.map(|root| RealPrograms { driver: driver(&root), root }).collect()
    }

    fn search_path(&self) -> String {
        let [bin, sbin] = ["usr/bin", "usr/sbin"].map(|folder| self.root.join(folder).display().to_string());
        format!("{bin}:{sbin}:/usr/bin:/bin")
    }

    fn control(&self) -> PathBuf {
        self.root.join("usr/bin/nvidia-cuda-mps-control")
    }

    fn is_of_cuda_12(&self) -> bool {
        self.driver.split('.').next().unwrap().parse::<u32>().unwrap() < 570
    }

    /// A world with this driver, in which nothing starts that needs a GPU.
    fn bench(&self) -> Bench {
        let bench = Bench::new();
        bench.world.edit_library(|library| library.driver.clone_from(&self.driver)).unwrap();
        bench.script(|gpu| {
            gpu.mps.server = StartScript::Exits(1);
            if !self.is_of_cuda_12() {
                gpu.mps.control = StartScript::Exits(244);
            }
        });
        bench
    }
}

/// What a control program does with these arguments and this input, in the directories of this bench.
fn ran(bench: &Bench, program: &Path, search_path: &str, arguments: &[&str], input: &str) -> Ran {
    let mut command: Command = bench.command(program);
    command.args(arguments).env("PATH", search_path).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}

/// Everything that a program does: its starts, and the answers of its daemon.
fn transcript(bench: &Bench, program: &Path, search_path: &str) -> Vec<(String, Ran)> {
    let mut transcript = Vec::new();
    let mut step = |arguments: &[&str], input: &str| {
        let name = format!("{} <<< {input}", arguments.join(" "));
        transcript.push((name, ran(bench, program, search_path, arguments, input)));
    };
    step(&[], "get_server_list\n");
    step(&["-d", "-multiuser-server"], "");
    step(&["-multiuser-server", "-d"], "");
    step(&["-d"], "");
    step(&["-d"], "");
    step(&["get_server_list"], "");
    COMMANDS.iter().for_each(|command| step(&[], &format!("{command}\n")));
    step(&[], "quit\n");
    step(&[], "get_server_list\n");
    transcript
}

#[test]
fn the_fake_answers_as_the_program_of_each_driver_does() {
    for real in RealPrograms::all() {
        let of_real = transcript(&real.bench(), &real.control(), &real.search_path());
        let bench = real.bench();
        let of_fake = transcript(&bench, &bench.control_program(), &bench.installed.search_path());
        let differ: Vec<_> = of_real.iter().zip(&of_fake).filter(|(real, fake)| real != fake).collect();
        assert!(differ.is_empty(), "driver {}, the real program and the fake: {differ:#?}", real.driver);
    }
}

#[test]
fn each_program_says_whether_it_serves_several_users() {
    for real in RealPrograms::all() {
        let expected = match (geteuid().is_root(), real.is_of_cuda_12()) {
            (false, _) => ServedUsers::Own,
            (true, true) => ServedUsers::OneAtATime,
            (true, false) => ServedUsers::All,
        };
        let programs = MpsPrograms::find(&real.search_path()).unwrap();
        assert_eq!(programs.users(), expected, "{}", real.driver);
        let bench = real.bench();
        assert_eq!(bench.tools().users(), expected, "the fake of {}", real.driver);
        assert_eq!(programs.version().is_some(), !real.is_of_cuda_12(), "{}", real.driver);
    }
}

/// The daemon of an old driver starts, and its server fails; that of a new one does not start.
#[test]
fn without_a_gpu_a_start_fails_with_a_reason_and_leaves_nothing_running() {
    for real in RealPrograms::all() {
        let bench = real.bench();
        let programs = MpsPrograms::find(&real.search_path()).unwrap();
        let home = bench.home();
        let why =
            MpsDaemon::start(&programs, &home, &bench.gpu(), geteuid().as_raw()).unwrap_err().to_string();
        let expected = match real.is_of_cuda_12() {
            true => "exited with status 1",
            false => "libcuda.so.1 cannot be loaded",
        };
        assert!(why.contains(expected), "{}: {why}", real.driver);
        assert_eq!(home.processes(), [], "{}", real.driver);
    }
}
