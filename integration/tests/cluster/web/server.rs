//! A running `cohabit web`, and requests to it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;

use rustls::ClientConfig;

use super::http::{HttpAnswer, request, secure_request};
use crate::kit::Cluster;

/// A running `cohabit web`.
pub(crate) struct WebServer {
    process: Child,
    output: BufReader<ChildStdout>,
    /// The first address that it printed.
    pub(crate) entry: String,
    pub(crate) port: u16,
    /// How it is asked by HTTPS; none for plain HTTP.
    tls: Option<Arc<ClientConfig>>,
}

impl WebServer {
    /// Starts it with these flags, as the admin unless they name another token.
    pub(crate) fn start(cluster: &Cluster, flags: &[&str]) -> WebServer {
        WebServer::start_with(cluster, flags, None)
    }

    /// The same, asked by HTTPS from a client with this configuration.
    pub(crate) fn start_with(cluster: &Cluster, flags: &[&str], tls: Option<Arc<ClientConfig>>) -> WebServer {
        let mut command = cluster.command(&[&["web", "--listen", "127.0.0.1:0"], flags].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let entry = printed_address(&mut output);
        let port = entry.split(['/', ':']).find_map(|part| part.parse().ok()).unwrap();
        WebServer { process, output, entry, port, tls }
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
        assert_eq!(cookie.contains("Secure"), self.tls.is_some(), "{cookie}");
        cookie.split(';').next().unwrap().to_owned()
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> HttpAnswer {
        let host = self.host();
        self.send("GET", path, &[&[("Host", host.as_str())], headers].concat())
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> HttpAnswer {
        match &self.tls {
            Some(tls) => secure_request(tls, self.port, method, path, headers, ""),
            None => request(self.port, method, path, headers, ""),
        }
    }

    /// A page, which must be there.
    pub(crate) fn page(&self, session: &str, path: &str) -> String {
        let page = self.get(path, &[("Cookie", session)]);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        page.body
    }

    /// A change as our own page asks for it.
    pub(crate) fn post(&self, session: &str, path: &str) -> HttpAnswer {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let (host, origin) = (self.host(), format!("{scheme}://{}", self.host()));
        let headers = [
            ("Host", host.as_str()),
            ("Cookie", session),
            ("Origin", origin.as_str()),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Length", "0"),
        ];
        self.send("POST", path, &headers)
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
