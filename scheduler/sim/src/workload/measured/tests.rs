//! Tables by hand: measured sets are reproduced, and the others follow from them.

use cohabit_policy::interference::{ColocationEstimate, ColocationSet};

use super::*;
use crate::machine_spec::MachineSpec;

const GIB: u64 = 1 << 30;

fn machine(model: &str, gibibytes: u64) -> MachineSpec {
    MachineSpec::new("node", 1).with_gpu(model, Bytes(gibibytes * GIB))
}

const HEADING: &str = "set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible\n";

/// Rows of a table: set, GPU, sharing, model, batch, rate alone, rate, memory alone in GiB, utilization
/// alone, whether the set fitted.
fn table(rows: &[&str]) -> Vec<MeasuredSet> {
    let mut text = HEADING.to_owned();
    for row in rows {
        let cells: Vec<&str> = row.split_whitespace().map(|cell| cell.trim_matches('-')).collect();
        let [set, gpu, sharing, model, batch, alone, rate, memory, busy, feasible] = cells[..] else {
            panic!("{row}");
        };
        let memory = memory.parse::<u64>().map_or(String::new(), |gibibytes| (gibibytes * GIB).to_string());
        text +=
            &format!("{set},{gpu},{sharing},{model},{batch},{alone},{rate},{memory},,{busy},,{feasible}\n");
    }
    read_measurements(text.as_bytes()).unwrap()
}

/// Three models: two of `a` slow each other by 2, `a` beside `b` by 1.25 and 2, `a` beside `c` by 1.5 and
/// 1.1, and `b` does not fit beside `c`.
fn three() -> Vec<MeasuredSet> {
    table(&[
        "1 v100 mps a 1 10 5 6 - true",
        "1 v100 mps a 1 10 5 6 - true",
        "2 v100 mps a 1 10 8 6 - true",
        "2 v100 mps b 2 4 2 7 0.6 true",
        "3 v100 mps a 1 10 6.666666 6 - true",
        "3 v100 mps c - 11 10 8 0.3 true",
        "4 v100 mps b 2 - - 7 0.6 false",
        "4 v100 mps c - - - 8 0.3 false",
    ])
}

fn on(shape: MachineSpec) -> Measurements {
    Measurements::of(&three(), &[shape]).unwrap()
}

/// The true estimates of models that share a V100, each with its only batch size.
fn estimates_of(truth: &dyn Interference, models: &[&str]) -> Vec<ColocationEstimate> {
    let member = |model: &&str| {
        let batch = match *model {
            "a" => Some(1),
            "b" => Some(2),
            _ => None,
        };
        SetMember { model: (*model).to_owned(), batch, ..SetMember::default() }
    };
    let members = models.iter().map(member).collect();
    let set = ColocationSet { gpu: GpuKind::named("V100"), sharing: None, members };
    truth.predict(&[set]).remove(0)
}

#[track_caller]
fn slowed(measured: &Measurements, models: &[&str], slowdowns: &[f64]) {
    let estimates = estimates_of(&*measured.table_truth(), models);
    let close = estimates
        .iter()
        .zip(slowdowns)
        .all(|(estimates_of, should)| (estimates_of.slowdown - should).abs() < 1e-4);
    assert!(close && estimates.len() == slowdowns.len(), "{estimates:?} instead of {slowdowns:?}");
}

#[test]
fn measured_pairs_are_true_in_either_order() {
    let measured = on(machine("V100", 16));
    slowed(&measured, &["a", "b"], &[1.25, 2.0]);
    slowed(&measured, &["b", "a"], &[2.0, 1.25]);
    slowed(&measured, &["a", "a"], &[2.0, 2.0]);
    slowed(&measured, &["c"], &[1.0]);
}

#[test]
fn the_costs_of_partners_add_up() {
    let measured = on(machine("V100", 32));
    slowed(&measured, &["a", "a", "b"], &[2.25, 2.25, 3.0]);
}

#[test]
fn sets_without_memory_do_not_fit() {
    let truth = on(machine("V100", 16)).table_truth();
    let fits = |models: &[&str]| estimates_of(&*truth, models).iter().map(|it| it.fits).collect::<Vec<_>>();
    assert_eq!(fits(&["a", "b"]), [1.0, 1.0], "13 of 16 GiB");
    assert_eq!(fits(&["b", "c"]), [0.0, 0.0], "15 of 16 GiB, but it was tried");
    assert_eq!(fits(&["a", "a", "b"]), [0.0; 3], "19 of 16 GiB");
    assert_eq!(estimates_of(&*truth, &["b", "a"])[0].memory, Some((7 * GIB) as f64));
}

#[test]
fn a_set_that_did_not_fit_may_fit_into_more_memory() {
    let estimates = estimates_of(&*on(machine("V100", 32)).table_truth(), &["b", "c"]);
    assert!(
        estimates.iter().all(|estimates_of| estimates_of.fits == 1.0) && estimates[0].slowdown > 1.0,
        "{estimates:?}"
    );
}

#[test]
fn missing_utilization_follows_from_the_slowdown_of_two_copies() {
    let measured = on(machine("V100", 16));
    let busy: Vec<f64> = measured.trained().iter().map(|trained| trained.busy).collect();
    assert!((busy[0] - 0.475 * 2.0).abs() < 1e-9 && busy[1..] == [0.6, 0.3], "{busy:?}");
    // The law slows two jobs that need 0.95 each by as much as was measured.
    let twice = estimates_of(&*measured.law_truth(), &["a", "a"]);
    assert!(twice.iter().all(|estimates_of| (estimates_of.slowdown - 2.0).abs() < 1e-9), "{twice:?}");
}

/// Slows every job with a partner by three and keeps the other values.
#[derive(Debug)]
struct Three;

impl Interference for Three {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let estimate = |member: &SetMember| ColocationEstimate::slowed(member, 3.0, 0.0);
        sets.iter().map(|set| set.members.iter().map(estimate).collect()).collect()
    }
}

#[test]
fn memory_is_that_of_the_devices_whatever_the_truth() {
    let truth = on(machine("V100", 16)).truth_from(Arc::new(Three));
    let estimates = |models: &[&str]| {
        estimates_of(&*truth, models).iter().map(|it| (it.slowdown, it.fits)).collect::<Vec<_>>()
    };
    assert_eq!(estimates(&["a", "b"]), [(3.0, 1.0); 2]);
    assert_eq!(estimates(&["a", "a", "b"]), [(3.0, 0.0); 3]);
    let memory: Vec<f64> = estimates_of(&*truth, &["a", "c"]).iter().filter_map(|it| it.memory).collect();
    assert_eq!(memory, [(6 * GIB) as f64, (8 * GIB) as f64]);
}

/// Gives a special answer for sets that share under MPS.
#[derive(Debug)]
struct OfMps;

impl Interference for OfMps {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let slowdown =
            |set: &ColocationSet| if set.sharing == Some(SharingStrategy::Mps) { 1.5 } else { 9.0 };
        let estimate = |set: &ColocationSet| {
            set.members.iter().map(|it| ColocationEstimate::slowed(it, slowdown(set), 0.0)).collect()
        };
        sets.iter().map(estimate).collect()
    }
}

#[test]
fn a_predictor_is_queried_for_the_sharing_of_the_table() {
    let predictor = on(machine("V100", 16)).with_measured_sharing(Arc::new(OfMps));
    assert_eq!(estimates_of(&*predictor, &["a", "b"])[0].slowdown, 1.5);
    let elsewhere =
        ColocationSet { gpu: GpuKind::named("h200"), members: vec![SetMember::default(); 2], sharing: None };
    assert_eq!(predictor.predict(&[elsewhere])[0][0].slowdown, 9.0);
}

#[test]
fn a_missing_pair_follows_from_sensitivity_and_pressure() {
    // Slowdowns that are a product of the sensitivity of one and the pressure of the other.
    let (sensitivity, pressure) = ([1.0, 1.2, 1.5, 1.1, 1.3], [1.1, 1.4, 1.2, 1.6, 1.3]);
    let mut rows = Vec::new();
    for one in 0..5 {
        for other in one..5 {
            if (one, other) != (1, 3) {
                let rate = |job: usize, partner: usize| 1.0 / (sensitivity[job] * pressure[partner]);
                let row =
                    |job, partner| format!("{one}{other} v100 - m{job} 1 1 {} 1 0.5 1", rate(job, partner));
                rows.extend([row(one, other), row(other, one)]);
            }
        }
    }
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let measured = Measurements::of(&table(&rows), &[machine("V100", 16)]).unwrap();
    let member = |job: usize| SetMember { model: format!("m{job}"), batch: Some(1), ..SetMember::default() };
    let members = vec![member(1), member(3)];
    let set = ColocationSet { gpu: GpuKind::named("v100"), sharing: None, members };
    let estimates = measured.table_truth().predict(&[set]).remove(0);
    for (estimates_of, should) in estimates.iter().zip([1.2 * 1.6, 1.1 * 1.4]) {
        assert!((estimates_of.slowdown / should - 1.0).abs() < 0.06, "{estimates:?} instead of {should}");
    }
}

#[test]
fn jobs_train_configurations_that_were_measured_and_fit_on_every_gpu() {
    let rows = [
        "1 v100 mps a 1 10 5 6 - true",
        "1 v100 mps big 1 10 5 14 - true",
        "2 v100 mps b 1 10 5 1 - true",
        "2 v100 mps b 1 10 5 1 - true",
        "3 nvidia_k80 mps a 1 2 1 6 - true",
        "3 nvidia_k80 mps big 1 2 1 14 - true",
    ];
    let measured = Measurements::of(&table(&rows), &[machine("V100", 16), machine("K80", 12)]).unwrap();
    let [a] = measured.trained() else { panic!("{:?}", measured.trained()) };
    let stage = &a.model.stages[0];
    assert_eq!((a.model.name.as_deref(), a.memory), (Some("a"), Bytes(6 * GIB)));
    assert_eq!((stage.compute_seconds_on["V100"], stage.compute_seconds_on["K80"]), (0.1, 0.5));
}

#[test]
fn missing_memory_is_linear_in_the_batch_size() {
    let rows = ["1 v100 - ResNet-50 64 10 5 - - 1", "1 v100 - other 8 10 5 - - 1"];
    let measured = Measurements::of(&table(&rows), &[machine("V100", 16)]).unwrap();
    let mebibytes: Vec<u64> = measured.trained().iter().map(|it| it.memory.0 >> 20).collect();
    assert_eq!(mebibytes, [1_950 + 64 * 79, 3_000 + 8 * 16]);
}

#[test]
fn an_unusable_table_is_refused_with_a_reason() {
    let refusal = |rows: &[&str], model, gibibytes| {
        Measurements::of(&table(rows), &[machine(model, gibibytes)]).unwrap_err().to_string()
    };
    let pair = ["1 v100 mps a 1 10 5 6 - true", "1 v100 mps a 1 10 5 6 - true"];
    assert!(refusal(&pair, "T4", 16).starts_with("the table has no measurements on T4, only on v100:"));
    assert!(refusal(&pair, "V100", 4).contains("fits into its memory"));
    assert!(
        refusal(&["1 v100 mps a 1 10 10 6 - true"], "V100", 16)
            .starts_with("the table has no co-located jobs on")
    );
}

#[test]
fn the_header_determines_the_format_of_the_table() {
    let pairs = "source,gpu,model1,batch1,model2,batch2,co1,co2,iso1,iso2,n1,n2,nsum,feasible\n\
                 oracle,v100,LM,5,A3C,0,2,1,4,1,0.5,1,1.5,1\nsim,v100,LM,5,A3C,0,1,1,4,1,0.5,1,1.5,1\n";
    let read = read_measurements(pairs.as_bytes()).unwrap();
    assert_eq!((read.len(), read[0].set.members[0].model.as_str()), (1, "LM"));
    let refusal = read_measurements("a,b\n1,2\n".as_bytes()).unwrap_err().to_string();
    assert!(refusal.starts_with("line 1: unknown co-location table format"), "{refusal}");
}
