//! The two forms of the text: OpenMetrics, and Prometheus' own older one.
//!
//! They differ in few lines. Prometheus' form counts `_total` as part of the name of a counter, and has
//! neither an end nor units.

use std::collections::BTreeSet;
use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::families::{ClusterCollector, ClusterFigures};

/// Ahead of each name.
const PREFIX: &str = "cohabit";

/// The form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextForm {
    OpenMetrics,
    Prometheus,
}

impl TextForm {
    /// The form that a request with this header `Accept` takes.
    pub(crate) fn for_accept(accept: Option<&str>) -> TextForm {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => TextForm::OpenMetrics,
            Some(_) | None => TextForm::Prometheus,
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            TextForm::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            TextForm::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The text of all families in OpenMetrics' form.
pub(crate) fn open_metrics(cluster: ClusterFigures) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(ClusterCollector::new(cluster)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// The same in Prometheus' form.
pub(crate) fn prometheus(open_metrics: &str) -> String {
    let types = open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let counters: BTreeSet<&str> =
        types.filter(|(_, kind)| *kind == "counter").map(|(name, _)| name).collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let described = ["# HELP ", "# TYPE "].into_iter().find_map(|start| {
            let (name, rest) = line.strip_prefix(start)?.split_once(' ')?;
            Some((start, name, rest))
        });
        match described {
            Some((start, name, rest)) if counters.contains(name) => {
                text.extend([start, name, "_total ", rest, "\n"]);
            }
            Some(_) => text.extend([line, "\n"]),
            None if line == "# EOF" || line.starts_with("# UNIT ") => {}
            None => text.extend([line, "\n"]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{
        DeviceHolder, DeviceId, Figures, GpuTime, Histogram, JobId, LiveJobs, NodeFigures, Share, Span, Time,
        UserFigures,
    };

    use super::*;

    fn of_user(pending: u64, held: f64) -> UserFigures {
        let jobs = LiveJobs { pending, running: 1, ..LiveJobs::default() };
        UserFigures { jobs, gpu_time: GpuTime { held, busy: held / 2.0, ..GpuTime::default() } }
    }

    fn figures() -> Figures {
        let mut wait = Histogram::new(&[1.0, 60.0]);
        [0.5, 30.0, 90.0].into_iter().for_each(|value| wait.observe(value));
        Figures {
            since: Time::from_micros(1_500_000),
            version: "0.2.0".into(),
            users: [("ada".to_owned(), of_user(3, 20.0)), ("e\"v\\e\n".to_owned(), of_user(0, 0.5))].into(),
            oldest_wait: Some(Span::from_secs(7)),
            attempts: [("completed".to_owned(), 4)].into(),
            wait,
            nodes: [("gpu1".to_owned(), NodeFigures { links: 2, mps_faults: 1 })].into(),
            events: 9,
            links: 1,
            ..Figures::default()
        }
    }

    fn cluster(figures: Figures) -> ClusterFigures {
        ClusterFigures { figures, nodes: Vec::new() }
    }

    #[test]
    fn both_forms_have_the_same_values() {
        let text = open_metrics(cluster(figures())).unwrap();
        insta::assert_snapshot!("open_metrics", text);
        insta::assert_snapshot!("prometheus", prometheus(&text));
        let values = |text: &str| {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(values(&text), values(&prometheus(&text)));
    }

    #[test]
    fn a_scraper_gets_the_form_that_it_takes() {
        let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(TextForm::for_accept(Some(accept)), TextForm::OpenMetrics);
        assert_eq!(TextForm::for_accept(Some("text/html")), TextForm::Prometheus);
        assert_eq!(TextForm::for_accept(None), TextForm::Prometheus);
    }

    #[test]
    fn too_many_users_are_told_as_one() {
        let mut many = figures();
        many.users = (0..2_000).map(|number| (format!("user{number}"), of_user(2, 1.5))).collect();
        let holder = DeviceHolder {
            node: "gpu1".into(),
            device: DeviceId("GPU-1".into()),
            job: JobId::new(4),
            user: "user7".into(),
            share: Share::WHOLE,
        };
        many.holders = vec![holder];
        let text = open_metrics(cluster(many)).unwrap();
        assert!(text.contains("cohabit_export_truncated 1"), "{text}");
        assert!(text.contains("cohabit_jobs{state=\"PENDING\",user=\"\"} 4000.0"), "{text}");
        assert!(text.contains("cohabit_gpu_seconds_total{user=\"\",kind=\"held\"} 3000.0"), "{text}");
        assert!(text.lines().count() < 200 && !text.contains("user7"), "{text}");
    }
}
