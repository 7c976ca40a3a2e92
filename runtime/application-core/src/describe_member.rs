//! Describes a process: the calls and tasks that it has made, and the tasks that it runs.

use std::collections::BTreeMap;

use crate::call_queue::CallQueue;
use crate::descriptions::{CalledTasks, MemberDescription, MemberTopic, TaskDescription, TaskPlace};
use crate::ids::{ActorId, CallNumber};
use crate::limits::MAX_DESCRIBED_TASKS;
use crate::queued_task::{Place, QueuedTask};
use crate::task_calls::TaskCalls;
use crate::task_gate::TaskGate;

/// What a process knows.
pub(crate) struct MemberParts<'a> {
    pub(crate) queues: &'a BTreeMap<ActorId, CallQueue>,
    pub(crate) task_calls: &'a TaskCalls,
    pub(crate) task_gate: &'a TaskGate,
}

/// The description of what a process knows, as far as it is asked for.
pub(crate) fn describe_member(topic: MemberTopic, parts: &MemberParts<'_>) -> MemberDescription {
    match topic {
        MemberTopic::Calls => {
            let calls = parts.queues.iter().map(|(actor, queue)| (*actor, queue.len() as u32));
            let calls = calls.filter(|(_, count)| *count > 0).collect();
            MemberDescription { calls, ..MemberDescription::default() }
        }
        MemberTopic::Tasks => describe_tasks(parts.task_calls, parts.task_gate),
    }
}

/// Running tasks come before others, and those before ended ones, where not all can be told.
fn describe_tasks(calls: &TaskCalls, gate: &TaskGate) -> MemberDescription {
    let mut room = MAX_DESCRIBED_TASKS;
    let mut description = MemberDescription::default();
    description.started.extend(gate.started().take(room));
    for (class, queue) in &calls.classes {
        let mut tasks = Vec::new();
        for is_sent in [true, false] {
            let such = queue.tasks().filter(|(_, task)| (task.place != Place::Waiting) == is_sent);
            tasks.extend(such.take(room - tasks.len()).map(|(call, task)| describe_task(call, task)));
        }
        tasks.sort_unstable_by_key(|task| task.call);
        room -= tasks.len();
        description.omitted += (queue.tasks().len() - tasks.len()) as u64;
        if !tasks.is_empty() {
            description.called.push(CalledTasks { class: class.clone(), tasks });
        }
    }
    for (call, depth, spec) in calls.held_back().take(room) {
        let task = TaskDescription { call, function: spec.function, depth, place: TaskPlace::Dependent };
        room -= 1;
        match description.called.iter_mut().find(|called| called.class == spec.class) {
            Some(called) => called.tasks.push(task),
            None => description.called.push(CalledTasks { class: spec.class.clone(), tasks: vec![task] }),
        }
    }
    description.ended.extend(calls.ended.newest().take(room).cloned());
    description.omitted += calls.ended.count() - description.ended.len() as u64;
    description
}

const fn describe_task(call: CallNumber, task: &QueuedTask) -> TaskDescription {
    let place = match task.place {
        Place::Waiting => TaskPlace::Waiting,
        Place::InFlight { at, .. } => TaskPlace::Sent { runner: at },
        Place::Parked { at } => TaskPlace::Parked { runner: at },
    };
    TaskDescription { call, function: task.function, depth: task.depth, place }
}
