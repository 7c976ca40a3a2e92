//! `token`: makes, lists and revokes tokens. A secret is printed once, on stdout, and never again.

use std::process::ExitCode;

use cohabit_client::proto::{NewToken, Role, TokenRecord};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::arguments::{
    OutputFormat, TokenCreateArguments, TokenListArguments, TokenRevokeArguments, TokenVerb,
};
use crate::connect::connect;
use crate::failure::CommandError;
use crate::output::{self, Screen};
use crate::render::documents::{TokenDocument, TokenListDocument, with_schema};
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
struct Created {
    name: String,
    role: String,
    token: String,
}

async fn create(arguments: TokenCreateArguments) -> Result<(), CommandError> {
    let client = connect(&arguments.connection).await?;
    let role = Role::from(arguments.role);
    let name = match arguments.name {
        Some(name) => name,
        None => free_name(role, &client.tokens().await?),
    };
    let (account, expires_in) = (arguments.account, arguments.expires);
    let new = NewToken { name: name.clone(), role, account, expires_in };
    let token = client.create_token(new).await?.text;
    match arguments.display.output {
        OutputFormat::Json => output::document(&with_schema(Created { name, role: role.to_string(), token })),
        OutputFormat::Quiet => output::data(&token),
        OutputFormat::Table | OutputFormat::Wide => {
            output::message(&format!("token '{name}' for a {role}; keep it in a file with mode 0600:"));
            output::data(&token)
        }
    }
}

/// `worker-1`, or the next that is free.
fn free_name(role: Role, taken: &[TokenRecord]) -> String {
    let name = |number: usize| format!("{role}-{number}");
    let is_free = |name: &String| taken.iter().all(|token| token.name != *name);
    (1..).map(name).find(is_free).expect("there are more numbers than tokens")
}

async fn list(arguments: TokenListArguments) -> Result<(), CommandError> {
    let tokens = connect(&arguments.connection).await?.tokens().await?;
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::data(&tokens_table(&tokens, &TimeZone::system(), Screen::of_stdout()))
        }
        OutputFormat::Json => output::document(&with_schema(TokenListDocument {
            tokens: tokens.iter().map(TokenDocument::from).collect(),
        })),
        OutputFormat::Quiet => tokens.iter().try_for_each(|token| output::data(&token.name)),
    }
}

async fn revoke(arguments: TokenRevokeArguments) -> Result<(), CommandError> {
    let client = connect(&arguments.connection).await?;
    client.revoke_token(&arguments.name).await?;
    match arguments.display.output {
        OutputFormat::Json => {
            output::document(&with_schema(serde_json::json!({ "name": arguments.name, "revoked": true })))
        }
        OutputFormat::Quiet => Ok(()),
        OutputFormat::Table | OutputFormat::Wide => {
            output::data(&format!("Token '{}' is worthless now", arguments.name))
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::proto::Time;

    use super::*;

    #[test]
    fn a_token_without_a_name_gets_the_first_free_one() {
        let taken = |name: &str| TokenRecord {
            name: name.into(),
            role: Role::User,
            account: None,
            created_at: Time::EPOCH,
            expires_at: None,
        };
        assert_eq!(free_name(Role::Worker, &[]), "worker-1");
        assert_eq!(free_name(Role::User, &[taken("user-1"), taken("user-3")]), "user-2");
    }
}
