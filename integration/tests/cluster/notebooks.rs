//! Jupyter as a job. What needs a real one runs where `COHABIT_JUPYTER_PYTHON`, or else `python3`, has
//! JupyterLab; elsewhere the tests say what they skip.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::*;

/// A running `cohabit notebook`, and what it printed.
struct Notebook {
    process: Child,
    url: String,
}

impl Notebook {
    fn start(cluster: &Cluster, arguments: &[&str]) -> Notebook {
        let mut command = cluster.command(&[&["notebook"], arguments].concat());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url:?}: {}", said(&mut process));
        Notebook { process, url }
    }

    fn token(&self) -> &str {
        self.url.split_once("?token=").unwrap().1
    }

    /// Leaves it with Ctrl-C. Returns what it said.
    fn leave(mut self) -> String {
        kill(Pid::from_raw(self.process.id() as i32), Signal::SIGINT).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        said(&mut self.process)
    }
}

fn said(process: &mut Child) -> String {
    let mut text = String::new();
    process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// A Python that has JupyterLab.
fn jupyter() -> Option<String> {
    let python = std::env::var("COHABIT_JUPYTER_PYTHON").unwrap_or("python3".into());
    let tried = Command::new(&python).args(["-c", "import jupyterlab"]).stderr(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    say("skipped: no JupyterLab (pip install jupyterlab; COHABIT_JUPYTER_PYTHON names another Python)");
    None
}

/// What this code prints in a kernel of the notebook, which a client of Jupyter starts through the address.
fn run_code(python: &str, url: &str, code: &str) -> String {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/notebooks/run_code.py");
    let ran = Command::new(python).arg(client).args([url, code]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn code_runs_in_a_kernel_through_the_one_address_that_is_printed() {
    let Some(python) = jupyter() else { return };
    let cluster = Cluster::start(&["host:1"]);
    let files = cluster.path("files");
    std::fs::create_dir(&files).unwrap();
    let flags = ["--gpus", "1", "--time", "1h", "--env", &format!("TMPDIR={files}")];
    let ran = Notebook::start(&cluster, &[&flags[..], &["--python", &python]].concat());
    let job = cluster.ok(&["last", "--output", "quiet"]).trim().to_owned();
    let code = "import os; print(6 * 7, os.environ['COHABIT_JOB_ID'])";
    assert_eq!(run_code(&python, &ran.url, code), format!("42 {job}\n"));

    // The token is in no view of the job, on no command line and in no file that others may read.
    let token = ran.token().to_owned();
    assert!(token.len() >= 32, "{token}");
    let shown = [&["show", "--output", "json", &job][..], &["logs", &job], &["explain", &job], &["list"]];
    for view in shown {
        assert!(!cluster.ok(view).contains(&token), "{view:?}");
    }
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains(&token), "{}", process.path().display());
    }

    let farewell = ran.leave();
    assert!(farewell.contains(&format!("cohabit notebook --attach {job}")), "{farewell}");
    assert_eq!(cluster.state(&job), "RUNNING");
    let again = Notebook::start(&cluster, &["--attach", &job]);
    assert_eq!(again.token(), token);
    assert_eq!(run_code(&python, &again.url, "print('again')"), "again\n");
    cluster.ok(&["cancel", &job]);
    let mut process = again.process;
    assert_eq!(process.wait().unwrap().code(), Some(130));
    assert_eq!(cluster.end(&job)["state"], "CANCELLED");
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 0, "its files are removed");
}

#[test]
fn a_notebook_without_jupyter_ends_at_once_and_says_what_to_install() {
    let cluster = Cluster::start(&["host:1"]);
    let failed = |arguments: &[&str], code: i32, why: &str| {
        let ran = cluster.run(&[&["notebook", "--gpus", "0"], arguments].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    };
    failed(&["--env", "PATH=/nowhere"], 127, "pip install jupyterlab");
    failed(&["--python", "/no/such/python"], 127, "there is no program /no/such/python on this node");
    failed(&["--python", "true"], 0, "COMPLETED");
    failed(&["--array", "1-2"], 2, "a notebook is one process");
    failed(&["--attach", "1"], 2, "--attach");
    let other = cluster.submit(&["--gpus", "0"], "sleep 100000");
    cluster.until_state(&other, "RUNNING");
    let ran = cluster.run(&["notebook", "--attach", &other]);
    assert_eq!(ran.code, 65, "{}", ran.stderr);
    assert!(ran.stderr.contains("has no notebook that answers"), "{}", ran.stderr);
}
