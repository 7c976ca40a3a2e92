//! `policy train`: the agents imitate the teacher, then learn from episodes of their own; those that are best
//! on the jobs for validation are stored (section 8 of the specification of MAIFS).

use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, output};
use cohabit_predict::maifs::{
    AgentsCard, AgentsTraining, FeatureScales, Learner, LearnerError, LearnerSettings, NetworkVariant,
    StoredAgents,
};
use cohabit_sim::maifs::{Agents, JointTransition, LEVELS};
use cohabit_sim::{Evaluation, EvaluationError, JobResult, Observer, evaluate, evaluate_agents};

use super::arguments::PolicyTrainArguments;
use super::card;
use super::episodes::{EpisodePurpose, Episodes};
use super::training_agents::{RewardedAgents, TeacherWatch};
use super::validation::{BestAgents, ValidationFigures, ValidationSet, baseline_of};
use crate::output_file::check_directory;
use crate::simulate::check_workload;

/// The number of validations while the agents learn.
const VALIDATIONS: u32 = 8;

pub(super) fn train(arguments: &PolicyTrainArguments) -> Result<(), CommandError> {
    check_workload(&arguments.workload)?;
    check_directory("--out", &arguments.out)?;
    let episodes = Episodes::read(arguments)?;
    episodes.unused_flags()?.iter().for_each(|warning| output::print_message(warning));
    episodes.remarks().iter().for_each(|remark| output::print_message(remark));
    let (best, updates) = train_agents(arguments, &episodes)?;
    let training = AgentsTraining {
        clusters: vec![arguments.workload.cluster.written.clone()],
        workloads: vec![arguments.workload.trace.to_string()],
        sensitivities: episodes.sensitivities(),
        window: cohabit_sim::maifs::WINDOW,
        taught_episodes: u64::from(arguments.taught),
        episodes: u64::from(best.after),
        updates,
    };
    let command = cohabit_console::current_command_line();
    let stored = StoredAgents::new(best.trained, command, training, best.figures.by_name());
    let card = stored.card.clone();
    stored.save(&arguments.out).map_err(|error| card::unusable(&error))?;
    print_result(arguments, &card)
}

fn print_result(arguments: &PolicyTrainArguments, card: &AgentsCard) -> Result<(), CommandError> {
    match arguments.display.output {
        OutputFormat::Json => output::print_document(card),
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&card::text(card)),
        OutputFormat::Quiet => output::print_text(&arguments.out.display().to_string()),
    }
}

/// The best agents, and the number of updates of the whole training.
fn train_agents(
    arguments: &PolicyTrainArguments,
    episodes: &Episodes<'_>,
) -> Result<(BestAgents, u64), CommandError> {
    let variant = NetworkVariant {
        levels: if arguments.fixed_shares { 1 } else { LEVELS },
        attention: !arguments.no_attention,
        coordination: arguments.coordination,
    };
    let report = |text: &str| {
        if arguments.show_progress {
            output::print_message(text);
        }
    };
    let taught = teach(episodes, arguments.taught, variant)?;
    let observations: Vec<_> = taught.iter().map(|it| it.observation.clone()).collect();
    report(&format!("the teacher took {} decisions in {} episodes", taught.len(), arguments.taught));
    let settings = LearnerSettings::new(variant, arguments.seed);
    let scales = match (FeatureScales::fit(&observations), arguments.no_interference_features) {
        (scales, true) => scales.without_interference(),
        (scales, false) => scales,
    };
    let mut learner = Learner::new(settings, scales).map_err(failed)?;
    for epoch in 1..=arguments.imitation_epochs {
        let loss = learner.imitate(&taught).map_err(failed)?;
        report(&format!("imitation: epoch {epoch} of {}, loss {loss:.4}", arguments.imitation_epochs));
    }
    drop((taught, observations));

    let validation = ValidationSet::draw(episodes, arguments.validation)?;
    let measure = |learner: &Learner, after: u32| -> Result<BestAgents, CommandError> {
        let figures = validation.measure(&learner.agents())?;
        Ok(BestAgents { trained: learner.trained().map_err(failed)?, figures, after })
    };
    let mut best = measure(&learner, 0)?;
    report(&episodes_line(0, arguments.episodes, None, &best.figures));
    let every = arguments.episodes.div_ceil(VALIDATIONS).max(1);
    for number in 0..arguments.episodes {
        learner.set_progress(f64::from(number) / f64::from(arguments.episodes));
        let loss = learn_episode(&mut learner, episodes.draw(EpisodePurpose::Learning, number)?)?;
        let ended = number + 1;
        if ended % every == 0 || ended == arguments.episodes {
            let now = measure(&learner, ended)?;
            report(&episodes_line(ended, arguments.episodes, loss, &now.figures));
            if now.figures.ratio < best.figures.ratio {
                best = now;
            }
        }
    }
    Ok((best, learner.updates()))
}

fn episodes_line(ended: u32, of: u32, loss: Option<f64>, figures: &ValidationFigures) -> String {
    let loss = loss.map_or_else(String::new, |loss| format!("loss {loss:.4}, "));
    let percent = figures.ratio * 100.0;
    format!("episode {ended} of {of}: {loss}mean JCT {percent:.1}% of the teacher's on validation")
}

/// What the teacher does in its episodes.
fn teach(
    episodes: &Episodes<'_>,
    count: u32,
    variant: NetworkVariant,
) -> Result<Vec<JointTransition>, CommandError> {
    let mut taught = Vec::new();
    for number in 0..count {
        let (agents, seen) = TeacherWatch::new(variant);
        run_agents(episodes.draw(EpisodePurpose::Imitation, number)?, Box::new(agents))?;
        taught.extend(seen.try_iter());
    }
    Ok(taught)
}

/// Lets the agents act in one episode and learn from it. Returns the loss of the last update.
fn learn_episode(learner: &mut Learner, evaluation: Evaluation) -> Result<Option<f64>, CommandError> {
    let baseline = baseline_of(&run_teacher(evaluation.clone())?);
    let (agents, transitions) = learner.exploring_agents();
    run_agents(evaluation, Box::new(RewardedAgents { agents, baseline }))?;
    let mut last = None;
    for transition in transitions.try_iter() {
        last = learner.observe(transition).map_err(failed)?.map(|loss| loss.q).or(last);
    }
    Ok(last)
}

/// The results of all jobs if the teacher decides.
pub(super) fn run_teacher(evaluation: Evaluation) -> Result<Vec<JobResult>, CommandError> {
    evaluate(evaluation, &mut Untimed).map(|it| it.jobs).map_err(unexpected)
}

/// The results of all jobs if these agents decide.
pub(super) fn run_agents(
    evaluation: Evaluation,
    agents: Box<dyn Agents>,
) -> Result<Vec<JobResult>, CommandError> {
    evaluate_agents(evaluation, &mut Untimed, None, agents).map(|it| it.jobs).map_err(unexpected)
}

/// Decision times are not measured in training.
struct Untimed;

impl Observer for Untimed {
    fn progressed(&mut self, _: usize, _: usize) {}

    fn clock_us(&mut self) -> u64 {
        0
    }
}

fn unexpected(error: EvaluationError) -> CommandError {
    CommandError::from_error(CommandErrorKind::Internal, &error)
}

fn failed(error: LearnerError) -> CommandError {
    CommandError::from_error(CommandErrorKind::Internal, &error)
}
