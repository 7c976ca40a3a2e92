//! What users see of the tasks of the application.
//!
//! Callers know where their tasks are, and runners which of them have started: the two are joined here.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_application_core::{
    ApplicationDescription, CallNumber, ClassDescription, EndedTaskDescription, MemberDescription,
    RunnerCondition, RunnerDescription, TaskClass, TaskDescription, TaskOutcome, TaskPlace,
};
use cohabit_types::{
    Demand, MOST_LISTED, RankId, TaskClassRecord, TaskListing, TaskRecord, TaskRunnerRecord, TaskRunnerStage,
    TaskStatus, shortened,
};

use super::survey::MemberAnswers;
use crate::options::RunnerClaims;
use crate::registry::TaskRegistry;

/// Longest name of a function, in bytes.
const LONGEST_NAME: usize = 64;

/// Longest reason of a runner, in bytes.
const LONGEST_REASON: usize = 400;

/// Why tasks wait of whose class a process lives.
const ALL_BUSY: &str = "all processes for them are busy";

/// The listing of what the core and the processes know.
pub(super) fn listing(application: ApplicationDescription, found: MemberAnswers) -> TaskListing {
    let mut collected = CollectedTasks::new(application.classes);
    for (member, description) in found.answers {
        collected.add(member, description);
    }
    collected.listing(found.silent)
}

/// What processes have said of tasks. No list is longer than a listing.
struct CollectedTasks {
    classes: Vec<TaskClassRecord>,
    numbers: BTreeMap<TaskClass, u32>,
    started: BTreeSet<(RankId, CallNumber)>,
    /// Those that a runner has.
    sent: Vec<TaskRecord>,
    waiting: Vec<TaskRecord>,
    ended: Vec<TaskRecord>,
    omitted: u64,
}

impl CollectedTasks {
    fn new(classes: Vec<ClassDescription>) -> CollectedTasks {
        let numbers = classes.iter().zip(0..).map(|(class, number)| (class.class.clone(), number)).collect();
        CollectedTasks {
            classes: classes.into_iter().map(class_record).collect(),
            numbers,
            started: BTreeSet::new(),
            sent: Vec::new(),
            waiting: Vec::new(),
            ended: Vec::new(),
            omitted: 0,
        }
    }

    fn add(&mut self, caller: RankId, description: MemberDescription) {
        self.omitted += description.omitted;
        let room = MOST_LISTED.saturating_sub(self.started.len());
        self.started.extend(description.started.into_iter().take(room).map(|it| (it.caller, it.call)));
        for called in description.called {
            let class = self.number_of(called.class);
            for task in called.tasks {
                let record = unended_record(caller, class, task);
                let list = if record.runner.is_some() { &mut self.sent } else { &mut self.waiting };
                self.omitted += push_bounded(list, record);
            }
        }
        for task in description.ended {
            self.omitted += push_bounded(&mut self.ended, ended_record(caller, task));
        }
    }

    /// A class whose runners have all ended may still have tasks.
    fn number_of(&mut self, class: TaskClass) -> u32 {
        *self.numbers.entry(class).or_insert_with_key(|class| {
            let (class, runners) = (class.clone(), Vec::new());
            self.classes.push(class_record(ClassDescription { class, wanted: 0, runners }));
            self.classes.len() as u32 - 1
        })
    }

    fn listing(self, silent: Vec<RankId>) -> TaskListing {
        let CollectedTasks { mut classes, started, mut sent, waiting, ended, mut omitted, .. } = self;
        for task in sent.iter_mut().filter(|task| task.state == TaskStatus::Sent) {
            if started.contains(&(task.caller, CallNumber(task.call))) {
                task.state = TaskStatus::Running;
            }
        }
        sent.sort_by_key(|task| task.state);
        let waiting_classes: BTreeSet<u32> = waiting.iter().filter_map(|task| task.class).collect();
        for (class, number) in classes.iter_mut().zip(0..) {
            if waiting_classes.contains(&number) {
                class.why = reason(class);
            }
        }
        let mut tasks: Vec<TaskRecord> = sent.into_iter().chain(waiting).chain(ended).collect();
        omitted += tasks.len().saturating_sub(MOST_LISTED) as u64;
        tasks.truncate(MOST_LISTED);
        TaskListing { classes, tasks, omitted, silent }
    }
}

/// Returns how many were left out.
fn push_bounded(list: &mut Vec<TaskRecord>, record: TaskRecord) -> u64 {
    if list.len() >= MOST_LISTED {
        return 1;
    }
    list.push(record);
    0
}

fn class_record(class: ClassDescription) -> TaskClassRecord {
    let claims = RunnerClaims::decode(&class.class.claims);
    TaskClassRecord {
        // All processes run one program, so they understand each other's claims.
        demand: claims.map_or_else(|_| Demand::default(), |claims| claims.demand(class.class.gpus)),
        wanted: class.wanted,
        runners: class.runners.into_iter().map(runner_record).collect(),
        why: String::new(),
    }
}

fn runner_record(
    RunnerDescription { runner: _, job, node: _, state }: RunnerDescription,
) -> TaskRunnerRecord {
    let (state, why) = match state {
        RunnerCondition::Pending { why } => (TaskRunnerStage::Pending, shortened(&why, LONGEST_REASON)),
        RunnerCondition::Live { member: _ } => (TaskRunnerStage::Live, String::new()),
        RunnerCondition::Leaving => (TaskRunnerStage::Leaving, String::new()),
    };
    TaskRunnerRecord { job, state, why }
}

/// Why tasks of a class wait.
fn reason(class: &TaskClassRecord) -> String {
    if class.runners.iter().any(|runner| runner.state == TaskRunnerStage::Live) {
        return ALL_BUSY.to_owned();
    }
    match class.runners.iter().find(|runner| runner.state == TaskRunnerStage::Pending) {
        Some(TaskRunnerRecord { job: Some(job), why, .. }) => format!("job {job} for them waits: {why}"),
        Some(TaskRunnerRecord { job: None, why, .. }) => format!("a process for them waits: {why}"),
        None => "there is no process for them yet".to_owned(),
    }
}

fn unended_record(caller: RankId, class: u32, task: TaskDescription) -> TaskRecord {
    let (state, runner) = match task.place {
        TaskPlace::Waiting | TaskPlace::Dependent => (TaskStatus::Waiting, None),
        TaskPlace::Sent { runner } => (TaskStatus::Sent, Some(runner)),
        TaskPlace::Parked { runner } => (TaskStatus::Parked, Some(runner)),
    };
    TaskRecord {
        name: name_of(task.function),
        caller,
        call: task.call.0,
        depth: task.depth,
        class: Some(class),
        state,
        why: match task.place {
            TaskPlace::Dependent => "the value of an argument is not known yet".to_owned(),
            TaskPlace::Waiting | TaskPlace::Sent { .. } | TaskPlace::Parked { .. } => String::new(),
        },
        runner,
        took: None,
    }
}

fn ended_record(caller: RankId, task: EndedTaskDescription) -> TaskRecord {
    let state = match task.outcome {
        TaskOutcome::Returned => TaskStatus::Returned,
        TaskOutcome::Failed => TaskStatus::Failed,
        TaskOutcome::Panicked => TaskStatus::Panicked,
        TaskOutcome::Lost => TaskStatus::Lost,
        TaskOutcome::NoRunner => TaskStatus::NoRunner,
        TaskOutcome::Cancelled => TaskStatus::Cancelled,
    };
    TaskRecord {
        name: name_of(task.function),
        caller,
        call: task.call.0,
        depth: task.depth,
        class: None,
        state,
        why: task.text,
        runner: task.runner,
        took: task.took,
    }
}

fn name_of(function: u32) -> String {
    let name = TaskRegistry::get().entry(function).map_or("task", |entry| entry.origin.name);
    shortened(name, LONGEST_NAME)
}

#[cfg(test)]
mod tests {
    use cohabit_application_core::{CalledTasks, StartedTaskDescription, TaskRunnerNumber};
    use cohabit_types::{GpuRequest, JobId, Share, Span};

    use super::*;
    use crate::options::{Claims, TaskOptions};

    fn member(job: u64) -> RankId {
        JobId::new(job).attempt(1).rank(0)
    }

    fn class(gpus: u32) -> TaskClass {
        let claims = Claims { gpus, cpus: 2, ..Claims::NONE };
        let on_error = cohabit_application_core::OnTaskError::Fail;
        TaskOptions { claims, retries: 0, on_error }.class().unwrap()
    }

    fn runner(job: Option<u64>, state: RunnerCondition) -> RunnerDescription {
        RunnerDescription { runner: TaskRunnerNumber(1), job: job.map(JobId::new), node: None, state }
    }

    fn pending(why: &str) -> RunnerCondition {
        RunnerCondition::Pending { why: why.to_owned() }
    }

    fn task(call: u64, place: TaskPlace) -> TaskDescription {
        TaskDescription { call: CallNumber(call), function: 1, depth: 2, place }
    }

    fn ended(call: u64) -> EndedTaskDescription {
        EndedTaskDescription {
            call: CallNumber(call),
            function: 1,
            depth: 0,
            outcome: TaskOutcome::Failed,
            text: "no such model".into(),
            runner: Some(member(5)),
            took: Some(Span::from_secs(1)),
        }
    }

    fn listed(classes: Vec<ClassDescription>, answers: Vec<(RankId, MemberDescription)>) -> TaskListing {
        let (actors, object_holders) = (Vec::new(), BTreeMap::new());
        let application =
            ApplicationDescription { actors, classes, object_holders, ..ApplicationDescription::default() };
        listing(application, MemberAnswers { answers, silent: vec![member(9)] })
    }

    #[test]
    fn what_callers_and_runners_say_is_joined() {
        let (main, worker) = (member(2), member(5));
        let tasks = vec![
            task(1, TaskPlace::Sent { runner: worker }),
            task(2, TaskPlace::Sent { runner: worker }),
            task(3, TaskPlace::Parked { runner: worker }),
            task(4, TaskPlace::Waiting),
        ];
        let called = vec![CalledTasks { class: class(0), tasks }];
        let of_main =
            MemberDescription { called, ended: vec![ended(7)], omitted: 3, ..MemberDescription::default() };
        let started = [2, 3].map(|call| StartedTaskDescription { caller: main, call: CallNumber(call) });
        let of_worker = MemberDescription { started: started.to_vec(), ..MemberDescription::default() };
        let live = RunnerCondition::Live { member: worker };
        let runners = vec![runner(Some(5), live), runner(None, pending("it is being submitted"))];
        let classes = vec![ClassDescription { class: class(0), wanted: 4, runners }];
        let all = listed(classes, vec![(main, of_main), (worker, of_worker)]);

        let states: Vec<_> = all.tasks.iter().map(|task| (task.call, task.state)).collect();
        let expected = [
            (2, TaskStatus::Running),
            (3, TaskStatus::Parked),
            (1, TaskStatus::Sent),
            (4, TaskStatus::Waiting),
            (7, TaskStatus::Failed),
        ];
        assert_eq!(states, expected);
        assert_eq!((all.omitted, all.silent), (3, vec![member(9)]));
        let [class] = all.classes.as_slice() else { panic!("{:?}", all.classes) };
        assert_eq!((class.demand.cpus, class.wanted, class.why.as_str()), (2, 4, ALL_BUSY));
        assert_eq!(class.runners[0].state, TaskRunnerStage::Live);
        assert_eq!(class.runners[1].why, "it is being submitted");
        let failed = &all.tasks[4];
        assert_eq!((failed.why.as_str(), failed.runner, failed.class), ("no such model", Some(worker), None));
    }

    #[test]
    fn tasks_that_wait_are_told_with_what_the_head_says() {
        let waiting = |class| CalledTasks { class, tasks: vec![task(1, TaskPlace::Waiting)] };
        let called = vec![waiting(class(0)), waiting(class(500)), waiting(class(2_000))];
        let of_main = MemberDescription { called, ..MemberDescription::default() };
        let with = |class, runners| ClassDescription { class, wanted: 1, runners };
        let classes = vec![
            with(class(0), vec![runner(Some(6), pending("no core is free"))]),
            with(class(500), vec![runner(None, pending("needs 0.5 GPUs"))]),
            with(class(1_000), vec![]),
        ];
        let all = listed(classes, vec![(member(2), of_main)]);
        let reasons: Vec<&str> = all.classes.iter().map(|class| class.why.as_str()).collect();
        let expected = [
            "job 6 for them waits: no core is free",
            "a process for them waits: needs 0.5 GPUs",
            "",
            "there is no process for them yet",
        ];
        assert_eq!(reasons, expected);
        assert_eq!(all.classes[3].demand.gpus, GpuRequest::Whole(2));
        assert_eq!(all.classes[1].demand.gpus, GpuRequest::Part(Share(500)));
        let numbers: Vec<_> = all.tasks.iter().map(|task| task.class).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(3)]);
    }

    /// With the longest texts it still fits the answer that the head takes.
    #[test]
    fn a_listing_is_bounded_and_what_runs_comes_first() {
        let tasks = |from: u64, place| (from..from + 8_000).map(|call| task(call, place)).collect();
        let sent = CalledTasks { class: class(0), tasks: tasks(1, TaskPlace::Sent { runner: member(5) }) };
        let waiting = CalledTasks { class: class(0), tasks: tasks(10_000, TaskPlace::Waiting) };
        let long = EndedTaskDescription { text: "x".repeat(200), ..ended(1) };
        let some = |called| MemberDescription {
            called: vec![called],
            ended: vec![long.clone(); 1_000],
            ..MemberDescription::default()
        };
        let all = listed(vec![], vec![(member(2), some(waiting)), (member(3), some(sent))]);
        assert_eq!((all.tasks.len(), all.omitted), (MOST_LISTED, 8_000));
        assert!(all.tasks[..8_000].iter().all(|task| task.state == TaskStatus::Sent));
        let many = (0..20).map(|job| {
            let ended = vec![long.clone(); 1_000];
            (member(job), MemberDescription { ended, ..MemberDescription::default() })
        });
        let answer = cohabit_types::ApplicationAnswer::Tasks(listed(vec![], many.collect()));
        assert!(cohabit_wire::codec::encode(&answer).unwrap().len() < 4 << 20);
    }
}
