//! A head whose system has no more files to open: it goes on as soon as there are some. In a process of its
//! own, because all other tests would be out of files with it.

use std::fs::File;
use std::time::Duration;

use cohabit_net::{
    Endpoint, HeadIdentity, Incoming, Listener, ListenerLimits, TokenStore, initial_open_file_limit,
    raise_open_file_limit,
};
use cohabit_types::{Role, Time};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// So few that they are soon used up.
const FILES: u64 = 64;

#[tokio::test]
async fn connections_wait_while_file_descriptors_are_exhausted() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, FILES, hard).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let identity = HeadIdentity::open_or_create(folder.path()).unwrap();
    let tokens = TokenStore::open(&folder.path().join("tokens.json"), identity.fingerprint()).unwrap();
    let token = tokens.create("ada", Role::User, None, Time::EPOCH).unwrap();
    let limits = ListenerLimits { handshake_timeout: Duration::from_secs(1), ..ListenerLimits::default() };
    let mut listener = Listener::bind_within("127.0.0.1:0", &identity, tokens, limits).await.unwrap();
    let address = listener.local_addr();

    // The system takes this connection; the head cannot.
    let mut early = TcpStream::connect(address).await.unwrap();
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!files.is_empty());
    let accepting = tokio::spawn(async move { (listener.accept().await, listener) });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!accepting.is_finished());
    drop(files);

    let endpoint = Endpoint { address: address.to_string(), token };
    let dialled = tokio::spawn(async move { cohabit_net::connect_client(&endpoint).await.map(drop) });
    let (incoming, _listener) = timeout(PATIENCE, accepting).await.unwrap().unwrap();
    let Incoming::Client(peer) = incoming else { panic!("a client dialled") };
    assert_eq!(peer.by().user, "ada");
    drop(peer);
    dialled.abort();
    // The early one was taken, too: it is hung up on for its silence.
    let _reset_or_end = timeout(PATIENCE, early.read_to_end(&mut Vec::new())).await.unwrap();

    raise_open_file_limit();
    assert_eq!((getrlimit(Resource::RLIMIT_NOFILE).unwrap().0, initial_open_file_limit()), (hard, FILES));
}

/// Nothing here takes as long as this.
const PATIENCE: Duration = Duration::from_secs(60);
