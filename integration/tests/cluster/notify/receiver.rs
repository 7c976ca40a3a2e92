//! A webhook on this machine, and a running `cohabit notify` that posts to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::kit::*;

/// What the receiver does when a message has come.
type OnMessage = Box<dyn Fn(usize) + Send + Sync>;

/// A webhook that keeps every message.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) port: u16,
    messages: Arc<Mutex<Vec<Value>>>,
    /// Called with the number of messages so far, before the answer.
    on_message: Arc<Mutex<Option<OnMessage>>>,
}

impl Receiver {
    pub(crate) fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let receiver = Receiver { port, messages: Arc::default(), on_message: Arc::default() };
        let serving = receiver.clone();
        thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(|link| serving.serve(link)));
        receiver
    }

    fn serve(&self, link: TcpStream) {
        let mut lines = BufReader::new(link.try_clone().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(bytes) = line.strip_prefix("content-length:") {
                length = bytes.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if lines.read_exact(&mut body).is_err() {
            return;
        }
        let count = {
            let mut messages = self.messages.lock().unwrap();
            messages.push(serde_json::from_slice(&body).unwrap());
            messages.len()
        };
        if let Some(on_message) = self.on_message.lock().unwrap().as_ref() {
            on_message(count);
        }
        // The sender may be gone.
        let _ = (&link).write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    }

    pub(crate) fn on_message(&self, act: impl Fn(usize) + Send + Sync + 'static) {
        *self.on_message.lock().unwrap() = Some(Box::new(act));
    }

    pub(crate) fn messages(&self) -> Vec<Value> {
        self.messages.lock().unwrap().clone()
    }

    /// Waits for a message about this job with this event.
    pub(crate) fn message(&self, job: &str, event: &str) -> Value {
        let found = || {
            let of_job =
                |message: &Value| message["event"] == event && message["entries"][0]["job"]["id"] == job;
            self.messages().into_iter().find(of_job)
        };
        until(&format!("a message '{event}' about job {job}"), || found().is_some());
        found().unwrap()
    }
}

/// Writes a configuration that posts to this port, with these further lines.
pub(crate) fn configure(cluster: &Cluster, port: u16, routes: &str) -> String {
    let write = |name: &str, text: &str| {
        let path = cluster.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    write("hook.url", &format!("http://127.0.0.1:{port}/hook"));
    write("hook.key", "a key");
    let text = "state = \"notify.json\"\n[[channel]]\nname = \"hook\"\nkind = \"webhook\"\nurl-file = \"hook.url\"\n\
                secret-file = \"hook.key\"\nmost-per-minute = 600\n";
    write("notify.toml", &format!("{text}{routes}"))
}

/// A running `cohabit notify`.
pub(crate) struct Notifier(Child);

impl Notifier {
    /// Starts it, and waits until it has a place in the feed.
    pub(crate) fn start(cluster: &Cluster, config: &str) -> Notifier {
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(cluster.path("notify.log")).unwrap();
        let mut command = cluster.command(&["notify", "--config", config]);
        let notifier = Notifier(command.stderr(log).stdout(Stdio::null()).spawn().unwrap());
        cluster.until_file("notify.json");
        notifier
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id() as i32)
    }

    /// Waits for the end of a process that was killed.
    pub(crate) fn killed(mut self) {
        self.0.wait().unwrap();
    }

    /// Ends it with SIGTERM, which has to succeed.
    pub(crate) fn stop(mut self) {
        kill(self.pid(), Signal::SIGTERM).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
