//! `token`: creates, lists and revokes tokens. A secret is printed once, on stdout, or written to a file.

mod file;

use std::future::ready;
use std::path::Path;
use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_client::types::{Filter, JobRecord, NewToken, Role, TokenRecord, counted};
use cohabit_console::{CommandError, Screen, output, with_schema};
use futures::TryStreamExt as _;
use jiff::tz::TimeZone;
use serde::Serialize;

use self::file::TokenFile;
use crate::arguments::{
    OutputFormat, TokenCreateArguments, TokenListArguments, TokenRevokeArguments, TokenVerb,
};
use crate::clock::now;
use crate::endpoint::connect;
use crate::render::local_time;
use crate::render::token_documents::{TokenDocument, TokenListDocument};
use crate::render::tokens_table::tokens_table;

pub(super) async fn token(verb: TokenVerb) -> Result<ExitCode, CommandError> {
    match verb {
        TokenVerb::Create(arguments) => create(arguments).await?,
        TokenVerb::List(arguments) => list(arguments).await?,
        TokenVerb::Revoke(arguments) => revoke(arguments).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `{"name", "role", "token"}`
#[derive(Serialize)]
struct CreatedTokenDocument {
    name: String,
    role: String,
    token: String,
}

/// `{"name", "role", "file"}`
#[derive(Serialize)]
struct StoredTokenDocument {
    name: String,
    role: String,
    file: String,
}

async fn create(arguments: TokenCreateArguments) -> Result<(), CommandError> {
    let client = connect(&arguments.connection).await?;
    let file = arguments.out.as_deref().map(TokenFile::create).transpose()?;
    let role = Role::from(arguments.role);
    let name = match arguments.name {
        Some(name) => name,
        None => free_name(role, &client.tokens().await?),
    };
    let (account, node, expires_in) = (arguments.account, arguments.node, arguments.expires);
    let new = NewToken { name: name.clone(), role, account, node, expires_in };
    let token = client.create_token(new).await?.text;
    if let (Some(file), Some(path)) = (file, &arguments.out) {
        file.write(&token).map_err(|error| without_file(error, &name))?;
        return print_place(&client, name, role, path, arguments.display.output).await;
    }
    match arguments.display.output {
        OutputFormat::Json => {
            output::print_document(&with_schema(CreatedTokenDocument { name, role: role.to_string(), token }))
        }
        OutputFormat::Quiet => output::print_text(&token),
        OutputFormat::Table | OutputFormat::Wide => {
            let expiry = expiry(&client, &name).await;
            output::print_message(&format!(
                "token '{name}' with role {role}{expiry}; store it in a file with mode 0600:"
            ));
            output::print_text(&token)
        }
    }
}

/// The error of a token that exists, but cannot be read anywhere.
fn without_file(error: CommandError, name: &str) -> CommandError {
    let message =
        format!("{}; revoke the token (`cohabit token revoke {name}`) and create it again", error.message);
    CommandError::new(error.kind, message)
}

/// Says where the token is, without its secret.
async fn print_place(
    client: &Client,
    name: String,
    role: Role,
    path: &Path,
    format: OutputFormat,
) -> Result<(), CommandError> {
    match format {
        OutputFormat::Json => {
            let file = path.display().to_string();
            output::print_document(&with_schema(StoredTokenDocument { name, role: role.to_string(), file }))
        }
        OutputFormat::Quiet => Ok(()),
        OutputFormat::Table | OutputFormat::Wide => {
            let expiry = expiry(client, &name).await;
            let file = path.display();
            output::print_text(&format!(
                "Wrote token '{name}' with role {role}{expiry} to {file} (mode 0600)"
            ))
        }
    }
}

/// When the new token expires, which the head has decided; empty if it cannot be asked.
async fn expiry(client: &Client, name: &str) -> String {
    let tokens = client.tokens().await.unwrap_or_default();
    match tokens.into_iter().find(|token| token.name == name).map(|token| token.expires_at) {
        Some(Some(at)) => format!(", which expires on {}", local_time(at, &TimeZone::system())),
        Some(None) => ", which does not expire".to_owned(),
        None => String::new(),
    }
}

/// `worker-1`, or the next free name.
fn free_name(role: Role, taken: &[TokenRecord]) -> String {
    let name = |number: usize| format!("{role}-{number}");
    let is_free = |name: &String| taken.iter().all(|token| token.name != *name);
    (1..).map(name).find(is_free).expect("there are more numbers than tokens")
}

async fn list(arguments: TokenListArguments) -> Result<(), CommandError> {
    let tokens = connect(&arguments.connection).await?.tokens().await?;
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&tokens_table(&tokens, &TimeZone::system(), Screen::of_stdout()))
        }
        OutputFormat::Json => output::print_document(&with_schema(TokenListDocument {
            tokens: tokens.iter().map(TokenDocument::from).collect(),
        })),
        OutputFormat::Quiet => tokens.iter().try_for_each(|token| output::print_text(&token.name)),
    }
}

async fn revoke(arguments: TokenRevokeArguments) -> Result<(), CommandError> {
    let client = connect(&arguments.connection).await?;
    // Before, because the token may be the one of this command.
    let jobs = live_jobs(&client, &arguments.name).await?;
    client.revoke_token(&arguments.name).await?;
    match arguments.display.output {
        OutputFormat::Json => output::print_document(&with_schema(
            serde_json::json!({ "name": arguments.name, "revoked": true, "live_jobs": jobs }),
        )),
        OutputFormat::Quiet => Ok(()),
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&format!(
            "Revoked token '{}'{}",
            arguments.name,
            what_goes_on(&arguments.name, jobs)
        )),
    }
}

/// How many jobs of the user of a token have not ended, arrays and applications as one each.
async fn live_jobs(client: &Client, user: &str) -> Result<u64, CommandError> {
    let filter = Filter { user: Some(user.to_owned()), ended_after: Some(now()), ..Filter::default() };
    let is_live = |job: &JobRecord| ready(job.application.is_none() && !job.state.is_terminal());
    let count = |count, _: JobRecord| ready(Ok(count + 1));
    Ok(client.list(filter).try_filter(is_live).try_fold(0, count).await?)
}

/// A revoked token ends no job.
fn what_goes_on(user: &str, jobs: u64) -> String {
    match jobs {
        0 => String::new(),
        _ => format!(
            "\n{} of {user} will go on: `cohabit cancel --user {user}` ends them",
            counted(jobs, "live job", "live jobs"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::Time;

    use super::*;

    #[test]
    fn a_token_without_a_name_gets_the_first_free_one() {
        let taken = |name: &str| TokenRecord {
            name: name.into(),
            role: Role::User,
            account: None,
            node: None,
            created_at: Time::EPOCH,
            expires_at: None,
        };
        assert_eq!(free_name(Role::Worker, &[]), "worker-1");
        assert_eq!(free_name(Role::User, &[taken("user-1"), taken("user-3")]), "user-2");
    }
}
