//! `top`: shows nodes, devices and jobs on a screen of its own, and one job in full, until `q` or Ctrl-C.
//!
//! `feed` asks the head, `keys` decides what keys do, `screen` draws; the loop here brings them together.

mod devices;
mod feed;
mod jobs;
mod keys;
mod log;
mod page;
mod screen;
mod scroll;
mod text_table;
mod view;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::thread;

use cohabit_client::Client;
use cohabit_console::{CommandError, CommandErrorKind};
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use self::feed::{PERIOD, TopNews, cancel, fetch_view, send_output, send_sheets, send_views};
use self::keys::{TopAction, TopPage, TopState};
use self::log::TopLog;
use self::screen::draw;
use self::view::{JobPage, TopView};
use crate::arguments::TopArguments;
use crate::clock::now;
use crate::endpoint::connect;

/// Answers and keys that may wait for the loop.
const QUEUE: usize = 4;

pub(super) async fn top(arguments: TopArguments) -> Result<ExitCode, CommandError> {
    if !io::stdout().is_terminal() {
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            "top needs a terminal: use `cohabit list` or `cohabit nodes` instead",
        ));
    }
    let client = connect(&arguments.connection).await?;
    let view = fetch_view(&client).await?;
    let mut terminal = ratatui::try_init().map_err(|error| terminal_error(&error))?;
    let shown = Top::new(client, view).run(&mut terminal).await;
    ratatui::restore();
    shown.map(|()| ExitCode::SUCCESS)
}

/// What is shown, and the tasks that ask the head for it.
struct Top {
    client: Client,
    view: TopView,
    page: Option<JobPage>,
    state: TopState,
    news: mpsc::Receiver<TopNews>,
    to_news: mpsc::Sender<TopNews>,
    /// Asks for the overview, and makes changes.
    background: JoinSet<()>,
    /// Asks for the open page.
    page_task: JoinSet<()>,
}

impl Top {
    fn new(client: Client, view: TopView) -> Top {
        let (to_news, news) = mpsc::channel(QUEUE);
        let mut background = JoinSet::new();
        background.spawn(send_views(client.clone(), to_news.clone()));
        Top {
            client,
            view,
            page: None,
            state: TopState::default(),
            news,
            to_news,
            background,
            page_task: JoinSet::new(),
        }
    }

    async fn run(mut self, terminal: &mut ratatui::DefaultTerminal) -> Result<(), CommandError> {
        let mut events = read_events();
        // Without any news, the age of the figures is still drawn.
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let jobs = self.state.ordering.ids(&self.view.jobs, self.view.at);
            self.state.follow_selection(&jobs);
            let mut windows = self.state.windows;
            let drawn = terminal.draw(|frame| {
                windows = draw(frame, &self.view, self.page.as_ref(), &self.state, now());
            });
            drawn.map_err(|error| terminal_error(&error))?;
            self.state.windows = windows;
            tokio::select! {
                event = events.recv() => match event {
                    Some(Event::Key(key)) => match self.state.press(key, &jobs) {
                        Some(TopAction::Quit) => return Ok(()),
                        Some(action) => self.act(action),
                        None => {}
                    },
                    // Other events, such as a new size of the terminal, only cause a redraw.
                    Some(_) => {}
                    None => return Ok(()),
                },
                Some(news) = self.news.recv() => self.take(news),
                Some(_) = self.background.join_next() => {}
                _ = ticks.tick() => {}
            }
        }
    }

    fn act(&mut self, action: TopAction) {
        let (client, to) = (self.client.clone(), self.to_news.clone());
        match action {
            TopAction::Quit => {}
            TopAction::Cancel(job) => _ = self.background.spawn(cancel(client, job, to)),
            TopAction::Open(page) => {
                // Dropping the former tasks ends them.
                self.page_task = JoinSet::new();
                self.page = None;
                match page {
                    TopPage::Overview | TopPage::Help => {}
                    TopPage::Sheet(job) => _ = self.page_task.spawn(send_sheets(client, job, to)),
                    TopPage::Log { job, rank } => {
                        self.page = Some(JobPage::Log(TopLog::new(job, rank)));
                        self.page_task.spawn(send_output(client, job, rank, to));
                    }
                }
            }
        }
    }

    fn take(&mut self, news: TopNews) {
        match news {
            TopNews::View(view) => self.view = *view,
            TopNews::ViewFailed(why) => self.view.failure = Some(why),
            TopNews::Changed(sentence) => self.state.message = Some(sentence),
            TopNews::Sheet(job, lines) => {
                if self.state.page == TopPage::Sheet(job) {
                    self.page = Some(JobPage::Sheet(job, lines));
                }
            }
            TopNews::Output(part) => {
                if let Some(log) = self.open_log(part.rank.attempt.job, part.rank.rank) {
                    log.push(&part);
                }
            }
            TopNews::OutputEnded(job, rank, end) => {
                if let Some(log) = self.open_log(job, rank) {
                    log.end = Some(end);
                }
            }
        }
    }

    /// The output on the screen, if it is of this rank: news of a page that was closed may still arrive.
    fn open_log(&mut self, job: cohabit_client::types::JobId, rank: u32) -> Option<&mut TopLog> {
        match &mut self.page {
            Some(JobPage::Log(log)) if (log.job, log.rank) == (job, rank) => Some(log),
            Some(JobPage::Log(_) | JobPage::Sheet(..)) | None => None,
        }
    }
}

/// Reads terminal events on a separate thread, because reading blocks. The thread ends with the program.
fn read_events() -> mpsc::Receiver<Event> {
    let (to, events) = mpsc::channel(QUEUE);
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if to.blocking_send(event).is_err() {
                return;
            }
        }
    });
    events
}

fn terminal_error(error: &io::Error) -> CommandError {
    CommandError::new(CommandErrorKind::InputOutput, format!("cannot use the terminal: {error}"))
}
