//! Devices over time: who sat on which device, from the attempts of jobs.

use std::collections::BTreeMap;

use askama::Template;
use cohabit_client::types::{DeviceId, JobId, JobRecord, Span, Time};
use cohabit_console::records::{local_time, short_name::short_name};
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::lanes::{Stay, lanes};
use super::line;
use crate::cluster::Cluster;

/// Bars of one device: more would not be seen.
const MOST_BARS: usize = 400;
/// Colors of users; a thirteenth user shares that of the first.
const COLORS: usize = 12;
/// Jobs whose earlier attempts are asked for.
const MOST_EARLIER: usize = 100;
/// The height of a device and of the marks of time, in pixels.
const HEIGHT: u32 = 56;
/// The shortest time that is shown.
const SHORTEST: Span = Span::from_secs(60);
/// Below this length, marks have seconds.
const WITH_SECONDS: Span = Span::from_secs(600);
/// Marks of time.
const MARKS: u64 = 4;

/// What the address says of the time to show.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(crate) struct TimelineQuery {
    #[serde(default)]
    pub(crate) hours: Hours,
}

/// The length of time that is shown.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Hours {
    #[default]
    #[serde(rename = "1")]
    One,
    #[serde(rename = "6")]
    Six,
    #[serde(rename = "24")]
    Day,
}

/// The devices over time.
#[derive(Template)]
#[template(path = "timeline.html")]
pub(crate) struct TimelineView {
    pub(crate) hours: u64,
    pub(crate) choices: [u64; 3],
    pub(crate) marks: Vec<TimeMark>,
    pub(crate) users: Vec<UserColor>,
    pub(crate) devices: Vec<DeviceLane>,
    pub(crate) height: u32,
}

/// A time and its place, in per cent of the width.
#[derive(Debug)]
pub(crate) struct TimeMark {
    pub(crate) at: String,
    pub(crate) x: f64,
}

/// The color of a user.
#[derive(Debug)]
pub(crate) struct UserColor {
    pub(crate) user: String,
    pub(crate) color: usize,
}

/// A device and who sat on it.
#[derive(Debug)]
pub(crate) struct DeviceLane {
    pub(crate) node: String,
    /// Its place among the devices of the node.
    pub(crate) number: usize,
    pub(crate) device: String,
    pub(crate) bars: Vec<Bar>,
}

/// A stay of a job on a device.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) job: JobId,
    pub(crate) label: String,
    pub(crate) title: String,
    pub(crate) color: usize,
    /// In per cent of the width.
    pub(crate) x: String,
    pub(crate) width: String,
    /// In pixels.
    pub(crate) y: u32,
    pub(crate) height: u32,
}

impl Hours {
    const fn number(self) -> u64 {
        match self {
            Hours::One => 1,
            Hours::Six => 6,
            Hours::Day => 24,
        }
    }
}

/// The window of time.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: Time,
    to: Time,
}

impl Window {
    fn new(hours: Hours, to: Time) -> Window {
        Window { from: to - Span::from_secs(hours.number() * 3_600), to }
    }

    /// The same window, begun where the first stay begins if nobody was there before.
    fn starting_with(self, first: Option<Time>) -> Window {
        let latest = self.to - SHORTEST;
        Window { from: first.map_or(self.from, |first| first.min(latest).max(self.from)), ..self }
    }

    /// The place of a time, in per cent of the width.
    fn place(self, at: Time) -> f64 {
        100.0 * at.since(self.from).as_secs_f64() / self.to.since(self.from).as_secs_f64()
    }
}

/// The jobs whose earlier attempts have to be asked for.
pub(crate) fn with_earlier_attempts(cluster: &Cluster, query: TimelineQuery) -> Vec<JobId> {
    let window = Window::new(query.hours, cluster.as_of());
    let repeated = cluster.jobs.all().rev().filter(|job| job.attempt > 1);
    let recent = repeated.filter(|job| job.ended_at.is_none_or(|at| at > window.from));
    recent.map(|job| job.id).take(MOST_EARLIER).collect()
}

impl TimelineView {
    pub(crate) fn new(
        cluster: &Cluster,
        repeated: &[JobRecord],
        query: TimelineQuery,
        zone: &TimeZone,
    ) -> TimelineView {
        let window = Window::new(query.hours, cluster.as_of());
        let with_all: BTreeMap<JobId, &JobRecord> = repeated.iter().map(|job| (job.id, job)).collect();
        let jobs = cluster.jobs.all().map(|job| with_all.get(&job.id).copied().unwrap_or(job));
        let stays = stays(jobs, window);
        let window = window.starting_with(stays.values().flatten().map(|stay| stay.from).min());
        let shown = |stay: &&Stay<'_>| stay.to > window.from;
        let users: std::collections::BTreeSet<&str> =
            stays.values().flatten().filter(shown).map(|stay| stay.job.user.as_str()).collect();
        let colors: BTreeMap<&str, usize> = users.into_iter().zip((0..COLORS).cycle()).collect();
        let nothing = Vec::new();
        let lane = |node: &str, number: usize, device: &DeviceId| DeviceLane {
            node: line(node),
            number,
            device: line(&device.to_string()),
            bars: bars(stays.get(&(node, device)).unwrap_or(&nothing), window, &colors, zone),
        };
        let devices = cluster.nodes.iter().flat_map(|node| {
            let numbered = node.devices.iter().enumerate();
            numbered.map(|(number, it)| lane(&node.name, number, &it.device.id))
        });
        TimelineView {
            hours: query.hours.number(),
            choices: [Hours::One, Hours::Six, Hours::Day].map(Hours::number),
            marks: marks(window, zone),
            users: colors.iter().map(|(user, color)| UserColor { user: line(user), color: *color }).collect(),
            devices: devices.collect(),
            height: HEIGHT,
        }
    }
}

/// Who sat on each device in the window, by node and device.
fn stays<'a>(
    jobs: impl Iterator<Item = &'a JobRecord>,
    window: Window,
) -> BTreeMap<(&'a str, &'a DeviceId), Vec<Stay<'a>>> {
    let mut stays: BTreeMap<(&str, &DeviceId), Vec<Stay<'a>>> = BTreeMap::new();
    for job in jobs {
        for attempt in &job.attempts {
            // A live job sits there still; one that has ended without a time of its attempt left when it did.
            let end = attempt.ended_at.or(job.ended_at).unwrap_or(window.to);
            if end < window.from || attempt.started_at > window.to {
                continue;
            }
            for rank in &attempt.ranks {
                for device in &rank.devices {
                    let stay = Stay { job, share: rank.share, from: attempt.started_at, to: end };
                    stays.entry((&rank.node, device)).or_default().push(stay);
                }
            }
        }
    }
    stays
}

fn bars(stays: &[Stay<'_>], window: Window, colors: &BTreeMap<&str, usize>, zone: &TimeZone) -> Vec<Bar> {
    let stays = &stays[stays.len().saturating_sub(MOST_BARS)..];
    let bar = |(stay, (y, height)): (&Stay<'_>, (u32, u32))| {
        let (x, end) = (window.place(stay.from.max(window.from)), window.place(stay.to.min(window.to)));
        let job = stay.job;
        let label = format!("{} {} · {}", job.id, line(&job.user), short_name(&job.name, 40));
        let (span, since) = (stay.to.since(stay.from), local_time(stay.from, zone));
        Bar {
            job: job.id,
            title: format!("{label}: {} GPU for {span} from {since}", stay.share),
            label,
            color: colors.get(job.user.as_str()).copied().unwrap_or_default(),
            x: format!("{x:.3}"),
            width: format!("{:.3}", (end - x).max(0.1)),
            y,
            height,
        }
    };
    stays.iter().zip(lanes(stays, HEIGHT)).map(bar).collect()
}

fn marks(window: Window, zone: &TimeZone) -> Vec<TimeMark> {
    let length = window.to.since(window.from);
    let end = if length < WITH_SECONDS { 19 } else { 16 };
    let mark = |number: u64| {
        let at = window.from + Span::from_micros(length.as_micros() / MARKS * number);
        let text = local_time(at, zone);
        // The time of day alone.
        TimeMark { at: text.get(11..end).unwrap_or(&text).to_owned(), x: window.place(at) }
    };
    (0..MARKS).map(mark).collect()
}
