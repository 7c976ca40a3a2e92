//! Checks of input from peers: JSON in the journal has no NaN, and a job has to fit a message.

use std::collections::BTreeSet;

use cohabit_types::{
    Entrypoint, Inventory, JobSpec, ModelDescription, Progress, Refusal, RefusalCode, Report, Request,
};

/// The longest job, in bytes: an order for it has to fit a message with room to spare.
const LONGEST_JOB: usize = 2 << 20;

/// Refuses a request that could not be written down or passed on.
pub(crate) fn request(request: &Request) -> Result<(), Refusal> {
    match request {
        Request::Submit(submit) => job(&submit.spec),
        Request::Change(..) | Request::Drain(_) | Request::Resume(_) => Ok(()),
    }
}

/// The same for the job of a dry run.
pub(crate) fn job(spec: &JobSpec) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::Invalid, message));
    let weight = weight(spec);
    if weight > LONGEST_JOB {
        let kib = weight >> 10;
        return refuse(format!(
            "the script, arguments and environment of the job take {kib} KiB, and at most {} KiB are allowed: put \
             large values into files",
            LONGEST_JOB >> 10
        ));
    }
    match spec.model.as_ref().and_then(not_finite) {
        Some(field) => {
            refuse(format!("{field} of the model is not a finite number: correct it or leave it out"))
        }
        None => Ok(()),
    }
}

/// About how many bytes a job is long.
pub(super) fn weight(spec: &JobSpec) -> usize {
    let work = match &spec.entrypoint {
        Entrypoint::Command(command) => {
            command.argv.iter().map(|word| word.len() + 8).sum::<usize>()
                + command.script.as_ref().map_or(0, String::len)
        }
        Entrypoint::Function(function) => function.argument.len(),
        Entrypoint::Actor(actor) => actor.state.len(),
    };
    let environment = spec.environment.iter().map(|(name, value)| name.len() + value.len() + 16);
    let operators = spec.model.iter().flat_map(|model| model.operators.keys().map(|name| name.len() + 16));
    let stages = spec.model.iter().map(|model| model.stages.len() * 32);
    let texts = spec.name.len() + spec.workdir.len();
    let lists = spec.depends_on.len() * 24 + spec.array.as_ref().map_or(0, |array| array.ranges.len() * 12);
    work + texts + lists + environment.chain(operators).chain(stages).sum::<usize>()
}

fn not_finite(model: &ModelDescription) -> Option<&'static str> {
    let stage = |read: fn(&cohabit_types::PipelineStage) -> f64| {
        model.stages.iter().map(read).any(|it| !it.is_finite())
    };
    let single = |value: Option<f64>| value.is_some_and(|it| !it.is_finite());
    [
        ("flops-per-sample", single(model.flops_per_sample)),
        ("activation-bytes", single(model.activation_bytes)),
        ("compute-seconds of a stage", stage(|stage| stage.compute_seconds)),
        ("activation-bytes of a stage", stage(|stage| stage.activation_bytes)),
        ("gradient-bytes of a stage", stage(|stage| stage.gradient_bytes)),
    ]
    .into_iter()
    .find_map(|(field, broken)| broken.then_some(field))
}

/// A node with each of its devices once: a driver that lists one twice must not have it booked twice.
pub(crate) fn inventory(mut inventory: Inventory) -> Inventory {
    let mut known = BTreeSet::new();
    inventory.devices.retain(|device| known.insert(device.id.clone()));
    inventory
}

/// Reports with finite numbers only: workers promise that, and a broken promise must not break the journal.
pub(crate) fn reports(mut reports: Vec<Report>) -> Vec<Report> {
    for report in &mut reports {
        match report {
            Report::Started { .. } | Report::PrivateUser { .. } => {}
            Report::Ended { progress, .. } => progress.iter_mut().for_each(keep_finite),
            Report::Sharing { .. } | Report::Condition { .. } | Report::Telemetry(_) => {}
            Report::ColocationSamples(all) => all.retain(|it| it.rate.is_finite()),
            Report::Progress(all) => all.iter_mut().for_each(|it| keep_finite(&mut it.progress)),
        }
    }
    reports
}

fn keep_finite(progress: &mut Progress) {
    progress.rate = progress.rate.filter(|rate| rate.is_finite());
    progress.metrics.retain(|_, value| value.is_finite());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_kit::submit;

    fn refusal(change: impl FnOnce(&mut JobSpec)) -> String {
        let mut submit = submit();
        change(&mut submit.spec);
        request(&Request::Submit(Box::new(submit))).unwrap_err().message
    }

    #[test]
    fn a_job_without_end_is_refused() {
        let long = refusal(|spec| drop(spec.environment.insert("BIG".into(), "x".repeat(3 << 20))));
        assert!(long.contains("3072 KiB") && long.contains("put large values into files"), "{long}");
    }

    #[test]
    fn a_figure_that_is_no_number_is_named() {
        let model = ModelDescription { flops_per_sample: Some(f64::NAN), ..ModelDescription::default() };
        assert!(refusal(|spec| spec.model = Some(model)).contains("flops-per-sample"));
    }

    #[test]
    fn a_device_that_is_listed_twice_is_there_once() {
        let listed = crate::test_kit::inventory();
        let twice = Inventory { devices: [&listed.devices[..], &listed.devices].concat(), ..listed.clone() };
        assert_eq!(inventory(twice), listed);
    }

    #[test]
    fn numbers_of_a_report_are_finite() {
        let metrics = [("loss".to_owned(), f64::NAN), ("lr".to_owned(), 0.1)].into();
        let progress = Progress { rate: Some(f64::INFINITY), metrics, ..Progress::default() };
        let of = cohabit_types::AttemptProgress { attempt: "1#1".parse().unwrap(), progress };
        let Report::Progress(kept) = reports(vec![Report::Progress(vec![of])]).remove(0) else { panic!() };
        assert_eq!(kept[0].progress.rate, None);
        assert_eq!(kept[0].progress.metrics.keys().collect::<Vec<_>>(), ["lr"]);
    }
}
