//! A real Prometheus scrapes a cluster with fake GPUs: its tools accept the text, the board's queries return
//! data, and the alerts fire when they should. Without Prometheus the tests say that they skip.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cohabit_fakes::FakeGpu;
use serde_json::Value;

use super::scrapes::write_secret;
use super::server::Exporter;
use crate::gpus::kit::GpuCluster;
use crate::kit::{Cluster, say, until};
use crate::web::wall::certificate;

/// Whether Prometheus and its tool are installed.
fn has_prometheus() -> bool {
    let runs = |program: &str| {
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let has = runs("prometheus") && runs("promtool");
    if !has {
        say("skipped: prometheus and promtool are not installed (Debian's package prometheus)");
    }
    has
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/grafana")
}

/// The queries of the panels of the board.
fn board_queries() -> Vec<String> {
    let board: Value =
        serde_json::from_str(&fs::read_to_string(documents().join("cohabit.json")).unwrap()).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The names that begin with `cohabit_` in this text.
fn names(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_part(letter));
    words.filter(|word| word.starts_with("cohabit_")).map(str::to_owned).collect()
}

/// A running Prometheus that scrapes an exporter each second.
struct Prometheus {
    process: Child,
    address: String,
}

impl Prometheus {
    /// `secured` has what it needs besides the address of the target.
    fn start(folder: &Path, exporter: &Exporter, secured: &str) -> Prometheus {
        let rules = documents().join("alerts.yml");
        let config = folder.join("prometheus.yml");
        let text = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{}]\nscrape_configs:\n  \
             - job_name: cohabit\n    honor_labels: true\n{secured}    static_configs:\n      \
             - targets: ['127.0.0.1:{}']\n",
            rules.display(),
            exporter.port
        );
        fs::write(&config, text).unwrap();
        // Prometheus takes no port from the system.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=warn")
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("prometheus.log")).unwrap())
            .spawn()
            .unwrap();
        Prometheus { process, address }
    }

    /// What a query returns now, a line for each series; nothing while Prometheus does not answer.
    fn query(&self, query: &str) -> Vec<String> {
        let server = format!("http://{}", self.address);
        let output = Command::new("promtool").args(["query", "instant", &server, query]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter(|line| line.contains(" => ")).map(str::to_owned).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A cluster in which everything that the board shows has happened.
fn busy_cluster() -> GpuCluster {
    let busy = |gpu: &mut FakeGpu| gpu.utilization = 80;
    let gpus = GpuCluster::of(Cluster::start(&[]), 2, &[], busy);
    gpus.submit_endless(&["--gpus", "0.5", "--gpu-mem", "20G"]);
    gpus.submit_endless(&["--gpus", "0.5", "--gpu-mem", "20G"]);
    gpus
}

#[test]
fn a_real_prometheus_scrapes_the_cluster_and_the_board_has_data() {
    if !has_prometheus() {
        return;
    }
    let gpus = busy_cluster();
    let exporter = Exporter::start(&gpus.cluster, &[]);
    let prometheus = Prometheus::start(gpus.cluster.folder(), &exporter, "");
    until("two jobs run, as Prometheus sees it", || {
        let runs = prometheus.query("sum(cohabit_jobs{state=\"RUNNING\"}) == 2");
        !runs.is_empty()
    });
    // Rates need something that has ended since the first scrape.
    gpus.cluster.ok(&["run", "--", "true"]);
    for query in board_queries() {
        until(&format!("Prometheus has data for {query}"), || !prometheus.query(&query).is_empty());
    }
    let jobs = prometheus.query("cohabit_device_job_info");
    assert!(jobs.iter().any(|line| line.contains("job=\"1\"")), "the label is that of the job: {jobs:?}");
    until("a rule was evaluated", || prometheus.query("up{job=\"cohabit\"} == 1").len() == 1);
    let text = exporter.text();
    let alerts = fs::read_to_string(documents().join("alerts.yml")).unwrap();
    let alerts = alerts.lines().filter(|line| !line.contains("job=\"cohabit\"")).collect::<String>();
    for name in board_queries().iter().flat_map(|query| names(query)).chain(names(&alerts)) {
        assert!(text.contains(&format!("\n{name}")), "{name} is not exported");
    }
}

#[test]
fn a_real_prometheus_scrapes_by_https_with_its_token() {
    if !has_prometheus() {
        return;
    }
    let cluster = Cluster::start(&["host:1"]);
    let (certificate, key, _) = certificate(&cluster);
    let (head, viewer) =
        (cluster.address(), cluster.token("viewer.token", &["--role", "viewer", "--name", "prometheus"]));
    let secret = cluster.path("scrape.token");
    write_secret(Path::new(&secret), "s3cret");
    let flags = ["--head", &head, "--token-file", &viewer, "--tls-cert", &certificate, "--tls-key", &key];
    let exporter = Exporter::start(&cluster, &[&flags[..], &["--scrape-token-file", &secret]].concat());
    let secured = format!(
        "    scheme: https\n    tls_config: {{ ca_file: {certificate} }}\n    authorization: {{ credentials_file: {secret} }}\n"
    );
    let prometheus = Prometheus::start(cluster.folder(), &exporter, &secured);
    until("the target is up", || !prometheus.query("up{job=\"cohabit\"} == 1").is_empty());
    assert_eq!(prometheus.query("sum(cohabit_links) == 1").len(), 1, "a viewer sees the figures");
}

#[test]
fn promtool_finds_no_fault_in_metrics_and_alerts() {
    if !has_prometheus() {
        return;
    }
    let gpus = busy_cluster();
    let exporter = Exporter::start(&gpus.cluster, &[]);
    until("the jobs run", || exporter.text().matches("cohabit_device_job_info{").count() == 2);
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(exporter.text().as_bytes()).unwrap();
    let checked = check.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let rules = documents().join("alerts.yml").canonicalize().unwrap();
    let checked = Command::new("promtool").args(["check", "rules"]).arg(&rules).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    let test = include_str!("alerts-test.yml").replace("RULES", &rules.display().to_string());
    let file = gpus.cluster.folder().join("alerts-test.yml");
    fs::write(&file, test).unwrap();
    let tested = Command::new("promtool").args(["test", "rules"]).arg(&file).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
}
