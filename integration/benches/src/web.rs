//! `cohabit web` before a head with 10,000 jobs: how long pages take, how large they are, and what twenty
//! people who look at them cost.

use std::process::Stdio;
use std::time::{Duration, Instant};

use cohabit_net::{ClientServiceClient, context_for};
use cohabit_types::{JobSpec, Span};
use futures::future::join_all;
use futures::stream::{StreamExt as _, iter};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::sleep;

use crate::daemon::{HeadProcess, binary, mebibytes, usage_of};
use crate::figures::{format_percentiles, print_figure};
use crate::scripted_worker::{ScriptedWorker, ranks_of, started};

const JOBS: usize = 10_000;
const SLOTS: usize = 64;
const VIEWERS: usize = 20;
/// How often a page asks for its present state.
const TICK: Duration = Duration::from_secs(2);
/// For how long they look.
const SPAN: Duration = Duration::from_secs(20);
/// Submissions on their way at once.
const AT_ONCE: usize = 32;
const BENCH: &str = "web-pages";

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let worker = tokio::spawn(run(ScriptedWorker::join(&head, 0, SLOTS).await));
    submit_jobs(&head.client().await).await;
    let mut web = WebProcess::start(&head).await;
    let cookie = web.cookie().await;
    web.first_pages(&cookie).await;
    for (what, path) in [("cluster", "/"), ("queue", "/queue?state=all"), ("timeline", "/timeline")] {
        web.measure(what, path, &cookie).await;
    }
    print_figure(BENCH, "memory of cohabit web", &mebibytes(usage_of(&web.process).resident));
    cost(&head, &web, 0, &cookie).await;
    cost(&head, &web, VIEWERS, &cookie).await;
    worker.abort();
}

/// What this many viewers cost, who each look at another page of the queue.
async fn cost(head: &HeadProcess, web: &WebProcess, viewers: usize, cookie: &str) {
    let (head_before, web_before) = (head.usage(), usage_of(&web.process));
    let begin = Instant::now();
    let seen = join_all((0..viewers).map(|number| view(web.port, number, cookie))).await;
    sleep(SPAN.saturating_sub(begin.elapsed())).await;
    let elapsed = begin.elapsed().as_secs_f64();
    let part = |spent: Duration| format!("{:.2}% of a core", 100.0 * spent.as_secs_f64() / elapsed);
    let head_spent = head.usage().processor.saturating_sub(head_before.processor);
    let web_spent = usage_of(&web.process).processor.saturating_sub(web_before.processor);
    print_figure(BENCH, &format!("head with {viewers} viewers"), &part(head_spent));
    print_figure(BENCH, &format!("cohabit web with {viewers} viewers"), &part(web_spent));
    if viewers > 0 {
        let bytes: usize = seen.iter().map(|(_, bytes)| bytes).sum();
        let times = seen.into_iter().flat_map(|(times, _)| times).collect();
        print_figure(BENCH, "update", &format_percentiles(times));
        let second = bytes as f64 / elapsed / viewers as f64 / 1_000.0;
        print_figure(BENCH, "transferred to each viewer", &format!("{second:.1} kB a second"));
    }
}

/// Looks at a page as a browser does. Returns how long each update took, and the bytes of all.
async fn view(port: u16, number: usize, cookie: &str) -> (Vec<Duration>, usize) {
    let path = format!("/queue?state=all&page={number}");
    let (mut times, mut bytes, mut tag) = (Vec::new(), 0, String::new());
    sleep(TICK * number as u32 / VIEWERS as u32).await;
    let begin = Instant::now();
    while begin.elapsed() < SPAN - TICK {
        let asked = Instant::now();
        let headers = format!("Cookie: {cookie}\r\nHX-Request: true\r\nIf-None-Match: {tag}\r\n");
        let answer = get(port, &path, &headers).await;
        times.push(asked.elapsed());
        bytes += answer.len();
        tag = header(&answer, "etag").unwrap_or_default();
        sleep(TICK.saturating_sub(asked.elapsed())).await;
    }
    (times, bytes)
}

async fn submit_jobs(link: &ClientServiceClient) {
    let submit = |number: usize| async move {
        let spec = JobSpec::command(vec!["/bin/true".to_owned()], "/tmp".to_owned());
        let spec = JobSpec { name: format!("training-run-{number}"), ..spec };
        let limit = context_for(Span::from_secs(60));
        link.submit(limit, Box::new(spec), None).await.unwrap().unwrap();
    };
    iter((0..JOBS).map(submit)).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

/// Starts what it is told to start, and reports nothing more.
async fn run(mut worker: ScriptedWorker) {
    loop {
        let orders = worker.next_orders().await;
        worker.report(orders.iter().flat_map(|it| ranks_of(&it.order)).map(started).collect()).await;
    }
}

/// A running `cohabit web`. Dropping it ends the process.
struct WebProcess {
    process: Child,
    /// Its end would be no request for another address, but must not come before that of the process.
    _input: ChildStdin,
    entry: String,
    port: u16,
}

impl WebProcess {
    async fn start(head: &HeadProcess) -> WebProcess {
        let mut command = Command::new(binary());
        command.args(["web", "--listen", "127.0.0.1:0"]).current_dir(head.folder());
        command.env("COHABIT_STATE", "head").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
        let port = line.split(['/', ':']).find_map(|part| part.parse().ok()).unwrap();
        let entry = line.trim()[line.find("/enter").unwrap()..].to_owned();
        let input = process.stdin.take().unwrap();
        WebProcess { process, _input: input, entry, port }
    }

    async fn cookie(&mut self) -> String {
        let answer = get(self.port, &self.entry, "").await;
        header(&answer, "set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    /// The first page of all, which waits until the jobs are listed.
    async fn first_pages(&self, cookie: &str) {
        let begin = Instant::now();
        while !get(self.port, "/queue?state=all", &format!("Cookie: {cookie}\r\n"))
            .await
            .contains(&format!("of {JOBS}"))
        {
            sleep(Duration::from_millis(10)).await;
        }
        let took = format!("{} ms", crate::figures::millis(begin.elapsed()));
        print_figure(BENCH, &format!("from the start until all {JOBS} jobs are shown"), &took);
    }

    async fn measure(&self, what: &str, path: &str, cookie: &str) {
        let (mut times, mut bytes) = (Vec::new(), 0);
        for _ in 0..50 {
            let begin = Instant::now();
            bytes = get(self.port, path, &format!("Cookie: {cookie}\r\n")).await.len();
            times.push(begin.elapsed());
        }
        print_figure(BENCH, &format!("the page {what}, whole"), &format_percentiles(times));
        print_figure(BENCH, &format!("the page {what}, size"), &format!("{:.1} kB", bytes as f64 / 1_000.0));
    }
}

async fn get(port: u16, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn header(answer: &str, name: &str) -> Option<String> {
    let lines = answer.lines().take_while(|line| !line.is_empty());
    let mut pairs = lines.filter_map(|line| line.split_once(": "));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}
