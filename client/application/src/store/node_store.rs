//! The store of this node as its process knows it: a thread with a channel.

use std::io;
use std::rc::Rc;
use std::thread;

#[cfg(test)]
use cohabit_application_core::ObjectId;
use cohabit_application_core::{StoreFigures, ToStore};
#[cfg(test)]
use cohabit_types::RankId;
use tokio::net::UnixListener;
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};

use super::file_limit::raise_file_limit;
use super::server::StoreServer;
use super::server_connection::serve;
use super::settings::{StoreOutlets, StoreSettings};
use super::transfer::{ConnectionOpening, serve_fetches};
use crate::transport::{HelloCheck, SocketDirectory, SocketName, accept_members};

/// Threads that allocate, free and move memory.
const BLOCKING_THREADS: usize = 4;

/// The store of this node, on a thread of its own. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct NodeStore {
    commands: UnboundedSender<StoreCommand>,
}

/// What the process of a store asks of it.
enum StoreCommand {
    /// What the coordinator says.
    Obey(ToStore),
    /// A connection of the store of another node.
    Serve(ConnectionOpening),
    Describe(oneshot::Sender<StoreFigures>),
}

/// The thread of the store has ended.
#[derive(Debug, thiserror::Error)]
#[error("the store of objects of this node has ended")]
pub(crate) struct StoreEnded;

impl NodeStore {
    /// Starts the store: it listens in the directory for the processes that know what `check` says, and
    /// raises the limit of this process on open files. What the coordinator is to know goes to the outlets.
    ///
    /// # Errors
    /// If there is no socket or no thread.
    pub(crate) fn start(
        directory: &SocketDirectory,
        check: HelloCheck,
        settings: StoreSettings,
        outlets: StoreOutlets,
    ) -> io::Result<NodeStore> {
        let listener = directory.bind(SocketName::Store)?;
        let most_objects = usize::try_from(raise_file_limit() / 2).unwrap_or(usize::MAX);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("cohabit-memory")
            .build()?;
        let (commands, received) = unbounded_channel();
        let run = move || {
            LocalSet::new().block_on(&runtime, async move {
                let listener = match UnixListener::from_std(listener) {
                    Ok(listener) => listener,
                    Err(error) => return tracing::error!(%error, "the store of objects cannot listen"),
                };
                let server = Rc::new(StoreServer::new(settings, outlets, most_objects));
                let accepting = Rc::clone(&server);
                spawn_local(accept_members(listener, check, move |stream, buffer, hello| {
                    spawn_local(serve(Rc::clone(&accepting), stream, buffer, hello));
                }));
                obey(&server, received).await;
            });
        };
        thread::Builder::new().name("cohabit-store".into()).spawn(run)?;
        Ok(NodeStore { commands })
    }

    /// Does what the coordinator says.
    pub(crate) fn obey(&self, word: ToStore) {
        self.command(StoreCommand::Obey(word));
    }

    /// Serves a connection that the store of another node has dialed, and that is opened on the thread of the
    /// store. Whoever is at the other end gets every object that it names.
    pub(crate) fn serve_network(&self, opening: ConnectionOpening) {
        self.command(StoreCommand::Serve(opening));
    }

    /// Nobody holds an object any more. Its memory goes once no process maps it.
    #[cfg(test)]
    pub(super) fn free(&self, object: ObjectId) {
        self.obey(ToStore::Free { object });
    }

    /// A process has ended: of the objects that it named, these alone are held.
    #[cfg(test)]
    pub(super) fn forget(&self, maker: RankId, keep: impl IntoIterator<Item = ObjectId>) {
        self.obey(ToStore::Forget { maker, keep: keep.into_iter().collect() });
    }

    /// What the store has.
    ///
    /// # Errors
    /// If its thread has ended.
    pub(crate) async fn figures(&self) -> Result<StoreFigures, StoreEnded> {
        let (sender, receiver) = oneshot::channel();
        self.command(StoreCommand::Describe(sender));
        receiver.await.map_err(|_| StoreEnded)
    }

    fn command(&self, command: StoreCommand) {
        if self.commands.send(command).is_err() {
            tracing::error!("{StoreEnded}");
        }
    }
}

/// Carries commands out until nobody can give any more.
async fn obey(server: &Rc<StoreServer>, mut commands: UnboundedReceiver<StoreCommand>) {
    while let Some(command) = commands.recv().await {
        match command {
            StoreCommand::Obey(word) => server.obey(word),
            StoreCommand::Serve(opening) => drop(spawn_local(serve_fetches(Rc::clone(server), opening))),
            StoreCommand::Describe(asking) => {
                // Nobody may wait for it any more.
                let _told = asking.send(server.figures());
            }
        }
    }
}
