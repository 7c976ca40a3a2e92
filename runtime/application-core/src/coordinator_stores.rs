//! What stores tell the coordinator, which node has which object, and lost objects that are made again.

use std::collections::BTreeSet;

use cohabit_types::{JobId, RankId};

use crate::coordinator::Coordinator;
use crate::coordinator_effect::CoordinatorEffect;
use crate::directory::{Holding, UnheldObject};
use crate::errors::CallError;
use crate::fetches::{FreedPlaces, NextStore, StoreFrames};
use crate::frames::FromCoordinator;
use crate::held::HeldId;
use crate::ids::{NodeNumber, ObjectId, RequestNumber};
use crate::lineage::Lineage;
use crate::lineages::{Remaking, held};
use crate::node_frames::{FromStore, ToStore};
use crate::object_frames::FromDirectory;
use crate::object_value::{Carried, StoredObject};

impl Coordinator {
    /// The store in this process has said something.
    pub fn received_from_own_store(&mut self, frame: FromStore, effects: &mut Vec<CoordinatorEffect>) {
        let from = effects.len();
        self.store_says(NodeNumber::COORDINATOR, frame, effects);
        self.nodes.introduce(from, effects);
    }

    /// Asks the stores of all further nodes what they have: who was asked. The answers come as `StoreTold`.
    pub fn ask_stores(
        &self,
        request: RequestNumber,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> BTreeSet<NodeNumber> {
        let further = self.nodes.served().filter(|node| *node != NodeNumber::COORDINATOR);
        let asked: BTreeSet<NodeNumber> = further.collect();
        for node in &asked {
            self.nodes.tell_store(*node, ToStore::Tell { request }, effects);
        }
        asked
    }

    /// A member has said something as the store of its node. That it is one may not be known yet.
    pub(crate) fn store_speaks(
        &mut self,
        from: RankId,
        frame: FromStore,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if let Some(node) = self.nodes.of_store(from) {
            return self.store_says(node, frame, effects);
        }
        let is_next = self.next_attempt(from.job()) == from.attempt;
        match frame {
            FromStore::Listens { at } if is_next && self.nodes.is_store(from.job()) => {
                self.store_listens(from, at, effects);
            }
            frame @ (FromStore::Listens { .. }
            | FromStore::Wants { .. }
            | FromStore::Fetched { .. }
            | FromStore::Dropped { .. }
            | FromStore::Told { .. }) => {
                if self.nodes.is_store(from.job()) || !self.is_claimed(from.job()) {
                    self.nodes.keep_early(from, frame);
                }
            }
        }
    }

    /// A process is the next store of its node: what it has said until now counts.
    pub(crate) fn hear_store(&mut self, member: RankId, effects: &mut Vec<CoordinatorEffect>) {
        for frame in self.nodes.take_early(member) {
            self.store_speaks(member, frame, effects);
        }
    }

    fn store_says(&mut self, node: NodeNumber, frame: FromStore, effects: &mut Vec<CoordinatorEffect>) {
        let mut told = StoreFrames::new();
        let object = match frame {
            // It has said so before.
            FromStore::Listens { .. } => return,
            FromStore::Told { request, figures } => {
                return effects.push(CoordinatorEffect::StoreTold { node, request, figures });
            }
            FromStore::Wants { object } => {
                self.fetches.wants(object, node, &mut told);
                object
            }
            FromStore::Fetched { object, result } => {
                self.fetches.fetched(object, node, result, &mut told);
                object
            }
            FromStore::Dropped { object } => {
                self.fetches.dropped(object, node, &mut told);
                object
            }
        };
        self.tell_stores(told, effects);
        self.seek(object, effects);
    }

    /// A member has stored an object, for the first time or again.
    pub(crate) fn object_stored(
        &mut self,
        from: RankId,
        stored: StoredObject,
        carries: Vec<Carried>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Holding {
        let Some(holding) = self.directory.stored(stored, carries, effects) else {
            return Holding::default();
        };
        let mut told = StoreFrames::new();
        let at = self.nodes.stored_at(self.nodes.of(from));
        self.fetches.stored(stored.object, stored.bytes, at, &mut told);
        self.lineages.stored(stored.object);
        self.tell_stores(told, effects);
        self.seek(stored.object, effects);
        holding
    }

    /// Nobody holds an object any more: what the coordinator need not hold for it.
    pub(crate) fn object_unheld(
        &mut self,
        object: ObjectId,
        has_ended: bool,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Vec<HeldId> {
        let UnheldObject { mut unneeded, is_stored } = self.directory.unheld(object, has_ended, effects);
        if is_stored {
            // The store of its first maker, or of one that died over making it again, may have it, too.
            let was_remade = self.lineages.was_remade(object);
            unneeded.extend(self.lineages.forget(object));
            self.inquiries.remove(&object);
            let mut told = StoreFrames::new();
            if self.fetches.freed(object, &mut told) == FreedPlaces::Unknown || was_remade {
                told = self.nodes.served().map(|node| (node, ToStore::Free { object })).collect();
            }
            self.tell_stores(told, effects);
        }
        unneeded
    }

    /// The objects of a node are lost, and it wants none any more.
    pub(crate) fn lose_objects(
        &mut self,
        node: NodeNumber,
        next: NextStore,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let mut told = StoreFrames::new();
        self.fetches.node_lost(node, next, &mut told);
        self.tell_stores(told, effects);
    }

    /// The next store of a node listens.
    pub(crate) fn find_objects(&mut self, node: NodeNumber, effects: &mut Vec<CoordinatorEffect>) {
        let mut told = StoreFrames::new();
        self.fetches.node_listens(node, &mut told);
        self.tell_stores(told, effects);
        // They may have put objects there of which nobody hears.
        for (maker, _) in self.expelled.iter().filter(|(_, of)| **of == node) {
            let keep = self.holders.objects_of(*maker);
            self.nodes.tell_store(node, ToStore::Forget { maker: *maker, keep }, effects);
        }
    }

    /// So many attempts of a job have ended. A main that never connected may have stored objects, of which
    /// nobody hears; all others do nothing before they are told to.
    pub(crate) fn forget_unheard(&self, job: JobId, ended: u32, effects: &mut Vec<CoordinatorEffect>) {
        if !self.mains.contains(job) {
            return;
        }
        let known = self.reports.get(&job).map_or(0, |report| report.ended_attempts);
        let attempts = known.saturating_add(1)..=ended;
        for maker in attempts.map(|attempt| job.attempt(attempt).rank(0)) {
            let keep = self.holders.objects_of(maker);
            if !self.members.contains(&maker) && !self.holders.awaits(maker) && keep.is_empty() {
                let told =
                    self.nodes.served().map(|node| (node, ToStore::Forget { maker, keep: Vec::new() }));
                self.tell_stores(told.collect(), effects);
            }
        }
    }

    /// A member has said everything that it had to say of an object.
    pub(crate) fn member_said(
        &mut self,
        from: RankId,
        object: ObjectId,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if self.inquiries.get_mut(&object).is_some_and(|pending| pending.remove(&from)) {
            self.seek(object, effects);
        }
    }

    /// A member that was asked has ended, or is not heard any more: it says nothing of any object.
    pub(crate) fn answer_for(&mut self, member: RankId) {
        for pending in self.inquiries.values_mut() {
            pending.remove(&member);
        }
    }

    /// A member has told how an object can be made again.
    pub(crate) fn lineage_known(
        &mut self,
        object: ObjectId,
        lineage: Lineage,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Holding {
        let (taken, released) = self.lineages.add(object, lineage);
        taken.iter().for_each(|held| self.lend(*held, self.own));
        self.seek(object, effects);
        Holding { released, ..Holding::default() }
    }

    /// The task that makes an object again has ended at this runner, which says what it has stored.
    pub(crate) fn object_remade(
        &mut self,
        object: ObjectId,
        by: (RankId, u32),
        runner: RankId,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let runner = Some(runner).filter(|runner| self.members.contains(runner));
        self.lineages.remade(object, by, runner);
        self.seek(object, effects);
    }

    /// An object could not be made again.
    pub(crate) fn object_not_remade(
        &mut self,
        object: ObjectId,
        by: (RankId, u32),
        error: &CallError,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if self.lineages.remade(object, by, None) {
            let text =
                format!("{}, and its task has failed when it was run again: {error}", self.cause(object));
            self.lose(object, &text, effects);
        }
        self.seek(object, effects);
    }

    /// Goes on with all objects that are wanted and that no node has, after a change that may concern any.
    pub(crate) fn seek_missed(&mut self, effects: &mut Vec<CoordinatorEffect>) {
        for object in self.fetches.missed() {
            self.seek(object, effects);
        }
    }

    /// If an object is wanted and no node has it: has it made again, or says that it is lost, once everything
    /// is known that live members had to say of it.
    fn seek(&mut self, object: ObjectId, effects: &mut Vec<CoordinatorEffect>) {
        if !self.fetches.is_missed(object) {
            self.inquiries.remove(&object);
            return;
        }
        let may_be_stored = !self.fetches.is_known(object) && self.members.contains(&object.maker);
        let remaking = self.lineages.remaking(object);
        let text = match remaking {
            Remaking::Running => return,
            Remaking::Possible if !may_be_stored => match self.caller_of_remake(object) {
                Some(by) => return self.remake(object, by, effects),
                None if self.awaits_closed() => return,
                None => "and no process that holds it can be reached to make it again",
            },
            Remaking::Exhausted if !may_be_stored => {
                "and its task has run as often as its retries allow: allow it more retries"
            }
            Remaking::Possible | Remaking::Exhausted | Remaking::NoLineage => {
                if !self.has_inquired(object, may_be_stored, effects) {
                    return;
                }
                "and nothing is known of how to make it again: it was put, or made by an actor or a stream, or \
                 its task has no retries. Put or make it again"
            }
        };
        let text = match may_be_stored {
            true => "nobody holds it any more".to_owned(),
            false => format!("{}, {text}", self.cause(object)),
        };
        self.inquiries.remove(&object);
        self.lose(object, &text, effects);
    }

    /// Whether live members have said all that they had to say of an object: its maker, of which nothing was
    /// heard, or those who hold it and may have called its task. If they were not asked, asks them.
    fn has_inquired(
        &mut self,
        object: ObjectId,
        may_be_stored: bool,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> bool {
        if let Some(pending) = self.inquiries.get(&object) {
            return pending.is_empty();
        }
        if self.awaits_closed() {
            return false;
        }
        let asked: BTreeSet<RankId> = match may_be_stored {
            true => BTreeSet::from([object.maker]),
            false => {
                let holders = self.holders.holders_of(HeldId::Object(object));
                holders.filter(|member| self.is_reached(*member)).collect()
            }
        };
        let frame = FromCoordinator::Object(FromDirectory::Inquire { object });
        effects.extend(asked.iter().map(|to| CoordinatorEffect::Send { to: *to, frame: frame.clone() }));
        let has_none = asked.is_empty();
        self.inquiries.insert(object, asked);
        has_none
    }

    /// Whether a live member has still to say what it got from one that has ended: it may hold an object
    /// though nobody has told of that.
    fn awaits_closed(&self) -> bool {
        self.holders.awaited().any(|member| self.is_reached(member))
    }

    fn is_reached(&self, member: RankId) -> bool {
        self.members.contains(&member) && self.nodes.is_served(self.nodes.of(member))
    }

    /// The process that calls the task of a lost object: one that holds it.
    fn caller_of_remake(&self, object: ObjectId) -> Option<RankId> {
        let mut holders = self.holders.holders_of(HeldId::Object(object));
        holders.find(|member| self.is_reached(*member) && !self.nodes.is_store(member.job()))
    }

    fn remake(&mut self, object: ObjectId, by: RankId, effects: &mut Vec<CoordinatorEffect>) {
        if let Some((remake, lineage)) = self.lineages.remake(object, by) {
            held(&lineage).for_each(|held| self.lend(held, by));
            let lineage = Box::new(lineage);
            let frame = FromCoordinator::Object(FromDirectory::Remake { object, remake, lineage });
            effects.push(CoordinatorEffect::Send { to: by, frame });
        }
    }

    fn lose(&mut self, object: ObjectId, text: &str, effects: &mut Vec<CoordinatorEffect>) {
        let mut told = StoreFrames::new();
        self.fetches.lose(object, &CallError::ObjectLost(text.to_owned()), &mut told);
        self.tell_stores(told, effects);
    }

    /// Why no node has an object.
    fn cause(&self, object: ObjectId) -> String {
        match self.fetches.lost_with(object) {
            Some(node) => format!("node {}, which had it, was lost", self.nodes.name(node)),
            None if self.fetches.is_known(object) => "no node has it any more".to_owned(),
            None => format!("process {}, which made it, has ended before it told where it is", object.maker),
        }
    }

    fn tell_stores(&self, told: StoreFrames, effects: &mut Vec<CoordinatorEffect>) {
        for (node, frame) in told {
            self.nodes.tell_store(node, frame, effects);
        }
    }
}
