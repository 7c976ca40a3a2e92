//! The pages in a browser: a job starts and is cancelled, the head goes and comes back, and every page fits
//! its window.
//!
//! With `COHABIT_SCREENSHOTS=DIR` the pictures of the documents are written; with `COHABIT_AXE=axe.min.js`
//! axe-core looks for what people with disabilities could not use.

use std::path::PathBuf;

use fantoccini::Locator;
use serde_json::{Value, json};

use super::browser::{Browser, Screen};
use super::server::WebServer;
use crate::gpus::kit::GpuCluster;
use crate::kit::{Cluster, say};

/// The workers of this test run the jobs of users who have no accounts.
const SHARED_ACCOUNT: [&str; 1] = ["--allow-shared-account"];

/// How busy the fake GPUs are, in percent.
const UTILIZATIONS: [u32; 4] = [97, 61, 18, 0];

/// A job that trains until it is ended.
const TRAINING: &str = r#"
i=0
while true; do
  i=$((i + 1))
  echo "{\"step\": $i, \"total\": 4000, \"loss\": 0.$((9000 - i % 4000)), \"accuracy\": 0.87}" >> $COHABIT_PROGRESS
  echo "step $i: loss 0.$((9000 - i % 4000))"
  sleep 0.2
done"#;

/// The pages whose pictures are in the documents.
const DOCUMENTED: [&str; 4] = ["cluster", "queue", "job", "timeline"];

/// The sizes and colors at which each page is looked at.
const SCREENS: [Screen; 4] = [
    Screen { width: 1_440, scheme: "light" },
    Screen { width: 1_440, scheme: "dark" },
    Screen { width: 390, scheme: "light" },
    Screen { width: 390, scheme: "dark" },
];

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_a_job_start_and_cancels_it() {
    let Some(browser) = Browser::start().await else { return };
    let mut cluster = Cluster::start(&["host:1"]);
    let server = WebServer::start(&cluster, &[]);
    browser.client.goto(&server.entry).await.unwrap();
    let address = browser.client.current_url().await.unwrap();
    assert_eq!((address.path(), address.query()), ("/", None), "the key is hidden");
    browser.client.goto(&format!("http://{}/queue", server.host())).await.unwrap();

    // The page is not loaded again: a mark in it stays.
    browser
        .client
        .execute("window.mark = 1; document.getElementById('filter-name').focus()", vec![])
        .await
        .unwrap();
    let job = cluster.submit(&["--name", "seen"], TRAINING);
    browser.until(&format!("#job-{job} .badge.running")).await;
    let kept = "window.mark === 1 && document.activeElement.id === 'filter-name'";
    assert_eq!(browser.client.execute(&format!("return {kept}"), vec![]).await.unwrap(), json!(true));

    browser.until(&format!("#job-{job} a")).await.click().await.unwrap();
    browser.until_true("document.getElementById('log').textContent.includes('step 9')").await;
    browser.until("a.button[href$='/confirm/cancel']").await.click().await.unwrap();
    browser.until("button.danger").await.click().await.unwrap();
    browser.until("h1 .badge.caution").await;
    assert_eq!(cluster.end(&job)["state"], "CANCELLED");

    browser.client.goto(&format!("http://{}/", server.host())).await.unwrap();
    assert_eq!(browser.console(), Vec::<String>::new());
    cluster.kill_head();
    browser.until("#away").await;
    assert!(browser.client.find(Locator::Css("#live.stale")).await.is_ok());
    cluster.restart_head();
    browser.until_true("!document.getElementById('away')").await;
    drop(server);
    browser.until("#offline:not([hidden])").await;
}

/// A job that reports hostile and odd metrics, and one more step for each line that it reads from the file.
const REPORTING: &str = r#"
report() { echo "{\"step\": $1, \"loss\": $2, \"<b>lr</b>\": 0.1}" >> $COHABIT_PROGRESS; }
report 1 9.0; report 2 NaN; report 3 5.0
i=3
while test ! -e "$STOP"; do i=$((i + 1)); report $i 4.$((i % 10)); sleep 0.3; done
sleep 1000"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_curve_grows_while_its_job_reports() {
    let Some(browser) = Browser::start().await else { return };
    let cluster = Cluster::start(&["host:1"]);
    let folder = tempfile::tempdir().unwrap();
    let stop = folder.path().join("stop");
    let job = cluster.submit(&["--env", &format!("STOP={}", stop.display())], REPORTING);
    cluster.until_state(&job, "RUNNING");
    let server = WebServer::start(&cluster, &[]);
    browser.client.goto(&server.entry).await.unwrap();
    browser.client.goto(&format!("http://{}/jobs/{job}", server.host())).await.unwrap();
    // Names come in their order: '<' is before letters.
    browser.until("#chart-2 svg path").await;
    let name = "document.querySelector('#chart-1 .name').textContent";
    browser.until_true(&format!("{name} === '<b>lr</b>'")).await;
    browser.until_true("document.querySelector('#chart-2 p.alarm').textContent.includes('at step 2')").await;
    browser.until_true("document.querySelector('#chart-2 text.odd').textContent === 'NaN'").await;

    // The page is not loaded again, and what is open stays open.
    let open = "window.mark = 1; document.getElementById('values-2').open = true; \
                window.before = document.querySelector('#chart-2 path').getAttribute('d').length";
    browser.client.execute(open, vec![]).await.unwrap();
    let grown = "document.querySelector('#chart-2 path').getAttribute('d').length > window.before + 30";
    browser.until_true(grown).await;
    browser.until_true("window.mark === 1 && document.getElementById('values-2').open").await;
    let rows = "document.querySelectorAll('#values-2 tbody tr').length > 5";
    browser.until_true(rows).await;

    // What does not change is not sent again.
    std::fs::write(&stop, "").unwrap();
    let unchanged = "(window.seen ??= []).push(document.querySelector('#chart-2 .figures').textContent) > 30 \
                     && new Set(window.seen.slice(-30)).size === 1";
    browser.until_true(unchanged).await;
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Every page with something on it.
fn pages(job: &str, array: &str) -> Vec<(&'static str, String)> {
    vec![
        ("cluster", "/".to_owned()),
        ("queue", "/queue?state=all".to_owned()),
        ("job", format!("/jobs/{job}")),
        ("confirmation", format!("/jobs/{job}/confirm/cancel")),
        ("nodes", "/nodes".to_owned()),
        ("timeline", "/timeline".to_owned()),
        ("arrays", "/arrays".to_owned()),
        ("array", format!("/arrays/{array}")),
        ("people", "/people".to_owned()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_fit_their_window_and_can_be_used_by_everybody() {
    let Some(browser) = Browser::start().await else { return };
    let mut gpus = GpuCluster::of(Cluster::start(&[]), 4, &SHARED_ACCOUNT, |gpu| {
        let number = usize::from(gpu.uuid.as_bytes()[gpu.uuid.len() - 1] - b'0');
        gpu.utilization = UTILIZATIONS[number];
    });
    gpus.cluster.add_worker_with("sim:4xH200-141G", &SHARED_ACCOUNT);
    let cluster = &gpus.cluster;
    let (job, array) = fill(cluster);
    let mut server = WebServer::start(cluster, &[]);
    browser.client.goto(&server.another_entry()).await.unwrap();
    let axe = std::env::var_os("COHABIT_AXE").map(|file| std::fs::read_to_string(file).unwrap());
    if axe.is_none() {
        say("skipped: axe-core (COHABIT_AXE names no axe.min.js)");
    }
    let pictures = std::env::var_os("COHABIT_SCREENSHOTS").map(PathBuf::from);
    for (name, path) in pages(&job, &array) {
        for screen in SCREENS {
            browser.look_through(screen);
            browser.client.goto(&format!("http://{}{path}", server.host())).await.unwrap();
            browser.until("h1").await;
            let overflow =
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
            let overflow = browser.client.execute(overflow, vec![]).await.unwrap();
            assert_eq!(overflow, json!(0), "{name} is wider than its window: {screen:?}");
            if let Some(axe) = &axe {
                assert_eq!(findings(&browser, axe).await, Vec::<String>::new(), "{name} {screen:?}");
            }
            if let Some(folder) = pictures.as_ref().filter(|_| DOCUMENTED.contains(&name)) {
                let picture = browser.client.screenshot().await.unwrap();
                let file = format!("{name}-{}-{}.png", screen.width, screen.scheme);
                std::fs::write(folder.join(file), picture).unwrap();
            }
        }
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// A user's token, and how their jobs are submitted.
struct User {
    head: String,
    token: String,
}

impl User {
    fn new(cluster: &Cluster, name: &str) -> User {
        let token = cluster.token(&format!("{name}.token"), &["--role", "user", "--name", name]);
        User { head: cluster.address(), token }
    }

    fn submit(&self, cluster: &Cluster, flags: &[&str], script: &str) -> String {
        let connection = ["--head", &self.head, "--token-file", &self.token];
        let command = ["--", "sh", "-c", script];
        let arguments = [&["submit", "--output", "quiet"], &connection[..], flags, &command].concat();
        cluster.ok(&arguments).trim().to_owned()
    }
}

/// Submits jobs of three users in all states. Returns one that shares its GPU, and an array.
fn fill(cluster: &Cluster) -> (String, String) {
    let [ada, bea, chris] = ["ada", "bea", "chris"].map(|name| User::new(cluster, name));
    let failed = ada.submit(cluster, &["--gpus", "0", "--name", "broken-config"], "echo no lr >&2; exit 3");
    cluster.end(&failed);
    let half = ["--gpus", "0.5", "--gpu-mem", "40G"];
    let shared = ada.submit(cluster, &[&half[..], &["--name", "resnet50"]].concat(), TRAINING);
    bea.submit(cluster, &[&half[..], &["--name", "bert-large-finetune"]].concat(), TRAINING);
    let sweep = ["--gpus", "0.25", "--gpu-mem", "20G", "--array", "1-40%9", "--name", "learning-rate-sweep"];
    let array = chris.submit(cluster, &sweep, TRAINING);
    bea.submit(cluster, &["--gpus", "2", "--name", "llama-pretraining"], TRAINING);
    ada.submit(cluster, &["--gpus", "4", "--name", "needs-a-whole-node"], TRAINING);
    let held = chris.submit(cluster, &["--gpus", "1", "--name", "for-the-weekend"], TRAINING);
    cluster.ok(&["hold", &held]);
    cluster.until_state(&shared, "RUNNING");
    (shared, array)
}

/// What axe-core finds on the page, serious or worse.
async fn findings(browser: &Browser, axe: &str) -> Vec<String> {
    browser.client.execute(axe, vec![]).await.unwrap();
    let run = "const done = arguments[arguments.length - 1]; axe.run().then((it) => done(it.violations))";
    let found = browser.client.execute_async(run, vec![]).await.unwrap();
    let is_serious = |it: &&Value| ["serious", "critical"].contains(&it["impact"].as_str().unwrap_or(""));
    let words = |it: &Value| format!("{}: {}", it["id"], it["nodes"][0]["html"]);
    found.as_array().unwrap().iter().filter(is_serious).map(words).collect()
}
