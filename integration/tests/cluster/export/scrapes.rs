//! What a scraper gets: the figures of the cluster, and refusals.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::server::Exporter;
use crate::kit::{Cluster, until};
use crate::web::http::request;

#[test]
fn jobs_devices_and_the_head_are_in_the_metrics() {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker("host:1");
    let nodes = cluster.json(&["nodes"]);
    let node = nodes["nodes"][0]["name"].as_str().unwrap();
    let exporter = Exporter::start(&cluster, &[]);
    let held = cluster.ok(&["submit", "--output", "quiet", "--gpus", "1", "--", "sleep", "600"]);
    cluster.ok(&["submit", "--gpus", "1", "--array", "0-4", "--", "true"]);
    let user = cluster.json(&["show", held.trim()])["user"].as_str().unwrap().to_owned();
    let jobs = |state: &str| exporter.value(&format!("cohabit_jobs{{state=\"{state}\",user=\"{user}\"}}"));
    until("the metrics show one job that runs", || jobs("RUNNING") == Some(1.0));
    until("the metrics show five that wait", || jobs("PENDING") == Some(5.0));
    let device = format!("node=\"{node}\",device=\"0\"");
    let info = format!("cohabit_device_job_info{{{device},job=\"{}\",user=\"{user}\"}}", held.trim());
    assert_eq!(exporter.value(&info), Some(1.0));
    assert_eq!(exporter.value(&format!("cohabit_node_state{{node=\"{node}\",state=\"UP\"}}")), Some(1.0));
    assert_eq!(exporter.value("cohabit_journal_writable"), Some(1.0));
    assert!(exporter.value("cohabit_plan_seconds_count") > Some(0.0));
    cluster.ok(&["cancel", held.trim()]);
    let ended = |how: &str| exporter.value(&format!("cohabit_attempts_total{{reason_code=\"{how}\"}}"));
    until("the array has run", || ended("completed") == Some(5.0));
    assert_eq!(ended("cancelled"), Some(1.0));
    let seconds = |kind: &str| format!("cohabit_gpu_seconds_total{{user=\"{user}\",kind=\"{kind}\"}}");
    assert!(exporter.value(&seconds("held")) > Some(0.0));
    assert_eq!(exporter.value(&seconds("busy")), Some(0.0), "nobody reads how busy host slots are");
}

#[test]
fn a_head_that_is_away_is_a_failed_scrape_and_comes_back() {
    let mut cluster = Cluster::start(&[]);
    let exporter = Exporter::start(&cluster, &[]);
    assert!(exporter.text().contains("cohabit_build_info{version="));
    cluster.stop_head();
    until("the scrape fails", || exporter.scrape(&[]).status == 503);
    let refused = exporter.scrape(&[]);
    assert!(refused.body.starts_with("The head does not answer: "), "{refused:?}");
    cluster.restart_head();
    until("the scrape succeeds again", || exporter.scrape(&[]).status == 200);
}

/// A file that nobody else may read.
pub(super) fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn strangers_read_nothing() {
    let cluster = Cluster::start(&[]);
    let file = cluster.folder().join("scrape.token");
    write_secret(&file, "s3cret-of-the-scraper\n");
    let exporter = Exporter::start(&cluster, &["--scrape-token-file", file.to_str().unwrap()]);
    let bearer = |token: &str| exporter.scrape(&[("Authorization", &format!("Bearer {token}"))]);
    for refused in [exporter.scrape(&[]), bearer(""), bearer("s3cret-of-the-scrape"), bearer("other")] {
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
        assert!(!refused.body.contains("cohabit_"), "{refused:?}");
    }
    assert_eq!(bearer("s3cret-of-the-scraper").status, 200);
    let of_host = |host: &str| {
        let headers = [("Host", host), ("Authorization", "Bearer s3cret-of-the-scraper")];
        request(exporter.port, "GET", "/metrics", &headers, "").status
    };
    assert_eq!(["localhost", "127.0.0.1", "[::1]:9", "localhost:80"].map(of_host), [200; 4]);
    let strange = ["evil.example", "127.0.0.1.evil.example:80", "192.0.2.1", "localhost.evil.example", ""];
    assert_eq!(strange.map(of_host), [403; 5]);
    let host = ("Host", "localhost");
    let token = ("Authorization", "Bearer s3cret-of-the-scraper");
    let post = request(exporter.port, "POST", "/metrics", &[host, token, ("Content-Length", "0")], "");
    assert_eq!(post.status, 405);
    assert_eq!(request(exporter.port, "GET", "/../etc/passwd", &[host, token], "").status, 404);
}

#[test]
fn wrong_arguments_are_refused_before_anything_listens() {
    let cluster = Cluster::start(&[]);
    let [empty, spaced, open] = ["empty", "spaced", "open"].map(|name| cluster.path(name));
    write_secret(Path::new(&empty), "\n");
    write_secret(Path::new(&spaced), "two words\n");
    std::fs::write(&open, "s3cret\n").unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o644)).unwrap();
    for (flags, said) in [
        (&["--listen", "0.0.0.0:9470"][..], "can be reached from other machines"),
        (&["--scrape-token-file", &empty], "has to hold one line"),
        (&["--scrape-token-file", &spaced], "printable ASCII characters"),
        (&["--scrape-token-file", &open], "other users can read"),
        (&["--scrape-token-file", "/nowhere/token"], "No such file"),
    ] {
        let refused = cluster.run(&[&["export"], flags].concat());
        assert!(refused.code != 0 && refused.stderr.contains(said), "{flags:?}: {}", refused.stderr);
    }
}
