//! A running `cohabit web`, and requests to it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use super::http::{HttpAnswer, request};
use crate::kit::Cluster;

/// A running `cohabit web`.
pub(crate) struct WebServer {
    process: Child,
    output: BufReader<ChildStdout>,
    /// The first address that it printed.
    pub(crate) entry: String,
    pub(crate) port: u16,
}

impl WebServer {
    /// Starts it with these flags, as the admin unless they name another token.
    pub(crate) fn start(cluster: &Cluster, flags: &[&str]) -> WebServer {
        let mut command = cluster.command(&[&["web", "--listen", "127.0.0.1:0"], flags].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let entry = printed_address(&mut output);
        let port = entry.split(['/', ':']).find_map(|part| part.parse().ok()).unwrap();
        WebServer { process, output, entry, port }
    }

    /// The address that it prints when somebody presses Enter.
    pub(crate) fn another_entry(&mut self) -> String {
        self.process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        printed_address(&mut self.output)
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The cookie that a new address gives.
    pub(crate) fn session(&mut self) -> String {
        let entry = self.another_entry();
        let entered = self.get(path_of(&entry), &[]);
        assert_eq!((entered.status, entered.header("location")), (303, Some("/")), "{entered:?}");
        let cookie = entered.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        cookie.split(';').next().unwrap().to_owned()
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> HttpAnswer {
        let host = self.host();
        request(self.port, "GET", path, &[&[("Host", host.as_str())], headers].concat(), "")
    }

    /// A page, which must be there.
    pub(crate) fn page(&self, session: &str, path: &str) -> String {
        let page = self.get(path, &[("Cookie", session)]);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        page.body
    }

    /// A change as our own page asks for it.
    pub(crate) fn post(&self, session: &str, path: &str) -> HttpAnswer {
        let (host, origin) = (self.host(), format!("http://{}", self.host()));
        let headers = [
            ("Host", host.as_str()),
            ("Cookie", session),
            ("Origin", origin.as_str()),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Length", "0"),
        ];
        request(self.port, "POST", path, &headers, "")
    }
}

/// The path and the key of an address.
pub(crate) fn path_of(address: &str) -> &str {
    &address[address.find("/enter").unwrap()..]
}

fn printed_address(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.trim().strip_prefix("Open ").unwrap_or_else(|| panic!("no address: {line:?}")).to_owned()
}

impl Drop for WebServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
