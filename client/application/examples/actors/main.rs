//! The program of the tests: a few actors, and a `main` that plays one scenario with them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "tests look at what it prints")]

mod actors;
mod connections;
mod measure;
mod scenarios;

#[cohabit::main(name = "actors", max_gpus = 2)]
async fn main() -> cohabit::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["count"] => scenarios::count().await,
        ["a_restart_says_so"] => scenarios::a_restart_says_so().await,
        ["a_marked_call_is_sent_again", mark] => scenarios::a_marked_call_is_sent_again(mark).await,
        ["an_actor_is_given_up"] => scenarios::an_actor_is_given_up().await,
        ["calls_survive_cut_links"] => scenarios::calls_survive_cut_links().await,
        ["reads_overlap_writes_do_not"] => scenarios::reads_overlap_writes_do_not().await,
        ["names_are_unique_and_found"] => scenarios::names_are_unique_and_found().await,
        ["leave_a_detached_actor"] => scenarios::leave_a_detached_actor().await,
        ["stop_the_detached_actor"] => scenarios::stop_the_detached_actor().await,
        ["dropped_handles_end_actors"] => scenarios::dropped_handles_end_actors().await,
        ["handles_are_passed_on"] => scenarios::handles_are_passed_on().await,
        ["dropped_calls_are_cancelled"] => scenarios::dropped_calls_are_cancelled().await,
        ["queues_are_bounded"] => scenarios::queues_are_bounded().await,
        ["errors_and_panics_are_told"] => scenarios::errors_and_panics_are_told().await,
        ["values_that_do_not_travel_are_refused"] => scenarios::values_that_do_not_travel_are_refused().await,
        ["an_actor_saves_its_work"] => scenarios::an_actor_saves_its_work().await,
        ["wait"] => scenarios::wait().await,
        ["fail"] => scenarios::fail().await,
        ["measure"] => measure::measure().await,
        _ => Err(format!("there is no scenario {arguments:?}"))?,
    }
}
