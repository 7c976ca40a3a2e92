//! The shell of the simulated coordinator as far as it has to do with several nodes: their stores, who was
//! not heard of for too long, and the checks of what the coordinator says of nodes and of lost objects.

use cohabit_application_core::{
    FetchFailure, FromCoordinator, FromDirectory, FromStore, NodeNumber, ObjectId, ToCoordinator,
    ToDirectory, ToStore,
};
use cohabit_types::{JobId, RankId, Share, Span, Time};

use super::event::{ApplicationEvent, HeadEvent};
use super::head::{RunnerPurpose, RunnerRequest};
use super::place_ledger::LossRecord;
use super::planted_bug::ApplicationBug;
use super::process::{Process, ProcessCode};
use super::world::ApplicationWorld;

const REQUEST_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_millis(500));
/// How long the coordinator waits for the next connection of a member before it is silent.
const SILENCE: Span = Span::from_secs(6);
/// The attempts that the store of a node may have.
const STORE_RESTARTS: u32 = 1_000;

impl ApplicationWorld {
    /// The coordinator submits the store of a further node.
    pub(super) fn want_store(&mut self, number: NodeNumber, name: &str) {
        let Some(node) = self.nodes.named(name).filter(|_| self.nodes.are_several()) else {
            return self.ledger.violated(format!("a store for node '{name}' is submitted"));
        };
        self.nodes.number(number, node);
        let purpose = RunnerPurpose::Store(node);
        let request = RunnerRequest { purpose, restarts: STORE_RESTARTS, ranks: 1, gpus: Share(0) };
        let submission = ApplicationEvent::Head(HeadEvent::SubmitStore { node: number, request });
        self.after(REQUEST_DELAY, submission);
    }

    /// The session of a member with the coordinator has no connection from now on.
    pub(super) fn watch_silence(&mut self, member: RankId, since: Time) {
        if self.nodes.are_several() {
            self.queue.put(since + SILENCE, ApplicationEvent::Silent { member, since });
        }
    }

    /// The coordinator has had no connection of a member for too long, unless there was one since.
    pub(super) fn silent(&mut self, member: RankId, since: Time) {
        if self.silent_since(member) != Some(since) {
            return;
        }
        self.counters.silences += 1;
        if matches!(self.head.jobs[&member.job()].request.purpose, RunnerPurpose::Store(_)) {
            self.silenced.insert(self.nodes.of(member));
        }
        self.drive_coordinator(|it, effects| it.member_silent(member, effects));
        if self.plant == Some(ApplicationBug::EarlyActorRestart) {
            self.restart_actors_of(member);
        }
    }

    /// For `EarlyActorRestart`: the head starts actors of a silent node again.
    fn restart_actors_of(&mut self, silent: RankId) {
        let node = self.nodes.of(silent);
        let on_node = self
            .processes
            .iter()
            .filter(|(member, it)| it.code == ProcessCode::Actor && self.nodes.of(**member) == node);
        let jobs: Vec<JobId> = on_node.map(|(member, _)| member.job()).collect();
        for job in jobs {
            if self.head.may_retry(job) {
                self.start_attempt(job);
            }
        }
    }

    /// For `EarlyActorRestart`: whether the processes of an actor before the last one are taken for ended.
    pub(super) fn restarts_early(&self, job: JobId) -> bool {
        let members = self.processes.range(job.attempt(0).rank(0)..=job.attempt(u32::MAX).rank(u32::MAX));
        let mut nodes = members.map(|(member, _)| self.nodes.of(*member));
        self.plant == Some(ApplicationBug::EarlyActorRestart)
            && nodes.next().is_some_and(|node| !self.nodes.is_reached(node))
    }

    /// For `LostPlace`: the coordinator hears that an object was not where it was fetched from.
    pub(super) fn lose_place(&self, frame: FromStore) -> FromStore {
        match frame {
            FromStore::Fetched { object, result: Ok(()) }
                if self.plant == Some(ApplicationBug::LostPlace) =>
            {
                FromStore::Fetched { object, result: Err(FetchFailure::Missing) }
            }
            frame @ (FromStore::Fetched { .. }
            | FromStore::Listens { .. }
            | FromStore::Wants { .. }
            | FromStore::Dropped { .. }
            | FromStore::Told { .. }) => frame,
        }
    }

    /// The store in the coordinator's process has said something.
    pub(super) fn own_store_said(&mut self, frame: FromStore) {
        self.note_store(self.own, &frame);
        let frame = self.lose_place(frame);
        self.drive_coordinator(|it, effects| it.received_from_own_store(frame, effects));
    }

    /// Writes down what the coordinator hears of places.
    pub(super) fn note_for_places(&mut self, from: RankId, frame: &ToCoordinator) {
        if self.was_written_off(from) {
            return;
        }
        if let ToCoordinator::Store(frame) = frame {
            self.note_store(from, frame);
        }
        let ToCoordinator::Object(report) = frame else { return };
        match report {
            ToDirectory::Stored { stored, .. } => self.places.told_stored(stored.object),
            ToDirectory::Made { object, lineage } => self.places.told_made(*object, lineage.retries),
            ToDirectory::NotRemade { object, .. } => self.places.told_not_remade(*object),
            ToDirectory::Share { .. }
            | ToDirectory::Resolve { .. }
            | ToDirectory::Watch { .. }
            | ToDirectory::Open { .. }
            | ToDirectory::Remade { .. }
            | ToDirectory::Said { .. } => {}
        }
    }

    fn note_store(&mut self, store: RankId, frame: &FromStore) {
        match frame {
            FromStore::Fetched { object, result: Ok(()) } => self.places.told_fetched(*object, store),
            FromStore::Fetched { object, result: Err(_) } => self.places.told_failed(*object, store),
            FromStore::Dropped { object } => self.places.told_dropped(*object, store),
            FromStore::Listens { .. } | FromStore::Wants { .. } | FromStore::Told { .. } => {}
        }
    }

    /// Checks what the coordinator tells members of nodes: nothing, if there is one.
    pub(super) fn check_word_of_nodes(&mut self, to: RankId, frame: &FromCoordinator) {
        if let FromCoordinator::Store(order) = frame {
            self.check_order_to_store(to, order);
        }
        if let FromCoordinator::Object(FromDirectory::Remake { object, .. }) = frame {
            self.counters.remakes += 1;
            self.places.remade(*object);
        }
        let is_of_nodes = matches!(
            frame,
            FromCoordinator::Store(_)
                | FromCoordinator::Object(FromDirectory::Remake { .. } | FromDirectory::Inquire { .. })
                | FromCoordinator::Welcome { .. }
                | FromCoordinator::NodeAt { .. }
                | FromCoordinator::MemberAt { .. }
        );
        if is_of_nodes && !self.nodes.are_several() {
            self.ledger.violated(format!("{to} is told of nodes, and there is one: {frame:?}"));
        }
    }

    /// Checks what the coordinator orders a store to do.
    pub(super) fn check_order_to_store(&mut self, store: RankId, order: &ToStore) {
        match order {
            ToStore::Free { object } => self.places.freed(*object),
            ToStore::Lost { object, error } => {
                if let Some(violation) = self.find_unlost(store, *object) {
                    self.ledger.violated(format!("{violation}, and store {store} is told: {error}"));
                }
            }
            ToStore::Keep { .. } | ToStore::Forget { .. } | ToStore::Fetch { .. } | ToStore::Tell { .. } => {}
        }
    }

    /// Why an object is not lost that a process waits for.
    fn find_unlost(&mut self, store: RankId, object: ObjectId) -> Option<String> {
        let reader = self.reader(store, object)?;
        // Of a node that was silent, nobody waits for a word.
        let is_heard = !self.silenced.contains(&self.nodes.of(object.maker));
        let (loss, maker_lives) = (self.places.loss(object, store), self.lives(object.maker) && is_heard);
        let has = |it: &&RankId| {
            !self.was_written_off(**it)
                && self.stores.get(it).is_some_and(|store| store.content(object).is_some())
        };
        let found = match loss {
            LossRecord::Untold if maker_lives => "was never told of, though its maker lives".to_owned(),
            LossRecord::Here(stores) => format!("is in store {}", stores.iter().find(has)?),
            LossRecord::NeverLost => "was in no store that was lost".to_owned(),
            LossRecord::Freed => "was freed".to_owned(),
            LossRecord::Remakeable(left) => format!("may be made again {left} times"),
            LossRecord::Untold | LossRecord::Gone => return None,
        };
        Some(format!("object {object}, for which {reader} waits, {found}"))
    }

    /// A process that holds an object and waits for it at this store.
    fn reader(&self, store: RankId, object: ObjectId) -> Option<RankId> {
        let node = self.nodes.of(store);
        let reads = |(member, process): &(&RankId, &Process)| {
            let reads = process.reading.iter().any(|(_, it)| *it == object);
            reads && self.nodes.of(**member) == node && !self.was_written_off(**member)
        };
        self.processes.iter().find(reads).map(|(member, _)| *member)
    }

    /// Whether a process lives, and the coordinator does not take it for dead.
    pub(super) fn lives(&self, member: RankId) -> bool {
        self.processes.contains_key(&member) && !self.was_written_off(member)
    }

    pub(super) fn was_written_off(&self, member: RankId) -> bool {
        self.written_off.contains(&member)
    }

    /// The coordinator takes a member for dead: it may do so if it lives on a node of which nothing is heard,
    /// but not with actors, which must never live twice.
    pub(super) fn written_off(&mut self, member: RankId) {
        if self.was_written_off(member) {
            return;
        }
        let Some(process) = self.processes.get(&member) else {
            // It may have ended in order, but nobody has said so.
            let told = self.head.report(member.job()).map_or(0, |report| report.ended_attempts);
            if told < member.attempt.attempt {
                self.task_ledger.process_died(member);
            }
            return;
        };
        let may_be = match process.code {
            ProcessCode::Tasks | ProcessCode::Store => self.silenced.contains(&self.nodes.of(member)),
            ProcessCode::Main | ProcessCode::Actor => false,
        };
        if !may_be {
            self.ledger.violated(format!("{member} lives, and the coordinator takes it for dead"));
        }
        self.written_off.insert(member);
        self.task_ledger.process_died(member);
        if self.stores.contains_key(&member) {
            self.places.store_died(member);
        }
    }
}
