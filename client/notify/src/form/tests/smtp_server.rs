//! A mail server that takes one mail, or fails at one step.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// Where the server fails, and with which reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmtpStep {
    /// Nowhere.
    Accept,
    Greet(&'static str),
    Recipient(&'static str),
    Data(&'static str),
    /// It closes the link when the mail comes.
    Cut,
    /// It says nothing at all.
    Silent,
}

pub(super) struct SmtpServer {
    pub(super) port: u16,
    session: JoinHandle<String>,
}

impl SmtpServer {
    pub(super) fn start(step: SmtpStep) -> SmtpServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let session = thread::spawn(move || serve(listener.accept().unwrap().0, step));
        SmtpServer { port, session }
    }

    /// All lines that came, once the link is closed.
    pub(super) fn received(self) -> String {
        self.session.join().unwrap()
    }
}

fn serve(link: TcpStream, step: SmtpStep) -> String {
    let (mut lines, mut replies) = (BufReader::new(link.try_clone().unwrap()), link);
    let mut received = String::new();
    let mut reply = |text: &str| replies.write_all(format!("{text}\r\n").as_bytes()).unwrap_or_default();
    match step {
        SmtpStep::Silent => {}
        SmtpStep::Greet(text) => reply(text),
        SmtpStep::Accept | SmtpStep::Recipient(_) | SmtpStep::Data(_) | SmtpStep::Cut => reply("220 ready"),
    }
    let mut is_mail = false;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap_or(0) == 0 {
            return received;
        }
        received += &line;
        let word = line.trim_end().split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        match (is_mail, word.as_str(), step) {
            (_, _, SmtpStep::Silent) | (true, _, _) if line.trim_end() != "." => {}
            (true, _, SmtpStep::Data(text)) => (is_mail, _) = (false, reply(text)),
            (true, _, _) => (is_mail, _) = (false, reply("250 taken")),
            (false, "EHLO", _) => reply("250 localhost"),
            (false, "RCPT", SmtpStep::Recipient(text)) => reply(text),
            (false, "DATA", SmtpStep::Cut) => return received,
            (false, "DATA", _) => (is_mail, _) = (true, reply("354 go on")),
            (false, "QUIT", _) => {
                reply("221 bye");
                return received;
            }
            (false, _, _) => reply("250 ok"),
        }
    }
}
