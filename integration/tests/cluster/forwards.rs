//! Ports of jobs on the machine of their user.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::*;

/// A running `cohabit forward`.
struct Forward {
    process: Child,
    address: String,
}

impl Forward {
    fn start(cluster: &Cluster, arguments: &[&str]) -> Forward {
        let mut command = cluster.command(&[&["forward"], arguments].concat());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        Forward { process, address }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// All that a connection gives that sends these bytes and then nothing more.
    fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        let mut sender = stream.try_clone().unwrap();
        let sent = bytes.to_vec();
        let sending = std::thread::spawn(move || {
            sender.write_all(&sent).unwrap();
            sender.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        sending.join().unwrap();
        got
    }

    /// Ends it. Returns its exit code and what it said.
    fn end(mut self) -> (Option<i32>, String) {
        kill(Pid::from_raw(self.process.id() as i32), Signal::SIGINT).unwrap();
        self.ended()
    }

    fn ended(&mut self) -> (Option<i32>, String) {
        let code = self.process.wait().unwrap().code();
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (code, said)
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A running job whose server does this, and its port.
fn server(cluster: &Cluster, mode: &str) -> (String, String) {
    let program = cohabit_fakes::examples().unwrap().join("test-server");
    let file = format!("port-{}", mode.replace(' ', "-"));
    let script = format!("{} {} {mode}", program.display(), cluster.path(&file));
    let job = cluster.submit(&["--gpus", "0"], &script);
    cluster.until_file(&file);
    (job, cluster.read(&file))
}

/// What the server sends in the mode `source`.
fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|number| (number % 251) as u8).collect()
}

/// How many connections a server on this port has.
fn connections_of(port: &str) -> usize {
    let local = format!("0100007F:{:04X}", port.parse::<u16>().unwrap());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let is_open = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(&local) && words.nth(1) == Some("01")
    };
    table.lines().filter(is_open).count()
}

#[test]
fn bytes_pass_both_ways_through_many_connections_and_each_direction_ends_by_itself() {
    let cluster = Cluster::start(&["host:1"]);
    let (job, port) = server(&cluster, "echo");
    let forward = Forward::start(&cluster, &[&job, &format!("0:{port}")]);
    assert_eq!(forward.exchange(b""), b"bye");
    // All are open before the first of them is used.
    let mut streams: Vec<TcpStream> = (0..40).map(|_| forward.connect()).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        stream.write_all(format!("{number:04}").as_bytes()).unwrap();
    }
    for (number, stream) in streams.iter_mut().enumerate().rev() {
        let mut echo = [0; 4];
        stream.read_exact(&mut echo).unwrap();
        assert_eq!(echo, format!("{number:04}").as_bytes());
    }
    let large = pattern(6 << 20);
    assert!(forward.exchange(&large) == [&large[..], b"bye"].concat());
    // A program that goes away ends its connection to the server.
    drop(streams);
    until("all are closed", || connections_of(&port) == 0);
    let open = forward.connect();
    until("it is open", || connections_of(&port) == 1);
    let (code, said) = forward.end();
    assert_eq!(code, Some(0), "{said}");
    until("it is closed", || connections_of(&port) == 0);
    drop(open);
}

#[test]
fn large_answers_and_requests_arrive_whole_while_the_head_is_restarted() {
    let mut cluster = Cluster::start(&["host:2"]);
    let bytes: u64 = 24 << 20;
    let (source, source_port) = server(&cluster, &format!("source {bytes}"));
    let (sink, sink_port) = server(&cluster, "sink");
    let down = Forward::start(&cluster, &[&source, &format!("0:{source_port}")]);
    let up = Forward::start(&cluster, &[&sink, &format!("0:{sink_port}")]);
    let mut stream = down.connect();
    let mut got = vec![0; 1 << 20];
    stream.read_exact(&mut got).unwrap();
    let sent = pattern(bytes);
    let counting = std::thread::spawn(move || up.exchange(&sent));
    cluster.kill_head();
    cluster.restart_head();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == pattern(bytes), "{} bytes", got.len());
    assert_eq!(counting.join().unwrap(), bytes.to_string().as_bytes());
}

#[test]
fn a_connection_is_reset_with_its_worker_and_the_next_one_works() {
    let mut cluster = Cluster::start(&["host:1"]);
    let (job, port) = server(&cluster, "echo");
    let forward = Forward::start(&cluster, &[&job, &format!("0:{port}")]);
    let mut stream = forward.connect();
    stream.write_all(b"one").unwrap();
    stream.read_exact(&mut [0; 3]).unwrap();
    cluster.kill_worker(0);
    cluster.restart_worker(0);
    assert!(stream.read_to_end(&mut Vec::new()).is_err(), "an end in order would look as if all was said");
    until("the next one works", || {
        let mut stream = forward.connect();
        let sent = stream.write_all(b"two").and_then(|()| stream.shutdown(Shutdown::Write));
        let mut got = Vec::new();
        sent.and_then(|()| stream.read_to_end(&mut got)).is_ok() && got == b"twobye"
    });
}

#[test]
fn a_server_that_reads_nothing_stops_its_own_connection_only() {
    let cluster = Cluster::start(&["host:2"]);
    let (stuck, stuck_port) = server(&cluster, "stuck");
    let (job, port) = server(&cluster, "echo");
    let to_stuck = Forward::start(&cluster, &[&stuck, &format!("0:{stuck_port}")]);
    let streams: Vec<TcpStream> = (0..10).map(|_| to_stuck.connect()).collect();
    // Each is filled until nothing more is taken.
    for stream in &streams {
        stream.set_nonblocking(true).unwrap();
    }
    let bytes = vec![7; 1 << 16];
    until("all are full", || streams.iter().filter(|stream| (&**stream).write(&bytes).is_ok()).count() == 0);
    let forward = Forward::start(&cluster, &[&job, &format!("0:{port}")]);
    assert_eq!(forward.exchange(b"hello "), b"hello bye");
}

#[test]
fn a_forward_ends_with_its_job_after_the_bytes_that_flow() {
    let cluster = Cluster::start(&["host:1"]);
    let (job, port) = server(&cluster, &format!("source {}", 1u64 << 40));
    let mut forward = Forward::start(&cluster, &[&job, &format!("0:{port}")]);
    let mut stream = forward.connect();
    stream.read_exact(&mut [0; 1 << 16]).unwrap();
    cluster.ok(&["cancel", "--force", &job]);
    // To its end or to a reset.
    while let Ok(1..) = stream.read(&mut [0; 1 << 16]) {}
    let (code, said) = forward.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("job {job} has ended (CANCELLED)")), "{said}");
}

#[test]
fn only_ports_of_ones_own_running_job_are_reached() {
    let cluster = Cluster::start(&["host:2"]);
    let (job, port) = server(&cluster, "echo");
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let ran = cluster.run(&[&["forward"], arguments].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    };
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = own.local_addr().unwrap().port().to_string();
    refused(&[&job, &format!("0:{taken}")], 77, "does not belong to job");
    let other = cluster.submit(&["--gpus", "0"], "sleep 100000");
    cluster.until_state(&other, "RUNNING");
    refused(&[&other, &format!("0:{port}")], 77, &format!("does not belong to job {other}"));
    refused(&[&job, &port], 74, &format!("Name another port before that of the job: 0:{port}"));
    refused(&[&job, &format!("{taken}:{port}")], 74, &format!("cannot listen on 127.0.0.1:{taken}"));
    refused(&[&job, "0"], 2, "name the port on which the job listens");
    refused(&[&job, "--rank", "4", "0:80"], 66, "rank");
    refused(&["999", "0:80"], 66, "999");
    let held = cluster.submit(&["--hold"], "true");
    refused(&[&held, "0:80"], 65, "is HELD: only ports of a running job");
    cluster.ok(&["cancel", &other]);
    cluster.end(&other);
    refused(&[&other, "0:80"], 65, "is CANCELLED: only ports of a running job");
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    refused(&["--token-file", &ada, &job, &format!("0:{port}")], 77, "only its owner and admins");
}

#[test]
fn a_port_that_nobody_listens_on_is_said_and_works_once_the_job_does() {
    let cluster = Cluster::start(&["host:1"]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (job, port) = server(&cluster, "echo");
    let forward = Forward::start(&cluster, &[&job, &format!("0:{free}")]);
    let mut stream = forward.connect();
    assert!(stream.read_to_end(&mut Vec::new()).is_err(), "it is reset");
    // Another process takes it meanwhile.
    let _other = TcpListener::bind(format!("127.0.0.1:{free}")).unwrap();
    assert!(forward.connect().read_to_end(&mut Vec::new()).is_err(), "it is reset");
    let (_, said) = forward.end();
    assert!(said.contains(&format!("note: nobody listens on port {free}")), "{said}");
    assert!(said.contains(&format!("does not belong to job {job}")), "{said}");
    // A port that the job has itself works beside it.
    assert_eq!(Forward::start(&cluster, &[&job, &format!("0:{port}")]).exchange(b""), b"bye");
}
