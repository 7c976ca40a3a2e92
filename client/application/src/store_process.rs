//! The process that has the objects of a further node, and its port: processes of other nodes reach those of
//! this one there. It runs none of the user's code.

use std::sync::Arc;

use cohabit_application_core::FromStore;
use cohabit_net::ApplicationTls;
use cohabit_types::{ApplicationAccess, RunnerRole};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{spawn_blocking, spawn_local};

use crate::process::{MemberProcess, ProcessEvent};
use crate::runner::{SETTLING, TERMINATED, cannot_begin, join};
use crate::start_entry::MainEntry;
use crate::store::{NodeStore, StoreOutlets, StoreSettings, admit_store, connect_stores};
use crate::surroundings::{EndRequest, Surroundings};
use crate::transport::{HelloCheck, NetworkAdmission, NetworkPort, SocketDirectory};

const NO_PORT: &str = "the head has given the store of this node no port: applications span nodes only where \
                       workers have ports for them";

/// Keeps the objects of this node until the process is told to end; returns the exit code. It ends as well
/// some seconds after the coordinator.
pub(crate) async fn run_store(access: ApplicationAccess, entry: MainEntry) -> i32 {
    match keep_objects(access, entry).await {
        Ok(code) => code,
        Err(text) => cannot_begin(&text),
    }
}

/// # Errors
/// In words, if the system refuses what it needs.
async fn keep_objects(access: ApplicationAccess, entry: MainEntry) -> Result<i32, String> {
    let mut terminate = EndRequest::by_signal()?;
    let port = NetworkPort::open(&access).map_err(|error| error.to_string())?;
    let at = access.port.clone();
    let (port, at) = port.zip(at).ok_or(NO_PORT)?;
    let (tls, settings) =
        (ApplicationTls::new(&access.credentials.secret), StoreSettings::of(&access, entry.object_memory));
    // Processes of a node do not know which one has its store.
    let check = HelloCheck { secret: access.credentials.secret, own: access.coordinator_process() };
    let (joining, directory) = (access.clone(), access.directory.clone());
    let (process, mut events) = join(joining, RunnerRole::Store, &Surroundings::Process, || {})?;
    let (told, mut words) = unbounded_channel();
    let asked = Arc::clone(&process);
    let connector = connect_stores(&access, &tls, move |node| asked.with(|state| state.address_of(node)));
    let start = move || {
        let directory = SocketDirectory::open(&directory)?;
        NodeStore::start(&directory, check, settings, StoreOutlets { told, connector })
    };
    let store = spawn_blocking(start).await.map_err(|panic| panic.to_string())?;
    let store =
        Arc::new(store.map_err(|error| format!("cannot listen for the processes of this node: {error}"))?);
    let admission = Arc::new(NetworkAdmission::new(tls, check));
    let serving = Arc::clone(&store);
    // Sessions are for processes with code of the user.
    spawn_local(port.serve(drop, move |stranger| serving.serve_network(admit_store(&admission, stranger))));
    say(&process, FromStore::Listens { at });
    let code = loop {
        tokio::select! {
            () = terminate.said() => break TERMINATED,
            Some(word) = words.recv() => say(&process, word),
            Some(event) = events.recv() => match event {
                ProcessEvent::Store(word) => store.obey(word),
                ProcessEvent::End => break 0,
                // Of a task.
                ProcessEvent::Failed | ProcessEvent::Interrupted(_) => {}
            },
        }
    };
    process.settle(SETTLING).await;
    Ok(code)
}

fn say(process: &MemberProcess, word: FromStore) {
    process.with(|state| state.store_says(word));
}
