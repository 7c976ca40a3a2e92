//! How fast objects are stored and read, beside plain code. Run by hand, in release mode, with 3 GiB of free
//! memory:
//!
//! ```text
//! cargo test --release -p cohabit --lib store::tests::speed -- --ignored --nocapture
//! ```

use std::fs::File;
use std::io::{Read, Write};
use std::net;
use std::time::Instant;

use cohabit_memory::{Buffer, ObjectWriter, read_object};
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::task::LocalSet;

use super::kit::{MAKER, READER, SECRET, TestStore, object};
use super::network::{fetching_node, serving_node};
use super::nodes::{Nodes, TestNode};

const GIB: usize = 1 << 30;
const ROUNDS: u64 = 5;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

#[tokio::test]
#[ignore = "a measurement of 1 GiB"]
async fn one_gibibyte() {
    let test = TestStore::with_budget(3 << 29);
    let (maker, reader) = (test.link(MAKER), test.link(READER));
    let value = Buffer::from(vec![7u8; GIB]);
    let [mut plain, mut puts, mut reads] = [const { Vec::new() }; 3];
    for number in 1..=ROUNDS {
        let begin = Instant::now();
        let mut file = File::from(memfd_create("floor", MemfdFlags::CLOEXEC).unwrap());
        file.write_all(&value).unwrap();
        plain.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(file);
        let begin = Instant::now();
        maker.store(object(number), ObjectWriter::new(&value).unwrap()).await.unwrap();
        puts.push(begin.elapsed().as_secs_f64() * 1e3);
        let begin = Instant::now();
        let read: Buffer<u8> = read_object(&reader.read(object(number)).await.unwrap()).unwrap();
        assert_eq!(read[GIB - 1], 7);
        reads.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(read);
        test.store.free(object(number));
        test.until(|it| it.objects.is_empty()).await;
    }
    let [plain, put, read] = [plain, puts, reads].map(median);
    println!("put 1 GiB {put:.0} ms; plain write {plain:.0} ms: {:.2} times as fast", plain / put);
    println!("read 1 GiB to a slice {read:.3} ms");
}

/// Plain code: bytes from a thread over one connection into fresh shared memory. Milliseconds.
fn plain_transfer(bytes: &[u8]) -> f64 {
    let listener = net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| listener.accept().unwrap().0.write_all(bytes).unwrap());
        let begin = Instant::now();
        let mut stream = net::TcpStream::connect(address).unwrap();
        let mut file = File::from(memfd_create("floor", MemfdFlags::CLOEXEC).unwrap());
        let mut piece = vec![0; 1 << 20];
        loop {
            match stream.read(&mut piece).unwrap() {
                0 => return begin.elapsed().as_secs_f64() * 1e3,
                read => file.write_all(&piece[..read]).unwrap(),
            }
        }
    })
}

#[tokio::test]
#[ignore = "a measurement of 1 GiB"]
async fn one_gibibyte_from_another_node() {
    let nodes = Nodes::default();
    let source = nodes.start(0, 3 << 29).await;
    fetch(&source, nodes.start(1, 3 << 29).await, "without TLS").await;
}

/// As nodes do.
#[tokio::test]
#[ignore = "a measurement of 1 GiB"]
async fn one_gibibyte_from_another_node_over_tls() {
    let measure = async {
        let (source, addresses) = serving_node(3 << 29);
        fetch(&source, fetching_node(&addresses, SECRET, 3 << 29), "over TLS").await;
    };
    LocalSet::new().run_until(measure).await;
}

async fn fetch(source: &TestStore, mut reader: TestNode, how: &str) {
    let (maker, link) = (source.link(MAKER), reader.link(READER));
    let value = Buffer::from(vec![7u8; GIB]);
    let writer = ObjectWriter::new(&value).unwrap();
    let bytes = writer.bytes();
    maker.store(object(1), writer).await.unwrap();
    let [mut plain, mut fetches] = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        plain.push(plain_transfer(&value));
        let begin = Instant::now();
        let read = reader.read_from(&link, object(1), bytes, 0).await.unwrap();
        fetches.push(begin.elapsed().as_secs_f64() * 1e3);
        assert_eq!(read[GIB - 1], 7);
        drop(read);
        reader.store.free(object(1));
        reader.until(|it| it.objects.is_empty()).await;
    }
    let [plain, fetch] = [plain, fetches].map(median);
    let ratio = plain / fetch;
    println!("fetch 1 GiB {how} {fetch:.0} ms; plain transfer {plain:.0} ms: {ratio:.2} times as fast");
}
