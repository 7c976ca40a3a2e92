//! The only entry point for changes: one event, its time, and the effects that follow.

use std::collections::BTreeSet;

use cohabit_types::{Cause, Time};

use crate::head::Head;
use crate::interface::{ChangedIds, Config, Effect, Event};
use crate::transition::Transition;

impl Head {
    /// Handles an event, and appends what is to be done about it to `out`. Returns what changed, for the
    /// [`crate::ViewTracker`] of those who show a policy the cluster; others may drop it.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) -> ChangedIds {
        Transition::new(self, now, out).handle(event)
    }
}

impl Transition<'_> {
    /// Handles the event, and requests at most one plan however much it changed.
    fn handle(mut self, event: Event) -> ChangedIds {
        match event {
            Event::HeadStarted(config) => self.head_started(config),
            Event::Client(client, by, request) => {
                self.withdraw_all();
                self.request(client, by, request);
            }
            Event::Joined(key, inventory) => self.joined(key, inventory),
            Event::Lost(key, detail) => self.lost(key, &detail),
            Event::Report(key, report) => self.report(key, report),
            Event::Planned(request, plan) => self.planned(request, plan),
            Event::Alarm => self.alarm(),
            Event::InterferenceUpdated => self.interference_updated(),
            Event::ClockSet(forward) => self.clock_set(forward),
            Event::Restored(part) => self.restored(part),
            Event::BackupRestored { last_number, attempt_gap } => {
                self.backup_restored(last_number, attempt_gap);
            }
        }
        self.settle_ends();
        self.fill_left_places();
        if self.head.replan_needed {
            self.start_stores();
        }
        self.ask_for_plan();
        self.changed_ids
    }

    /// The head starts: no earlier link is left, and no earlier request for a plan will be answered.
    fn head_started(&mut self, config: Config) {
        self.head.config = config;
        self.head.started_at = self.now;
        self.begin_figures();
        self.head.open_plan_request = None;
        self.head.replan_needed = true;
        let linked: Vec<_> = self.head.nodes.values().filter_map(|node| node.key()).collect();
        self.cause = Cause::Restart;
        self.changed_ids = self.head.all_ids();
        // A snapshot has no traits. Those of jobs that the policy will see are made now, once for each
        // submission.
        for number in self.head.active.iter().map(|id| id.number).collect::<BTreeSet<_>>() {
            self.head.keep_traits(number);
        }
        self.head.volatile.user_queues = self.head.limited_queues();
        // While the journal cannot be written, workers are welcomed whose joins are nowhere: one that counts
        // as unreachable may have had a link until this head's predecessor ended.
        self.wait_anew_for_nodes();
        for key in linked {
            self.unreachable(key);
        }
    }
}
