//! How long agents take to value an observation and to agree on a joint action, and how long an update of
//! their networks takes: run by hand, prints a table.
//!
//! The networks are untrained, which costs the same. A plan with n sub-steps takes n times both.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
#![expect(clippy::print_stdout, reason = "a bench is read on a terminal")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on ends here")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use cohabit_policy::maifs::{Agents, JointObservation, JointQ, JointTransition, ObservationShape};
use cohabit_predict::maifs::{FeatureScales, Learner, LearnerSettings, NetworkVariant};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const RUNS: usize = 300;

fn main() {
    println!("| what | nodes | p50, ms | p99, ms |");
    println!("|---|---|---|---|");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for nodes in [4, 8, 16, 32] {
        let seen: Vec<_> = (0..RUNS).map(|_| Arc::new(observation(&mut random, nodes))).collect();
        let learner = Learner::new(settings(), FeatureScales::fit(&seen)).unwrap();
        let mut agents = learner.agents();
        print(
            "values of an observation",
            nodes,
            seen.iter().map(|it| timed(|| drop(black_box(agents.values(std::slice::from_ref(it)))))),
        );
        let values = agents.values(&seen);
        print(
            "the joint action",
            nodes,
            seen.iter().zip(&values).map(|(seen, values)| {
                timed(|| drop(black_box(JointQ::of(seen, values, agents.coordination()).best_action())))
            }),
        );
    }
    print("an update", 8, updates(&mut random).into_iter());
}

/// Updates every sub-step, with a teacher.
fn settings() -> LearnerSettings {
    LearnerSettings { update_interval: 1, ..LearnerSettings::new(NetworkVariant::default(), 1) }
}

/// Milliseconds of each update on 32 transitions of 8 nodes.
fn updates(random: &mut ChaCha8Rng) -> Vec<f64> {
    let mut learner = Learner::new(settings(), FeatureScales::identity()).unwrap();
    let mut times = Vec::new();
    while times.len() < RUNS {
        let [now, next] = [(); 2].map(|()| Arc::new(observation(random, 8)));
        let action = JointQ::of(
            &now,
            &learner.agents().values(&[Arc::clone(&now)])[0],
            learner.agents().coordination(),
        )
        .best_action();
        let teacher = action.iter().map(|own| Some(*own)).collect();
        let transition = JointTransition {
            observation: now,
            action,
            reward: 0.0,
            discount: 1.0,
            next: Some(next),
            teacher,
        };
        let mut is_update = false;
        let time = timed(|| is_update = learner.observe(transition).unwrap().is_some());
        if is_update {
            times.push(time);
        }
    }
    times
}

/// A random observation with a full window, in which everything is legal.
fn observation(random: &mut ChaCha8Rng, nodes: usize) -> JointObservation {
    let shape = ObservationShape { nodes, jobs: 8, levels: 5 };
    let mut observation = JointObservation::new(shape);
    (0..nodes).for_each(|node| observation.set_server(node, &features(random)));
    (0..shape.jobs).for_each(|job| observation.set_task(job, &features(random)));
    for (node, job) in (0..nodes).flat_map(|node| (0..shape.jobs).map(move |job| (node, job))) {
        observation.set_pair(node, job, &features(random));
        (0..shape.levels).for_each(|level| observation.allow(node, job, level));
    }
    observation
}

fn features<const COUNT: usize>(random: &mut ChaCha8Rng) -> [f32; COUNT] {
    std::array::from_fn(|_| random.next_u32() as f32 / 2.0_f32.powi(31) - 1.0)
}

/// Milliseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn print(what: &str, nodes: usize, times: impl Iterator<Item = f64>) {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let [p50, p99] = [0.5, 0.99].map(|part| times[((times.len() - 1) as f64 * part) as usize]);
    println!("| {what} | {nodes} | {p50:.3} | {p99:.3} |");
}
