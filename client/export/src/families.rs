//! The families of metrics: names, help texts and labels, out of what the head answered.
//!
//! Ids of jobs are in one family only, of what runs now: a series for each job that ever ran would fill a
//! database. Pages join other families with it on node and device.

use std::collections::BTreeMap;
use std::fmt;

use cohabit_client::types::{
    DeviceHolder, DeviceRecord, Figures, GpuTime, Health, Histogram, LiveJobs, NodeFigures, NodeRecord, Span,
    UserFigures,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Above this number of series, the names of users are left out.
pub const MOST_SERIES: usize = 10_000;

/// What the head answered.
#[derive(Debug)]
pub(crate) struct ClusterFigures {
    pub(crate) figures: Figures,
    pub(crate) nodes: Vec<NodeRecord>,
}

/// A value with its labels.
#[derive(Debug)]
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// A family of gauges or counters.
#[derive(Debug)]
struct SampleFamily {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<Sample>,
}

impl ClusterFigures {
    /// The families, and whether there would be too many series: then all users are one without a name, and
    /// the jobs on devices are left out.
    fn bounded_families(&mut self, most: usize) -> (Vec<SampleFamily>, bool) {
        let families = self.families();
        if families.iter().map(|family| family.samples.len()).sum::<usize>() <= most {
            return (families, false);
        }
        let total = self.figures.users.values().fold(UserFigures::default(), |sum, of_user| UserFigures {
            jobs: plus(sum.jobs, of_user.jobs),
            gpu_time: sum.gpu_time.plus(of_user.gpu_time),
        });
        self.figures.users = [(String::new(), total)].into();
        self.figures.holders.clear();
        (self.families(), true)
    }

    fn families(&self) -> Vec<SampleFamily> {
        let devices = || self.nodes.iter().flat_map(devices_of);
        let of_devices = |value: fn(&DeviceRecord) -> Option<f64>| {
            let sample =
                move |it: DeviceOf<'_>| Some(Sample { value: value(it.record)?, labels: it.labels() });
            devices().filter_map(sample).collect::<Vec<_>>()
        };
        let mut families = self.head_families();
        families.extend([
            gauge(
                "device_utilisation_ratio",
                "Part of the last two seconds in which a kernel ran on the GPU, 0 to 1",
                of_devices(|it| it.telemetry.as_ref()?.reading.utilization),
            ),
            gauge(
                "device_memory_used_bytes",
                "Memory of the GPU that all processes and the driver hold",
                of_devices(|it| Some(it.telemetry.as_ref()?.reading.memory_used?.0 as f64)),
            ),
            gauge(
                "device_memory_bytes",
                "Memory of the GPU",
                of_devices(|it| Some(it.device.memory?.0 as f64)),
            ),
            gauge(
                "device_memory_claimed_bytes",
                "Memory of the GPU that jobs claim",
                of_devices(|it| Some(it.memory_used.0 as f64)),
            ),
            gauge(
                "device_part_held_ratio",
                "Part of the GPU or host slot that jobs hold, 0 to 1",
                of_devices(|it| Some(it.used.as_f64())),
            ),
            gauge(
                "device_residents",
                "Jobs on the GPU or host slot",
                of_devices(|it| Some(it.jobs.len() as f64)),
            ),
            gauge(
                "device_power_watts",
                "Power that the GPU takes",
                of_devices(|it| it.telemetry.as_ref()?.reading.power),
            ),
            gauge(
                "device_temperature_celsius",
                "Temperature of the GPU",
                of_devices(|it| it.telemetry.as_ref()?.reading.temperature),
            ),
            gauge(
                "device_health",
                "Whether the GPU or host slot takes jobs: 1 if it does, 0 while it recovers or is fenced",
                of_devices(|it| Some(f64::from(u8::from(it.device.condition.health == Health::Well)))),
            ),
            self.device_jobs(),
        ]);
        families.extend(self.node_families());
        families
    }

    fn device_jobs(&self) -> SampleFamily {
        let devices = self.nodes.iter().flat_map(devices_of);
        let places: BTreeMap<_, usize> =
            devices.map(|it| ((it.node.name.as_str(), &it.record.device.id), it.index)).collect();
        let sample = |holder: &DeviceHolder| {
            let index = places.get(&(holder.node.as_str(), &holder.device))?;
            let labels = vec![
                ("node", holder.node.clone()),
                ("device", index.to_string()),
                ("job", holder.job.to_string()),
                ("user", holder.user.clone()),
            ];
            Some(Sample { labels, value: 1.0 })
        };
        let samples = self.figures.holders.iter().filter_map(sample).collect();
        gauge("device_job_info", "1 for each job on a GPU or host slot now", samples)
    }

    fn node_families(&self) -> [SampleFamily; 3] {
        let states = self.nodes.iter().map(|node| Sample {
            labels: vec![("node", node.name.clone()), ("state", node.state.word().to_owned())],
            value: 1.0,
        });
        let counters = |value: fn(&NodeFigures) -> u64| {
            let of_node = |(name, it): (&String, _)| Sample {
                labels: vec![("node", name.clone())],
                value: value(it) as f64,
            };
            self.figures.nodes.iter().map(of_node).collect::<Vec<_>>()
        };
        [
            gauge("node_state", "1 for the state in which the node is", states.collect()),
            counter(
                "node_links",
                "Times that the worker of the node has connected since the head started",
                counters(|it| it.links),
            ),
            counter(
                "mps_faults",
                "Attempts that brought down an MPS server on the node since the head started",
                counters(|it| it.mps_faults),
            ),
        ]
    }

    /// What the head counts of its users and of itself.
    fn head_families(&self) -> Vec<SampleFamily> {
        let figures = &self.figures;
        let ended = figures
            .attempts
            .iter()
            .map(|(how, count)| Sample { labels: vec![("reason_code", how.clone())], value: *count as f64 });
        let version = Sample { labels: vec![("version", figures.version.clone())], value: 1.0 };
        let writable = f64::from(u8::from(figures.problems.is_empty()));
        vec![
            gauge("build_info", "1, with the version of the head", vec![version]),
            gauge(
                "start_time_seconds",
                "When the head started: counters begin there",
                alone(figures.since.as_secs_f64()),
            ),
            gauge("jobs", "Jobs that have not ended, members of arrays one by one", jobs(figures)),
            gauge(
                "oldest_wait_seconds",
                "For how long the job has waited that only waits for room, and longest; 0 if none does",
                alone(figures.oldest_wait.map_or(0.0, Span::as_secs_f64)),
            ),
            counter(
                "attempts",
                "Attempts that have ended since the head started, by how they ended",
                ended.collect(),
            ),
            counter(
                "gpu_seconds",
                "Seconds on GPUs and host slots since the head started, times the part that was held",
                gpu_seconds(figures),
            ),
            counter(
                "events",
                "Events that the head has handled since it started",
                alone(figures.events as f64),
            ),
            gauge("links", "Workers that are connected", alone(figures.links as f64)),
            gauge("journal_writable", "Whether the head accepts changes: 1 if it does", alone(writable)),
        ]
    }
}

fn gauge(name: &'static str, help: &'static str, samples: Vec<Sample>) -> SampleFamily {
    SampleFamily { name, help, kind: MetricType::Gauge, samples }
}

/// `_total` is added to its name.
fn counter(name: &'static str, help: &'static str, samples: Vec<Sample>) -> SampleFamily {
    SampleFamily { name, help, kind: MetricType::Counter, samples }
}

fn alone(value: f64) -> Vec<Sample> {
    vec![Sample { labels: Vec::new(), value }]
}

fn jobs(figures: &Figures) -> Vec<Sample> {
    let of_user = |(user, it): (&String, &UserFigures)| {
        let LiveJobs { pending, held, running, completing } = it.jobs;
        let states = [("PENDING", pending), ("HELD", held), ("RUNNING", running), ("COMPLETING", completing)];
        states.map(|(state, count)| Sample {
            labels: vec![("state", state.to_owned()), ("user", user.clone())],
            value: count as f64,
        })
    };
    figures.users.iter().flat_map(of_user).collect()
}

fn gpu_seconds(figures: &Figures) -> Vec<Sample> {
    let of_user = |(user, it): (&String, &UserFigures)| {
        let GpuTime { held, busy, idle, lost } = it.gpu_time;
        [("held", held), ("busy", busy), ("idle", idle), ("lost", lost)].map(|(kind, value)| Sample {
            labels: vec![("user", user.clone()), ("kind", kind.to_owned())],
            value,
        })
    };
    figures.users.iter().flat_map(of_user).collect()
}

const fn plus(one: LiveJobs, other: LiveJobs) -> LiveJobs {
    LiveJobs {
        pending: one.pending + other.pending,
        held: one.held + other.held,
        running: one.running + other.running,
        completing: one.completing + other.completing,
    }
}

/// A device of a node, with its place in the list: ids of GPUs are long, and `cohabit nodes` counts them,
/// too.
#[derive(Clone, Copy)]
struct DeviceOf<'n> {
    node: &'n NodeRecord,
    index: usize,
    record: &'n DeviceRecord,
}

impl DeviceOf<'_> {
    fn labels(&self) -> Vec<(&'static str, String)> {
        vec![
            ("node", self.node.name.clone()),
            ("device", self.index.to_string()),
            ("model", self.record.device.model.clone()),
        ]
    }
}

fn devices_of(node: &NodeRecord) -> impl Iterator<Item = DeviceOf<'_>> {
    node.devices.iter().enumerate().map(move |(index, record)| DeviceOf { node, index, record })
}

/// All families, ready to be encoded.
#[derive(Debug)]
pub(crate) struct ClusterCollector {
    families: Vec<SampleFamily>,
    figures: Figures,
}

impl ClusterCollector {
    pub(crate) fn new(mut cluster: ClusterFigures) -> ClusterCollector {
        let (mut families, is_truncated) = cluster.bounded_families(MOST_SERIES);
        let truncated = alone(f64::from(u8::from(is_truncated)));
        let help = "Whether names of users, and the jobs on GPUs, were left out, because there would be too many series";
        families.push(gauge("export_truncated", help, truncated));
        ClusterCollector { families, figures: cluster.figures }
    }
}

impl Collector for ClusterCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in self.families.iter().filter(|family| !family.samples.is_empty()) {
            encode_family(&mut encoder, family)?;
        }
        let figures = &self.figures;
        for (name, help, histogram) in [
            ("wait_seconds", "Time for which only room kept an attempt waiting", &figures.wait),
            ("run_seconds", "Time that an attempt held its devices", &figures.run),
            (
                "slowdown_ratio",
                "Time from submission to end by the time of the last attempt (10 s at least), of completed jobs",
                &figures.slowdown,
            ),
            ("plan_seconds", "Time that a plan took", &figures.plans),
            ("commit_seconds", "Time that a commit to the journal took", &figures.commits),
        ] {
            encode_histogram(&mut encoder, name, help, histogram)?;
        }
        Ok(())
    }
}

fn encode_family(encoder: &mut DescriptorEncoder<'_>, family: &SampleFamily) -> fmt::Result {
    let SampleFamily { name, help, kind, samples } = family;
    let mut metric = encoder.encode_descriptor(name, help, None, *kind)?;
    for Sample { labels, value } in samples {
        if labels.is_empty() {
            encode_value(&mut metric, *kind, *value)?;
        } else {
            encode_value(&mut metric.encode_family(labels)?, *kind, *value)?;
        }
    }
    Ok(())
}

fn encode_value(metric: &mut MetricEncoder<'_>, kind: MetricType, value: f64) -> fmt::Result {
    if let MetricType::Counter = kind {
        metric.encode_counter::<NoLabelSet, f64, f64>(&value, None)
    } else {
        metric.encode_gauge(&value)
    }
}

fn encode_histogram(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    histogram: &Histogram,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    // The library writes infinity as `+Inf`, without which Prometheus computes no quantile.
    let bounds = histogram.bounds.iter().copied().chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(histogram.counts.iter().copied()).collect();
    metric.encode_histogram::<NoLabelSet>(histogram.sum, histogram.count(), &buckets, None)
}
