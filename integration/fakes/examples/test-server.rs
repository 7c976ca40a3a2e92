//! A server for the tests of connections to ports of jobs: `test-server PORT-FILE MODE [BYTES]` listens on a
//! free port of the loopback address, writes its number to the file, and then does one of these with each
//! connection:
//!
//! - `echo`: sends back what it gets, and `bye` once the other side has nothing more to say;
//! - `source`: sends so many bytes, each the number of the byte modulo 251, and closes;
//! - `sink`: reads all, answers with the number of bytes, and closes;
//! - `stuck`: reads nothing.
#![expect(clippy::unwrap_used, reason = "a server that cannot go on ends, and the test sees that")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (file, mode) = (arguments.next().unwrap(), arguments.next().unwrap());
    let bytes: u64 = arguments.next().map_or(0, |bytes| bytes.parse().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The test sees it whole or not at all.
    std::fs::write(format!("{file}.new"), port.to_string()).unwrap();
    std::fs::rename(format!("{file}.new"), file).unwrap();
    for stream in listener.incoming() {
        let (mut stream, mode) = (stream.unwrap(), mode.clone());
        thread::spawn(move || match mode.as_str() {
            "echo" => echo(&mut stream),
            "source" => send(&mut stream, bytes),
            "sink" => count(&mut stream),
            "stuck" => thread::park(),
            other => panic!("there is no mode {other}"),
        });
    }
}

fn echo(stream: &mut TcpStream) {
    let mut back = stream.try_clone().unwrap();
    // A client that went away is no error of a server.
    let _ = std::io::copy(stream, &mut back).and_then(|_| back.write_all(b"bye"));
}

fn send(stream: &mut TcpStream, bytes: u64) {
    let mut left = bytes;
    let pattern: Vec<u8> = (0..251 * 1024u64).map(|number| (number % 251) as u8).collect();
    while left > 0 {
        let length = left.min(pattern.len() as u64) as usize;
        if stream.write_all(&pattern[..length]).is_err() {
            return;
        }
        left -= length as u64;
    }
}

fn count(stream: &mut TcpStream) {
    let (mut buffer, mut all) = (vec![0; 1 << 16], 0);
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        all += length;
    }
    let _ = stream.write_all(all.to_string().as_bytes());
}
