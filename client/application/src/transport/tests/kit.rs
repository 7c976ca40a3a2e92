//! A node with a port, processes that echo what they get, and one that dials them.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use cohabit_application_core::{LinkNumber, Packet, SessionHello};
use cohabit_net::ApplicationTls;
use cohabit_types::{
    ApplicationAccess, ApplicationCredentials, ApplicationSecret, Bytes, CodeSnapshot, ContentHash, JobId,
    RankId, Rendezvous,
};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_local};

use crate::transport::{
    DialedConnection, FrameHandler, HelloCheck, HelloPurpose, LinkFailure, MemberHello, MemberStream,
    NetworkAdmission, NetworkPort, ReceivedFrames, SendBuffer, SessionEnd, SocketDirectory, SocketName,
    accept_handed_over, carry, dial_there,
};

pub(super) const SECRET: ApplicationSecret = ApplicationSecret([7; 32]);
/// The process with the port.
pub(super) const PORT: RankId = member(1);
/// Another process of that node.
pub(super) const CALLEE: RankId = member(2);
/// A process of another node.
pub(super) const CALLER: RankId = member(3);

pub(super) const fn member(job: u64) -> RankId {
    JobId::new(job).attempt(1).rank(0)
}

/// A node whose port is in the process [`PORT`], which hosts an echo, as [`CALLEE`] does.
pub(super) struct TestNode {
    pub(super) at: Rendezvous,
    pub(super) port: Rc<EchoingProcess>,
    pub(super) callee: Rc<EchoingProcess>,
    /// How many connections came for objects.
    pub(super) objects: Rc<Cell<usize>>,
    pub(super) directory: SocketDirectory,
    _folder: TempDir,
}

impl TestNode {
    pub(super) fn start() -> TestNode {
        let folder = tempfile::tempdir().unwrap();
        let port = NetworkPort::open(&access(&folder)).unwrap().unwrap();
        let at = Rendezvous { address: "127.0.0.1".into(), port: port.number() };
        let (in_port, callee) = (EchoingProcess::new(PORT), EchoingProcess::new(CALLEE));
        let directory = SocketDirectory::open(folder.path()).unwrap();
        let handed_over = directory.listen(SocketName::HandOver(CALLEE)).unwrap();
        let hosted = Rc::clone(&callee);
        spawn_local(accept_handed_over(handed_over, check(CALLEE), move |stranger| {
            spawn_local(Rc::clone(&hosted).take(stranger));
        }));
        let objects: Rc<Cell<usize>> = Rc::default();
        let (hosted, counted) = (Rc::clone(&in_port), Rc::clone(&objects));
        let members = move |stranger| drop(spawn_local(Rc::clone(&hosted).take(stranger)));
        spawn_local(port.serve(members, move |_| counted.set(counted.get() + 1)));
        TestNode { at, port: in_port, callee, objects, directory, _folder: folder }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect((self.at.address.as_str(), self.at.port)).await.unwrap()
    }
}

fn access(folder: &TempDir) -> ApplicationAccess {
    ApplicationAccess {
        application: PORT.attempt,
        member: PORT,
        credentials: ApplicationCredentials { secret: SECRET, token: None },
        code: CodeSnapshot {
            manifest: ContentHash([1; 32]),
            folder: "/target".into(),
            files: 1,
            bytes: Bytes(1),
        },
        head: "127.0.0.1:7070".into(),
        directory: folder.path().to_owned(),
        gpus: 0,
        node: "n0".into(),
        port: Some(Rendezvous { address: "n0".into(), port: 0 }),
        coordinator: None,
        coordinator_node: "n0".into(),
    }
}

pub(super) const fn check(own: RankId) -> HelloCheck {
    HelloCheck { secret: SECRET, own }
}

/// What a caller says.
pub(super) fn hello_to(to: RankId, hello: SessionHello) -> MemberHello {
    assert_eq!(to, hello.to);
    MemberHello { secret: SECRET, purpose: HelloPurpose::Calls, hello }
}

/// One end of a session whose frames are numbers.
pub(super) struct TestEnd {
    session: RefCell<SessionEnd<u64>>,
    pub(super) received: RefCell<Vec<u64>>,
    /// Whether it sends back what it gets.
    echoes: bool,
    changed: Notify,
}

struct TestConnection {
    end: Rc<TestEnd>,
    link: LinkNumber,
}

impl FrameHandler for TestConnection {
    fn deliver(&self, frames: &mut ReceivedFrames<'_>) -> Result<(), LinkFailure> {
        let mut session = self.end.session.borrow_mut();
        while let Some(packet) = frames.take::<Packet<u64>>()? {
            if let Some(frame) = session.receive(self.link, packet)? {
                self.end.received.borrow_mut().push(frame);
                if self.end.echoes {
                    session.send(frame);
                }
            }
        }
        session.wake();
        self.end.changed.notify_waiters();
        Ok(())
    }

    fn acknowledge(&self) {
        self.end.session.borrow_mut().acknowledge(self.link);
    }
}

impl TestEnd {
    fn new(own: RankId, peer: RankId, echoes: bool) -> Rc<TestEnd> {
        let session = RefCell::new(SessionEnd::new(own, peer));
        Rc::new(TestEnd { session, received: RefCell::default(), echoes, changed: Notify::new() })
    }

    async fn carry(
        self: &Rc<TestEnd>,
        mut stream: MemberStream,
        buffer: BytesMut,
        sending: &SendBuffer,
        link: LinkNumber,
    ) {
        let connection = TestConnection { end: Rc::clone(self), link };
        let failure = carry(&mut stream, buffer, sending, &connection).await;
        assert!(!matches!(failure, LinkFailure::Protocol(_)), "{failure}");
        self.session.borrow_mut().closed(link);
    }

    /// Waits until so many frames have come.
    pub(super) async fn until_received(&self, count: usize) {
        while self.received.borrow().len() < count {
            self.changed.notified().await;
        }
    }
}

/// A process that is called, and sends back what it gets.
pub(super) struct EchoingProcess {
    admission: NetworkAdmission,
    pub(super) end: Rc<TestEnd>,
    /// How many processes of the application were let in.
    pub(super) admitted: Cell<usize>,
}

impl EchoingProcess {
    fn new(own: RankId) -> Rc<EchoingProcess> {
        let admission = NetworkAdmission::new(ApplicationTls::new(&SECRET), check(own));
        Rc::new(EchoingProcess { admission, end: TestEnd::new(own, CALLER, true), admitted: Cell::new(0) })
    }

    async fn take(self: Rc<EchoingProcess>, stranger: super::super::stranger::Stranger) {
        let Some((stream, buffer, hello)) = self.admission.admit::<MemberHello>(stranger).await else {
            return;
        };
        self.admitted.set(self.admitted.get() + 1);
        let sending = Arc::new(SendBuffer::default());
        if self.end.session.borrow_mut().accept(&hello.hello, &sending).unwrap() {
            self.end.carry(stream.into(), buffer, &sending, hello.hello.link).await;
        }
    }
}

/// A process of another node that calls.
pub(super) struct CallingProcess {
    pub(super) end: Rc<TestEnd>,
    to: RankId,
    at: Rendezvous,
    tls: ApplicationTls,
    /// How many connections were opened.
    pub(super) opened: Cell<usize>,
}

impl CallingProcess {
    pub(super) fn new(at: &Rendezvous, to: RankId, secret: ApplicationSecret) -> Rc<CallingProcess> {
        Rc::new(CallingProcess {
            end: TestEnd::new(CALLER, to, false),
            to,
            at: at.clone(),
            tls: ApplicationTls::new(&secret),
            opened: Cell::new(0),
        })
    }

    pub(super) fn send(&self, frame: u64) {
        self.end.session.borrow_mut().send(frame);
    }

    /// Opens one connection, and carries it until it ends.
    pub(super) async fn connect(&self) -> Result<(), LinkFailure> {
        let hello = self.end.session.borrow_mut().dial();
        let link = hello.link;
        let dialed = dial_there(&self.at, &self.tls, &hello_to(self.to, hello)).await;
        let DialedConnection { stream, buffer, answer } = match dialed {
            Ok(dialed) => dialed,
            Err(failure) => {
                self.end.session.borrow_mut().closed(link);
                return Err(failure);
            }
        };
        let sending = Arc::new(SendBuffer::default());
        assert!(self.end.session.borrow_mut().opened(&answer, &sending).unwrap());
        self.opened.set(self.opened.get() + 1);
        self.end.carry(stream, buffer, &sending, link).await;
        Ok(())
    }

    /// Keeps a connection.
    pub(super) fn keep_connected(self: &Rc<CallingProcess>) -> JoinHandle<()> {
        let process = Rc::clone(self);
        spawn_local(async move {
            loop {
                // It is dialed again.
                let _broken = process.connect().await;
                tokio::task::yield_now().await;
            }
        })
    }
}

/// The error of a connection that could not be opened.
pub(super) fn broken(ended: Result<(), LinkFailure>) -> io::Error {
    match ended {
        Err(LinkFailure::Broken(error)) => error,
        other => panic!("it should be broken: {other:?}"),
    }
}
