//! A session of the control program: commands from its standard input, one after the other.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

use std::io::BufRead;
use std::process::ExitCode;

use cohabit_fakes::Packets;
use cohabit_fakes::mps::{Caller, ControlReply, control_socket};

use crate::release::Release;

const UNSENT: &str = "Cannot send command to MPS control daemon process";

pub(crate) fn help(release: Release) -> ExitCode {
    print!("{}", release.help());
    ExitCode::SUCCESS
}

pub(crate) fn version() -> ExitCode {
    println!("Binary version: 13000");
    ExitCode::SUCCESS
}

pub(crate) fn run() -> ExitCode {
    let Ok(daemon) = Packets::connect(&control_socket(&crate::pipe_directory())) else {
        eprintln!("Cannot find MPS control daemon process");
        return ExitCode::FAILURE;
    };
    let caller = serde_json::to_string(&Caller::Session).unwrap_or_default();
    let welcome = daemon.send(&caller).ok().and_then(|()| daemon.receive());
    match welcome.and_then(|words| serde_json::from_str::<ControlReply>(&words).ok()) {
        Some(ControlReply::Commands) => {
            let code = converse(&daemon);
            // So that the next session does not find this one still open.
            daemon.finish();
            code
        }
        Some(ControlReply::Empty) => ExitCode::SUCCESS,
        Some(ControlReply::Silent) => ExitCode::FAILURE,
        Some(ControlReply::Unsent | ControlReply::Server(_) | ControlReply::NoServer(_)) | None => unsent(),
    }
}

fn converse(daemon: &Packets) -> ExitCode {
    for command in std::io::stdin().lock().lines().map_while(Result::ok) {
        let command = command.trim();
        match daemon.send(command).ok().and_then(|()| daemon.receive()) {
            Some(reply) => print!("{reply}"),
            // The daemon has ended, as ordered.
            None if command.starts_with("quit") => return ExitCode::SUCCESS,
            None => return unsent(),
        }
    }
    ExitCode::SUCCESS
}

fn unsent() -> ExitCode {
    eprintln!("{UNSENT}");
    ExitCode::FAILURE
}
