//! The head's daemon without its sockets: the production head behind a journal, and its recovery.
//!
//! What is durable is handled. A crash forgets everything but journal and snapshot; what comes back must
//! equal what was lost.

use std::collections::BTreeMap;

use cohabit_journal::{FORMAT, decode_head, decode_part, encode_head, encode_part};
use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{Plan, Policy, View, ViewChange, parse_policy_with};
use cohabit_scheduler_core::{Config, Effect, Event, Head};
use cohabit_types::{Span, Time, WorkerKey};

use crate::alarm::AlarmClock;
use crate::failure::{FailureKind, SimFailure, guarded};
use crate::happening::LinkId;
use crate::journal::{DurableEntry, SimJournal, WriteOutcome};
use crate::scenario::Scenario;
use crate::wall_clock::HeadClock;

/// The head's place in the cluster, whether it is up or down.
pub(crate) struct HeadHost {
    settings: Settings,
    head: Head,
    policy: Box<dyn Policy>,
    /// What the policy sees.
    view: View,
    /// What the policy will see when it listens again.
    news: Vec<ViewChange>,
    /// It does not until then.
    stalled_until: Time,
    pub(crate) journal: SimJournal,
    /// A snapshot, and how many events it contains.
    snapshot: (usize, Image),
    pub(crate) state: HeadState,
    pub(crate) clock: HeadClock,
    /// Counts its lives; what belongs to an earlier one is void.
    pub(crate) life: u64,
    pub(crate) sessions: BTreeMap<WorkerKey, LinkId>,
    pub(crate) alarm: AlarmClock,
}

struct Settings {
    config: Config,
    policy: String,
    knowledge: InterferenceContext,
    snapshot_every: usize,
}

/// Whether the head is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadState {
    Up,
    /// Of the effects of its next event only some are carried out, of so many further ones none; then it
    /// crashes.
    CrashDuringEffects {
        events: u32,
        back: Span,
    },
    /// The effects of so many more events are not carried out; then it crashes.
    CrashAfterEvents {
        events: u32,
        back: Span,
    },
    Down,
}

impl HeadHost {
    pub(crate) fn new(scenario: &Scenario) -> HeadHost {
        let head = Head::new();
        let snapshot = (0, Image::of(&head));
        HeadHost {
            settings: Settings {
                config: scenario.config.clone(),
                policy: scenario.policy.clone(),
                knowledge: scenario.knowledge.clone(),
                snapshot_every: scenario.snapshot_every.max(1),
            },
            head,
            policy: policy(&scenario.policy, &scenario.knowledge),
            view: View::default(),
            news: Vec::new(),
            stalled_until: Time::EPOCH,
            journal: SimJournal::default(),
            snapshot,
            state: HeadState::Down,
            clock: HeadClock::default(),
            life: 0,
            sessions: BTreeMap::new(),
            alarm: AlarmClock::default(),
        }
    }

    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state != HeadState::Down
    }

    /// Whether something of what it wants done now is done.
    pub(crate) const fn carries_out(&self) -> bool {
        matches!(self.state, HeadState::Up | HeadState::CrashDuringEffects { .. })
    }

    /// Shows the policy what changed, and asks it for a plan, by the head's clock; none while it is stalled.
    pub(crate) fn plan(&mut self, true_now: Time, now: Time) -> Option<Plan> {
        self.news.extend(self.head.changes());
        if true_now < self.stalled_until {
            return None;
        }
        let changes = std::mem::take(&mut self.news);
        self.view.now = now;
        self.view.apply(&changes);
        self.policy.learn(&self.view, &changes);
        Some(self.policy.plan(&self.view))
    }

    /// The policy neither listens nor answers until then.
    pub(crate) const fn stall_policy(&mut self, until: Time) {
        self.stalled_until = until;
    }

    /// The plan of first come, first served, which knows only the present.
    pub(crate) fn fall_back(&self, now: Time) -> Plan {
        let view = self.head.view(now);
        let mut policy = policy("fifo", &self.settings.knowledge);
        policy.learn(&view, &view.as_changes());
        policy.plan(&view)
    }

    /// Handles an event that is durable, and may take a snapshot afterwards.
    pub(crate) fn handle(&mut self, at: Time, event: Event) -> Result<Vec<Effect>, SimFailure> {
        self.journal.handles(&event);
        let effects = self.replay(at, event)?;
        let handled = self.journal.handled().len();
        if handled >= self.snapshot.0 + self.settings.snapshot_every {
            self.snapshot = (handled, Image::of(&self.head));
        }
        Ok(effects)
    }

    /// Handles an event, unwatched.
    pub(crate) fn handle_unchecked(&mut self, at: Time, event: Event) -> Result<Vec<Effect>, SimFailure> {
        let mut effects = Vec::new();
        guarded(FailureKind::Crash, at, || self.head.handle(at, event, &mut effects))?;
        Ok(effects)
    }

    /// Everything but journal and snapshot is gone. What was durable and not handled is handled now; its
    /// effects nobody sees.
    pub(crate) fn crash(&mut self, now: Time, fate: WriteOutcome) -> Result<Vec<(Time, Event)>, SimFailure> {
        self.state = HeadState::Down;
        self.alarm = AlarmClock::default();
        self.journal.crash(fate);
        self.head = self.recovered(now)?;
        self.journal.take_unhandled().map_err(|detail| unreadable(now, detail))
    }

    /// An event that is in the journal happens.
    pub(crate) fn replay(&mut self, at: Time, event: Event) -> Result<Vec<Effect>, SimFailure> {
        let effects = self.handle_unchecked(at, event)?;
        guarded(FailureKind::Invariant, at, || check(&self.head))?;
        Ok(effects)
    }

    /// Changes the state of the head, for a planted bug: the head without its jobs, and their parts.
    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut serde_json::Value, &mut [serde_json::Value])) {
        let value = |text: &String| serde_json::from_str(text).expect("a snapshot is JSON");
        let image = Image::of(&self.head);
        let (mut rest, mut parts) = (value(&image.rest), image.parts.iter().map(value).collect::<Vec<_>>());
        edit(&mut rest, &mut parts);
        let parts = parts.iter().map(ToString::to_string).collect();
        self.head = Image { rest: rest.to_string(), parts }.read().expect("it is still a head");
    }

    /// Comes back with a policy that knows nothing. Nobody knows how much time it was gone for, whatever its
    /// clock says: none of it counts.
    pub(crate) fn restart(&mut self, true_now: Time) {
        self.state = HeadState::Up;
        self.life += 1;
        self.policy = policy(&self.settings.policy, &self.settings.knowledge);
        self.view = View::default();
        self.news.clear();
        self.stalled_until = Time::EPOCH;
        if let Some(last) = self.journal.last() {
            self.clock.start(true_now, last);
            self.journal.leap(self.clock.read(true_now).since(last));
        }
        self.journal.add(Event::Configured(self.settings.config.clone()));
    }

    /// The head by snapshot and rest of the journal; the whole journal must lead to the same.
    ///
    /// # Errors
    /// If live head, replayed head and restored head are not equal.
    pub(crate) fn recovered(&self, now: Time) -> Result<Head, SimFailure> {
        let (length, snapshot) = &self.snapshot;
        let restored = snapshot
            .read()
            .map_err(|error| unreadable(now, format!("a snapshot cannot be read: {error}")))?;
        let handled = self.journal.handled();
        let restored = replayed(now, restored, &handled[*length..])?;
        let replayed = replayed(now, Head::new(), handled)?;
        same(now, "replay of the whole journal", &self.head, &replayed)?;
        same(now, "replay after the snapshot", &self.head, &restored)?;
        Ok(restored)
    }
}

/// A head as a journal has it: without its jobs, and these in parts.
struct Image {
    rest: String,
    parts: Vec<String>,
}

impl Image {
    /// Jobs in a part: few, so that there are several.
    const PART: usize = 4;

    fn of(head: &Head) -> Image {
        let (rest, parts) = head.split_for_snapshot(Image::PART);
        let text = |encoded: serde_json::Result<Vec<u8>>| {
            String::from_utf8(encoded.expect("a snapshot has a JSON form")).expect("JSON is text")
        };
        Image { rest: text(encode_head(&rest)), parts: parts.map(|part| text(encode_part(&part))).collect() }
    }

    fn read(&self) -> Result<Head, String> {
        let decoded = decode_head(FORMAT, self.rest.as_bytes()).map_err(|error| error.to_string())?;
        let parts = self.parts.iter().map(|part| decode_part(FORMAT, part.as_bytes()));
        let parts = parts.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        Head::from_snapshot(decoded.head, parts).map_err(|error| error.to_string())
    }

    /// The whole snapshot.
    fn text(&self) -> String {
        format!("{} {}", self.rest, self.parts.join(" "))
    }
}

fn policy(name: &str, knowledge: &InterferenceContext) -> Box<dyn Policy> {
    parse_policy_with(name, knowledge).unwrap_or_else(|unknown| panic!("{unknown}"))
}

/// Panics with the invariant that does not hold, if there is one.
fn check(head: &Head) {
    head.check().unwrap_or_else(|broken| panic!("{broken}"));
}

fn replayed(now: Time, mut head: Head, journal: &[DurableEntry]) -> Result<Head, SimFailure> {
    for entry in journal {
        let (at, event) = entry.decode().map_err(|detail| unreadable(now, detail))?;
        guarded(FailureKind::Crash, now, || head.handle(at, event, &mut Vec::new()))?;
    }
    guarded(FailureKind::Invariant, now, || check(&head))?;
    Ok(head)
}

fn unreadable(now: Time, detail: String) -> SimFailure {
    SimFailure { kind: FailureKind::Invariant, at: now, detail }
}

fn same(now: Time, what: &str, live: &Head, other: &Head) -> Result<(), SimFailure> {
    if live == other {
        return Ok(());
    }
    let (live, other) = (Image::of(live).text(), Image::of(other).text());
    let differs = live.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let from = differs.saturating_sub(120);
        text.chars().skip(from).take(240).collect::<String>()
    };
    let detail =
        format!("{what} differs from the live head: …{}… instead of …{}…", around(&other), around(&live));
    Err(SimFailure { kind: FailureKind::Invariant, at: now, detail })
}
