//! `top`: a screen of nodes, devices and jobs that is drawn anew every second, until `q` or Ctrl-C.

mod screen;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use cohabit_client::Client;
use cohabit_client::proto::Filter;
use cohabit_console::{CommandError, CommandErrorKind};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use self::screen::{TopView, draw};
use crate::arguments::TopArguments;
use crate::clock::now;
use crate::endpoint::connect;

/// How often the screen is drawn.
const PERIOD: Duration = Duration::from_secs(1);

pub(super) async fn top(arguments: TopArguments) -> Result<ExitCode, CommandError> {
    if !io::stdout().is_terminal() {
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            "top needs a terminal: use `cohabit list` and `cohabit nodes`",
        ));
    }
    let client = connect(&arguments.connection).await?;
    let mut terminal = ratatui::try_init().map_err(|error| terminal_trouble(&error))?;
    let shown = show(&client, &mut terminal).await;
    ratatui::restore();
    shown.map(|()| ExitCode::SUCCESS)
}

async fn show(client: &Client, terminal: &mut ratatui::DefaultTerminal) -> Result<(), CommandError> {
    let mut keys = keys();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut view = look(client).await?;
    loop {
        terminal.draw(|frame| draw(frame, &view)).map_err(|error| terminal_trouble(&error))?;
        tokio::select! {
            key = keys.recv() => match key {
                Some(Event::Key(key)) if is_end(key) => return Ok(()),
                // Anything else, a new size for one, is a reason to draw.
                Some(_) => {}
                None => return Ok(()),
            },
            _ = ticks.tick() => view = look(client).await?,
        }
    }
}

/// Live jobs and all nodes, as they are now.
async fn look(client: &Client) -> Result<TopView, CommandError> {
    let nodes = client.nodes().await?;
    let jobs = client.list_all(Filter { ended_after: Some(now()), ..Filter::default() }).await?;
    Ok(TopView { head: client.head().to_owned(), at: now(), nodes, jobs })
}

/// Keys, read on a thread of their own, for reading them blocks. It ends with the program.
fn keys() -> mpsc::UnboundedReceiver<Event> {
    let (to, keys) = mpsc::unbounded_channel();
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if to.send(event).is_err() {
                return;
            }
        }
    });
    keys
}

fn is_end(key: KeyEvent) -> bool {
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || key.code == KeyCode::Char('q') || key.code == KeyCode::Esc
}

fn terminal_trouble(error: &io::Error) -> CommandError {
    CommandError::new(CommandErrorKind::InputOutput, format!("the terminal cannot be used: {error}"))
}
