//! A running `cohabit export`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use crate::kit::Cluster;
use crate::web::http::{HttpAnswer, request};

/// A running `cohabit export`.
pub(super) struct Exporter {
    process: Child,
    pub(super) port: u16,
}

impl Exporter {
    pub(super) fn start(cluster: &Cluster, flags: &[&str]) -> Exporter {
        let mut command = cluster.command(&[&["export", "--listen", "127.0.0.1:0"], flags].concat());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url =
            line.trim().strip_prefix("Serving metrics on http").and_then(|it| it.strip_suffix("/metrics"));
        let port = url.unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        Exporter { process, port }
    }

    /// The answer to a scrape with these headers beside `Host`.
    pub(super) fn scrape(&self, headers: &[(&str, &str)]) -> HttpAnswer {
        let host = format!("127.0.0.1:{}", self.port);
        request(self.port, "GET", "/metrics", &[&[("Host", host.as_str())], headers].concat(), "")
    }

    /// The metrics in Prometheus' form, which must be there.
    pub(super) fn text(&self) -> String {
        let answer = self.scrape(&[]);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// The value of this series, if it is there.
    pub(super) fn value(&self, series: &str) -> Option<f64> {
        let text = self.text();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map(|value| value.parse().unwrap())
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
