//! What `run` reads from its standard input reaches the job, whatever is restarted meanwhile.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use crate::kit::{Cluster, until};

/// A `cohabit run` with an input that the test writes.
struct InputRun {
    process: Child,
    input: Option<ChildStdin>,
}

impl InputRun {
    fn start(cluster: &Cluster, arguments: &[&str]) -> InputRun {
        let mut command = cluster.command(&[&["run"], arguments].concat());
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        InputRun { process, input }
    }

    fn write(&mut self, text: &[u8]) {
        self.input.as_mut().unwrap().write_all(text).unwrap();
    }

    /// Ends the input, and returns what was printed and the exit code.
    fn finish(mut self) -> (Vec<u8>, i32) {
        drop(self.input.take());
        let mut printed = Vec::new();
        self.process.stdout.take().unwrap().read_to_end(&mut printed).unwrap();
        (printed, self.process.wait().unwrap().code().unwrap())
    }
}

#[test]
fn a_job_reads_what_run_reads() {
    let cluster = Cluster::start(&["host:1"]);
    let mut run = InputRun::start(&cluster, &["--", "cat"]);
    // Pieces that no line ends, with all values of bytes.
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|number| (number % 251) as u8).collect();
    run.write(&bytes);
    let (printed, code) = run.finish();
    assert_eq!((printed.len(), code), (bytes.len(), 0));
    assert!(printed == bytes, "the bytes are others");
    assert_eq!(InputRun::start(&cluster, &["--", "wc", "-c"]).finish(), (b"0\n".to_vec(), 0));
}

#[test]
fn head_and_worker_may_be_restarted_while_the_job_reads() {
    let mut cluster = Cluster::start(&["host:1"]);
    let mut run = InputRun::start(&cluster, &["--name", "reader", "--", "cat"]);
    let printed = |cluster: &Cluster| cluster.run(&["logs", "reader"]).stdout;
    run.write(b"one\n");
    until("the job has read a line", || printed(&cluster) == "one\n");
    cluster.stop_head();
    run.write(b"two\n");
    cluster.restart_head();
    until("the job has read a line after the restart of the head", || printed(&cluster) == "one\ntwo\n");
    cluster.stop_worker(0);
    run.write(b"three\n");
    cluster.restart_worker(0);
    assert_eq!(run.finish(), (b"one\ntwo\nthree\n".to_vec(), 0));
}

#[test]
fn each_attempt_reads_the_input_from_its_beginning() {
    let cluster = Cluster::start(&["host:1"]);
    let script = "cat; test $COHABIT_ATTEMPT = 2";
    let mut run = InputRun::start(&cluster, &["--retries", "1", "--", "sh", "-c", script]);
    run.write(b"again\n");
    assert_eq!(run.finish(), (b"again\nagain\n".to_vec(), 0));
}

#[test]
fn a_job_that_reads_no_more_ends_and_one_without_input_reads_an_end() {
    let cluster = Cluster::start(&["host:1"]);
    let mut run = InputRun::start(&cluster, &["--", "head", "-n", "1"]);
    run.write(b"first\n");
    // It ends although its input has not.
    let mut printed = String::new();
    run.process.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!((printed.as_str(), run.process.wait().unwrap().code()), ("first\n", Some(0)));
    let mut command = cluster.command(&["run", "--", "cat"]);
    let empty = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!((empty.stdout.as_slice(), empty.status.code()), (&b""[..], Some(0)));
    let submitted = cluster.ok(&["submit", "--wait", "--", "cat"]);
    assert!(!submitted.is_empty());
}

#[test]
fn an_attempt_that_would_lack_a_part_of_its_input_is_not_made() {
    let cluster = Cluster::start(&["host:1"]);
    let script = "head -c 20000000 > /dev/null; exit 1";
    let mut run = InputRun::start(&cluster, &["--retries", "1", "--", "sh", "-c", script]);
    run.write(&vec![b'x'; 20_000_000]);
    let mut said = String::new();
    run.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(run.process.wait().unwrap().code(), Some(65), "{said}");
    assert!(said.contains("is cancelled, for its input ended early: attempt 2 would lack"), "{said}");
    until("it is cancelled", || cluster.ok(&["list", "--all"]).contains("CANCELLED"));
}
