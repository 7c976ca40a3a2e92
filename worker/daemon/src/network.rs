//! The network speed of this host, as the kernel reports it for the interface with the address at which other
//! nodes reach it.
//!
//! Nothing is measured or guessed: for an interface without a known speed (loopback, tunnels, most virtual
//! machines) the speed stays unknown, and the operator can configure it.

use std::fs;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use cohabit_types::Bandwidth;
use nix::ifaddrs::getifaddrs;

/// Contains a directory for each interface.
const INTERFACES: &str = "/sys/class/net";

/// The speed of the interface with this address, which may be an IP address or a host name. Blocks on name
/// resolution.
pub(crate) fn speed_at(address: &str) -> Option<Bandwidth> {
    let addresses = (address, 0).to_socket_addrs().ok()?;
    addresses.filter_map(|it| interface_of(it.ip())).find_map(|name| speed(Path::new(INTERFACES), &name))
}

fn interface_of(address: IpAddr) -> Option<String> {
    let carries = |storage: nix::sys::socket::SockaddrStorage| match address {
        IpAddr::V4(wanted) => storage.as_sockaddr_in().is_some_and(|it| it.ip() == wanted),
        IpAddr::V6(wanted) => storage.as_sockaddr_in6().is_some_and(|it| it.ip() == wanted),
    };
    let interface = getifaddrs().ok()?.find(|interface| interface.address.is_some_and(carries))?;
    Some(interface.interface_name)
}

/// The file holds Mbit/s; −1 or 2³²−1 where the speed is unknown.
fn speed(interfaces: &Path, name: &str) -> Option<Bandwidth> {
    let text = fs::read_to_string(interfaces.join(name).join("speed")).ok()?;
    let megabits: u32 = text.trim().parse().ok().filter(|known| *known > 0 && *known < u32::MAX)?;
    Some(Bandwidth(u64::from(megabits) * 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_that_the_kernel_does_not_know_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let interface = |text: &str| {
            fs::create_dir_all(folder.path().join("eth0")).unwrap();
            fs::write(folder.path().join("eth0/speed"), text).unwrap();
            speed(folder.path(), "eth0")
        };
        assert_eq!(interface("25000\n"), Some(Bandwidth(25_000_000_000)));
        for unknown in ["-1\n", "4294967295\n", "0\n", ""] {
            assert_eq!(interface(unknown), None, "{unknown:?}");
        }
        assert_eq!(speed(folder.path(), "eth1"), None);
    }

    #[test]
    fn an_interface_is_found_by_its_address() {
        assert_eq!(interface_of([127, 0, 0, 1].into()).as_deref(), Some("lo"));
        assert_eq!(interface_of([192, 0, 2, 1].into()), None);
    }

    #[test]
    fn loopback_and_unknown_names_have_no_speed() {
        assert_eq!(speed_at("127.0.0.1"), None);
        assert_eq!(speed_at("no such host"), None);
    }
}
