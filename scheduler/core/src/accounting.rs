//! What reports on users and projects are summed up from: how long attempts waited, what they held, and how
//! attempts and jobs ended.
//!
//! Entries follow from journaled events alone, so a replay repeats them: the shell counts each once, by the
//! number of its event. What workers measured of GPUs is in the history already when an attempt ends.

use cohabit_types::{JobId, Share, Span};

use crate::accounting_entry::{
    AccountOwner, AccountingEntry, AccountingKind, AttemptAccount, LiveAccount, MeasuredTime,
};
use crate::figures::{held_devices, how_ended, is_lost};
use crate::head::Head;
use crate::interface::Effect;
use crate::job::{Attempt, EndedAttempt};
use crate::terminal_state::TerminalState;
use crate::transition::Transition;

impl Transition<'_> {
    /// An attempt was placed that had waited for so long.
    pub(crate) fn account_start(&mut self, id: JobId, waited: Span) {
        self.account(id, AccountingKind::Started(waited));
    }

    /// The live attempt of a job has ended.
    pub(crate) fn account_attempt(&mut self, id: JobId, ended: &EndedAttempt) {
        let account = AttemptAccount::of(id, &ended.attempt);
        let (how, is_lost) = (how_ended(ended), is_lost(ended));
        self.account(id, AccountingKind::AttemptEnded { account, how, is_lost });
    }

    /// A job has ended in this state.
    pub(crate) fn account_end(&mut self, id: JobId, state: TerminalState) {
        self.account(id, AccountingKind::JobEnded(state.job_state()));
    }

    fn account(&mut self, id: JobId, kind: AccountingKind) {
        if let Some(owner) = self.head.account_owner(id) {
            let entry = AccountingEntry { owner, at: self.now, kind };
            self.effect(Effect::Account(Box::new(entry)));
        }
    }
}

impl AttemptAccount {
    fn of(id: JobId, attempt: &Attempt) -> AttemptAccount {
        AttemptAccount {
            attempt: id.attempt(attempt.number),
            started_at: attempt.started_at,
            devices: held_devices(attempt),
            device_count: attempt.placement.parts.iter().map(|part| part.devices.len()).sum(),
            is_exclusive: attempt.placement.parts.iter().all(|part| part.share >= Share::WHOLE),
            predicted_slowdown: attempt.predicted_slowdown,
            last_progress: attempt.progress.as_ref().map(|progress| progress.at),
        }
    }
}

impl Head {
    fn account_owner(&self, id: JobId) -> Option<AccountOwner> {
        let user = self.submissions.get(&id.number)?.user.clone();
        let project = self.share_table().project_of(&user).unwrap_or(&user).to_owned();
        Some(AccountOwner { project, user })
    }

    /// What the attempts that run now hold.
    pub fn live_accounts(&self) -> Vec<LiveAccount> {
        let live = |id: JobId| {
            let attempt = self.jobs.get(&id)?.live_attempt()?;
            let ranks = id.attempt(attempt.number).rank(0)..=id.attempt(attempt.number).rank(u32::MAX);
            let mut time = MeasuredTime::default();
            for (rank, devices) in self.volatile.figures.measured.range(ranks) {
                let node = attempt.ranks.get(rank.rank as usize).map(|it| it.node);
                let part = node.and_then(|node| attempt.placement.part_on(node));
                let share = part.map_or(0.0, |part| part.share.as_f64());
                for usage in devices {
                    time.measured += share * usage.measured.as_secs_f64();
                    time.busy += share * usage.busy.as_secs_f64();
                    time.idle += share * usage.idle.as_secs_f64();
                }
            }
            let account = AttemptAccount::of(id, attempt);
            Some(LiveAccount { owner: self.account_owner(id)?, account, time })
        };
        self.jobs_on_devices().into_iter().filter_map(live).collect()
    }
}
