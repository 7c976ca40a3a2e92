//! What the head counts for metrics since it started.

use std::collections::BTreeMap;

use cohabit_types::{DeviceUsage, GpuTime, Histogram, NodeFigures, RankId, Span};

/// From a second to three days.
const SECONDS: [f64; 12] =
    [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0, 259_200.0];
const SLOWDOWNS: [f64; 12] = [1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0];

/// What is counted.
#[derive(Debug, Clone)]
pub(crate) struct FigureCounters {
    pub(crate) attempts: BTreeMap<&'static str, u64>,
    pub(crate) wait: Histogram,
    pub(crate) run: Histogram,
    pub(crate) slowdown: Histogram,
    /// Without what live attempts hold.
    pub(crate) gpu_time: BTreeMap<String, GpuTime>,
    pub(crate) nodes: BTreeMap<String, NodeFigures>,
    /// What live ranks have last reported of their GPUs. Already counted.
    pub(crate) measured: BTreeMap<RankId, Vec<DeviceUsage>>,
}

/// What a rank holds of its devices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredShare {
    /// The part of each, 0 to 1.
    pub(crate) part: f64,
    /// Whether it has run since before the head started.
    pub(crate) is_earlier: bool,
}

impl Default for FigureCounters {
    fn default() -> FigureCounters {
        FigureCounters {
            attempts: BTreeMap::new(),
            wait: Histogram::new(&SECONDS),
            run: Histogram::new(&SECONDS),
            slowdown: Histogram::new(&SLOWDOWNS),
            gpu_time: BTreeMap::new(),
            nodes: BTreeMap::new(),
            measured: BTreeMap::new(),
        }
    }
}

impl FigureCounters {
    pub(crate) fn gpu_time_of(&mut self, user: &str) -> &mut GpuTime {
        if !self.gpu_time.contains_key(user) {
            self.gpu_time.insert(user.to_owned(), GpuTime::default());
        }
        self.gpu_time.get_mut(user).expect("it was just inserted")
    }

    pub(crate) fn node(&mut self, name: &str) -> &mut NodeFigures {
        if !self.nodes.contains_key(name) {
            self.nodes.insert(name.to_owned(), NodeFigures::default());
        }
        self.nodes.get_mut(name).expect("it was just inserted")
    }

    /// A worker has connected.
    pub(crate) fn count_link(&mut self, node: &str) {
        self.node(node).links += 1;
    }

    /// What a live rank has done so far, in place of what it had done before. The first report of a rank that
    /// has run since before the head started is only where the count begins.
    pub(crate) fn measure(
        &mut self,
        user: &str,
        share: MeasuredShare,
        rank: RankId,
        devices: Vec<DeviceUsage>,
    ) {
        let known = self.measured.insert(rank, devices.clone());
        if known.is_none() && share.is_earlier {
            return;
        }
        let known = known.unwrap_or_default();
        let time = self.gpu_time_of(user);
        for device in devices {
            let before = known.iter().find(|it| it.device == device.device);
            // A worker's daemon that was restarted measures from the beginning.
            let grown = |now: Span, before: Option<Span>| match before {
                Some(before) if before <= now => now - before,
                Some(_) | None => now,
            };
            time.busy += share.part * grown(device.busy, before.map(|it| it.busy)).as_secs_f64();
            time.idle += share.part * grown(device.idle, before.map(|it| it.idle)).as_secs_f64();
        }
    }
}
