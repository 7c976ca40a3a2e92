//! The program of the tests: a few actors and tasks, and a `main` that plays one scenario with them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "tests look at what it prints")]

mod actors;
mod connections;
mod measure;
mod reference_scenarios;
mod references;
mod scenarios;
mod stream_scenarios;
mod streams;
mod task_scenarios;
mod tasks;

use std::path::Path;

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
        ["a_killed_runner_costs_a_retry", folder] => {
            task_scenarios::a_killed_runner_costs_a_retry(Path::new(folder)).await
        }
        ["recursion_deeper_than_cores_ends"] => task_scenarios::recursion_deeper_than_cores_ends().await,
        ["dropping_a_ref_cancels_its_tree"] => task_scenarios::dropping_a_ref_cancels_its_tree().await,
        ["tasks_get_and_give_handles"] => task_scenarios::tasks_get_and_give_handles().await,
        ["errors_and_panics_of_tasks_are_told"] => {
            task_scenarios::errors_and_panics_of_tasks_are_told().await
        }
        ["retries_are_counted", folder] => task_scenarios::retries_are_counted(Path::new(folder)).await,
        ["a_plain_task_asks_whether_it_is_cancelled", folder] => {
            task_scenarios::a_plain_task_asks_whether_it_is_cancelled(Path::new(folder)).await
        }
        ["a_runner_that_is_told_to_end_gives_its_tasks_away", folder] => {
            task_scenarios::a_runner_that_is_told_to_end_gives_its_tasks_away(Path::new(folder)).await
        }
        ["a_task_that_does_not_end_ends_its_process", folder] => {
            task_scenarios::a_task_that_does_not_end_ends_its_process(Path::new(folder)).await
        }
        ["tasks_are_bounded"] => task_scenarios::tasks_are_bounded().await,
        ["a_runner_ends_when_it_is_idle"] => task_scenarios::a_runner_ends_when_it_is_idle().await,
        ["actors_end_in_good_order"] => task_scenarios::actors_end_in_good_order().await,
        ["items_come_in_order", folder] => stream_scenarios::items_come_in_order(Path::new(folder)).await,
        ["a_maker_pauses_at_8_unread_items", folder] => {
            stream_scenarios::a_maker_pauses_at_8_unread_items(Path::new(folder)).await
        }
        ["a_stream_goes_on_after_the_end_of_its_process", folder] => {
            stream_scenarios::a_stream_goes_on_after_the_end_of_its_process(Path::new(folder)).await
        }
        ["dropping_a_stream_cancels_its_task"] => {
            stream_scenarios::dropping_a_stream_cancels_its_task().await
        }
        ["errors_of_streams_come_after_their_items"] => {
            stream_scenarios::errors_of_streams_come_after_their_items().await
        }
        ["items_have_handles"] => stream_scenarios::items_have_handles().await,
        ["measure_calls"] => measure::measure_calls().await,
        ["measure_actors"] => measure::measure_actors().await,
        ["measure_tasks"] => measure::measure_tasks().await,
        _ => play_references(&arguments).await,
    }
}

/// Plays a scenario with references.
async fn play_references(arguments: &[&str]) -> cohabit::Result<()> {
    match *arguments {
        ["references_are_arguments", folder] => {
            reference_scenarios::references_are_arguments(Path::new(folder)).await
        }
        ["a_task_returns_the_reference_of_its_call", folder] => {
            reference_scenarios::a_task_returns_the_reference_of_its_call(Path::new(folder)).await
        }
        ["a_process_with_calls_is_not_idle", folder] => {
            reference_scenarios::a_process_with_calls_is_not_idle(Path::new(folder)).await
        }
        ["a_failed_dependency_is_told"] => reference_scenarios::a_failed_dependency_is_told().await,
        ["dropping_the_last_reference_cancels", folder] => {
            reference_scenarios::dropping_the_last_reference_cancels(Path::new(folder)).await
        }
        ["a_limit_holds_for_what_nobody_awaits"] => {
            reference_scenarios::a_limit_holds_for_what_nobody_awaits().await
        }
        ["who_waits_for_a_reference_gives_its_core_back", folder] => {
            reference_scenarios::who_waits_for_a_reference_gives_its_core_back(Path::new(folder)).await
        }
        ["large_values_travel"] => reference_scenarios::large_values_travel().await,
        ["objects_are_read_in_place"] => reference_scenarios::objects_are_read_in_place().await,
        ["references_lie_in_objects"] => reference_scenarios::references_lie_in_objects().await,
        ["an_object_outlives_its_maker", folder] => {
            reference_scenarios::an_object_outlives_its_maker(Path::new(folder)).await
        }
        ["an_actor_keeps_its_arguments"] => reference_scenarios::an_actor_keeps_its_arguments().await,
        ["references_that_do_not_travel_are_refused"] => {
            reference_scenarios::references_that_do_not_travel_are_refused().await
        }
        _ => Err(format!("there is no scenario {arguments:?}"))?,
    }
}
