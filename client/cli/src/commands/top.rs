//! `top`: shows nodes, devices and jobs on a screen that is redrawn every second, until `q` or Ctrl-C.

mod screen;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use cohabit_client::Client;
use cohabit_client::types::Filter;
use cohabit_console::{CommandError, CommandErrorKind};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use self::screen::{TopView, draw};
use crate::arguments::TopArguments;
use crate::clock::now;
use crate::endpoint::connect;

/// Time between redraws.
const PERIOD: Duration = Duration::from_secs(1);

pub(super) async fn top(arguments: TopArguments) -> Result<ExitCode, CommandError> {
    if !io::stdout().is_terminal() {
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            "top needs a terminal: use `cohabit list` or `cohabit nodes` instead",
        ));
    }
    let client = connect(&arguments.connection).await?;
    let mut terminal = ratatui::try_init().map_err(|error| terminal_error(&error))?;
    let shown = show(&client, &mut terminal).await;
    ratatui::restore();
    shown.map(|()| ExitCode::SUCCESS)
}

async fn show(client: &Client, terminal: &mut ratatui::DefaultTerminal) -> Result<(), CommandError> {
    let mut events = read_events();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut view = fetch_view(client).await?;
    loop {
        terminal.draw(|frame| draw(frame, &view)).map_err(|error| terminal_error(&error))?;
        tokio::select! {
            event = events.recv() => match event {
                Some(Event::Key(key)) if is_end(key) => return Ok(()),
                // Other events, such as a new size of the terminal, only cause a redraw.
                Some(_) => {}
                None => return Ok(()),
            },
            _ = ticks.tick() => view = fetch_view(client).await?,
        }
    }
}

/// Fetches all nodes, what keeps the head from its work, and the jobs that have not ended.
async fn fetch_view(client: &Client) -> Result<TopView, CommandError> {
    let nodes = client.nodes().await?;
    let head_problems = client.head_problems().await?;
    let jobs = client.list_all(Filter { ended_after: Some(now()), ..Filter::default() }).await?;
    Ok(TopView { head: client.head().to_owned(), at: now(), head_problems, nodes, jobs })
}

/// Reads terminal events on a separate thread, because reading blocks. The thread ends with the program.
fn read_events() -> mpsc::UnboundedReceiver<Event> {
    let (to, events) = mpsc::unbounded_channel();
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if to.send(event).is_err() {
                return;
            }
        }
    });
    events
}

fn is_end(key: KeyEvent) -> bool {
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || key.code == KeyCode::Char('q') || key.code == KeyCode::Esc
}

fn terminal_error(error: &io::Error) -> CommandError {
    CommandError::new(CommandErrorKind::InputOutput, format!("cannot use the terminal: {error}"))
}
