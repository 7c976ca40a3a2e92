//! Applications with actors and tasks on simulated processes: the production cores of
//! `cohabit-application-core` on links that break, with processes that are killed between any two effects.
//!
//! ```text
//! run            one seed: phases, and the result               swarm      many seeds
//! world          processes, links and the head, event by event  event      what can happen
//! network        sessions, connections, their faults            faults     what is broken, and when
//! head           a small model of the head: jobs with attempts   head_shell    how processes come and go
//! process        one process: its core and what its user's code holds
//! member_shell   carries out the effects of a member     coordinator_shell   those of the coordinator
//! program        what users' code does next (gang_sizes)        ledger     the checks, from outside
//! task_plan      what tasks compute                             task_ledger   the checks of tasks
//! task_program   who calls which tasks                          task_shell    how tasks run (task_process)
//! wait_graph     who could go on, seen from outside      handle_circles   who keeps itself alive
//! stream_maker   how tasks make items                       stream_reader   how callers read them
//! stream_record  the checks of one stream                 open_stream     one that is read
//! object_program how objects are made and read              object_ledger   the checks of their values
//! object_process those of one process
//! store_shell    how the store of a node works              simulated_store it, and its messages
//! store_process  stores come and go                         fetches         between them
//! node           nodes, and who reaches whom                node_faults     while some do not
//! node_shell     what the coordinator says of nodes         place_ledger    where objects are, from outside
//! planted_bug    bugs that the checks have to find
//! ```

mod coordinator_shell;
mod counters;
mod event;
mod faults;
mod fetches;
mod gang_sizes;
mod handle_circles;
mod head;
mod head_shell;
mod ledger;
mod member_shell;
mod network;
mod node;
mod node_faults;
mod node_index;
mod node_shell;
mod object_ledger;
mod object_process;
mod object_program;
mod open_stream;
mod payload;
mod place_ledger;
mod planted_bug;
mod process;
mod program;
mod run;
mod simulated_fetch;
mod simulated_store;
mod store_process;
mod store_shell;
mod stream_maker;
mod stream_reader;
mod stream_record;
mod swarm;
mod task_ledger;
mod task_plan;
mod task_process;
mod task_program;
mod task_shell;
#[cfg(test)]
mod tests;
mod wait_graph;
mod world;

pub use counters::ApplicationCounters;
pub use run::{ApplicationRun, run_application};
pub use swarm::{ApplicationSummary, FailedApplication, application_command};
