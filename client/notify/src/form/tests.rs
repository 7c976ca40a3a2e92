//! Mail to servers on this machine: one that follows a script, and aiosmtpd where it is installed.

mod smtp_server;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use self::smtp_server::{SmtpServer, SmtpStep};
use super::{DeliveryFailure, Sender};
use crate::config::{ChannelAddress, ChannelConfig, ChannelKind};
use crate::message::Message;
use crate::message::samples::{ended, entry};
use cohabit_settings::FileSecret;

fn sender(port: u16) -> Sender {
    let channel = ChannelConfig {
        name: "mail".into(),
        kind: ChannelKind::Smtp { from: Box::new("cohabit@lab.example".parse().unwrap()) },
        url: FileSecret::of(&format!("smtp://127.0.0.1:{port}")),
        authorities: None,
        address: ChannelAddress::OfUser("{user}@lab.example".into()),
        most_per_minute: 20,
    };
    Sender::with_limit(&channel, Duration::from_secs(2)).unwrap()
}

fn message(name: &str) -> Message {
    let mut event = ended(12);
    event.job.as_mut().unwrap().name = name.into();
    Message::of(entry(7, event))
}

fn deliver(step: SmtpStep) -> (Result<(), DeliveryFailure>, String) {
    let server = SmtpServer::start(step);
    let delivered = sender(server.port).deliver(&message("train"), "ada@lab.example");
    (delivered, server.received())
}

#[test]
fn a_mail_server_gets_the_mail() {
    let (delivered, received) = deliver(SmtpStep::Accept);
    assert_eq!(delivered, Ok(()));
    for part in
        ["MAIL FROM:<cohabit@lab.example>", "RCPT TO:<ada@lab.example>", "Subject: Job 12 train failed"]
    {
        assert!(received.contains(part), "{part}: {received}");
    }
}

#[test]
fn a_busy_server_is_tried_again_and_an_unknown_recipient_given_up() {
    let later = |step| matches!(deliver(step).0, Err(DeliveryFailure::Later { .. }));
    assert!(later(SmtpStep::Greet("421 too many connections")));
    assert!(later(SmtpStep::Recipient("450 greylisted, try again later")));
    assert!(later(SmtpStep::Recipient("530 authentication required")));
    assert!(later(SmtpStep::Data("451 out of space")));
    assert!(later(SmtpStep::Cut));
    assert!(later(SmtpStep::Silent));
    let (refused, _) = deliver(SmtpStep::Recipient("550 no such user"));
    let Err(DeliveryFailure::Never(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("no such user"), "{why}");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let unreachable = sender(closed).deliver(&message("train"), "ada@lab.example");
    assert!(matches!(unreachable, Err(DeliveryFailure::Later { .. })), "{unreachable:?}");
}

/// Prints each mail as a JSON line: its recipients, and the headers and the body as Python reads them.
const AIOSMTPD: &str = r#"
import asyncio, email, email.policy, json
from aiosmtpd.smtp import SMTP
class Handler:
    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        print(json.dumps({"to": envelope.rcpt_tos, "headers": [[k, str(v)] for k, v in mail.items()],
                          "body": mail.get_content()}), flush=True)
        return "250 taken"
async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Handler()), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"#;

#[test]
fn a_mail_server_of_others_reads_what_was_meant() {
    let python = std::env::var("COHABIT_SMTP_PYTHON").unwrap_or("python3".into());
    let has_server = Command::new(&python).args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status();
    if !has_server.is_ok_and(|status| status.success()) {
        let told = "skipped: no aiosmtpd (pip install aiosmtpd; COHABIT_SMTP_PYTHON names another Python)\n";
        std::io::stderr().write_all(told.as_bytes()).unwrap();
        return;
    }
    let mut server = Command::new(&python).args(["-c", AIOSMTPD]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let port = lines.next().unwrap().parse().unwrap();
    let hostile = "ä\r\nBcc: eve@example.org\r\n\r\n.\r\nMAIL FROM:<eve@example.org>";
    sender(port).deliver(&message(hostile), "ada@lab.example").unwrap();
    let mail: serde_json::Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(mail["to"], serde_json::json!(["ada@lab.example"]));
    let headers: Vec<&str> =
        mail["headers"].as_array().unwrap().iter().map(|header| header[0].as_str().unwrap()).collect();
    assert!(!headers.contains(&"Bcc"), "{headers:?}");
    let subject = mail["headers"].as_array().unwrap().iter().find(|header| header[0] == "Subject").unwrap();
    let title = message(hostile).title;
    assert_eq!(subject[1], serde_json::Value::from(title.clone()));
    assert!(mail["body"].as_str().unwrap().starts_with(&title), "{mail}");
}
