use std::time::Instant;
use crate::kit::cluster::TestHead;
#[test]
#[ignore = "temporary"]
fn rate() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for (clients, each) in [(1usize, 2000usize), (64, 400), (256, 100)] {
            let head = TestHead::start().await;
            let client = head.admin().await;
            let begun = Instant::now();
            let tasks: Vec<_> = (0..clients).map(|_| { let client = client.clone(); tokio::spawn(async move {
                let mut spans = Vec::new();
                for _ in 0..each { let t = Instant::now(); client.submit().await; spans.push(t.elapsed()); }
                spans
            })}).collect();
            let mut spans: Vec<_> = futures::future::join_all(tasks).await.into_iter().flat_map(|s| s.unwrap()).collect();
            let took = begun.elapsed().as_secs_f64();
            spans.sort();
            println!("{clients} in flight: {:.0}/s, p50 {:?}, p99 {:?}", (clients*each) as f64/took, spans[spans.len()/2], spans[spans.len()*99/100]);
            head.daemon.stop().await.unwrap();
        }
        let head = TestHead::start_like(|o| o.watch_limit = std::time::Duration::from_secs(1)).await;
        let client = head.admin().await;
        for _ in 0..40 { futures::future::join_all((0..500).map(|_| client.submit())).await; }
        let t = Instant::now();
        let head = head.killed_and_started().await;
        println!("restart with 20000 jobs: {:?}", t.elapsed());
        head.daemon.stop().await.unwrap();
    });
}
