//! Breaks the connections of this process, as nothing in production does.

use std::os::fd::RawFd;

use nix::sys::socket::{AddressFamily, Shutdown, SockaddrLike, SockaddrStorage, getpeername, shutdown};

/// Breaks all connections that this process has dialed; returns how many.
pub(crate) fn cut() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").expect("Linux lists open files");
    let numbers = files.flatten().filter_map(|file| file.file_name().to_str()?.parse::<RawFd>().ok());
    let dialed = |number: &RawFd| {
        getpeername::<SockaddrStorage>(*number).is_ok_and(|address| {
            let is_named = address.as_unix_addr().is_some_and(|address| address.path().is_some());
            let of_network = [AddressFamily::Inet, AddressFamily::Inet6];
            is_named || address.family().is_some_and(|family| of_network.contains(&family))
        })
    };
    numbers.filter(dialed).filter(|number| shutdown(*number, Shutdown::Both).is_ok()).count()
}
