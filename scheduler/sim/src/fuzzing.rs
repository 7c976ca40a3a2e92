//! Properties that must hold for traces and clusters from untrusted input, for `integration/fuzz`.
//!
//! Every function takes any bytes and panics if a property is violated.

use std::sync::LazyLock;

use cohabit_types::Span;

use crate::ClusterSpec;
use crate::trace::{ReadOptions, Strictness, ThroughputSource, Throughputs, TraceError, TraceFormat, read};

/// Reads a trace in every format or with recognition, or Gavel's table of throughputs. The first byte chooses
/// which; a trace may be compressed.
pub fn traces(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else { return };
    let format = match choice % 8 {
        0 => None,
        1 => Some(TraceFormat::Csv),
        2 => Some(TraceFormat::Philly),
        3 => Some(TraceFormat::Openb),
        4 => Some(TraceFormat::Gavel),
        5 => return throughputs(text),
        6 => Some(TraceFormat::Pai),
        _ => Some(TraceFormat::PaiSeconds),
    };
    let strictness = if choice & 0x80 == 0 { Strictness::Lenient } else { Strictness::Strict };
    let is_gavels = matches!(format, None | Some(TraceFormat::Gavel));
    let throughputs = is_gavels.then(|| THROUGHPUTS.clone());
    match read(text, &ReadOptions { format, strictness, throughputs }) {
        Ok(trace) => {
            assert!(!trace.jobs.is_empty() && trace.jobs[0].submitted == Span::ZERO);
            assert!(trace.jobs.is_sorted_by_key(|job| job.submitted));
            for job in &trace.jobs {
                assert!(job.duration > Span::ZERO && job.devices_milli > 0, "{job:?}");
            }
            let lines = trace.skipped.iter().map(|row| row.line);
            assert!(lines.clone().all(|line| line > 0) && lines.is_sorted(), "{:?}", trace.skipped);
            assert!(strictness == Strictness::Lenient || trace.skipped.is_empty());
        }
        Err(TraceError::BadRow(row)) => assert!(row.line > 0 && strictness == Strictness::Strict, "{row:?}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The throughputs for Gavel's traces.
static THROUGHPUTS: LazyLock<Throughputs> = LazyLock::new(|| {
    let table = "source,gpu,model,batch_size,scale_factor,consolidated,steps_per_s\n\
                 sim,v100,ResNet-18,64,1,True,12.5\n";
    Throughputs::read(table.as_bytes(), ThroughputSource::default()).expect("the table is whole")
});

fn throughputs(text: &[u8]) {
    if let Err(error) = Throughputs::read(text, ThroughputSource::default()) {
        assert!(!error.to_string().is_empty());
    }
}

/// A cluster has as many machines and devices as it states.
pub fn clusters(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(cluster) = text.parse::<ClusterSpec>() else { return };
    if cluster.devices() < 1_000 {
        let devices = cluster.shapes().iter().map(|shape| u64::from(shape.devices)).sum::<u64>();
        assert_eq!(devices, cluster.devices());
    }
}
