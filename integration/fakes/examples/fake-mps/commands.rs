//! The answers of the control daemon. It never reports a rejection by its exit status, only by text or by
//! silence.

use std::fmt::Write;
use std::time::Duration;

use cohabit_fakes::mps::{FromServer, Limits, ServerState, ToServer};
use cohabit_fakes::{Quit, Terminate};

use crate::servers::Servers;

pub(crate) enum Answer {
    /// This text, possibly empty.
    Text(String),
    /// None: the daemon ends, by force after this time.
    Quit(Option<Duration>),
    /// None: it hangs.
    Never,
}

pub(crate) fn answer(servers: &Servers, command: &str) -> Answer {
    let words: Vec<&str> = command.split_whitespace().collect();
    let text = match words.as_slice() {
        ["get_server_list"] => servers.pid().map(|pid| format!("{pid}\n")).unwrap_or_default(),
        ["get_server_status", ..] if !servers.knows_status() => unknown(&words),
        ["get_server_status"] => "A server PID is required\n".into(),
        ["get_server_status", server] => status(servers, server),
        ["start_server", "-uid", user] => {
            user.parse().map(|user| servers.start(user)).unwrap_or_default();
            String::new()
        }
        ["start_server", ..] => "A user id (UID) is required to start a new server\n".into(),
        ["shutdown_server", server, flags @ ..] => shut_down(servers, server, flags),
        ["get_client_list", server] => client_list(servers, server),
        ["ps"] => process_table(servers),
        ["ps", "-p", server] if servers.is(server) => process_table(servers),
        ["ps", "-p", server] => format!("{}Server {server} not found\n\n", not_found(server)),
        ["terminate_client", server, client] => return terminate(servers, server, client),
        ["quit", rest @ ..] => return quit(servers, rest),
        _ => match limits(servers, &words) {
            Some(text) => text,
            None => unknown(&words),
        },
    };
    Answer::Text(text)
}

fn not_found(server: &str) -> String {
    format!("Server {server} not found\n")
}

fn ask(servers: &Servers, server: &str, words: &ToServer) -> Option<FromServer> {
    servers.ask(server.parse().ok()?, words)
}

fn unknown(words: &[&str]) -> String {
    format!("Unknown command \"{}\"\n", words.first().unwrap_or(&""))
}

fn status(servers: &Servers, server: &str) -> String {
    match ask(servers, server, &ToServer::State) {
        Some(FromServer::State(ServerState::Active)) => "ACTIVE\n".into(),
        Some(FromServer::State(ServerState::Fault)) => "FAULT\n".into(),
        Some(FromServer::State(ServerState::Initializing)) => "INITIALIZING\n".into(),
        // The server runs, but does not listen yet.
        _ if servers.is(server) => "INITIALIZING\n".into(),
        _ => not_found(server),
    }
}

fn shut_down(servers: &Servers, server: &str, flags: &[&str]) -> String {
    if !servers.is(server) {
        return not_found(server);
    }
    servers.end(flags.contains(&"-f").then_some(Duration::ZERO));
    String::new()
}

fn clients(servers: &Servers, server: &str) -> Option<Vec<i32>> {
    let answer = ask(servers, server, &ToServer::Clients)?;
    if let FromServer::Clients(pids) = answer { Some(pids) } else { None }
}

fn client_list(servers: &Servers, server: &str) -> String {
    match clients(servers, server) {
        Some(pids) => pids.iter().map(|pid| format!("{pid}\n")).collect(),
        None => not_found(server),
    }
}

fn process_table(servers: &Servers) -> String {
    let Some(server) = servers.pid() else { return "Server not found\n".into() };
    let mut table = String::from("PID       ID    SERVER  DEVICE             NAMESPACE      COMMAND\n");
    let device = servers.gpu().uuid.chars().take(12).collect::<String>();
    for (id, pid) in clients(servers, &server.to_string()).unwrap_or_default().into_iter().enumerate() {
        let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let _ = writeln!(
            table,
            "{pid:<9} {:<5} {server:<7} {device:<18} 4026531836     {}",
            id + 1,
            command.trim()
        );
    }
    table
}

fn terminate(servers: &Servers, server: &str, client: &str) -> Answer {
    match servers.gpu().mps.terminate {
        Terminate::Hangs => return Answer::Never,
        Terminate::Answers(error) => return Answer::Text(format!("{error}\n")),
        Terminate::Confirms => {}
    }
    let Some(known) = clients(servers, server) else {
        return Answer::Text(format!("{}Server {server} not found!\n1\n", not_found(server)));
    };
    let answer = match client.parse().ok().filter(|pid| known.contains(pid)) {
        Some(pid) => ask(servers, server, &ToServer::Terminate(pid)).map_or("1\n", |_| "0\n"),
        None => "1\n",
    };
    Answer::Text(answer.into())
}

fn quit(servers: &Servers, rest: &[&str]) -> Answer {
    let patience = match rest {
        ["-t", seconds] => seconds.parse().ok().map(Duration::from_secs),
        _ => None,
    };
    match servers.gpu().mps.quit {
        Quit::Ends => Answer::Quit(patience),
        Quit::Ignored => Answer::Text(String::new()),
    }
}

/// The commands about limits; `None` for other commands.
fn limits(servers: &Servers, words: &[&str]) -> Option<String> {
    Some(match *words {
        ["get_default_active_thread_percentage"] => percentage(&servers.defaults()),
        ["set_default_active_thread_percentage", wanted] => {
            let mut defaults = servers.defaults();
            set_percentage(&mut defaults, wanted);
            percentage(&defaults)
        }
        ["set_default_device_pinned_mem_limit", "0", wanted] => {
            servers.defaults().memory = taken_for(wanted);
            String::new()
        }
        // A limit for another device, or for a UUID, is ignored silently.
        ["set_default_device_pinned_mem_limit", _, _] => String::new(),
        ["get_default_device_pinned_mem_limit", "0"] => memory(&servers.defaults()),
        ["get_default_device_pinned_mem_limit", _] => String::new(),
        ["get_active_thread_percentage", server] => of_server(servers, server, |_| {}, percentage),
        ["set_active_thread_percentage", server, wanted] => {
            of_server(servers, server, |limits| set_percentage(limits, wanted), percentage)
        }
        ["get_device_pinned_mem_limit", server, "0"] => of_server(servers, server, |_| {}, memory),
        ["set_device_pinned_mem_limit", server, "0", wanted] => {
            let set = |limits: &mut Limits| limits.memory = taken_for(wanted);
            of_server(servers, server, set, |_| String::new())
        }
        _ => return None,
    })
}

fn of_server(
    servers: &Servers,
    server: &str,
    change: impl Fn(&mut Limits),
    tell: impl Fn(&Limits) -> String,
) -> String {
    let Some(FromServer::Limits(mut limits)) = ask(servers, server, &ToServer::Limits) else {
        return not_found(server);
    };
    change(&mut limits);
    match ask(servers, server, &ToServer::Limit(limits)) {
        Some(_) => tell(&limits),
        None => not_found(server),
    }
}

fn set_percentage(limits: &mut Limits, wanted: &str) {
    let valid = wanted.parse::<f64>().ok().filter(|it| *it > 0.0 && *it <= 100.0);
    limits.percentage = valid.unwrap_or(limits.percentage);
}

fn percentage(limits: &Limits) -> String {
    format!("{:.1}\n", limits.percentage)
}

/// The value of a limit: the number at its beginning, in gigabytes if a `G` follows, else in megabytes;
/// without a number, no limit.
fn taken_for(wanted: &str) -> Option<u64> {
    let digits = wanted.bytes().take_while(u8::is_ascii_digit).count();
    let number = wanted[..digits].parse::<u64>().ok().filter(|number| *number > 0)?;
    let shift = if wanted[digits..].starts_with(['G', 'g']) { 30 } else { 20 };
    Some(number << shift)
}

/// Whole gigabytes, rounded down, from one on.
fn memory(limits: &Limits) -> String {
    let text = |bytes: u64| match bytes >> 30 {
        0 => format!("{}M\n", bytes >> 20),
        gigabytes => format!("{gigabytes}G\n"),
    };
    limits.memory.map(text).unwrap_or_default()
}
