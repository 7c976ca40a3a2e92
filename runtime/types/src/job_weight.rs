//! How many bytes a job specification or a record takes, about: what limits are held against.

use crate::{
    ApplicationWork, Cause, CheckpointResult, Command, Enforcement, Entrypoint, JobEvent, JobEventKind,
    JobLabels, JobRecord, JobSpec, ModelDescription, NotifyRequest, Outcome, OutputFiles, RankRecord,
    RunnerWork, TrainingSpec,
};

/// What the head needs for a member of an array, or for a plain job: measured at 200 bytes while it waits and
/// 450 after it was asked for.
const MEMBER: u64 = 512;

/// What a text, a list or a map takes besides its content.
const ITEM: usize = 16;

/// What a dependency takes: in the job, in the index of those who wait, and in the journal.
const DEPENDENCY: usize = 128;

impl JobSpec {
    /// About how many bytes it takes in memory and in the journal. All texts, lists and maps count.
    #[must_use]
    pub fn weight(&self) -> usize {
        // A new field does not compile until it is decided here what it weighs.
        let JobSpec {
            name,
            entrypoint,
            demand: _,
            launch: _,
            workdir,
            environment,
            array,
            depends_on,
            begin: _,
            priority: _,
            time_limit: _,
            retry: _,
            requeue_on_timeout: _,
            stall: _,
            stop: _,
            group,
            model,
            iterations: _,
            checkpoint,
            held: _,
            slurm_environment: _,
            preemptible: _,
            code,
            output,
            partition,
            entries,
            notify,
            input: _,
            qos: _,
            project,
            sweep,
            interactive: _,
        } = self;
        let folder = code.as_ref().map(|code| &code.folder);
        let optional = [group.as_ref(), checkpoint.as_ref(), folder, partition.as_ref(), project.as_ref()];
        let texts = [Some(name), Some(workdir)].into_iter().chain(optional);
        let ranges = array.as_ref().map_or(0, |array| array.ranges.len());
        size_of::<JobSpec>()
            + texts.flatten().chain(output.paths()).map(|text| item(text)).sum::<usize>()
            + entrypoint.weight()
            + environment.iter().map(|(name, value)| item(name) + item(value)).sum::<usize>()
            + ranges * 2 * ITEM
            + entries.iter().map(|entry| item(entry) + size_of::<String>()).sum::<usize>()
            + notify.iter().map(NotifyRequest::weight).sum::<usize>()
            + sweep.as_ref().and_then(|sweep| sweep.metric.as_ref()).map_or(0, |name| item(name))
            + depends_on.len() * DEPENDENCY
            + model.as_ref().map_or(0, ModelDescription::weight)
    }
}

impl JobSpec {
    /// About how many bytes the head needs for it and its members, until it forgets them.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        self.weight() as u64 + self.members().saturating_mul(MEMBER)
    }
}

impl JobRecord {
    /// About how many bytes it takes in a message.
    #[must_use]
    pub fn weight(&self) -> usize {
        let texts = [&self.name, &self.user, &self.reason, &self.work, &self.workdir];
        let optional = [&self.group, &self.shell_command, &self.trained.model, &self.trained.precision];
        let folder = self.code.as_ref().map(|code| &code.folder);
        let JobLabels { partition, output, entry, checkpoint, sweep } = &self.labels;
        let metric = sweep.iter().filter_map(|sweep| sweep.metric.as_ref());
        let labels = partition.iter().chain(entry).chain(checkpoint).chain(output.paths()).chain(metric);
        let ranks = self.attempts.iter().flat_map(|attempt| &attempt.ranks);
        let metrics = self.progress.iter().flat_map(|progress| progress.metrics.keys());
        size_of::<JobRecord>()
            + texts
                .into_iter()
                .chain(optional.into_iter().flatten())
                .chain(folder)
                .chain(labels)
                .map(|text| item(text))
                .sum::<usize>()
            + ranks.map(RankRecord::weight).sum::<usize>()
            + metrics.map(|name| item(name)).sum::<usize>()
            + (self.attempts.len() * 4 + self.sharing_with.len() + self.trained.replicas.len()) * ITEM
    }

    /// The same record as lists show it: its latest attempt only, and no long texts.
    #[must_use]
    pub fn brief(mut self) -> JobRecord {
        let earlier = self.attempts.len().saturating_sub(1);
        self.attempts.drain(..earlier);
        for text in [&mut self.name, &mut self.reason, &mut self.work, &mut self.workdir] {
            shorten(text);
        }
        let TrainingSpec { model, precision, .. } = &mut self.trained;
        for text in [&mut self.group, &mut self.shell_command, model, precision] {
            text.iter_mut().for_each(shorten);
        }
        self.labels.brief();
        self
    }
}

impl NotifyRequest {
    fn weight(&self) -> usize {
        size_of::<NotifyRequest>() + self.channel.as_ref().map_or(0, |name| item(name))
    }
}

impl JobLabels {
    fn brief(&mut self) {
        // The metric of a sweep is a name, which the head bounds.
        let JobLabels { partition, output: OutputFiles { stdout, stderr }, entry, checkpoint, sweep: _ } =
            self;
        for text in [partition, stdout, stderr, entry, checkpoint] {
            text.iter_mut().for_each(shorten);
        }
    }
}

impl JobEvent {
    /// About how many bytes it takes in memory.
    #[must_use]
    pub fn weight(&self) -> usize {
        let cause = match &self.cause {
            Cause::User(name) | Cause::Node(name) => item(name),
            Cause::Plan(_) | Cause::Job(_) | Cause::Clock | Cause::Restart => 0,
        };
        size_of::<JobEvent>() + cause + self.kind.weight()
    }
}

impl JobEventKind {
    /// What it refers to.
    fn weight(&self) -> usize {
        match self {
            JobEventKind::Placed { nodes, devices, why, .. } => {
                let nodes: usize = nodes.iter().map(|node| item(node)).sum();
                let devices: usize = devices.iter().map(|device| item(&device.0)).sum();
                nodes + devices + item(why)
            }
            JobEventKind::PrivateUser { account: text, .. }
            | JobEventKind::NodeUnreachable { node: text, .. }
            | JobEventKind::AttemptLost { detail: text, .. }
            | JobEventKind::Allotted { why: text, .. }
            | JobEventKind::Updated(text)
            | JobEventKind::PlanDropped(text) => item(text),
            JobEventKind::Checkpoints { node, source, result, .. } => {
                let why = match result {
                    CheckpointResult::Carried(_) => 0,
                    CheckpointResult::Missing(why) => item(why),
                };
                item(node) + item(&source.node) + why
            }
            JobEventKind::RankEnded { outcome, .. } => outcome.weight(),
            JobEventKind::Shares { enforcement: Enforcement::Unenforced(text), .. } => item(text),
            JobEventKind::Submitted
            | JobEventKind::Held
            | JobEventKind::Released
            | JobEventKind::Started(_)
            | JobEventKind::Shares { enforcement: Enforcement::Enforced, .. }
            | JobEventKind::Stalled { .. }
            | JobEventKind::Idle { .. }
            | JobEventKind::SignalSent { .. }
            | JobEventKind::Stopping(..)
            | JobEventKind::Adopted(_)
            | JobEventKind::Requeued { .. }
            | JobEventKind::StaleReport(_)
            | JobEventKind::Ended { .. }
            | JobEventKind::Distrusted { .. } => 0,
        }
    }
}

impl Outcome {
    /// About how many bytes it takes in memory besides its own size.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.text().map_or(0, |text| item(text))
    }
}

impl RankRecord {
    fn weight(&self) -> usize {
        let devices = self.devices.iter().map(|device| item(&device.0)).sum::<usize>();
        size_of::<RankRecord>() + item(&self.node) + devices + OUTCOME
    }
}

/// The longest text in a list, in characters.
const LONGEST_IN_LIST: usize = 300;

/// What the sentences of an outcome and of the enforcement of limits may take.
const OUTCOME: usize = 400;

fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_IN_LIST) {
        text.truncate(end);
        text.push('…');
    }
}

impl Entrypoint {
    fn weight(&self) -> usize {
        match self {
            Entrypoint::Command(Command { argv, script }) => {
                argv.iter().chain(script).map(|text| item(text)).sum()
            }
            Entrypoint::Application(ApplicationWork { program, arguments, max_gpus: _ }) => {
                part_of_application(program, arguments)
            }
            Entrypoint::Runner(RunnerWork {
                application: _,
                program,
                role: _,
                arguments,
                node,
                ranks: _,
            }) => part_of_application(program, arguments) + node.as_deref().map_or(0, item),
        }
    }
}

impl ModelDescription {
    fn weight(&self) -> usize {
        let ModelDescription {
            name,
            family: _,
            batch_size: _,
            precision,
            parameters: _,
            flops_per_sample: _,
            activation_bytes: _,
            input_bytes: _,
            operators,
            iterations: _,
            epochs: _,
            samples: _,
            stages,
        } = self;
        let stage = |stage: &crate::PipelineStage| {
            4 * ITEM + stage.compute_seconds_on.keys().map(|gpu| item(gpu)).sum::<usize>()
        };
        size_of::<ModelDescription>()
            + [name, precision].into_iter().flatten().map(|text| item(text)).sum::<usize>()
            + operators.keys().map(|name| item(name)).sum::<usize>()
            + stages.iter().map(stage).sum::<usize>()
    }
}

fn part_of_application(program: &str, arguments: &[String]) -> usize {
    item(program) + arguments.iter().map(|text| item(text)).sum::<usize>()
}

const fn item(text: &str) -> usize {
    text.len() + ITEM
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, Dependency, DependencyKind, FeedKind, IndexRange, JobId, PipelineStage, RunnerRole};

    type Lengthening = Box<dyn Fn(&mut JobSpec, String)>;

    /// Whatever can be made long weighs at least its own length.
    #[test]
    fn everything_that_a_user_can_make_long_weighs() {
        let light = JobSpec::command(vec!["train".into()], "/".into());
        let long = "x".repeat(100_000);
        let model = |change: fn(&mut ModelDescription, String)| {
            move |spec: &mut JobSpec, text: String| {
                let mut model = ModelDescription::default();
                change(&mut model, text);
                spec.model = Some(model);
            }
        };
        let changes: Vec<Lengthening> = vec![
            Box::new(|spec, text| spec.name = text),
            Box::new(|spec, text| spec.workdir = text),
            Box::new(|spec, text| spec.group = Some(text)),
            Box::new(|spec, text| spec.checkpoint = Some(text)),
            Box::new(|spec, text| spec.entries = vec![text]),
            Box::new(|spec, text| spec.entries = vec![String::new(); text.len() / size_of::<String>()]),
            Box::new(|spec, text| spec.partition = Some(text)),
            Box::new(|spec, text| {
                spec.notify = vec![NotifyRequest { event: FeedKind::End, channel: Some(text) }];
            }),
            Box::new(|spec, text| spec.output.stdout = Some(text)),
            Box::new(|spec, text| spec.output.stderr = Some(text)),
            Box::new(|spec, text| drop(spec.environment.insert(text, String::new()))),
            Box::new(|spec, text| drop(spec.environment.insert("A".into(), text))),
            Box::new(|spec, text| spec.entrypoint = JobSpec::command(vec![text], "/".into()).entrypoint),
            Box::new(|spec, text| {
                spec.entrypoint =
                    Entrypoint::Command(Command { argv: vec!["./a.sh".into()], script: Some(text) });
            }),
            Box::new(|spec, text| {
                spec.entrypoint = Entrypoint::Application(ApplicationWork {
                    program: text,
                    arguments: Vec::new(),
                    max_gpus: None,
                });
            }),
            Box::new(|spec, text| {
                spec.entrypoint = Entrypoint::Runner(RunnerWork {
                    application: JobId::new(1).attempt(1),
                    program: String::new(),
                    role: RunnerRole::Actor,
                    arguments: vec![text],
                    node: None,
                    ranks: 1,
                });
            }),
            Box::new(|spec, text| {
                spec.entrypoint = Entrypoint::Runner(RunnerWork {
                    application: JobId::new(1).attempt(1),
                    program: String::new(),
                    role: RunnerRole::Store,
                    arguments: Vec::new(),
                    node: Some(text),
                    ranks: 1,
                });
            }),
            Box::new(|spec, text| {
                let after = Dependency { job: JobId::new(1), when: DependencyKind::AfterAny };
                spec.depends_on = vec![after; text.len() / size_of::<Dependency>()];
            }),
            Box::new(|spec, text| {
                let range = IndexRange { first: 0, last: 0, step: 1 };
                let ranges = vec![range; text.len() / size_of::<IndexRange>()];
                spec.array = Some(Array { ranges, at_once: None });
            }),
            Box::new(model(|model, text| model.name = Some(text))),
            Box::new(model(|model, text| model.precision = Some(text))),
            Box::new(model(|model, text| model.operators = [(text, 1)].into())),
            Box::new(model(|model, text| {
                let stage = PipelineStage {
                    replicas: 1,
                    compute_seconds: 1.0,
                    compute_seconds_on: [(text, 1.0)].into(),
                    activation_bytes: 0.0,
                    gradient_bytes: 0.0,
                };
                model.stages = vec![stage];
            })),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut heavy = light.clone();
            change(&mut heavy, long.clone());
            let more = heavy.weight() - light.weight() + 100;
            assert!(more >= long.len(), "change {number} weighs {more} more");
        }
    }
}
