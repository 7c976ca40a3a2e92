//! Records what peers say to a head: `record HEAD_STATE_DIR HEAD_ADDRESS DIR`. Peers dial the address
//! that it prints; `scheduler/head/tests/recorded` was made with it.
#![expect(clippy::print_stdout, reason = "the address goes to whoever drives it")]

use std::path::Path;

use cohabit_net::{HeadIdentity, recorded};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, state, head, folder] = &arguments[..] else {
        return Err(std::io::Error::other("write: record HEAD_STATE_DIR HEAD_ADDRESS DIR"));
    };
    let identity =
        HeadIdentity::open_or_create(&Path::new(state).join("tls")).map_err(std::io::Error::other)?;
    let socket = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", socket.local_addr()?);
    recorded::record(socket, &identity, head.clone(), Path::new(folder)).await
}
