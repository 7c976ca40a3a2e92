//! Arguments of `forward`.

use std::str::FromStr;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use cohabit_client::types::JobRef;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use crate::completion;

// Arguments of `forward`.
#[derive(Debug, Args)]
pub(crate) struct ForwardArguments {
    /// Running job: a number (12), an array member (12.5), a name, `last`, or @~1 (the one before the last)
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::live_jobs))]
    pub(crate) job: JobRef,
    /// Port on which the job listens, with another port for this machine before it: 8888, 9999:8888, or
    /// 0:8888 for any free one
    #[arg(value_name = "[LOCAL:]PORT")]
    pub(crate) ports: PortPair,
    /// Rank on whose node the port is [default: 0]
    #[arg(long)]
    pub(crate) rank: Option<u32>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

/// A port of this machine, 0 for a free one, and the port of the job with which it is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortPair {
    pub(crate) local: u16,
    pub(crate) remote: u16,
}

impl FromStr for PortPair {
    type Err = String;

    fn from_str(text: &str) -> Result<PortPair, String> {
        let port = |text: &str| {
            text.parse::<u16>().map_err(|_| {
                format!(
                    "'{text}' is no port from 1 to 65535: write PORT or LOCAL:PORT, such as 8888 or 0:8888"
                )
            })
        };
        let (local, remote) = match text.split_once(':') {
            Some((local, remote)) => (Some(port(local)?), port(remote)?),
            None => (None, port(text)?),
        };
        if remote == 0 {
            return Err(
                "PORT is 0: name the port on which the job listens; LOCAL may be 0, as in 0:8888".into()
            );
        }
        Ok(PortPair { local: local.unwrap_or(remote), remote })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_this_machine_is_that_of_the_job_unless_it_is_named() {
        let ports = |local, remote| Ok(PortPair { local, remote });
        assert_eq!("8888".parse(), ports(8888, 8888));
        assert_eq!("9999:8888".parse(), ports(9999, 8888));
        assert_eq!("0:8888".parse(), ports(0, 8888));
        let refused = |text: &str| text.parse::<PortPair>().unwrap_err();
        assert!(refused("0").contains("name the port on which the job listens"));
        assert!(refused("8888:0").contains("LOCAL may be 0"));
        for text in ["", ":", "8888:", ":8888", "http", "65536", "-1", "1:2:3", "127.0.0.1:80"] {
            assert!(refused(text).contains("write PORT or LOCAL:PORT"), "{text}");
        }
    }
}
