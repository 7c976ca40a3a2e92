//! What has happened to tasks, written down outside of the cores, and the checks on it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cohabit_application_core::{CallError, CallValue, OnTaskError};
use cohabit_types::RankId;

use super::payload::{Tag, decode};
use super::stream_record::StreamRecord;
use super::task_plan::TaskPlan;

/// So many runners of a class that end before they connect leave its tasks without one.
const EARLY_DEATHS: u32 = 3;

/// The records of the tasks of a run.
#[derive(Debug, Default)]
pub(super) struct TaskLedger {
    tasks: BTreeMap<Tag, TaskRecord>,
    /// Processes that ended otherwise than by what they were told.
    died: BTreeSet<RankId>,
    /// Classes of which the head refused a runner, or which are above the ceiling.
    refused: BTreeSet<usize>,
    /// Runners that ended before they connected, by class.
    early_deaths: BTreeMap<usize, u32>,
}

#[derive(Debug)]
struct TaskRecord {
    plan: TaskPlan,
    /// The items that have come of it.
    stream: StreamRecord,
    /// The processes to which it was sent, once for each time.
    sent: Vec<RankId>,
    starts: Vec<RankId>,
    outcomes: Vec<Result<Bytes, CallError>>,
    /// The process in which it has ended last.
    ended_in: Option<RankId>,
    cancelled: bool,
    ended: bool,
}

impl TaskRecord {
    /// Whether its function returns this. A stream that nobody has dropped must have come as a whole before.
    fn is_value(&self, value: &[u8]) -> bool {
        match self.plan.items() {
            None => decode(value).0 == Tag(self.plan.value()),
            Some(items) => value.is_empty() && (self.cancelled || self.stream.has_all(items)),
        }
    }
}

/// Why a task starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartKind {
    /// Somebody called it.
    Ordinary,
    /// Its value was lost.
    Remake,
    /// Somebody called it, and took its runner for dead meanwhile.
    Unnoticed,
}

/// What a check found.
pub(super) type FoundViolation = Option<String>;

impl TaskLedger {
    pub(super) fn called(&mut self, tag: Tag, plan: TaskPlan) {
        let (cancelled, ended) = (false, false);
        let (sent, starts, outcomes) = (Vec::new(), Vec::new(), Vec::new());
        let stream = StreamRecord::default();
        self.tasks.insert(
            tag,
            TaskRecord { plan, stream, sent, starts, outcomes, ended_in: None, cancelled, ended },
        );
    }

    pub(super) fn plan(&self, tag: Tag) -> Option<TaskPlan> {
        self.tasks.get(&tag).map(|task| task.plan)
    }

    pub(super) fn cancelled(&mut self, tag: Tag) {
        if let Some(task) = self.tasks.get_mut(&tag) {
            task.cancelled = true;
        }
    }

    pub(super) fn sent(&mut self, tag: Tag, to: RankId) {
        if let Some(task) = self.tasks.get_mut(&tag) {
            task.sent.push(to);
        }
    }

    pub(super) fn process_died(&mut self, member: RankId) {
        self.died.insert(member);
    }

    pub(super) fn refused(&mut self, class: usize) {
        self.refused.insert(class);
    }

    pub(super) fn died_early(&mut self, class: usize) {
        *self.early_deaths.entry(class).or_insert(0) += 1;
    }

    /// A task starts in a process in which so many others are active. Whether it has started before.
    pub(super) fn started(
        &mut self,
        tag: Tag,
        member: RankId,
        active: usize,
        kind: StartKind,
    ) -> Result<bool, String> {
        let Some(task) = self.tasks.get_mut(&tag) else { return Ok(false) };
        if kind != StartKind::Remake {
            task.starts.push(member);
        }
        let (starts, retries) = (task.starts.len(), task.plan.retries());
        let name = format!("task {}", tag.0);
        if starts > 1 + retries as usize {
            Err(format!("{name} of {retries} retries started {starts} times: {:?}", task.starts))
        } else if task.ended && kind == StartKind::Ordinary {
            Err(format!("{name} started in {member} after it had ended"))
        } else if active > 0 {
            Err(format!("{name} started in {member} beside {active} active tasks"))
        } else {
            Ok(starts > 1)
        }
    }

    /// A task has ended in a process.
    pub(super) fn outcome(&mut self, tag: Tag, member: RankId, result: Result<Bytes, CallError>) {
        if let Some(task) = self.tasks.get_mut(&tag) {
            task.ended_in = Some(member);
            task.outcomes.push(result);
        }
    }

    /// The process from which the last answer of a task may be under way. One that is tried again is not.
    pub(super) fn answering(&self, tag: Tag) -> Option<RankId> {
        let task = self.tasks.get(&tag)?;
        let failed = matches!(task.outcomes.last(), Some(Err(_)));
        task.ended_in.filter(|_| !(failed && task.plan.on_error() == OnTaskError::Retry))
    }

    pub(super) fn was_refused(&self, class: usize) -> bool {
        self.refused.contains(&class) || self.early_deaths.contains_key(&class)
    }

    /// An item of a stream has come to its reader.
    pub(super) fn item_arrives(&mut self, tag: Tag, number: u64, value: u64) -> FoundViolation {
        let task = self.tasks.get_mut(&tag)?;
        let finding = task.stream.arrives(&task.plan, number, value);
        let finding = finding.or_else(|| task.ended.then(|| format!("item {number} comes after the end")));
        finding.map(|text| format!("task {}: {text}", tag.0))
    }

    /// The reader of a stream takes an item.
    pub(super) fn item_read(&mut self, tag: Tag, number: u64, value: u64) -> FoundViolation {
        let task = self.tasks.get_mut(&tag)?;
        let finding = task.stream.reads(&task.plan, number, value);
        finding.map(|text| format!("task {}: {text}", tag.0))
    }

    /// The reader of a stream sees its end.
    pub(super) fn end_read(&self, tag: Tag, end: &Result<CallValue, CallError>) -> FoundViolation {
        let task = self.tasks.get(&tag)?;
        let items = task.plan.items().unwrap_or(0);
        let is_right = task.ended && task.stream.is_read() && (end.is_err() || task.stream.has_all(items));
        (!is_right).then(|| format!("task {} of {items} items ends early: {:?}", tag.0, task.stream))
    }

    /// A task has ended after its reference was dropped.
    pub(super) fn dropped(&mut self, tag: Tag) -> FoundViolation {
        let task = self.tasks.get_mut(&tag)?;
        let again = std::mem::replace(&mut task.ended, true);
        again.then(|| format!("task {}, whose reference was dropped, ended twice", tag.0))
    }

    /// A task has ended at its caller.
    pub(super) fn finished(
        &mut self,
        tag: Tag,
        result: &Result<Bytes, CallError>,
        need_failed: bool,
    ) -> FoundViolation {
        let task = self.tasks.get(&tag)?;
        let happened = match result {
            Ok(value) => task.outcomes.contains(result) && task.is_value(value),
            Err(CallError::Failed(_) | CallError::Panicked(_) | CallError::StoreFull(_)) => {
                task.outcomes.contains(result)
            }
            Err(CallError::Cancelled | CallError::TimedOut(_)) => task.cancelled,
            Err(CallError::Dependency(_)) => need_failed,
            Err(CallError::Lost { ends, .. }) => self.is_lost(task, *ends),
            Err(CallError::NoRunner(_)) => {
                let class = task.plan.class;
                let deaths = self.early_deaths.get(&class).copied().unwrap_or(0);
                self.refused.contains(&class) || deaths >= EARLY_DEATHS
            }
            Err(CallError::Deadlock(_)) => task.plan.has_gpus(),
            Err(
                CallError::Restarted
                | CallError::Ended(_)
                | CallError::Full
                | CallError::ObjectLost(_)
                | CallError::Refused(_),
            ) => false,
        };
        let (again, plan) = (task.ended, task.plan);
        if let Some(task) = self.tasks.get_mut(&tag) {
            task.ended = true;
        }
        let name = format!("task {}", tag.0);
        if again {
            Some(format!("{name} ended twice"))
        } else if happened {
            None
        } else if let (Ok(_), Some(items)) = (result, plan.items()) {
            Some(format!("{name} of {items} items ended early, or with a value"))
        } else if let Ok(value) = result {
            let (got, expected) = (decode(value).0.0, plan.value());
            Some(format!("{name} has the value {got} and not {expected}"))
        } else {
            Some(format!("{name} ended as {result:?}, whose cause did not happen"))
        }
    }

    /// Whether so many processes have died that had got a task, and its retries were used up.
    fn is_lost(&self, task: &TaskRecord, ends: u32) -> bool {
        let deaths = task.sent.iter().filter(|member| self.died.contains(member)).count() as u32;
        let most = task.plan.retries() + 1;
        let all_used = task.plan.on_error() == OnTaskError::Retry || ends == most;
        (1..=deaths.min(most)).contains(&ends) && all_used
    }
}
