//! The header `Host`: whom a request is for.
//!
//! A name that an attacker points at this machine must not do, or a page of another site could read what is
//! served here (DNS rebinding).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::HeaderMap;
use axum::http::header::HOST;

use crate::tls::TlsIdentity;

/// The `Host` of the request, if it names this machine, or is in the certificate; the port may be that of an
/// SSH tunnel.
#[must_use]
pub fn host_of_this_machine<'a>(headers: &'a HeaderMap, tls: Option<&TlsIdentity>) -> Option<&'a str> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).filter(|_| hosts.next().is_none());
    host.filter(|host| names_this_machine(host, tls))
}

fn names_this_machine(host: &str, tls: Option<&TlsIdentity>) -> bool {
    let (name, port) = match host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    let is_port = |port: &str| !port.starts_with('+') && port.parse::<u16>().is_ok();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_ours = match address.parse() {
        Ok(IpAddr::V4(address)) => address == Ipv4Addr::LOCALHOST,
        Ok(IpAddr::V6(address)) => address == Ipv6Addr::LOCALHOST && name.starts_with('['),
        Err(_) => name == "localhost",
    };
    (is_ours || tls.is_some_and(|tls| tls.is_for(address))) && port.is_none_or(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_ours() {
        for host in ["127.0.0.1", "127.0.0.1:7071", "localhost", "localhost:8080", "[::1]", "[::1]:7071"] {
            assert!(names_this_machine(host, None), "{host}");
        }
        let others = [
            "",
            "evil.example",
            "evil.example:7071",
            "127.0.0.1.evil.example",
            "127.0.0.2",
            "0.0.0.0:7071",
            "localhost.",
            "LOCALHOST",
            "::1",
            "[::1",
            "127.0.0.1:",
            "127.0.0.1:x",
            "127.0.0.1:+1",
            "127.0.0.1:70711",
            "user@127.0.0.1",
            "[::ffff:127.0.0.1]:1",
        ];
        for host in others {
            assert!(!names_this_machine(host, None), "{host}");
        }
    }
}
