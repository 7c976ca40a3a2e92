//! The end of an application: all processes are told that it is over, and have some time for it.

use cohabit_types::RankId;

use crate::coordinator::Coordinator;
use crate::coordinator_effect::CoordinatorEffect;
use crate::fetches::NextStore;
use crate::frames::FromCoordinator;
use crate::holders::Unheld;
use crate::ids::{ClosingNumber, NodeNumber};

/// How far the end of the application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApplicationEnd {
    /// A main runs, or a detached actor lives.
    NotYet,
    /// Actors and runners of tasks were told to end.
    Closing(ClosingNumber),
    /// They have ended, and the stores of further nodes were told.
    ClosingStores(ClosingNumber),
    /// The coordinator was told to exit.
    Ordered,
}

impl Coordinator {
    /// Processes have had time for their end: the head ends those that are left.
    pub fn closing_over(&mut self, closing: ClosingNumber, effects: &mut Vec<CoordinatorEffect>) {
        let is_this = [ApplicationEnd::Closing(closing), ApplicationEnd::ClosingStores(closing)];
        if is_this.contains(&self.end)
            && let Some(code) = self.mains.exit_code()
        {
            self.exit(code, effects);
        }
    }

    /// Ends the application if no main runs and no detached actor lives. If a further main has come
    /// meanwhile, it goes on.
    pub(crate) fn consider_end(&mut self, effects: &mut Vec<CoordinatorEffect>) {
        let Some(code) = self.mains.exit_code().filter(|_| self.actors.detached() == 0) else {
            if self.end != ApplicationEnd::Ordered {
                self.end = ApplicationEnd::NotYet;
            }
            return;
        };
        if self.end == ApplicationEnd::NotYet {
            self.last_closing = ClosingNumber(self.last_closing.0 + 1);
            self.end = ApplicationEnd::Closing(self.last_closing);
            self.task_runners.end_all(&mut self.ceiling, effects);
            let unneeded = self.actors.end_all(&mut self.ceiling, effects);
            effects.push(CoordinatorEffect::AwaitClosing { closing: self.last_closing });
            // Comes back here.
            return self.settle(unneeded, Unheld::default(), effects);
        }
        let is_store = |member: &&RankId| self.nodes.is_store(member.job());
        if let ApplicationEnd::Closing(closing) = self.end
            && self.members.iter().all(|member| is_store(&member))
        {
            let end = |to: &RankId| CoordinatorEffect::Send { to: *to, frame: FromCoordinator::End };
            effects.extend(self.members.iter().map(end));
            let nodes: Vec<NodeNumber> =
                self.members.iter().filter_map(|store| self.nodes.of_store(*store)).collect();
            for node in nodes {
                self.nodes.leave(node);
                self.lose_objects(node, NextStore::None, effects);
            }
            self.end = ApplicationEnd::ClosingStores(closing);
        }
        if matches!(self.end, ApplicationEnd::ClosingStores(_)) && self.members.is_empty() {
            self.exit(code, effects);
        }
    }

    fn exit(&mut self, code: i32, effects: &mut Vec<CoordinatorEffect>) {
        self.end = ApplicationEnd::Ordered;
        effects.push(CoordinatorEffect::Exit { code });
    }
}
