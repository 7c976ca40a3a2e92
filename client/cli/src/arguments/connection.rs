//! Flags that name the head and the token to use with it.

use std::path::PathBuf;

use clap::Args;

// Flags of every command that talks to a head.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Connecting")]
pub(crate) struct ConnectionArguments {
    #[command(flatten)]
    pub(crate) address: AddressArguments,
    /// State directory of a head on this machine; replaces --head and --token-file [env: COHABIT_STATE]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

// The head's address and a token for it.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Connecting")]
pub(crate) struct AddressArguments {
    /// Address of the head [env: COHABIT_HEAD]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) head: Option<String>,
    /// File that holds the token to use [env: COHABIT_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

impl AddressArguments {
    /// The same address with a state directory.
    pub(crate) fn with_state(&self, state: Option<PathBuf>) -> ConnectionArguments {
        ConnectionArguments { address: self.clone(), state }
    }
}
