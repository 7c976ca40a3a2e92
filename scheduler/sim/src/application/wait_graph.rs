//! Who waits for whom, seen from outside: whether a runner that keeps its GPUs could go on.

use std::collections::BTreeSet;

use cohabit_application_core::{CallNumber, TaskWait, Ticket};
use cohabit_types::RankId;

use super::head::RunnerPurpose;
use super::payload::Tag;
use super::process::{Process, ProcessCode};
use super::task_process::{SimulatedTask, TaskState};
use super::world::ApplicationWorld;

/// Longer chains of tasks are cut off.
const MOST_LINKS: usize = 20;

/// A task that has started.
type RunningNode = (RankId, Ticket);

impl ApplicationWorld {
    /// What a task waits for.
    pub(super) fn waits_for(&self, member: RankId, ticket: Ticket) -> TaskWait {
        let Some(process) = self.processes.get(&member) else { return TaskWait::Others };
        let calls_tasks = |call: &CallNumber| process.task_calls.contains_key(call);
        match process.tasks.get(&ticket) {
            Some(task) if task.open.iter().all(calls_tasks) => TaskWait::Tasks,
            Some(_) | None => TaskWait::Others,
        }
    }

    /// What a task waits for that has not ended, down to one that waits for nothing of its own.
    pub(super) fn chain_below(&self, tag: Tag) -> String {
        let (mut tag, mut chain) = (tag, String::new());
        for _ in 0..MOST_LINKS {
            let class = self.task_ledger.plan(tag).map_or(0, |plan| plan.class);
            let runs = self.processes.iter().find_map(|(member, process)| {
                let (ticket, task) = process.tasks.iter().find(|(_, task)| task.tag == tag)?;
                Some((*member, *ticket, task.state, task.open.clone(), process))
            });
            let Some((member, ticket, state, open, process)) = runs else {
                chain += &format!(", {} of class {class} runs nowhere", tag.0);
                return chain;
            };
            chain += &format!(", {} of class {class} runs in {member} as {ticket}, {state:?}", tag.0);
            let Some(below) = open.iter().find_map(|call| process.task_calls.get(call)) else {
                chain += &format!(" for {open:?}");
                return chain;
            };
            tag = below.tag;
        }
        chain
    }

    /// Whether a running task, or one below it, has called one that needs the value of a reference.
    pub(super) fn has_needs_below(&self, tag: Tag) -> bool {
        self.processes.values().any(|process| {
            let running = process.tasks.values().filter(|task| task.tag == tag);
            let mut open =
                running.flat_map(|task| &task.open).filter_map(|call| process.task_calls.get(call));
            open.any(|open| !open.needs.is_empty() || self.has_needs_below(open.tag))
        })
    }

    /// Why the task of a runner that is told of a deadlock could go on.
    pub(super) fn find_progress(&self, runner: RankId) -> Option<String> {
        // Between the question and the word, others may have ended something.
        let is_undisturbed = self.asked_at > self.disturbed_at;
        if !self.processes.contains_key(&runner) || !is_undisturbed {
            return None;
        }
        let mut stuck: BTreeSet<RunningNode> = self.waiting_tasks().collect();
        loop {
            let goes_on: Vec<RunningNode> =
                stuck.iter().copied().filter(|it| self.goes_on(*it, &stuck)).collect();
            if goes_on.is_empty() {
                break;
            }
            goes_on.iter().for_each(|it| _ = stuck.remove(it));
        }
        let is_stuck = stuck.iter().any(|(member, _)| *member == runner);
        (!is_stuck).then(|| format!("{runner} is told of a deadlock and could go on"))
    }

    fn waiting_tasks(&self) -> impl Iterator<Item = RunningNode> {
        let processes = self.processes.iter().filter(|(member, process)| {
            process.code == ProcessCode::Tasks && !self.was_written_off(**member)
        });
        let tasks = processes.flat_map(|(member, process)| {
            process.tasks.iter().map(move |(ticket, task)| ((*member, *ticket), task))
        });
        let waits = |(node, task): &(RunningNode, &SimulatedTask)| {
            let only_tasks = self.waits_for(node.0, node.1) == TaskWait::Tasks && !task.is_paused;
            task.state == TaskState::Waiting && !task.interrupted && only_tasks
        };
        tasks.filter(waits).map(|(node, _)| node)
    }

    /// Whether a call of a waiting task could end although these tasks do not.
    fn goes_on(&self, (member, ticket): RunningNode, stuck: &BTreeSet<RunningNode>) -> bool {
        let process = &self.processes[&member];
        let open = process.tasks[&ticket].open.iter().filter_map(|call| process.task_calls.get(call));
        open.map(|open| open.tag).any(|tag| self.could_end(tag, stuck))
    }

    fn could_end(&self, tag: Tag, stuck: &BTreeSet<RunningNode>) -> bool {
        let mut runs = self.processes.iter().flat_map(|(member, process)| {
            let found = process.tasks.iter().filter(|(_, task)| task.tag == tag);
            found.map(|(ticket, _)| (*member, *ticket))
        });
        if let Some(node) = runs.next() {
            return !stuck.contains(&node);
        }
        let answers = self.task_ledger.answering(tag).is_some_and(|it| self.processes.contains_key(&it));
        let class = self.task_ledger.plan(tag).map_or(0, |plan| plan.class);
        answers || self.could_run(class, stuck)
    }

    /// Whether a runner of the class is free some time, or there is room for another one.
    fn could_run(&self, class: usize, stuck: &BTreeSet<RunningNode>) -> bool {
        let gpus = self.task_classes[class].gpus.0;
        let of_class =
            |member: &RankId| self.head.jobs[&member.job()].request.purpose == RunnerPurpose::Tasks(class);
        let keeps = |member: &RankId| stuck.iter().any(|(it, _)| it == member);
        let serves = |(member, it): &(&RankId, &Process)| {
            it.serves && !it.was_told_to_end && !self.was_written_off(**member)
        };
        let serving = self.processes.iter().filter(serves);
        let is_free = serving.map(|(member, _)| member).any(|member| of_class(member) && !keeps(member));
        let holders: BTreeSet<RankId> = stuck.iter().map(|(member, _)| *member).collect();
        let held: u32 = holders.iter().map(|it| self.head.jobs[&it.job()].request.gpus.0).sum();
        let has_room = self.gpu_limit().is_none_or(|limit| held + gpus <= limit.0);
        gpus == 0 || is_free || (has_room && !self.task_ledger.was_refused(class))
    }
}
