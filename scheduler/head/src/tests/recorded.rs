//! A worker and command lines of the last release of protocol 4, recorded, against today's head.
//!
//! `recorded/` holds every frame of a worker that ran two jobs and of fifteen command lines, as the release
//! sent and received them; `cargo run -p cohabit-net --features recorded --example record` made it. Only
//! the secrets in the hellos are others here.

use std::collections::VecDeque;
use std::time::Duration;

use cohabit_net::Token;
use cohabit_net::recorded::RawPeer;
use cohabit_types::{JobId, JobState};
use cohabit_wire::codec::{decode, encode};
use cohabit_wire::hello::{HelloAnswer, decode_answer};
use cohabit_wire::message::{Message, NoMessage};
use cohabit_wire::v4::{
    HeadServiceRequest, HeadServiceResponse, Order, Report, WorkerServiceRequest, WorkerServiceResponse,
};
use cohabit_wire::{ProtocolVersion, Secret, v4};
use tokio_util::bytes::Bytes;

use crate::test_kit::cluster::{TestHead, within};

const WORKER: &str = include_str!("recorded/v4-worker.txt");
const CLIENTS: &str = include_str!("recorded/v4-client.txt");

/// A frame, by who sent it.
#[derive(Debug, Clone)]
enum Frame {
    Peer(Bytes),
    Head(Bytes),
}

/// The frames of each session; sessions are apart by an empty line.
fn sessions(text: &str) -> Vec<VecDeque<Frame>> {
    let bytes = |hex: &str| -> Bytes {
        let digits = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect::<Vec<_>>().into()
    };
    let frame = |line: &str| match line.split_once(' ').unwrap() {
        ("peer", hex) => Frame::Peer(bytes(hex)),
        (_, hex) => Frame::Head(bytes(hex)),
    };
    text.split("\n\n").map(|session| session.lines().map(frame).collect()).collect()
}

/// Connects with the recorded hello of a session and the secret of this token, and takes the recorded answer.
async fn connect(head: &TestHead, token: &Token, session: &mut VecDeque<Frame>) -> RawPeer {
    let address = head.daemon.address().to_string();
    let mut peer = within(RawPeer::connect(&address, token.fingerprint())).await.unwrap();
    let Some(Frame::Peer(hello)) = session.pop_front() else { panic!("a session begins with a hello") };
    let text = token.expose();
    let secret = encode(&Secret::from_hex(text.rsplit_once('.').unwrap().1).unwrap()).unwrap();
    let begin = 13 + usize::from(hello[12]);
    peer.send([&hello[..begin], &secret, &hello[begin + secret.len()..]].concat().into()).await.unwrap();
    let Some(Frame::Head(_)) = session.pop_front() else { panic!("a head answers the hello") };
    let answer = within(peer.receive()).await.unwrap().unwrap();
    assert!(matches!(decode_answer(&answer, ProtocolVersion::V4), Ok(HelloAnswer::Accepted(_))));
    peer
}

/// A command line: each of its calls is answered as it was, by another value of the same kind.
async fn play_client(head: &TestHead, token: &Token, mut session: VecDeque<Frame>) {
    let mut peer = connect(head, token, &mut session).await;
    for frame in session {
        match frame {
            Frame::Peer(call) => peer.send(call).await.unwrap(),
            Frame::Head(recorded) => {
                let answer = within(peer.receive()).await.unwrap().unwrap();
                assert_eq!(kind_of(&answer), kind_of(&recorded));
            }
        }
    }
}

/// The number of an answer of protocol 4, its method, whether it is a refusal, and its variant.
fn kind_of(answer: &[u8]) -> (u64, String) {
    let message: Message<NoMessage, v4::ClientServiceResponse> = decode(answer).unwrap();
    let Message::Answer { id, answer } = message else { panic!("{message:?}") };
    let text = format!("{:?}", answer.unwrap());
    let mut opened = 0;
    let kind = text.chars().take_while(|c| {
        opened += u32::from(*c == '(');
        opened < 3 && *c != ' '
    });
    (id, kind.collect())
}

/// The worker: it reports what it reported of a job when it is ordered to run one, and answers what it
/// answered.
async fn play_worker(mut peer: RawPeer, session: VecDeque<Frame>) {
    let (mut calls, mut logs) = (VecDeque::new(), VecDeque::new());
    for frame in session {
        let Frame::Peer(bytes) = frame else { continue };
        match decode::<Message<HeadServiceRequest, WorkerServiceResponse>>(&bytes).unwrap() {
            Message::Call { request, .. } => calls.push_back((bytes, request)),
            Message::Answer { answer: Ok(read @ WorkerServiceResponse::ReadLog(_)), .. } => {
                logs.push_back(read);
            }
            Message::Answer { .. } | Message::Cancel { .. } => {}
        }
    }
    while let Ok(Some(frame)) = peer.receive().await {
        match decode::<Message<WorkerServiceRequest, HeadServiceResponse>>(&frame).unwrap() {
            Message::Call { id, request: WorkerServiceRequest::Order { orders }, .. } => {
                answer(&mut peer, id, WorkerServiceResponse::Order(())).await;
                if orders.iter().any(|order| matches!(order, Order::Run(_))) {
                    report_one_job(&mut peer, &mut calls).await;
                }
            }
            Message::Call { id, request: WorkerServiceRequest::ReadLog { .. }, .. } => {
                answer(&mut peer, id, logs.pop_front().expect("as many logs were read")).await;
            }
            Message::Answer { answer, .. } => drop(answer.unwrap()),
            Message::Cancel { .. } => {}
        }
    }
}

async fn answer(peer: &mut RawPeer, id: u64, answer: WorkerServiceResponse) {
    let message: Message<NoMessage, _> = Message::Answer { id, answer: Ok(answer) };
    peer.send(encode(&message).unwrap()).await.unwrap();
}

/// Sends the recorded calls up to the report that a rank ended.
async fn report_one_job(peer: &mut RawPeer, calls: &mut VecDeque<(Bytes, HeadServiceRequest)>) {
    while let Some((bytes, request)) = calls.pop_front() {
        peer.send(bytes).await.unwrap();
        let ended = |report: &Report| matches!(report, Report::Ended { .. });
        if matches!(request, HeadServiceRequest::Report { reports } if reports.iter().any(ended)) {
            return;
        }
    }
}

#[tokio::test]
async fn a_recorded_worker_and_recorded_command_lines_of_protocol_4_are_served() {
    let head = TestHead::start_like(|options| options.watch_limit = Duration::from_millis(50)).await;
    let token = Token::read_file(&head.daemon.worker_token_file()).unwrap();
    let [worker] = &sessions(WORKER)[..] else { panic!("one worker was recorded") };
    let mut worker = worker.clone();
    let peer = connect(&head, &token, &mut worker).await;
    tokio::spawn(play_worker(peer, worker));
    let admin = Token::read_file(&head.daemon.admin_token_file()).unwrap();
    let clients = sessions(CLIENTS);
    assert_eq!(clients.len(), 15);
    for session in clients {
        play_client(&head, &admin, session).await;
    }
    let client = head.admin().await;
    let ended = client.seen(JobId::new(1), |record| record.state.is_terminal()).await;
    assert_eq!((ended.state, ended.exit_code, ended.attempt), (JobState::Failed, Some(3), 1));
    // The cancellation that was too late when it was recorded may come in time now.
    let ended = client.seen(JobId::new(2), |record| record.state.is_terminal()).await;
    assert!([JobState::Completed, JobState::Cancelled].contains(&ended.state), "{ended:?}");
}
