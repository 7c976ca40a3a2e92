//! Applications whose processes run on another node than their coordinator. The two nodes are directories
//! with sockets of their own: processes of one reach those of the other by the port alone.

use cohabit_client::types::{ApplicationSecret, JobId, LogStream, RankId};
use cohabit_net::ApplicationTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fake_head::FakeHead;
use crate::fake_jobs::Jobs;
use crate::program;
use crate::scenarios::play_on;

#[tokio::test]
async fn a_coordinator_serves_processes_of_another_node() {
    let head = FakeHead::with_two_nodes().await;
    play_on(&head, &["handles_are_passed_on"]).await;
    let root = head.jobs().values().find(|job| job.is_root()).unwrap().record.id.attempt(1).rank(0);
    let sockets = std::fs::read_dir(head.places().sockets("n0", root.attempt)).unwrap();
    let mut names: Vec<String> = sockets.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(
        names,
        [format!("{}-{}-0", root.job(), root.attempt.attempt), "store".into()],
        "all others are elsewhere"
    );
}

#[tokio::test]
async fn calls_survive_cut_links_also_to_a_coordinator_of_another_node() {
    let head = FakeHead::with_two_nodes().await;
    play_on(&head, &["calls_survive_cut_links"]).await;
}

/// What a connection from another node begins with.
fn greeting(to: RankId) -> [u8; 28] {
    let mut bytes = *b"\xc0habit\x00\x01____________________";
    bytes[8..16].copy_from_slice(&to.job().number.to_le_bytes());
    bytes[16..20].copy_from_slice(&to.attempt.attempt.to_le_bytes());
    bytes[20..24].copy_from_slice(&to.rank.to_le_bytes());
    bytes[24..].copy_from_slice(&[0; 4]);
    bytes
}

async fn greeted(port: u16, to: RankId) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(&greeting(to)).await.unwrap();
    stream
}

/// The ports of an application are open to everybody, and give nothing to whoever does not know its secret.
#[tokio::test]
async fn strangers_on_the_network_get_nothing() {
    let head = FakeHead::with_two_nodes().await;
    let root = head.launch(&program(), &["wait"]);
    let main = JobId::new(root.number + 1);
    let printed = |jobs: &Jobs| Some(jobs.get(&main)?.text(LogStream::Stdout));
    head.until(|jobs| printed(jobs).filter(|text| text == "waits with 1\n")).await;
    let actor =
        head.jobs().values().find(|job| job.spec.name == "waits").unwrap().record.id.attempt(1).rank(0);
    let [coordinators, others] = head.places().ports.unwrap();
    for (port, to) in [(coordinators, root.attempt(1).rank(0)), (others, actor)] {
        let absent = greeting(JobId::new(99).attempt(1).rank(0));
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n        "[..], &[0xff; 64], &absent] {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            let mut answer = Vec::new();
            // It may be reset.
            let _closed = stream.read_to_end(&mut answer).await;
            assert_eq!(answer, [0; 0]);
        }
        let stranger = ApplicationTls::new(&ApplicationSecret([8; 32]));
        stranger.connect(greeted(port, to).await).await.unwrap_err();
        let own = ApplicationTls::new(&ApplicationSecret([7; 32]));
        own.connect(greeted(port, to).await).await.unwrap();
    }
    assert!(head.jobs().values().all(|job| !job.record.state.is_terminal()), "all of it goes on");
    head.jobs()[&root].signal(nix::sys::signal::Signal::SIGTERM);
    head.ended(root).await;
}
