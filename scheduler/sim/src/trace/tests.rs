//! Every format on samples of this project, and on the published files where they are available.

use std::fs::File;
use std::io::{ErrorKind, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use cohabit_types::{Bytes, Span};

use super::published::{published, read_published};
use super::*;

fn read_as(format: Option<TraceFormat>, text: &str) -> Result<Trace, TraceError> {
    read(text.as_bytes(), &ReadOptions { format, ..ReadOptions::default() })
}

fn strictly(text: &str) -> Result<Trace, TraceError> {
    read(text.as_bytes(), &ReadOptions { strictness: Strictness::Strict, ..ReadOptions::default() })
}

#[track_caller]
fn refusal(text: &str) -> String {
    read_as(None, text).unwrap_err().to_string()
}

fn skipped(trace: &Trace) -> Vec<(u64, &str)> {
    trace.skipped.iter().map(|skipped| (skipped.line, skipped.why.as_str())).collect()
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

const FULL: &str = "\
submit_s,duration_s,gpus,user,group,model,batch,iterations,gpu_share,gpu_mem_bytes,vc
30,12.5,1,ada,resnets,ResNet-152,32,100,0.25,8000000000,lab
10,7,4,bob,,GPT-2 medium,,,,,
";

#[test]
fn csv_traces_have_every_field() {
    let trace = read_as(None, FULL).unwrap();
    let expected = [
        TraceJob {
            line: Some(3),
            submitted: Span::ZERO,
            duration: Span::from_secs(7),
            devices_milli: 4_000,
            user: "bob".into(),
            group: "bob/GPT-2 medium/4000".into(),
            model: Some("GPT-2 medium".into()),
            batch: None,
            iterations: None,
            gpu_memory: None,
            virtual_cluster: None,
        },
        TraceJob {
            line: Some(2),
            submitted: Span::from_secs(20),
            duration: Span::from_millis(12_500),
            devices_milli: 250,
            user: "ada".into(),
            group: "resnets".into(),
            model: Some("ResNet-152".into()),
            batch: Some(32),
            iterations: Some(100),
            gpu_memory: Some(Bytes(8_000_000_000)),
            virtual_cluster: Some("lab".into()),
        },
    ];
    assert_eq!(trace.jobs, expected);
    assert_eq!(trace.skipped, []);
}

#[test]
fn a_gzip_file_reads_like_plain_text_even_in_several_members() {
    let reading = ReadOptions::default();
    let plain = read(FULL.as_bytes(), &reading).unwrap();
    assert_eq!(read(packed(FULL).as_slice(), &reading).unwrap(), plain);
    let (first, second) = FULL.split_at(90);
    let pieces = [packed(first), packed(second)].concat();
    assert_eq!(read(pieces.as_slice(), &reading).unwrap(), plain);
}

#[test]
fn a_truncated_gzip_file_is_an_error() {
    let whole = packed(FULL);
    let error = read(&whole[..whole.len() - 12], &ReadOptions::default()).unwrap_err();
    let TraceError::Unreadable(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn invalid_rows_are_reported_by_line_and_the_rest_is_read() {
    let text = "submit_s,duration_s,gpus,gpu_share\n\
                0,5,1,\n\
                1,0,1,\n\
                -1,5,1,\n\
                2,five,1,\n\
                3,5,0,\n\
                4,5,2.5,\n\
                5,5,2,0.5\n\
                6,5,1,1.5\n\
                7,5\n\
                \r\n\
                \n\
                8,5,,\r\n\
                9,1e99,1,\n\
                10,5,2.0,1.0\n";
    let trace = read_as(None, text).unwrap();
    assert_eq!(trace.jobs.len(), 2);
    assert_eq!(trace.jobs[1].devices_milli, 2_000);
    assert_eq!(
        skipped(&trace),
        [
            (3, "duration_s is 0: the job did not run"),
            (4, "submit_s is -1: expected a value from 0 to 1e10 s"),
            (5, "duration_s is 'five': expected a number"),
            (6, "gpus is 0: the job needs no GPU; a part of one GPU belongs in gpu_share"),
            (7, "gpus is '2.5': expected a whole number; a part of one GPU belongs in gpu_share"),
            (8, "gpu_share is 0.5: only one GPU can be shared, but gpus is larger than 1"),
            (9, "gpu_share is 1.5: expected a value from 0.001 to 1"),
            (10, "expected 4 columns, found 2"),
            (13, "gpus is empty; a part of one GPU belongs in gpu_share"),
            (14, "duration_s is 1e99: expected a value from 0 to 1e10 s"),
        ]
    );
}

#[test]
fn strict_reading_fails_on_the_first_invalid_row() {
    let error = strictly("submit_s,duration_s,gpus\n0,5,1\n1,x,1\n2,y,1\n").unwrap_err();
    assert_eq!(error.to_string(), "line 3: duration_s is 'x': expected a number");
}

#[test]
fn rows_that_are_not_utf_8_are_skipped() {
    let bytes = b"submit_s,duration_s,gpus,user\n0,5,1,\xff\n1,5,1,ada\n";
    let trace = read(bytes.as_slice(), &ReadOptions::default()).unwrap();
    assert_eq!((trace.jobs.len(), skipped(&trace)), (1, vec![(2, "not valid UTF-8")]));
}

#[test]
fn unknown_and_missing_columns_are_errors_that_name_the_known_ones() {
    let unknown = refusal("submit_s,duration_s,gpus,owner\n0,5,1,ada\n");
    assert!(unknown.contains("unknown column 'owner'") && unknown.contains("user, group"), "{unknown}");
    let missing = refusal("submit_s,gpus\n0,1\n");
    assert!(
        missing.starts_with("line 1: missing column duration_s: files in the format csv have submit_s, "),
        "{missing}"
    );
    let missing = read_as(Some(TraceFormat::Philly), "timestamp,cluster\n").unwrap_err().to_string();
    assert!(missing.starts_with("line 1: missing columns duration, num_gpus:"), "{missing}");
}

#[test]
fn an_unknown_format_and_a_trace_without_jobs_are_errors() {
    let unknown = refusal("hello,there\nworld\n");
    for words in [
        "line 1: unknown trace format",
        "'hello, there'",
        "csv (submit_s,duration_s,gpus), philly (",
        "gavel (7 or 10",
    ] {
        assert!(unknown.contains(words), "{words}: {unknown}");
    }
    assert!(refusal("").contains("found an empty line"));
    assert_eq!(refusal("submit_s,duration_s,gpus\n"), "the file has no usable job");
    let all_bad = refusal("submit_s,duration_s,gpus\n0,0,1\n0,0,2\n");
    assert!(all_bad.contains("2 rows were skipped, the first one on line 2"), "{all_bad}");
}

#[test]
fn jobs_submitted_at_the_same_time_keep_their_order() {
    let trace = read_as(None, "submit_s,duration_s,gpus,user\n5,1,1,b\n5,1,1,a\n0,1,1,c\n").unwrap();
    let users: Vec<&str> = trace.jobs.iter().map(|job| job.user.as_str()).collect();
    assert_eq!(users, ["c", "b", "a"]);
}

#[test]
fn a_part_of_a_trace_begins_at_zero() {
    let trace = read_as(None, "submit_s,duration_s,gpus\n5,1,1\n7,2,1\n9,3,1\n11,4,1\n").unwrap();
    let part = trace.clone().part(1, Some(2));
    let seconds: Vec<f64> = part.jobs.iter().map(|job| job.submitted.as_secs_f64()).collect();
    assert_eq!(seconds, [0.0, 2.0]);
    assert_eq!(part.length(), Span::from_secs(2));
    assert!(trace.part(9, None).jobs.is_empty());
}

#[test]
fn a_byte_order_mark_is_ignored() {
    let trace = read_as(None, "\u{feff}submit_s,duration_s,gpus\n0,1,1\n").unwrap();
    assert_eq!(trace.jobs.len(), 1);
}

#[test]
fn philly_timestamps_are_local_times() {
    let trace = read_as(
        None,
        "timestamp,duration,num_gpus,gpu_time,cluster\n\
         2017-09-07 00:00:01,60.0,8,480.0,aa\n\
         2017-09-06 23:59:59,30.5,1,30.5,bb\n\
         2017-09-31 00:00:00,30.5,1,30.5,bb\n",
    )
    .unwrap();
    let jobs: Vec<_> = trace.jobs.iter().map(|it| (it.submitted, it.devices_milli, &*it.group)).collect();
    assert_eq!(jobs, [(Span::ZERO, 1_000, "bb/1"), (Span::from_secs(2), 8_000, "aa/8")]);
    let why = "timestamp is '2017-09-31 00:00:00': expected a date like 2017-09-04 10:30:41";
    assert_eq!(skipped(&trace), [(4, why)]);
}

const PODS: &str = "\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,4000,9216,1,460,,LS,Running,100,400,150
b,4000,9216,8,1000,V100M32,BE,Succeeded,90,400,390
c,4000,9216,1,1000,,LS,Pending,10,200,
d,4000,9216,0,0,,LS,Running,10,200,20
e,4000,9216,1,1000,,LS,Failed,10,20,20
f,4000,9216,1,1000,,LS,Failed,10,15,20
";

#[test]
fn pods_run_from_scheduling_to_deletion_and_may_hold_a_part() {
    let trace = read_as(None, PODS).unwrap();
    let job = |job: &TraceJob| (job.submitted, job.duration, job.devices_milli, job.user.clone());
    assert_eq!(
        trace.jobs.iter().map(job).collect::<Vec<_>>(),
        [
            (Span::ZERO, Span::from_secs(10), 8_000, "BE".to_owned()),
            (Span::from_secs(10), Span::from_secs(250), 460, "LS".to_owned()),
        ]
    );
    assert_eq!(
        skipped(&trace),
        [
            (4, "it was never scheduled"),
            (5, "num_gpu is 0: the job needs no GPU"),
            (6, "deletion_time - scheduled_time is 0: the job did not run"),
            (7, "it was deleted at 15 s, before it was scheduled at 20 s"),
        ]
    );
}

const RATES: &str = "\
source,gpu,consolidated,model,batch_size,scale_factor,steps_per_s
sim,v100,True,ResNet-18,16,2,20.0
sim,v100,False,ResNet-18,16,2,1.0
oracle,v100,True,ResNet-18,16,2,7.0
sim,v100,True,A3C,0,1,4.0
sim,v100,True,LM,5,1,0.0
";

const STEPS: &str = "\
ResNet-18 (batch size 16)\tcd %s && python3 main.py --note=\"a b\t-n\t1\t100\t6.5\t2
A3C\tpython3 main.py\t-n\t0\t8\t4.0\t1
LM (batch size 5)\tpython main.py\t-n\t0\t8\t4.0\t1
LM (batch size five)\tpython main.py\t-n\t0\t8\t4.0\t1
A3C\tpython3 main.py
ResNet-18 (batch size 16)\tpython3 main.py\tcifar10\t--steps\t1\t40\t2\t1\t-1.000000\t0
";

fn rates(of: &str) -> Result<Throughputs, TraceError> {
    Throughputs::read(RATES.as_bytes(), of.parse().unwrap())
}

#[test]
fn measured_throughputs_turn_steps_into_time() {
    let throughputs = Some(rates("sim/v100").unwrap());
    let trace = read(STEPS.as_bytes(), &ReadOptions { throughputs, ..ReadOptions::default() }).unwrap();
    let job = |job: &TraceJob| (job.submitted, job.duration, job.devices_milli, job.iterations);
    let (half, four) = (Span::from_millis(6_500), Span::from_secs(4));
    assert_eq!(
        trace.jobs.iter().map(job).collect::<Vec<_>>(),
        [
            (Span::ZERO, Span::from_secs(2), 2_000, Some(40)),
            (four, Span::from_secs(2), 1_000, Some(8)),
            (half, Span::from_secs(5), 2_000, Some(100)),
        ]
    );
    assert_eq!(
        skipped(&trace),
        [
            (3, "no throughput of LM with batch size 5 on 1 GPUs for sim/v100"),
            (4, "no valid batch size in 'LM (batch size five)': expected, for example, (batch size 64)"),
            (5, "expected 7 or 10 tab-separated fields, found 2"),
        ]
    );
}

#[test]
fn steps_without_throughputs_are_an_error_with_the_remedy() {
    assert!(refusal(STEPS).contains("--throughputs FILE"));
    let unknown = rates("phys/v100").unwrap_err().to_string();
    assert!(
        unknown.contains("no measurements for phys/v100; the table has sim/v100, oracle/v100"),
        "{unknown}"
    );
    assert!("v100".parse::<ThroughputSource>().is_err() && "/v100".parse::<ThroughputSource>().is_err());
}

const PAI: &str = "arrival_time,length,cpus\n0.0,1.5,1\n2.25,0.25,8\n3.0,0.0,1\n4.0,2000,1\n";

#[test]
fn the_pai_trace_of_gaia_is_in_hours_and_its_cpus_stand_for_gpus() {
    let trace = read_as(None, PAI).unwrap();
    let job = |job: &TraceJob| (job.submitted, job.duration, job.devices_milli, job.group.clone());
    assert_eq!(
        trace.jobs.iter().map(job).collect::<Vec<_>>(),
        [
            (Span::ZERO, Span::from_secs(5_400), 1_000, "pai/1".to_owned()),
            (Span::from_secs(8_100), Span::from_secs(900), 8_000, "pai/8".to_owned()),
        ]
    );
    assert_eq!(
        skipped(&trace),
        [
            (4, "length is 0: the job did not run"),
            (5, "length is 2000 h: expected at most 100 h; use --format pai-seconds"),
        ]
    );
    let in_seconds = read_as(Some(TraceFormat::PaiSeconds), PAI).unwrap();
    assert_eq!(in_seconds.jobs[2].duration, Span::from_secs(2_000));
}

#[test]
fn the_published_pai_traces_are_read_in_full() {
    let Some(trace) = read_published("alibaba_pai_2020/gaia_pai-100k.csv.gz", None) else { return };
    assert_eq!((trace.jobs.len(), trace.skipped.len()), (99_998, 0));
    let single = trace.jobs.iter().filter(|job| job.devices_milli == 1_000).count();
    assert_eq!(single, 73_531);
    assert!(trace.length() > Span::from_secs(364 * 86_400), "one year: {}", trace.length());
    let Some(path) = published("alibaba_pai_2020/gaia_pai_1k.csv") else { return };
    let format = Some(TraceFormat::PaiSeconds);
    let week = read(File::open(path).unwrap(), &ReadOptions { format, ..ReadOptions::default() }).unwrap();
    assert_eq!((week.jobs.len(), week.skipped.len()), (1_000, 0));
}

#[test]
fn limits_drop_jobs_before_a_part_is_taken() {
    let text = "submit_s,duration_s,gpus,gpu_share\n0,10,1,\n1,100,1,0.5\n2,10,2,\n3,101,1,\n4,5,1,\n";
    let all = read_as(None, text).unwrap();
    let kept = |duration: Option<u64>, devices| {
        let limits = JobLimits { duration: duration.map(Span::from_secs), devices };
        let (kept, exceeding) = all.clone().within(limits);
        assert_eq!(exceeding.too_long + exceeding.too_many_gpus + kept.jobs.len(), all.jobs.len());
        kept.jobs.iter().map(|job| job.submitted.as_micros() / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(kept(None, None), [0, 1, 2, 3, 4]);
    assert_eq!(kept(Some(100), None), [0, 1, 2, 4]);
    assert_eq!(kept(Some(100), Some(1)), [0, 1, 4]);
    let limits = JobLimits { duration: None, devices: Some(1) };
    let (within, exceeding) = all.within(limits);
    assert_eq!(exceeding, ExceedingJobs { too_long: 0, too_many_gpus: 1 });
    let part = within.part(2, Some(2));
    assert_eq!(
        part.jobs.iter().map(|job| job.submitted).collect::<Vec<_>>(),
        [Span::ZERO, Span::from_secs(1)]
    );
    assert_eq!(part.part(5, None).jobs, []);
}

#[test]
fn formats_parse_from_their_names() {
    for format in TraceFormat::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert!("xls".parse::<TraceFormat>().unwrap_err().to_string().contains("csv, philly, openb, gavel"));
}

#[test]
fn a_row_of_several_lines_is_reported_by_its_first() {
    let text = "submit_s,duration_s,gpus,user\n0,5,1,\"two\nlines\"\n1,x,1,\"three\nmore\nlines\"\n2,y,1,ada";
    let trace = read_as(None, text).unwrap();
    assert_eq!(trace.jobs[0].user, "two\nlines");
    assert_eq!(trace.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [4, 7]);
}

#[test]
fn the_published_philly_trace_is_read_in_full() {
    let Some(trace) = read_published("philly/philly_pollux_66k.csv.gz", None) else { return };
    assert_eq!((trace.jobs.len(), trace.skipped.len()), (65_797, 0));
    let single = trace.jobs.iter().filter(|job| job.devices_milli == 1_000).count();
    assert_eq!(single, 61_751);
    let median = |mut durations: Vec<Span>| durations.split_off(durations.len() / 2)[0];
    let mut durations: Vec<Span> = trace.jobs.iter().map(|job| job.duration).collect();
    durations.sort_unstable();
    assert_eq!(median(durations), Span::from_secs(1_243));
}

#[test]
fn the_published_pods_are_read_except_those_without_a_gpu_or_a_run() {
    let Some(trace) = read_published("alibaba_gpu_v2023/openb_pod_list_default.csv.gz", None) else { return };
    assert_eq!(trace.jobs.len() + trace.skipped.len(), 8_152);
    let parts = trace.jobs.iter().filter(|job| job.devices_milli < 1_000).count();
    assert!(parts > 2_000, "{parts}");
    let without_gpu = trace.skipped.iter().filter(|it| it.why.starts_with("num_gpu is 0")).count();
    assert_eq!(without_gpu, 1_088);
    assert!(trace.jobs.len() > 6_000, "{}", trace.jobs.len());
}

#[test]
fn the_published_gavel_traces_are_read_with_their_throughputs() {
    let Some(table) = published("gavel/singles_flat.csv") else { return };
    let speeds = || Throughputs::read(File::open(&table).unwrap(), ThroughputSource::default()).unwrap();
    for file in ["msr_seed0/6214e9.trace.gz", "physical_cluster/small_test.trace"] {
        let trace = read_published(&format!("gavel/traces/{file}"), Some(speeds())).unwrap();
        let few = trace.skipped.len() * 20 <= trace.jobs.len();
        assert!(few, "{file}: {} jobs, {:?}", trace.jobs.len(), trace.skipped.first());
    }
}
