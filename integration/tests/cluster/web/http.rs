//! Plain HTTP requests, with every header as the test writes it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Sends one request on a connection of its own, and reads the answer to its end.
pub(crate) fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    exchange(connect(port), method, path, headers, body)
}

/// The same by HTTPS, for the certificate's name `localhost`.
pub(crate) fn secure_request(
    tls: &Arc<ClientConfig>,
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    let connection = ClientConnection::new(Arc::clone(tls), "localhost".try_into().unwrap()).unwrap();
    exchange(StreamOwned::new(connection, connect(port)), method, path, headers, body)
}

pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    let (mut bytes, mut part) = (Vec::new(), [0; 65_536]);
    // A server that refuses a body may close the connection before it is read.
    while let Ok(length @ 1..) = stream.read(&mut part) {
        bytes.extend(&part[..length]);
        if is_complete(&bytes) {
            break;
        }
    }
    parse(&String::from_utf8_lossy(&bytes))
}

/// Whether the answer is there, by its length: the driver of a browser does not close connections.
fn is_complete(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| bytes.len() >= end + 4 + length)
}

fn parse(text: &str) -> HttpAnswer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let pair = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    HttpAnswer { status, headers: lines.map(pair).collect(), body: body.to_owned() }
}
