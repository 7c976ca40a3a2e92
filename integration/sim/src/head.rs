//! The head's daemon without its sockets: the production head behind a journal, and its recovery.
//!
//! Each event is journaled, then handled. A crash forgets everything but journal and snapshot; what comes
//! back must equal what was lost.

use std::collections::BTreeMap;

use cohabit_core::{Config, Effect, Event, Head};
use cohabit_proto::{Report, Span, Time, WorkerKey};
use cohabit_scheduler::interference::Knowledge;
use cohabit_scheduler::{Plan, Policy, View, policy_that_knows};

use crate::alarm::AlarmClock;
use crate::failure::{Failure, FailureKind, guarded};
use crate::happening::LinkId;
use crate::scenario::{Scenario, Watch};

/// The head's place in the cluster, whether it is up or down.
pub(crate) struct HeadHost {
    settings: Settings,
    head: Head,
    policy: Box<dyn Policy>,
    /// What the policy sees.
    view: View,
    journal: Vec<(Time, Event)>,
    /// A snapshot, and how many events it contains.
    snapshot: (usize, String),
    pub(crate) state: State,
    /// Counts its lives; what belongs to an earlier one is void.
    pub(crate) life: u64,
    pub(crate) sessions: BTreeMap<WorkerKey, LinkId>,
    pub(crate) alarm: AlarmClock,
}

struct Settings {
    config: Config,
    policy: String,
    knowledge: Knowledge,
    snapshot_every: usize,
    watch: Watch,
}

/// Whether the head is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Up,
    /// Of the effects of its next event only some are carried out, of so many further ones none; then it
    /// crashes.
    Stumbling {
        events: u32,
        back: Span,
    },
    /// The effects of so many more events are not carried out; then it crashes.
    Falling {
        events: u32,
        back: Span,
    },
    Down,
}

impl HeadHost {
    pub(crate) fn new(scenario: &Scenario) -> HeadHost {
        let head = Head::new();
        let snapshot = (0, text(&head));
        HeadHost {
            settings: Settings {
                config: scenario.config.clone(),
                policy: scenario.policy.clone(),
                knowledge: scenario.knowledge.clone(),
                snapshot_every: scenario.snapshot_every.max(1),
                watch: scenario.watch,
            },
            head,
            policy: policy(&scenario.policy, &scenario.knowledge),
            view: View::default(),
            journal: Vec::new(),
            snapshot,
            state: State::Down,
            life: 0,
            sessions: BTreeMap::new(),
            alarm: AlarmClock::default(),
        }
    }

    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state != State::Down
    }

    /// Shows the policy what changed, and asks it for a plan.
    pub(crate) fn plan(&mut self, now: Time) -> Plan {
        let changes = self.head.changes();
        self.view.now = now;
        self.view.apply(&changes);
        self.policy.learn(&self.view, &changes);
        self.policy.plan(&self.view)
    }

    /// Journals and handles an event; where nothing is watched it is not journaled either.
    pub(crate) fn handle(&mut self, now: Time, event: Event) -> Result<Vec<Effect>, Failure> {
        match self.settings.watch {
            Watch::Everything => self.handle_watched(now, event),
            Watch::Outcomes => self.let_happen(now, event),
        }
    }

    fn let_happen(&mut self, now: Time, event: Event) -> Result<Vec<Effect>, Failure> {
        let mut effects = Vec::new();
        guarded(FailureKind::Crash, now, || self.head.handle(now, event, &mut effects))?;
        Ok(effects)
    }

    fn handle_watched(&mut self, now: Time, event: Event) -> Result<Vec<Effect>, Failure> {
        if is_journaled(&event) {
            self.journal.push((now, event.clone()));
        }
        let effects = self.let_happen(now, event)?;
        guarded(FailureKind::Invariant, now, || self.head.check())?;
        if self.journal.len() >= self.snapshot.0 + self.settings.snapshot_every {
            self.snapshot = (self.journal.len(), text(&self.head));
        }
        Ok(effects)
    }

    /// Everything but journal and snapshot is gone.
    pub(crate) fn crash(&mut self, now: Time) -> Result<(), Failure> {
        self.state = State::Down;
        self.alarm = AlarmClock::default();
        self.head = self.recovered(now)?;
        Ok(())
    }

    /// Comes back; the first event is that of the configuration.
    pub(crate) fn restart(&mut self, now: Time) -> Result<Vec<Effect>, Failure> {
        self.state = State::Up;
        self.life += 1;
        self.policy = policy(&self.settings.policy, &self.settings.knowledge);
        self.view = View::default();
        self.handle(now, Event::Configured(self.settings.config.clone()))
    }

    /// The head by snapshot and rest of the journal; the whole journal must lead to the same.
    ///
    /// # Errors
    /// If live head, replayed head and restored head are not equal.
    pub(crate) fn recovered(&self, now: Time) -> Result<Head, Failure> {
        let (length, snapshot) = &self.snapshot;
        let restored: Head = serde_json::from_str(snapshot).map_err(|error| {
            let detail = format!("a snapshot cannot be read: {error}");
            Failure { kind: FailureKind::Invariant, at: now, detail }
        })?;
        let restored = replayed(now, restored, &self.journal[*length..])?;
        let replayed = replayed(now, Head::new(), &self.journal)?;
        let live = text(&self.head);
        same(now, "replay of the whole journal", &live, &text(&replayed))?;
        same(now, "replay after the snapshot", &live, &text(&restored))?;
        Ok(restored)
    }
}

fn policy(name: &str, knowledge: &Knowledge) -> Box<dyn Policy> {
    policy_that_knows(name, knowledge).unwrap_or_else(|unknown| panic!("{unknown}"))
}

const fn is_journaled(event: &Event) -> bool {
    !matches!(event, Event::Report(_, Report::Progress(_) | Report::Telemetry(_) | Report::Stretches(_)))
}

fn text(head: &Head) -> String {
    serde_json::to_string(head).expect("a head can be written down")
}

fn replayed(now: Time, mut head: Head, journal: &[(Time, Event)]) -> Result<Head, Failure> {
    for (at, event) in journal {
        guarded(FailureKind::Crash, now, || head.handle(*at, event.clone(), &mut Vec::new()))?;
    }
    guarded(FailureKind::Invariant, now, || head.check())?;
    Ok(head)
}

fn same(now: Time, what: &str, live: &str, other: &str) -> Result<(), Failure> {
    if live == other {
        return Ok(());
    }
    let differs = live.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let from = differs.saturating_sub(120);
        text.chars().skip(from).take(240).collect::<String>()
    };
    let detail =
        format!("{what} differs from the live head: …{}… instead of …{}…", around(other), around(live));
    Err(Failure { kind: FailureKind::Invariant, at: now, detail })
}
