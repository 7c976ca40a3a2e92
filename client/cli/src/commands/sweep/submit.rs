//! Submits a sweep: one array, whose members have their parameters as entries.

use std::process::ExitCode;

use cohabit_client::types::{
    Array, JobInput, JobSpec, Sweep, counted, entry_parameters, fill_template, quoted_command,
};
use cohabit_console::{CommandError, OutputFormat, output, with_schema};
use serde_json::Value;

use super::follow::follow;
use crate::arguments::{JobArguments, SweepSubmitArguments};
use crate::clock::now;
use crate::commands::{dry_run, submission};
use crate::endpoint::{connect, connect_to_wait};
use crate::script::Script;
use crate::sweep::{SweepFile, SweepParameters, SweepPlan, check_placeholders, sweep_request};
use cohabit_documents::jobs::SubmittedJobDocument;

/// The most commands that a dry run shows.
const SHOWN_COMMANDS: usize = 5;

/// What makes the job a sweep.
struct SweepMembers {
    entries: Vec<String>,
    array: Array,
    sweep: Sweep,
    preemptible: bool,
}

pub(super) async fn submit(
    mut arguments: SweepSubmitArguments,
    script: Option<Script>,
) -> Result<ExitCode, CommandError> {
    let members = members_of(&mut arguments)?;
    let (format, detached) = (arguments.display.output, arguments.detach);
    let arguments = arguments.into_submission();
    let is_dry = arguments.dry_run;
    let client = match (&members.sweep.early_stopping, detached || is_dry) {
        (Some(_), false) => connect_to_wait(&arguments.connection).await?,
        (Some(_), true) | (None, _) => connect(&arguments.connection).await?,
    };
    let (command, count, sweep) = (arguments.command.clone(), members.entries.len(), members.sweep.clone());
    let first: Vec<String> = members.entries.iter().take(SHOWN_COMMANDS).cloned().collect();
    let prepared =
        submission::prepare_as(&client, arguments, script, |spec| members.applied_to(spec)).await?;
    if is_dry {
        if format == OutputFormat::Table {
            output::print_text(&commands(&command, &first, count))?;
        }
        return dry_run::dry_run(&client, &prepared.submission, format).await;
    }
    let job = prepared.submit(&client).await?;
    let name = &prepared.submission.spec().name;
    match format {
        OutputFormat::Quiet => output::print_text(&job.id().to_string())?,
        OutputFormat::Json => output::print_document(&with_schema(SubmittedJobDocument {
            id: job.id(),
            members: count as u64,
        }))?,
        OutputFormat::Table | OutputFormat::Wide => {
            let members = counted(count as u64, "member", "members");
            output::print_text(&format!("Submitted sweep {} ({name}) with {members}", job.id()))?;
        }
    }
    match sweep.early_stopping {
        Some(_) if !detached => follow(&client, job.id(), &sweep).await,
        Some(_) => {
            let number = job.id();
            output::print_message(&format!(
                "no member is stopped early before: cohabit sweep resume {number}"
            ));
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The members that file and flags ask for. Nothing was sent anywhere yet.
fn members_of(arguments: &mut SweepSubmitArguments) -> Result<SweepMembers, CommandError> {
    check_flags(arguments).map_err(CommandError::invalid)?;
    let file = arguments.file.as_deref().map(SweepFile::read).transpose()?.map(|file| file.settings);
    let flags = arguments.settings();
    let is_drawn = flags.seed.or(file.as_ref().and_then(|file| file.seed)).is_none();
    let request = sweep_request(file, flags, now().as_micros()).map_err(CommandError::invalid)?;
    check_placeholders(&arguments.command, &request.plan.names()).map_err(CommandError::invalid)?;
    let members = request.plan.members().map_err(CommandError::invalid)?;
    if let SweepPlan::Random { seed, .. } = &request.plan
        && is_drawn
    {
        output::print_message(&format!("note: --seed {seed} draws the same values again"));
    }
    let entry = |parameters: SweepParameters| Value::Object(parameters).to_string();
    let entries: Vec<String> = members.into_iter().map(entry).collect();
    let last = (entries.len() as u32).saturating_sub(1);
    let array = Array { at_once: arguments.job.at_once.take(), ..Array::from(0..=last) };
    let preemptible = !arguments.job.no_preemptible;
    Ok(SweepMembers { entries, array, sweep: request.sweep, preemptible })
}

fn check_flags(arguments: &SweepSubmitArguments) -> Result<(), String> {
    let JobArguments { array, each_line, from_json, .. } = &arguments.job;
    match () {
        () if arguments.command.is_empty() => {
            Err("there is no command: write it after --, such as -- python train.py --lr {lr}".to_owned())
        }
        () if array.is_some() || each_line.is_some() || from_json.is_some() => {
            Err("a sweep is an array already: leave --array, --each-line and --from-json out".to_owned())
        }
        () => Ok(()),
    }
}

impl SweepMembers {
    fn applied_to(self, spec: JobSpec) -> JobSpec {
        JobSpec {
            entries: self.entries,
            array: Some(self.array),
            sweep: Some(self.sweep),
            preemptible: self.preemptible,
            input: JobInput::Empty,
            ..spec
        }
    }
}

/// The commands of the first members, a line for each.
fn commands(command: &[String], first: &[String], count: usize) -> String {
    let line = |entry: &String| {
        let parameters = entry_parameters(entry).unwrap_or_default();
        let words: Vec<String> = command.iter().map(|word| fill_template(word, &parameters)).collect();
        format!("{}\n", quoted_command(words.iter().map(String::as_str)))
    };
    let mut text: String = first.iter().map(line).collect();
    if count > first.len() {
        text += &format!("… and {}\n", counted((count - first.len()) as u64, "more member", "more members"));
    }
    text
}
