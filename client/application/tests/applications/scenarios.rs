//! One test for each scenario of the program.

use cohabit_client::types::{JobId, JobState};

use crate::fake_head::FakeHead;
use crate::fake_jobs::end_of;
use crate::program;

/// Plays a scenario, which has to end well, with all that it started.
pub(crate) async fn play(arguments: &[&str]) -> FakeHead {
    let head = FakeHead::start().await;
    play_on(&head, arguments).await;
    head
}

pub(crate) async fn play_on(head: &FakeHead, arguments: &[&str]) {
    let root = head.launch(&program(), arguments);
    let ended = head.ended(root).await;
    let main = JobId::new(root.number + 1);
    let (printed, said) = head.printed(main);
    let coordinator = head.printed(root).1;
    assert_eq!(
        end_of(&ended),
        (JobState::Completed, Some(0)),
        "{arguments:?}\n{printed}\n{said}\n{coordinator}"
    );
    let live = head.jobs().values().filter(|job| !job.record.state.is_terminal()).count();
    assert_eq!(live, 0, "the end of the root ends its children");
    assert_eq!(coordinator, "", "the coordinator has nothing to say");
}

#[tokio::test]
async fn a_restart_says_so() {
    let head = play(&["a_restart_says_so"]).await;
    let actor = head.jobs()[&JobId::new(3)].record.clone();
    assert_eq!((actor.name.as_str(), actor.attempt), ("Counter", 2));
}

#[tokio::test]
async fn a_marked_call_is_sent_again_before_later_ones() {
    let head = FakeHead::start().await;
    let mark = head.folder().join("mark");
    play_on(&head, &["a_marked_call_is_sent_again", mark.to_str().unwrap()]).await;
}

#[tokio::test]
async fn an_actor_that_fails_too_often_is_given_up() {
    play(&["an_actor_is_given_up"]).await;
}

#[tokio::test]
async fn calls_survive_cut_links() {
    play(&["calls_survive_cut_links"]).await;
}

#[tokio::test]
async fn reads_overlap_writes_do_not() {
    play(&["reads_overlap_writes_do_not"]).await;
}

#[tokio::test]
async fn names_are_unique_and_found() {
    play(&["names_are_unique_and_found"]).await;
}

#[tokio::test]
async fn dropped_handles_end_actors() {
    play(&["dropped_handles_end_actors"]).await;
}

#[tokio::test]
async fn handles_are_passed_on() {
    play(&["handles_are_passed_on"]).await;
}

#[tokio::test]
async fn dropped_calls_are_cancelled() {
    play(&["dropped_calls_are_cancelled"]).await;
}

#[tokio::test]
async fn queues_are_bounded() {
    play(&["queues_are_bounded"]).await;
}

#[tokio::test]
async fn errors_and_panics_are_told() {
    play(&["errors_and_panics_are_told"]).await;
}

#[tokio::test]
async fn values_that_do_not_travel_are_refused() {
    play(&["values_that_do_not_travel_are_refused"]).await;
}

#[tokio::test]
async fn an_actor_saves_its_work_when_it_is_stopped() {
    let head = play(&["an_actor_saves_its_work"]).await;
    assert_eq!(end_of(&head.jobs()[&JobId::new(3)].record), (JobState::Completed, Some(0)));
}

#[tokio::test]
async fn a_detached_actor_outlives_its_main() {
    let head = FakeHead::start().await;
    let root = head.launch(&program(), &["leave_a_detached_actor"]);
    let main = JobId::new(root.number + 1);
    head.until(|jobs| jobs.get(&main).filter(|it| it.record.state.is_terminal()).map(drop)).await;
    assert_eq!(head.jobs()[&root].record.state, JobState::Running, "{:?}", head.printed(main));
    let joined = head.join(root, &program(), &["stop_the_detached_actor"]);
    assert_eq!(end_of(&head.ended(root).await), (JobState::Completed, Some(0)));
    assert_eq!(end_of(&head.ended(joined).await).0, JobState::Completed, "{:?}", head.printed(joined));
}

#[tokio::test]
async fn the_code_of_the_first_main_is_that_of_the_application() {
    let head = FakeHead::start().await;
    let root = head.launch(&program(), &["fail"]);
    assert_eq!(end_of(&head.ended(root).await), (JobState::Failed, Some(1)));
    assert_eq!(head.printed(JobId::new(2)).1, "cohabit: main failed: nothing to do\n");
}

#[tokio::test]
async fn processes_end_with_their_coordinator() {
    let head = FakeHead::start().await;
    let root = head.launch(&program(), &["wait"]);
    let main = JobId::new(root.number + 1);
    let waits = |jobs: &crate::fake_jobs::Jobs| {
        let printed = jobs.get(&main)?.text(cohabit_client::types::LogStream::Stdout);
        (printed == "waits with 1\n").then_some(())
    };
    head.until(waits).await;
    // The fake head does not know whose they are any more, so that nobody else ends them.
    head.jobs().values_mut().for_each(|job| job.record.application = None);
    head.jobs()[&root].signal(nix::sys::signal::Signal::SIGKILL);
    for job in [main, JobId::new(3)] {
        assert_eq!(end_of(&head.ended(job).await), (JobState::Failed, Some(1)));
        let said = head.printed(job).1;
        assert!(said.contains("the coordinator of the application has ended"), "{said}");
    }
}

#[tokio::test]
#[ignore = "takes times: run it alone, with a release build"]
async fn measure_calls() {
    let head = play(&["measure_calls"]).await;
    show(&head);
}

/// Shows what main printed.
pub(crate) fn show(head: &FakeHead) {
    let text = head.printed(JobId::new(2)).0;
    std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
}
