//! The head daemon without its sockets: the production head behind a journal, and its recovery.
//!
//! Events are handled once they are durable. A crash loses everything but the journal and the snapshot, and
//! the recovered head must equal the lost one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_journal::{FORMAT, decode_head, decode_part, encode_head, encode_part};
use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::maifs::Agents;
use cohabit_policy::{Plan, Policy, SensitivityProfiles, View, ViewChange, parse_policy_with};
use cohabit_scheduler_core::{Config, Effect, Event, Head, SnapshotPart, ViewTracker};
use cohabit_types::{JobChange, JobId, Principal, Request, Span, Time, WorkerKey};

use crate::alarm::AlarmClock;
use crate::archive::SimArchive;
use crate::failure::{FailureKind, SimFailure, guarded};
use crate::journal::{DurableEntry, SimJournal, WriteOutcome};
use crate::planted_bug::PlantedBug;
use crate::random_agents::RandomAgents;
use crate::scenario::Scenario;
use crate::sim_event::LinkId;
use crate::wall_clock::HeadClock;

/// The head process, whether it is up or down.
pub(crate) struct HeadHost {
    settings: Settings,
    head: Head,
    policy: Box<dyn Policy>,
    /// Agents for the policy of the first start.
    agents: Option<Box<dyn Agents>>,
    /// The view that the policy sees.
    view: View,
    /// What changed in the head since the policy was asked.
    view_tracker: ViewTracker,
    /// Changes that the policy has not seen because it is stalled.
    pending_changes: Vec<ViewChange>,
    /// Until when the policy is stalled.
    stalled_until: Time,
    pub(crate) journal: SimJournal,
    /// The last snapshot, with the number of events that it contains.
    snapshot: (usize, Image),
    archive: SimArchive,
    pub(crate) state: HeadState,
    pub(crate) clock: HeadClock,
    /// Counts the starts of the head. Events of an earlier generation are ignored.
    pub(crate) generation: u64,
    pub(crate) sessions: BTreeMap<WorkerKey, LinkId>,
    /// Workers that were let in before their joins were durable.
    pub(crate) welcomed: BTreeSet<WorkerKey>,
    /// When it was last started.
    pub(crate) back_at: Time,
    pub(crate) alarm: AlarmClock,
}

struct Settings {
    config: Config,
    policy: String,
    knowledge: InterferenceContext,
    sensitivity: Arc<SensitivityProfiles>,
    random_agents: Option<u64>,
    snapshot_every: usize,
    plant: Option<PlantedBug>,
}

/// The state of the head process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadState {
    Up,
    /// Of the effects of the next event only some are carried out, of the following events none; then the
    /// head crashes.
    CrashDuringEffects {
        events: u32,
        back: Span,
    },
    /// The effects of this many more events are not carried out; then the head crashes.
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
        let policy_text = with_planted_bug(&scenario.policy, scenario.plant);
        let settings = Settings {
            config: scenario.config.clone(),
            policy: policy_text,
            knowledge: scenario.knowledge.clone(),
            sensitivity: scenario.sensitivity.clone(),
            random_agents: scenario.random_agents,
            snapshot_every: scenario.snapshot_every.max(1),
            plant: scenario.plant,
        };
        HeadHost {
            policy: policy(&settings.policy, &settings),
            agents: None,
            settings,
            head,
            view: View::default(),
            view_tracker: ViewTracker::default(),
            pending_changes: Vec::new(),
            stalled_until: Time::EPOCH,
            journal: SimJournal::default(),
            snapshot,
            archive: SimArchive::new(scenario.plant == Some(PlantedBug::StaleArchive)),
            state: HeadState::Down,
            clock: HeadClock::default(),
            generation: 0,
            sessions: BTreeMap::new(),
            welcomed: BTreeSet::new(),
            back_at: Time::EPOCH,
            alarm: AlarmClock::default(),
        }
    }

    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state != HeadState::Down
    }

    /// Whether effects of the next event are carried out, at least in part.
    pub(crate) const fn carries_out_effects(&self) -> bool {
        matches!(self.state, HeadState::Up | HeadState::CrashDuringEffects { .. })
    }

    /// Shows the changes to the policy and asks it for a plan; `None` while it is stalled. `now` is the time
    /// of the head's clock.
    pub(crate) fn plan(&mut self, true_now: Time, now: Time) -> Option<Plan> {
        self.pending_changes.extend(self.view_tracker.changes(&self.head, now));
        if true_now < self.stalled_until {
            return None;
        }
        let changes = std::mem::take(&mut self.pending_changes);
        self.view.now = now;
        self.view.apply(&changes);
        self.policy.learn(&self.view, &self.told(changes));
        Some(self.policy.plan(&self.view))
    }

    /// The changes that the policy is told: all, unless a bug is planted.
    fn told(&self, mut changes: Vec<ViewChange>) -> Vec<ViewChange> {
        if self.settings.plant == Some(PlantedBug::LostVictim) {
            let is_stopped =
                |it: &ViewChange| matches!(it, ViewChange::Pending(job) if job.attained.held > Span::ZERO);
            changes.retain(|change| !is_stopped(change));
        }
        changes
    }

    /// The view for which the policy planned last.
    pub(crate) const fn view(&self) -> &View {
        &self.view
    }

    /// What the policy has seen by changes is what a policy would see that looks for the first time.
    pub(crate) fn check_view(&self) -> Result<(), String> {
        let fresh = self.head.view(self.view.now);
        let jobs = |view: &View| -> (Vec<JobId>, Vec<JobId>) {
            (view.pending.keys().copied().collect(), view.running.keys().copied().collect())
        };
        let (seen, present) = (jobs(&self.view), jobs(&fresh));
        match seen == present {
            true => Ok(()),
            false => Err(format!(
                "by changes the policy sees as pending and running {seen:?}, instead of {present:?}"
            )),
        }
    }

    /// Gives the policy new knowledge of interference, which it keeps over restarts.
    pub(crate) fn set_interference(&mut self, knowledge: InterferenceContext) {
        self.policy.set_interference(&knowledge);
        self.settings.knowledge = knowledge;
    }

    /// Lets these agents decide from the first start on. A head that is started again has none.
    pub(crate) fn set_agents(&mut self, agents: Box<dyn Agents>) {
        self.agents = Some(agents);
    }

    /// Stalls the policy until this time: it sees no changes and gives no plans.
    pub(crate) const fn stall_policy(&mut self, until: Time) {
        self.stalled_until = until;
    }

    /// Plans with FIFO, which needs nothing but the present state.
    pub(crate) fn plan_fifo(&self, now: Time) -> Plan {
        let view = self.head.view(now);
        let mut policy = policy("fifo", &self.settings);
        policy.learn(&view, &view.as_changes());
        policy.plan(&view)
    }

    /// Handles a durable event, and takes a snapshot when one is due.
    pub(crate) fn handle(&mut self, at: Time, event: Event) -> Result<Vec<Effect>, SimFailure> {
        self.journal.handles(&event);
        // What earlier events archived was written before this one.
        self.archive.commit();
        let effects = self.replay(at, event)?;
        let handled = self.journal.handled().len();
        if handled >= self.snapshot.0 + self.settings.snapshot_every {
            self.archive.commit();
            self.snapshot = (handled, Image::of(&self.head));
        }
        Ok(effects)
    }

    fn add_to_archive(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Archive(part) = effect {
                self.archive.add(part);
            }
        }
    }

    /// What this request of this user needs of the archive.
    ///
    /// # Errors
    /// If what was archived cannot be read.
    pub(crate) fn archived_for(
        &self,
        by: &Principal,
        request: &Request,
    ) -> Result<Vec<SnapshotPart>, String> {
        let Request::Change(JobChange::Requeue, jobs) = request else { return Ok(Vec::new()) };
        self.archive.submissions(&self.head.archived_among(by, jobs))
    }

    /// The head with everything that it has archived in memory again, as far as it still knows of it.
    ///
    /// # Errors
    /// If what was archived cannot be read, or does not make a sound head.
    pub(crate) fn whole(&self, now: Time) -> Result<Head, SimFailure> {
        let parts = self.archive.submissions(&self.archive.numbers());
        let parts = parts.map_err(|detail| unreadable(now, detail))?;
        let mut whole = self.head.clone();
        for part in parts {
            guarded(FailureKind::Crash, now, || {
                whole.handle(now, Event::Restored(part), &mut Vec::new());
            })?;
            guarded(FailureKind::Invariant, now, || check(&whole))?;
        }
        Ok(whole)
    }

    /// Handles an event without checking invariants.
    pub(crate) fn handle_unchecked(&mut self, at: Time, event: Event) -> Result<Vec<Effect>, SimFailure> {
        let mut effects = Vec::new();
        let changed = guarded(FailureKind::Crash, at, || self.head.handle(at, event, &mut effects))?;
        self.view_tracker.note(changed);
        Ok(effects)
    }

    /// Crashes the head: everything but the journal and the snapshot is lost. Returns the events that were
    /// durable and not yet handled; their effects are lost.
    pub(crate) fn crash(
        &mut self,
        now: Time,
        outcome: WriteOutcome,
    ) -> Result<Vec<(Time, Event)>, SimFailure> {
        self.state = HeadState::Down;
        self.alarm = AlarmClock::default();
        self.journal.crash(outcome);
        self.archive.crash();
        let (head, effects) = self.recover(now)?;
        self.head = head;
        self.add_to_archive(&effects);
        self.journal.take_unhandled().map_err(|detail| unreadable(now, detail))
    }

    /// Handles an event from the journal and checks the head's invariants.
    pub(crate) fn replay(&mut self, at: Time, event: Event) -> Result<Vec<Effect>, SimFailure> {
        let effects = self.handle_unchecked(at, event)?;
        self.add_to_archive(&effects);
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

    /// Restarts the head with a policy that knows nothing. The time for which it was down does not count,
    /// whatever its clock shows, because nobody knows how long it was.
    pub(crate) fn restart(&mut self, true_now: Time) {
        self.state = HeadState::Up;
        self.welcomed.clear();
        self.back_at = true_now;
        self.generation += 1;
        self.policy = policy(&self.settings.policy, &self.settings);
        if let Some(agents) = self.agents.take() {
            self.policy.set_agents(agents);
        }
        self.view = View::default();
        self.view_tracker = ViewTracker::default();
        self.pending_changes.clear();
        self.stalled_until = Time::EPOCH;
        if let Some(last) = self.journal.last() {
            self.clock.start(true_now, last);
            self.journal.leap(self.clock.read(true_now).since(last));
        }
        let now = self.clock.read(true_now);
        self.journal.add(now, Event::HeadStarted(self.settings.config.clone()));
    }

    /// Recovers the head from the snapshot and the rest of the journal, and checks that replaying the whole
    /// journal gives the same state. Returns the effects of the events after the snapshot, too.
    ///
    /// # Errors
    /// If the live head, the replayed head and the restored head differ.
    pub(crate) fn recover(&self, now: Time) -> Result<(Head, Vec<Effect>), SimFailure> {
        let (length, snapshot) = &self.snapshot;
        let restored = snapshot
            .read()
            .map_err(|error| unreadable(now, format!("a snapshot cannot be read: {error}")))?;
        let handled = self.journal.handled();
        let (restored, effects) = replay_journal(now, restored, &handled[*length..])?;
        let (replayed, _) = replay_journal(now, Head::new(), handled)?;
        check_equal(now, "replay of the whole journal", &self.head, &replayed)?;
        check_equal(now, "replay after the snapshot", &self.head, &restored)?;
        Ok((restored, effects))
    }
}

/// A snapshot as the journal stores it: the head without its jobs, and the jobs in parts.
struct Image {
    rest: String,
    parts: Vec<String>,
}

impl Image {
    /// Jobs in one part; few, so that there are several parts.
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

/// The text of the policy, unless a bug is planted in it.
fn with_planted_bug(policy: &str, plant: Option<PlantedBug>) -> String {
    let quantum = policy.split_once("quantum=").filter(|_| plant == Some(PlantedBug::IgnoredQuantum));
    quantum.map_or(policy.to_owned(), |(before, after)| {
        let further = after.find(',').map_or("", |end| &after[end..]);
        format!("{before}quantum=0{further}")
    })
}

fn policy(name: &str, settings: &Settings) -> Box<dyn Policy> {
    let mut policy =
        parse_policy_with(name, &settings.knowledge).unwrap_or_else(|refusal| panic!("{refusal}"));
    policy.set_sensitivity(&settings.sensitivity);
    if let Some(seed) = settings.random_agents {
        policy.set_agents(Box::new(RandomAgents::new(seed)));
    }
    policy
}

/// Panics with the invariant that does not hold, if there is one.
fn check(head: &Head) {
    head.check().unwrap_or_else(|broken| panic!("{broken}"));
}

fn replay_journal(
    now: Time,
    mut head: Head,
    journal: &[DurableEntry],
) -> Result<(Head, Vec<Effect>), SimFailure> {
    let mut effects = Vec::new();
    for entry in journal {
        let (at, event) = entry.decode().map_err(|detail| unreadable(now, detail))?;
        guarded(FailureKind::Crash, now, || head.handle(at, event, &mut effects))?;
    }
    guarded(FailureKind::Invariant, now, || check(&head))?;
    Ok((head, effects))
}

fn unreadable(now: Time, detail: String) -> SimFailure {
    SimFailure { kind: FailureKind::Invariant, at: now, detail }
}

fn check_equal(now: Time, what: &str, live: &Head, other: &Head) -> Result<(), SimFailure> {
    if live == other {
        return Ok(());
    }
    let (live, other) = (Image::of(live).text(), Image::of(other).text());
    let common = live.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let from = common.saturating_sub(120);
        text.chars().skip(from).take(240).collect::<String>()
    };
    let detail =
        format!("{what} differs from the live head: …{}… instead of …{}…", around(&other), around(&live));
    Err(SimFailure { kind: FailureKind::Invariant, at: now, detail })
}
