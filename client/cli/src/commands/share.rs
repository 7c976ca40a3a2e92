//! `share`: shows who has which share of the cluster, or applies a table of projects.

use std::process::ExitCode;

use cohabit_console::{CommandError, Screen, output, with_schema};

use crate::arguments::{OutputFormat, ShareArguments, ShareVerb};
use crate::endpoint::connect;
use crate::render::share_documents::ShareDocument;
use crate::render::share_table::share_table;
use crate::share_file::{difference, read_share_file};

pub(super) async fn share(arguments: ShareArguments) -> Result<ExitCode, CommandError> {
    // A file that is no table is told of before the head is asked.
    let client = match &arguments.verb {
        None => connect(arguments.connection()).await?,
        Some(ShareVerb::Apply(apply)) => {
            let table = read_share_file(&apply.file)?;
            let client = connect(arguments.connection()).await?;
            let before = client.shares().await?.table;
            if apply.dry_run {
                client.check_shares(&table).await?;
                output::print_text(&told(&difference(&before, &table), "Nothing would change"))?;
                return Ok(ExitCode::SUCCESS);
            }
            client.apply_shares(&table).await?;
            output::print_message(told(&difference(&before, &table), "Nothing has changed").trim_end());
            client
        }
    };
    let report = client.shares().await?;
    match arguments.display().output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&share_table(&report, Screen::of_stdout()))?;
        }
        OutputFormat::Json => output::print_document(&with_schema(ShareDocument::from(&report)))?,
        OutputFormat::Quiet => {
            let names: Vec<&str> = report.projects.iter().map(|project| project.name.as_str()).collect();
            output::print_text(&names.join("\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn told(changes: &[String], nothing: &str) -> String {
    match changes {
        [] => format!("{nothing}: this is the present table.\n"),
        changes => changes.iter().map(|change| format!("{change}\n")).collect(),
    }
}
