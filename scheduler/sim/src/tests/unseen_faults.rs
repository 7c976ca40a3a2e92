//! Faults of MPS servers that no worker daemon observed: the clients that they ended are recorded as victims.

use cohabit_types::{Signal, StopReason};
use cohabit_worker_core::{GpuAccess, MpsEvent, MpsOrder};

use super::gpus::*;
use super::kit::*;
use crate::machine::{Disk, FaultAttribution, FaultChance, Outbox, SimMachine};
use crate::process::StartConditions;
use crate::random::Random;
use crate::recorder::TraceDetail;
use crate::run::run;
use crate::scenario::{ExternalEvent, Scenario};

const VICTIM: Option<StopReason> = Some(StopReason::MpsFaultVictim);

/// A machine whose MPS server broke and whose only client has ended while no worker daemon ran.
fn after_an_unseen_fault() -> SimMachine {
    let mut machine = machine();
    let (client, mut out) = (rank_start(1, CLIENT), Outbox::default());
    let rank = client.rank;
    machine.carry_out(&gpu(), MpsOrder::Start(None), FaultChance::Succeeds).unwrap();
    machine.spawn(at(0), client, StartConditions::IDEAL, &mut out).unwrap();
    fire_timers(&mut machine, out);
    machine.break_mps_server(at(50), 0, FaultAttribution::Unknown);
    let mut out = Outbox::default();
    machine.signal(at(60), rank, Signal::KILL, &mut out);
    fire_timers(&mut machine, out);
    assert_eq!(machine.live().count(), 0);
    machine
}

/// Fires every pending timer once.
fn fire_timers(machine: &mut SimMachine, out: Outbox) {
    out.timers.into_iter().for_each(|(at, timer)| machine.handle_timer(at, timer, &mut Outbox::default()));
}

/// The stop reasons of the ranks that a new worker daemon finds.
fn stops_found(machine: &mut SimMachine) -> Vec<Option<StopReason>> {
    machine
        .find_ranks(at(300), &mut Outbox::default())
        .into_iter()
        .map(|found| found.ending.expect("it has ended").stopped)
        .collect()
}

#[test]
fn a_victim_stays_one_after_the_server_has_recovered() {
    let mut machine = after_an_unseen_fault();
    assert_eq!(stops_found(&mut machine), [VICTIM]);
    assert_eq!(machine.carry_out(&gpu(), MpsOrder::Recover(None), FaultChance::Succeeds), Ok(MpsEvent::Up));
    assert_eq!(stops_found(&mut machine), [VICTIM]);
}

#[test]
fn a_fault_is_known_after_a_power_cut_if_the_disk_was_kept() {
    let mut machine = after_an_unseen_fault();
    machine.power_off(at(100), Disk::Kept, &mut Random::stream(1, "power"));
    assert_eq!(stops_found(&mut machine), [VICTIM]);
    machine.power_off(at(200), Disk::Wiped, &mut Random::stream(1, "power"));
    assert!(machine.is_clean());
}

#[test]
fn a_machine_without_power_has_no_mps_clients() {
    let mut machine = machine();
    machine.carry_out(&gpu(), MpsOrder::Start(None), FaultChance::Succeeds).unwrap();
    machine.power_off(at(100), Disk::Kept, &mut Random::stream(1, "power"));
    assert!(!machine.serves_clients());
    machine.restart_lost_gpus();
    let alone = rank_start(1, GpuAccess::Exclusive);
    assert_eq!(machine.spawn(at(200), alone, StartConditions::IDEAL, &mut Outbox::default()), Ok(()));
}

/// Three clients whose server breaks just before a new worker daemon adopts it. Some end by themselves before
/// the adoption is complete.
fn broken_before_it_is_adopted() -> Scenario {
    let crash = ExternalEvent::CrashWorker { node: 0, down_for: secs(30) };
    let scenario = (0..3).fold(lab(1), |scenario, _| scenario.submit(at(50), sharer(1_000)));
    scenario.inject(at(100), crash).inject(at(129), break_mps(FaultAttribution::Unknown))
}

#[test]
fn a_client_that_ends_while_its_server_is_adopted_is_a_victim() {
    let mut victims = 0;
    for seed in 0..40 {
        let run = run(seed, broken_before_it_is_adopted(), TraceDetail::Last(60));
        assert_eq!(run.failure, None, "seed {seed}: {}", run.trace.join("\n"));
        victims += run.jobs.iter().filter(|job| job.attempts[0].stopped == VICTIM).count();
    }
    // With some seeds no server could be started.
    assert!(victims > 90, "{victims}");
}
