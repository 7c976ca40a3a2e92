//! Where the head is, and by which token it knows us.

use std::path::PathBuf;

use clap::Args;

// Flags of every command that talks to a head.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Connecting")]
pub(crate) struct ConnectionArguments {
    #[command(flatten)]
    pub(crate) address: AddressArguments,
    /// State folder of a head on this machine, in place of the two above [env: COHABIT_STATE]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

// The head's address and a token for it.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Connecting")]
pub(crate) struct AddressArguments {
    /// The head [env: COHABIT_HEAD]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) head: Option<String>,
    /// File with a token [env: COHABIT_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

impl AddressArguments {
    /// The same, with a state folder.
    pub(crate) fn with_state(&self, state: Option<PathBuf>) -> ConnectionArguments {
        ConnectionArguments { address: self.clone(), state }
    }
}
